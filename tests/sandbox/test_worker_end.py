"""Ends of a worker's process: what its program did is told from what was done to it from outside."""

from __future__ import annotations

import signal
import sys

import pytest

from tests.code.hosts import TableHost
from tests.sandbox.acting import Victims, acting_pool, ask, until
from toolcrib.code import Toolkit
from toolcrib.sandbox import ProcessSandbox, Program, ProgramError, SandboxLimits, SandboxResult
from toolcrib.sandbox._worker_end import WorkerEnd, worker_end
from toolcrib.tools import ez_tool

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="ProcessSandbox needs Linux")

DIED = "the worker process died, and the program with it: "


async def ended(code: str, *, all_die: bool = False, **limits: float) -> SandboxResult:
    victims = Victims()
    with ProcessSandbox(spares=0) as sandbox:
        program = Program(code, ("die",), limits=SandboxLimits(**limits))  # type: ignore[arg-type]
        return await sandbox.run(program, TableHost(die=victims.kill_all if all_die else victims.kill_newest))


@pytest.mark.parametrize("then", ["1", "while True: pass"])
async def test_a_worker_that_is_killed_is_lost_and_its_program_is_not_blamed(then: str) -> None:
    result = await ended(f"die()\n{then}")

    why = "it was killed from outside (SIGKILL); the machine may have had no memory left"
    assert result.error == ProgramError("sandbox", "SandboxLost", DIED + why)


async def test_a_worker_whose_zygote_is_killed_is_lost_with_it() -> None:
    result = await ended("die()\n1", all_die=True)

    assert result.error is not None
    assert result.error.type == "SandboxLost"
    assert "it was killed from outside" in result.error.message


@pytest.mark.parametrize(
    ("code", "how"),
    [
        ("import os\nos._exit(137)", "it ended itself with the status 137"),
        ("import os\nos.abort()", "it crashed (SIGABRT), or took more memory than it may"),
        ("import signal\nsignal.raise_signal(signal.SIGSEGV)", "it crashed (SIGSEGV), or took more memory than it may"),
    ],
)
async def test_a_program_that_ends_its_process_has_done_that_itself(code: str, how: str) -> None:
    result = await ended(code)

    assert result.error == ProgramError("sandbox", "SandboxError", DIED + how)


@pytest.mark.parametrize("kill", ["os.kill(os.getpid(), 9)", "signal.raise_signal(9)", "signal.pthread_kill(me, 9)"])
async def test_a_sealed_program_cannot_kill_itself_as_if_from_outside(kill: str) -> None:
    result = await ended(f"import os, signal, threading\nme = threading.get_ident()\n{kill}")

    assert result.error is not None
    assert (result.error.kind, result.error.type) == ("exception", "PermissionError")


async def test_limits_stay_errors_of_the_program() -> None:
    took = await ended("while True: pass", program_time=0.3)
    filled = await ended("x = bytearray(1 << 30)", memory=64 << 20)

    assert [result.error and result.error.kind for result in (took, filled)] == ["time", "memory"]


def test_a_worker_that_the_kernel_ends_for_its_time_has_used_it_up() -> None:
    pool = acting_pool(spares=0)
    worker = pool.take(1, 64 << 20)

    said = ask(worker, "[__import__('signal').signal(24, 1), max(iter(int, 1))]")  # SIGXCPU, ignored
    assert until(lambda: worker.ending() is not None)
    end = worker.ending()
    worker.close()
    pool.close()

    assert (said, end) == ("", WorkerEnd("time", "SIGXCPU"))


def test_ends_of_workers_that_nobody_asks_for_hold_up_no_other() -> None:
    pool = acting_pool(spares=0)
    workers = [pool.take(5, 64 << 20) for _ in range(40)]
    for _ in range(10):
        for worker in workers:
            worker.kill()
        workers = [pool.take(5, 64 << 20) for _ in workers]

    answers = {ask(worker, "1 + 1") for worker in workers}
    ends = [worker.ending() for worker in workers]
    pool.close()

    assert (answers, set(ends)) == ({"2"}, {None})


@pytest.mark.parametrize(
    ("code", "is_command", "cause"),
    [
        (-signal.SIGKILL, False, "outside"),
        (-signal.SIGTERM, False, "outside"),
        (-signal.SIGSYS, False, "program"),
        (-signal.SIGXCPU, False, "time"),
        (137, False, "program"),
        (137, True, "outside"),
        (139, True, "program"),
        (125, True, "outside"),  # docker, for itself
        (128, True, "outside"),  # gVisor, for its kernel
        (1, True, "program"),
        (-200, False, "program"),
    ],
)
def test_the_cause_of_an_end_is_read_from_its_exit_code(code: int, is_command: bool, cause: str) -> None:
    assert worker_end(code, is_command=is_command).cause == cause


async def test_a_model_is_not_asked_to_mend_a_program_that_was_killed() -> None:
    victims = Victims()

    @ez_tool
    async def die() -> int:
        victims.kill_newest()
        return 1

    with ProcessSandbox(spares=0) as sandbox:
        result = await Toolkit([die], sandbox=sandbox).execute_async("die()\nwhile True: pass")

    assert str(result.error).startswith(f"SandboxLost: {DIED}it was killed from outside")
    assert result.hint.startswith("Calls that were made before it failed, and are not undone: `die`. Send the program")
    assert "Mend" not in result.hint
