"""Workers at an address: who is let in, and that no peer makes the host or the guest hang."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.code.hosts import TableHost
from tests.sandbox.acting import FORKS, descendants, until
from tests.sandbox.guests import TOKEN, guest, remote
from toolcrib.errors import SandboxError, SandboxUnavailable
from toolcrib.sandbox import Program, RemoteWorkers, SandboxLimits, guest_command
from toolcrib.sandbox._worker.launch import encoded_message, read_message, version
from toolcrib.sandbox._worker.relay import proof_of

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the guest's workers need Linux")

LIMITS = {"cpu": 5, "memory": 64 << 20}
PROGRAM = Program("add(20, 1)", ("add",))


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with guest(most=2) as made:
        yield made


@pytest.fixture
def knock(address: str) -> Iterator[Callable[[], socket.socket]]:
    """Return what connects to the guest as a stranger does."""
    made: list[socket.socket] = []
    host, _, port = address.rpartition(":")

    def connected() -> socket.socket:
        made.append(socket.create_connection((host, int(port)), 20))
        return made[-1]

    yield connected
    for each in made:
        each.close()


async def works(address: str) -> bool:
    with remote(address) as sandbox:
        return (await sandbox.run(PROGRAM, TableHost())).value == 21


def ended(connection: socket.socket) -> bool:
    """Tell whether the other end has closed a connection, whatever came before."""
    connection.settimeout(20)
    try:
        while connection.recv(1 << 16):
            pass
    except TimeoutError:
        return False
    except ConnectionError:
        pass
    return True


# --- the guest


async def test_another_token_gets_nothing_but_the_reason(address: str) -> None:
    with (
        remote(address, token=TOKEN + "?") as sandbox,
        pytest.raises(SandboxUnavailable, match="the token is another one"),
    ):
        await sandbox.run(PROGRAM, TableHost())

    assert await works(address)


@pytest.mark.parametrize("said", [b"GET / HTTP/1.1\r\nHost: guest.example\r\n\r\n", bytes(40), b"\xff" * 32])
async def test_who_has_no_token_is_told_so_before_anything_is_read(
    knock: Callable[[], socket.socket], said: bytes, address: str
) -> None:
    stranger = knock()

    stranger.sendall(said)

    assert "failed" in read_message(stranger, 20)
    assert ended(stranger)


async def test_a_token_that_comes_in_pieces(knock: Callable[[], socket.socket]) -> None:
    peer = knock()

    for byte in proof_of(TOKEN):
        peer.sendall(bytes([byte]))

    assert read_message(peer, 20)["version"] == version()


@pytest.mark.parametrize(
    "said",
    [b"\xff\xff\xff\xff", b"\0\0\0\2no", b"\0\0\0\2[]", encoded_message({"cpu": "x", "memory": 1}), bytes(9)],
    ids=["huge", "garbage", "list", "text", "empty"],
)
async def test_what_is_no_message_ends_the_connection(
    knock: Callable[[], socket.socket], said: bytes, address: str
) -> None:
    peer = knock()
    peer.sendall(proof_of(TOKEN) + said)

    assert ended(peer)
    assert await works(address)


@pytest.mark.parametrize("said", [b"", b"half a tok"])
@pytest.mark.parametrize("number", [20, 64, 200])
async def test_connections_that_say_nothing_keep_no_place(
    knock: Callable[[], socket.socket], address: str, number: int, said: bytes
) -> None:
    for _ in range(number):
        knock().sendall(said)

    assert await works(address)


async def test_the_connection_that_was_silent_for_longest_makes_room(knock: Callable[[], socket.socket]) -> None:
    first, *others = [knock() for _ in range(65)]

    assert ended(first)
    others[0].sendall(proof_of(TOKEN))
    assert read_message(others[0], 20)["version"] == version()


async def test_no_more_workers_than_may_be(knock: Callable[[], socket.socket], address: str) -> None:
    for _ in range(2):
        peer = knock()
        peer.sendall(proof_of(TOKEN) + encoded_message(LIMITS))
        read_message(peer, 20)

    def is_full() -> bool:
        one = knock()
        one.sendall(proof_of(TOKEN))
        return "all of its 2 workers are taken" in read_message(one, 20).get("failed", "")

    assert until(is_full)


async def test_a_worker_that_is_silent_for_too_long_ends() -> None:
    with guest(idle=0.3) as address, remote(address) as sandbox:
        session = sandbox.session()
        await session.run(PROGRAM, TableHost())
        await asyncio.sleep(1)
        with suppress(SandboxError):
            result = await session.run(PROGRAM, TableHost())
            assert result.error is not None
            assert result.error.kind == "sandbox"

        assert (await sandbox.run(PROGRAM, TableHost())).value == 21


async def test_the_worker_ends_with_its_connection(address: str, knock: Callable[[], socket.socket]) -> None:
    with remote(address) as sandbox:
        host = TableHost()
        running = asyncio.create_task(sandbox.run(Program("add(1)\nwhile True: pass", ("add",)), host))
        await host.called.wait()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    def has_places() -> bool:
        peers = [knock(), knock()]
        for peer in peers:
            peer.sendall(proof_of(TOKEN) + encoded_message(LIMITS))
        said = [read_message(peer, 20) for peer in peers]
        for peer in peers:
            peer.close()
        return all("ready" in each for each in said)

    assert until(has_places)


@pytest.mark.parametrize(
    ("token", "options", "why"),
    [("short", {}, "at least 16"), (TOKEN, {"host": "0.0.0.0"}, "without TLS")],
)
def test_a_guest_that_anyone_could_use_does_not_start(token: str, options: dict[str, Any], why: str) -> None:
    command = guest_command(serve="address", **options)

    ran = subprocess.run(command, env={"TOOLCRIB_TOKEN": token}, capture_output=True, text=True, timeout=60)

    assert ran.returncode == 1
    assert why in ran.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may look into the memory of workers")
async def test_no_worker_has_the_token_in_its_memory() -> None:
    others = descendants(os.getpid())
    with guest() as address, remote(address) as sandbox:
        session = sandbox.session()
        await session.run(PROGRAM, TableHost())
        listens, *below = sorted(descendants(os.getpid(), others))

        having = [process for process in below if TOKEN.encode() in memory_of(process)]

        assert TOKEN.encode() in memory_of(listens)
        assert len(below) >= 2
        assert having == []
        session.close()


def memory_of(process: int) -> bytes:
    """Return all that a process could have written to."""
    found = b""
    with open(f"/proc/{process}/maps") as maps, open(f"/proc/{process}/mem", "rb") as memory:
        for line in maps:
            place, rights, *_ = line.split()
            if rights.startswith("rw"):
                start, end = (int(each, 16) for each in place.split("-"))
                with suppress(OSError):
                    memory.seek(start)
                    found += memory.read(end - start)
    return found


# --- the host, with guests that are none


@contextmanager
def peer(act: Callable[[socket.socket], None]) -> Generator[str]:
    """Listen at an address, and do something with the first connection."""
    with socket.create_server(("127.0.0.1", 0)) as ear:
        taken: list[socket.socket] = []

        def serve() -> None:
            with suppress(OSError):
                while True:
                    taken.append(ear.accept()[0])
                    threading.Thread(target=_quietly, args=(act, taken[-1]), daemon=True).start()

        threading.Thread(target=serve, daemon=True).start()
        yield f"127.0.0.1:{ear.getsockname()[1]}"
        ear.shutdown(socket.SHUT_RDWR)
    for each in taken:
        each.close()


def _quietly(act: Callable[[socket.socket], None], connection: socket.socket) -> None:
    with suppress(OSError, EOFError):
        act(connection)


def say_nothing(_: socket.socket) -> None:
    pass


def drip(connection: socket.socket) -> None:
    while True:
        connection.sendall(b"\0")
        threading.Event().wait(0.1)


def hang_up(connection: socket.socket) -> None:
    connection.close()


def babble(connection: socket.socket) -> None:
    connection.sendall(b"SSH-2.0-OpenSSH_9.6\r\n" * 10)


def be_older(connection: socket.socket) -> None:
    connection.sendall(encoded_message({"ready": {}, "broken": {}, "version": "Python 3.11, guest 0123"}))


def have_no_layers(connection: socket.socket) -> None:
    connection.sendall(encoded_message({"ready": {"seccomp": "skipped"}, "broken": {}, "version": version()}))


@pytest.mark.parametrize(
    ("act", "why"),
    [
        (say_nothing, "did not start within 1 s"),
        (drip, "did not start|not a message"),
        (hang_up, "ended at once|ended the connection"),
        (babble, "not a message of a guest"),
        (be_older, "the guest is Python 3.11, guest 0123, and this is Python"),
        (have_no_layers, "landlock is None, and empty_root is None"),
    ],
)
async def test_a_peer_that_is_no_guest_is_an_error(act: Callable[[socket.socket], None], why: str) -> None:
    with peer(act) as address, remote(address, seconds=1.0) as sandbox, pytest.raises(SandboxUnavailable, match=why):
        await sandbox.run(PROGRAM, TableHost())


def greet_and(then: Callable[[socket.socket], None]) -> Callable[[socket.socket], None]:
    layers = dict.fromkeys(("no_new_privs", "seccomp", "rlimits", "landlock"), "on")

    def act(connection: socket.socket) -> None:
        connection.sendall(encoded_message({"ready": layers, "broken": {}, "version": version()}))
        connection.recv(1 << 16)
        then(connection)

    return act


@pytest.mark.parametrize("then", [say_nothing, drip, hang_up, babble])
async def test_a_guest_that_answers_no_program_ends_with_its_limits(then: Callable[[socket.socket], None]) -> None:
    program = Program("1", limits=SandboxLimits(program_time=1.0))

    with peer(greet_and(then)) as address, remote(address) as sandbox:
        result = await sandbox.run(program, TableHost())

    assert result.error is not None
    assert result.error.kind in {"time", "sandbox"}


async def test_an_address_where_nothing_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as ear:
        free = ear.getsockname()[1]

    with (
        remote(f"127.0.0.1:{free}") as sandbox,
        pytest.raises(SandboxUnavailable, match=r"cannot be reached.*See that it runs"),
    ):
        await sandbox.run(PROGRAM, TableHost())


async def test_a_guest_that_dies_ends_its_programs_with_an_error() -> None:
    host = TableHost()
    with guest() as address, remote(address) as sandbox:
        running = asyncio.create_task(sandbox.run(Program("add(1)\nwhile True: pass", ("add",)), host))
        await host.called.wait()

    result = await running

    assert result.error is not None
    assert result.error.kind in {"sandbox", "stopped"}


async def test_a_closed_sandbox_takes_no_program(address: str) -> None:
    sandbox = remote(address)
    await sandbox.run(PROGRAM, TableHost())

    sandbox.close()

    with pytest.raises(SandboxError, match="was closed"):
        await sandbox.run(PROGRAM, TableHost())


@pytest.mark.parametrize("address", ["10.0.0.2:7000", "guest.example:7000", "[fd00::1]:7000"])
def test_another_machine_is_not_connected_to_in_plain_text(address: str) -> None:
    with pytest.raises(ValueError, match="without TLS, the token and all programs can be read"):
        RemoteWorkers(address, token=TOKEN)

    RemoteWorkers(address, token=TOKEN, plain=True)
    RemoteWorkers(address, token=TOKEN, tls=ssl.create_default_context())


@pytest.mark.parametrize("address", ["7000", "localhost", ":7000", "localhost:port"])
def test_what_is_no_address(address: str) -> None:
    with pytest.raises(ValueError, match="host:port"):
        RemoteWorkers(address, token=TOKEN)


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[str, str]:
    """Return files of a certificate for localhost, and of its key."""
    files = (str(tmp_path / "cert.pem"), str(tmp_path / "key.pem"))
    made = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    names = ["-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    subprocess.run([*made, *names, "-out", files[0], "-keyout", files[1]], check=True, capture_output=True)
    return files


async def test_tls_on_both_ends(certificate: tuple[str, str]) -> None:
    file, key = certificate
    trusting = ssl.create_default_context(cafile=file)
    big = Program("add(len('x' * 1), more=len(text()))", ("add", "text"))

    with guest(certificate=file, key=key) as address:
        with remote(address, tls=trusting) as sandbox:
            result = await sandbox.run(big, TableHost(add=lambda *_, more: more, text=lambda: "é" * 500_000))
        with (
            remote(address, tls=ssl.create_default_context()) as strange,
            pytest.raises(SandboxUnavailable, match="CERTIFICATE_VERIFY_FAILED"),
        ):
            await strange.run(PROGRAM, TableHost())
        with remote(address) as plain, pytest.raises(SandboxUnavailable):
            await plain.run(PROGRAM, TableHost())

    assert result.value == 500_000


FORKING = """
import asyncio, os, sys
from tests.code.hosts import TableHost
from tests.sandbox.guests import remote
from toolcrib.sandbox import Program
async def one(place):
    return (await place.run(Program("add(20, 1)", ("add",)), TableHost())).value
with remote(sys.argv[1]) as sandbox:
    session = sandbox.session()
    asyncio.run(one(session))
    child = os.fork()
    if child == 0:
        del session
        os._exit(0 if asyncio.run(one(sandbox)) == 21 else 1)
    print(os.waitpid(child, 0)[1], asyncio.run(one(session)))
"""


def test_a_fork_of_the_host_leaves_its_connections_alone(address: str) -> None:
    root = Path(__file__).parents[2]

    ran = subprocess.run([*FORKS, FORKING, address], cwd=root, capture_output=True, text=True, timeout=90)

    assert (ran.stdout, ran.stderr) == ("0 21\n", "")
