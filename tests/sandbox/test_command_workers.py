"""Workers behind walls that a program puts up: what holds, how they end, and what is said when they cannot start."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from tests.code.hosts import TableHost
from tests.sandbox.acting import FORKS, descendants, gone, until
from toolcrib.errors import SandboxError, SandboxUnavailable
from toolcrib.sandbox import (
    CommandWorkers,
    ProcessSandbox,
    Program,
    SandboxLimits,
    WorkerSandbox,
    bubblewrap,
    guest_command,
    gvisor,
)
from toolcrib.sandbox._worker import _commands

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="its commands are those of Linux"),
]

ROOT = Path(__file__).parents[2]
PROGRAM = Program("add(20, 1)", ("add",))


def bare(*, spares: int = 1) -> WorkerSandbox:
    """Return a sandbox of a command that puts up no wall; a shell stays above the guest."""
    return WorkerSandbox(CommandWorkers(["sh", "-c", '"$@"; exit $?', "sh", *guest_command()], spares=spares), "bare")


MAKERS: dict[str, Callable[..., WorkerSandbox]] = {"bare": bare, "bubblewrap": bubblewrap, "gvisor": gvisor}


@cache
def absence(make: Callable[..., WorkerSandbox]) -> str:
    """Return why a wall cannot be put up here; empty where it can: to try takes a second or two of gVisor."""
    try:
        with make(spares=0) as made:
            assert made.layers
    except SandboxUnavailable as why:
        return str(why)
    return ""


def skip_where_it_cannot_be(make: Callable[..., WorkerSandbox]) -> None:
    """Skip a test of a wall that cannot be put up here."""
    if why := absence(make):
        pytest.skip(f"this wall cannot be put up here: {why}")


@pytest.fixture(params=MAKERS)
def kind(request: pytest.FixtureRequest) -> str:
    """Return the name of each wall that can be put up here."""
    skip_where_it_cannot_be(MAKERS[request.param])
    return request.param


async def test_any_command_that_keeps_its_standard_input_is_a_wall() -> None:
    with bare() as sandbox:
        result = await sandbox.run(PROGRAM, TableHost())

    assert result.value == 21
    assert result.isolation[0].startswith("bare-3.")
    assert {"rlimits", "seccomp"} <= set(result.isolation)
    assert "namespaces" not in result.isolation


async def test_a_command_that_is_not_there_is_named_with_the_remedy() -> None:
    with (
        WorkerSandbox(CommandWorkers(["no-such-wall"], remedy="Build it"), "none") as sandbox,
        pytest.raises(SandboxUnavailable, match=r"there is no program `no-such-wall` here\. Build it"),
    ):
        await sandbox.run(PROGRAM, TableHost())


async def test_what_a_command_said_that_started_no_worker_is_in_the_error() -> None:
    with (
        WorkerSandbox(CommandWorkers(["sh", "-c", "echo no walls here >&2"]), "none") as sandbox,
        pytest.raises(SandboxUnavailable, match=r"ended at once.*sh` said: no walls here"),
    ):
        await sandbox.run(PROGRAM, TableHost())


async def test_a_layer_that_is_required_inside_is_named() -> None:
    command = guest_command(skip=["seccomp"])

    with (
        WorkerSandbox(CommandWorkers(command, require={"seccomp"}), "none") as sandbox,
        pytest.raises(SandboxUnavailable, match="seccomp is skipped"),
    ):
        await sandbox.run(PROGRAM, TableHost())


async def test_a_spare_worker_is_for_any_limits() -> None:
    big = Program("x = 'a' * 300_000_000\n1", limits=SandboxLimits(memory=32 << 20))
    with bare(spares=1) as sandbox:
        await sandbox.run(PROGRAM, TableHost())

        result = await sandbox.run(big, TableHost())

        assert result.error is not None
        assert result.error.kind == "memory"


async def test_nothing_is_left_of_a_closed_sandbox(kind: str) -> None:
    before = descendants(os.getpid())
    sandbox = MAKERS[kind](spares=2)
    session = sandbox.session()
    await session.run(PROGRAM, TableHost())
    await sandbox.run(PROGRAM, TableHost())
    started = descendants(os.getpid(), before)

    sandbox.close()
    session.close()

    assert len(started) >= 3
    assert until(lambda: all(gone(process) for process in started))
    assert until(lambda: not descendants(os.getpid(), before))
    with pytest.raises(SandboxError, match="was closed"):
        await sandbox.run(PROGRAM, TableHost())


RUNNING = """
import asyncio, sys, time
from tests.code.hosts import TableHost
from tests.sandbox.test_command_workers import MAKERS, PROGRAM
from toolcrib.sandbox import Program
sandbox = MAKERS[sys.argv[1]](spares=1)
class Host(TableHost):
    async def call(self, *args, **kwargs):
        print("ready", flush=True)
        return await super().call(*args, **kwargs)
asyncio.run(sandbox.run(PROGRAM, TableHost()))
asyncio.run(sandbox.run(Program("add(1)\\nwhile True: pass", ("add",)), Host()))
"""


def test_the_death_of_the_host_ends_everything(kind: str, tmp_path: Path) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-c", RUNNING, kind]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, env=environment) as host:
        assert host.stdout is not None
        assert host.stdout.readline() == b"ready\n"
        below = descendants(host.pid)
        assert list(tmp_path.iterdir())

        host.kill()

    assert len(below) >= 2
    assert until(lambda: all(gone(each) for each in below))
    assert until(lambda: not list(tmp_path.iterdir()))


FORKING = """
import asyncio, os, sys
from tests.code.hosts import TableHost
from tests.sandbox.test_command_workers import MAKERS, PROGRAM
def answer(place):
    ran = asyncio.run(place.run(PROGRAM, TableHost()))
    return ran.error or ran.value
sandbox = MAKERS[sys.argv[1]](spares=1)
session = sandbox.session()
answer(session)
child = os.fork()
if child == 0:
    del session
    right = answer(sandbox) == 21
    sandbox.close()
    os._exit(0 if right else 1)
print(os.waitpid(child, 0)[1], answer(session), answer(sandbox))
"""


def test_a_fork_of_the_host_has_workers_of_its_own(kind: str) -> None:
    command = [*FORKS, FORKING, kind]

    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)

    assert (ran.stdout, ran.stderr) == ("0 21 21\n", "")


async def test_a_worker_that_was_killed_from_outside_is_an_error_and_replaced(kind: str) -> None:
    host = TableHost()
    with MAKERS[kind](spares=0) as sandbox:
        before = descendants(os.getpid())

        def kill() -> None:
            for process in sorted(descendants(os.getpid(), before))[1:]:
                if not gone(process):
                    os.kill(process, 9)

        result = await sandbox.run(Program("die()\nwhile True: pass", ("die",)), TableHost(die=kill))

        assert result.error is not None
        assert (result.error.kind, result.error.type) == ("sandbox", "SandboxLost")
        assert (await sandbox.run(PROGRAM, host)).value == 21


async def test_what_a_wall_said_when_its_worker_died_is_one_line_of_the_log(caplog: pytest.LogCaptureFixture) -> None:
    says = r'"$@"; status=$?; head -c 1000000 /dev/zero | tr "\0" a >&2; printf "\nit ended with $status\n" >&2'
    workers = CommandWorkers(["sh", "-c", says, "sh", *guest_command()], spares=0)
    with WorkerSandbox(workers, "wordy") as sandbox:
        before = descendants(os.getpid())

        def kill() -> None:
            os.kill(max(descendants(os.getpid(), before)), 9)  # the guest was started last

        result = await sandbox.run(Program("die()\nwhile True: pass", ("die",)), TableHost(die=kill))

    assert result.error is not None
    assert result.error.kind == "sandbox"
    [line] = [record.getMessage() for record in caplog.records]
    assert line.startswith("a worker of wordy-3.")
    assert line.endswith(r"aaa\nit ended with 137'")
    assert len(line) < 2_200


@pytest.mark.parametrize("make", [ProcessSandbox, bubblewrap, gvisor])
async def test_charts_are_drawn_behind_every_wall(make: Callable[..., WorkerSandbox]) -> None:
    skip_where_it_cannot_be(make)
    code = "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.title('x')\nplt.show()"

    with make(packages=["matplotlib"], spares=0) as sandbox:
        result = await sandbox.run(Program(code, limits=SandboxLimits()), TableHost())

    assert result.error is None
    assert [(each.name, (each.data or b"")[:4]) for each in result.artifacts] == [("figure-1.png", b"\x89PNG")]


async def test_threads_of_a_session_stand_still_between_its_programs(kind: str) -> None:
    code = """
import threading
count = 0
def work():
    global count
    while True: count += 1
threading.Thread(target=work, daemon=True).start()
count
"""
    limits = SandboxLimits(program_time=60.0)  # the thread computes until it is stopped, which may come late
    with MAKERS[kind](spares=0) as sandbox:
        session = sandbox.session()
        await session.run(Program(code, limits=limits), TableHost())
        processes = descendants(os.getpid())

        assert until(lambda: "T" in [descendants(os.getpid()).get(each) for each in processes])
        result = await session.run(Program("count > 0", limits=limits), TableHost())
        session.close()

    assert result.error is None
    assert result.value is True


WATCHING = """
import os, signal, subprocess, sys, time
def note(*_):
    stats = [open(f"/proc/{each.pid}/stat").read() for each in below]
    with open(sys.argv[1], "a") as file:
        file.write("".join(each.rpartition(")")[2].split()[0] for each in stats) + "\\n")
below = [subprocess.Popen(["sleep", "60"], stdin=subprocess.DEVNULL) for _ in range(20)]
signal.signal(signal.SIGCONT, note)  # before the guest is there, which may be stopped at once
below.append(subprocess.Popen(sys.argv[2:], stdin=0))
while below[-1].poll() is None:  # a signal just before a wait without an end would be noted at its end
    time.sleep(0.01)
"""


async def test_a_wall_goes_on_after_all_that_it_started(tmp_path: Path) -> None:
    states = tmp_path / "states"
    states.write_text("")
    command = [sys.executable, "-c", WATCHING, str(states), *guest_command()]
    with WorkerSandbox(CommandWorkers(command, spares=0), "watching") as sandbox:
        session = sandbox.session()
        await session.run(PROGRAM, TableHost())

        # The next stop would discard a signal that the wall has not read yet: the program waits until it has.
        noted = TableHost(noted=lambda: until(lambda: "\n" in states.read_text()))
        result = await session.run(Program("noted()", ("noted",)), noted)
        session.close()

    assert result.value is True
    assert "T" not in states.read_text()


def test_commands_go_on_from_the_bottom_and_stop_from_the_top(monkeypatch: pytest.MonkeyPatch) -> None:
    """The order on its own: the wall above sees a wrong one on a busy machine only."""
    signalled: list[tuple[int, int]] = []

    def tree(root: int) -> list[int]:
        return [root, root + 1, root + 2]

    def kill(process: int, number: int) -> None:
        signalled.append((process, number))

    monkeypatch.setattr(_commands, "_tree", tree)
    monkeypatch.setattr(os, "kill", kill)
    starter = object.__new__(_commands._Commands)  # pyright: ignore[reportPrivateUsage] -- what it does with one request

    starter.signal(7, signal.SIGSTOP)
    starter.signal(7, signal.SIGCONT)

    assert signalled == [(each, signal.SIGSTOP) for each in (7, 8, 9)] + [(each, signal.SIGCONT) for each in (9, 8, 7)]


async def test_bubblewrap_shows_packages_that_lie_below_tmp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    skip_where_it_cannot_be(bubblewrap)
    folder = tmp_path / "site-packages"
    folder.mkdir()
    (folder / "module_below_tmp.py").write_text("answer = 42")
    monkeypatch.syspath_prepend(folder)

    with bubblewrap(packages=["module_below_tmp"], spares=0) as sandbox:
        result = await sandbox.run(Program("import module_below_tmp\nmodule_below_tmp.answer"), TableHost())

    assert (result.error, result.value) == (None, 42)
