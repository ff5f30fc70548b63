"""Guests of a command, here or elsewhere: that none makes the host hang or lies to it, and who is let in."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.code.hosts import TableHost
from tests.sandbox.acting import descendants, until
from tests.sandbox.guests import guest, remote
from toolcrib.errors import SandboxUnavailable
from toolcrib.sandbox import CommandWorkers, Program, SandboxLimits, WorkerSandbox
from toolcrib.sandbox._worker.launch import encoded_message, version

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the guest's workers need Linux")
through_socat = pytest.mark.skipif(shutil.which("socat") is None, reason="the guest is reached through socat")

PROGRAM = Program("add(20, 1)", ("add",))
ENDLESS = Program("add(1)\nwhile True: pass", ("add",))
LAYERS = dict.fromkeys(("no_new_privs", "seccomp", "rlimits", "landlock"), "on")

SAYS_NOTHING = "channel.recv(1)"
HANGS_UP = ""
BABBLES = "channel.sendall(b'SSH-2.0-OpenSSH_9.6' * 10)"
DRIPS = "while True: channel.sendall(b'.'); __import__('time').sleep(0.1)"


def greeting(**message: object) -> str:
    return f"channel.sendall({encoded_message(message)!r})"


def acting(*acts: str) -> WorkerSandbox:
    """Return a sandbox whose guest is a program that does something else."""
    source = "\n".join(["import socket", "channel = socket.socket(fileno=0)", *acts])
    return WorkerSandbox(CommandWorkers([sys.executable, "-S", "-c", source], spares=0), "acting")


# --- guests that are none


@pytest.mark.parametrize(
    ("act", "why"),
    [
        (HANGS_UP, "its process ended at once"),
        (BABBLES, "not a message of a guest"),
        (
            greeting(ready={}, broken={}, version="Python 3.11, guest 0123"),
            "the guest is Python 3.11, guest 0123, and this is Python",
        ),
        (greeting(ready={"seccomp": "skipped"}, broken={}, version=version()), "rlimits is None"),
    ],
)
async def test_a_peer_that_is_no_guest_is_an_error(act: str, why: str) -> None:
    with acting(act) as sandbox, pytest.raises(SandboxUnavailable, match=why):
        await sandbox.run(PROGRAM, TableHost())


@pytest.mark.parametrize("act", [SAYS_NOTHING, DRIPS, HANGS_UP, BABBLES])
async def test_a_guest_that_answers_no_program_ends_with_its_limits(act: str) -> None:
    program = Program("1", limits=SandboxLimits(program_time=1.0))
    greets = greeting(ready=LAYERS, broken={}, version=version())

    with acting(greets, "channel.recv(1 << 16)", act) as sandbox:
        result = await sandbox.run(program, TableHost())

    assert result.error is not None
    assert result.error.kind in {"time", "sandbox"}


# --- guests elsewhere


@through_socat
async def test_the_worker_ends_with_its_connection() -> None:
    others = set(descendants(os.getpid()))
    with guest() as address:
        listener = set(descendants(os.getpid(), others))
        with remote(address) as sandbox:
            host = TableHost()
            running = asyncio.create_task(sandbox.run(ENDLESS, host))
            await host.called.wait()
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

        assert until(lambda: set(descendants(os.getpid(), others)) == listener)


@through_socat
async def test_a_guest_that_dies_ends_its_programs_with_an_error() -> None:
    others = set(descendants(os.getpid()))
    host = TableHost()
    with guest() as address, remote(address) as sandbox:
        running = asyncio.create_task(sandbox.run(ENDLESS, host))
        await host.called.wait()
        kill_guests(others)
        result = await running

    assert result.error is not None
    assert result.error.kind in {"sandbox", "stopped"}


def kill_guests(others: set[int]) -> None:
    for process in descendants(os.getpid(), others):
        if b"EXEC:" in Path(f"/proc/{process}/cmdline").read_bytes():
            os.kill(process, signal.SIGKILL)


@through_socat
async def test_an_address_where_nothing_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as ear:
        free = ear.getsockname()[1]

    with remote(f"127.0.0.1:{free}") as sandbox, pytest.raises(SandboxUnavailable, match="Connection refused"):
        await sandbox.run(PROGRAM, TableHost())


@pytest.fixture
def certificate(tmp_path: Path) -> str:
    """Return a file of a certificate for localhost, and of its key."""
    file = str(tmp_path / "both.pem")
    request = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    names = ["-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    subprocess.run([*request, *names, "-out", file, "-keyout", f"{file}.key"], check=True, capture_output=True)
    Path(file).write_text(Path(file).read_text() + Path(f"{file}.key").read_text())
    return file


@through_socat
async def test_tls_lets_in_who_has_a_certificate(certificate: str) -> None:
    trusts = f"cafile={certificate},verify=1"
    big = Program("add(len('x' * 1), more=len(text()))", ("add", "text"))

    with guest(tls=f"cert={certificate},{trusts}") as address:
        with remote(address, tls=f"cert={certificate},{trusts}") as sandbox:
            result = await sandbox.run(big, TableHost(add=lambda *_, more: more, text=lambda: "é" * 500_000))
        with remote(address, tls=trusts) as stranger, pytest.raises(SandboxUnavailable):
            await stranger.run(PROGRAM, TableHost())
        with remote(address) as plain, pytest.raises(SandboxUnavailable):
            await plain.run(PROGRAM, TableHost())

    assert result.value == 500_000
