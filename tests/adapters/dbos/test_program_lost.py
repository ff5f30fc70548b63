"""Programs whose sandbox fails by no doing of their own go back to their queue, so many times, and repeat no call."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.adapters.dbos.durable import QUICK, engine_of
from tests.sandbox.acting import Victims
from toolcrib.adapters.dbos import DurableProgram, DurableToolkit, Engine, Queue, Work, list_work, retry_work
from toolcrib.code import ExecutionResult, Toolkit
from toolcrib.record import ActivityFilter
from toolcrib.sandbox import MontySandbox, ProcessSandbox, Sandbox
from toolcrib.tools import ez_tool

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="ProcessSandbox needs Linux")


class Till:
    """A tool that writes what it does to a file outside, and may have the process of its program killed meanwhile.

    Attributes:
        kills_at: The numbers at which it is killed.
    """

    def __init__(self, folder: Path, *kills_at: int, kill: Callable[[], None] | None = None) -> None:
        self._file, self.kills_at, self._kill = folder / "effects", set(kills_at), kill or Victims().kill_newest

        @ez_tool
        async def pay(n: int) -> int:
            with self._file.open("a") as file:
                file.write(f"{n}\n")
            if n in self.kills_at:
                self.kills_at.discard(n)
                self._kill()
            await asyncio.sleep(0.1)  # in which its program is gone
            return n

        self.pay = pay

    @property
    def effects(self) -> list[int]:
        """What it did, in order."""
        return [int(line) for line in self._file.read_text().split()] if self._file.exists() else []


def durable(tool: Any, sandbox: Sandbox, tries: int = 5, *, name: str = "") -> DurableToolkit:
    name = name or f"kit_{uuid4().hex[:8]}"
    toolkit = Toolkit([tool], sandbox=sandbox)
    return DurableToolkit(toolkit, Queue(name, polling=QUICK, tries=tries), name=name, replace=True)


async def result_of(program: DurableProgram) -> ExecutionResult:
    """Return how a program ended, once its workflow has ended, too."""
    async with asyncio.timeout(60):
        await program.client.result(program.id, polling=QUICK)
        return await program.result(polling=QUICK)


async def put_off(engine: Engine, program: DurableProgram) -> Work:
    """Return the work of a program once it waits for another try."""
    async with asyncio.timeout(60):
        while (work := work_of(engine, program)).error is None:  # noqa: ASYNC110 -- it is the database that is asked
            await asyncio.sleep(QUICK)
    return work


def work_of(engine: Engine, program: DurableProgram) -> Work:
    (found,) = [work for work in list_work(engine.client) if work.id == program.id]
    return found


@pytest.mark.parametrize("kill", [Victims.kill_newest, Victims.kill_all])
async def test_a_program_that_is_killed_goes_on_and_its_calls_are_made_once(
    database: str, tmp_path: Path, kill: Callable[[Victims], None]
) -> None:
    till = Till(tmp_path, 2, kill=partial(kill, Victims()))
    with ProcessSandbox(spares=0) as sandbox:
        toolkit = durable(till.pay, sandbox)
        async with engine_of(database, toolkit) as engine:
            program = await toolkit.start("print([pay(n) for n in range(1, 5)])")
            waiting = await put_off(engine, program)
            state = await program.state()
            result = await result_of(program)
            done = work_of(engine, program)

    assert (waiting.state, state) == ("waiting", "waiting")
    assert str(waiting.error).startswith("waits for another try, after 1 of 5: SandboxLost: the worker process died")
    assert "it was killed from outside" in str(waiting.error)
    assert (result.success, result.output, result.error) == (True, "[1, 2, 3, 4]\n", None)
    assert (done.state, done.error) == ("done", None)
    assert till.effects == [1, 2, 3, 4]


@pytest.mark.parametrize("make", [ProcessSandbox, MontySandbox])
async def test_calls_at_once_come_to_their_end_when_their_program_is_killed(
    file: str, tmp_path: Path, make: Callable[[], Sandbox]
) -> None:
    till = Till(tmp_path, 3)
    code = "import asyncio\nasync def main():\n    return await asyncio.gather(*[pay(n) for n in range(1, 4)])\n"
    code += "print(await main(), pay(4))"
    toolkit = durable(till.pay, make())
    async with engine_of(file, toolkit) as engine:
        program = await toolkit.start(code)
        result = await result_of(program)
        (tries,) = [work_of(engine, program).attempts]
    toolkit.toolkit.sandbox.close()  # type: ignore[attr-defined]

    assert (result.output, result.error) == ("[1, 2, 3] 4\n", None)
    assert sorted(till.effects) == [1, 2, 3, 4]
    assert till.kills_at == set()
    assert tries >= 1


async def test_tries_are_counted_and_the_last_one_fails_until_a_person_has_it_tried_again(
    database: str, tmp_path: Path
) -> None:
    till = Till(tmp_path, 1, 2)
    with ProcessSandbox(spares=0) as sandbox:
        toolkit = durable(till.pay, sandbox, tries=2)
        async with engine_of(database, toolkit) as engine:
            program = await toolkit.start("print([pay(n) for n in range(1, 4)])")
            failed = await result_of(program)
            work = work_of(engine, program)
            before = till.effects
            till.kills_at = {3}
            await asyncio.to_thread(retry_work, engine.client, program.id)  # whose tries are counted anew
            result = await result_of(program)

    why = "SandboxLost: the sandbox could not run this program, which was tried 2 times; the last time it was "
    assert (failed.success, failed.is_paused, work.state) == (False, False, "failed")
    assert str(failed.error).startswith(f"{why}SandboxLost: the worker process died")
    assert before == [1, 2]
    assert (result.output, till.effects) == ("[1, 2, 3]\n", [1, 2, 3])


async def test_a_program_whose_sandbox_does_not_start_is_taken_by_another_worker(database: str, tmp_path: Path) -> None:
    till = Till(tmp_path)
    broken = ProcessSandbox(cgroup=tmp_path / "gone")
    toolkit = durable(till.pay, broken)
    async with engine_of(database, toolkit, worker_id="broken") as engine:
        program = await toolkit.start("print(pay(1))")
        waiting = await put_off(engine, program)
    with ProcessSandbox(spares=0) as sandbox:
        toolkit = durable(till.pay, sandbox, name=toolkit.name)
        async with engine_of(database, toolkit, worker_id="sound") as engine:
            program = DurableProgram(program.id, engine.client)
            result = await result_of(program)
            done = work_of(engine, program)

    assert "SandboxUnavailable: programs cannot be put into the control group" in str(waiting.error)
    assert (result.success, done.worker, till.effects) == (True, "sound", [1])


async def test_a_sandbox_that_never_starts_fails_with_the_number_of_tries(file: str, tmp_path: Path) -> None:
    till = Till(tmp_path)
    toolkit = durable(till.pay, ProcessSandbox(cgroup=tmp_path / "gone"), tries=2)
    async with engine_of(file, toolkit):
        result = await result_of(await toolkit.start("pay(1)"))

    assert str(result.error).startswith(
        "SandboxUnavailable: the sandbox could not run this program, which was tried 2 times; the last time it was "
        "SandboxUnavailable: programs cannot be put into the control group"
    )
    assert till.effects == []


async def test_a_sandbox_that_is_closed_is_no_outcome_either(file: str, tmp_path: Path) -> None:
    sandbox = ProcessSandbox(spares=0)
    till = Till(tmp_path, 2, kill=sandbox.close)
    toolkit = durable(till.pay, sandbox)
    async with engine_of(file, toolkit) as engine:
        program = await toolkit.start("print([pay(n) for n in range(1, 4)])")
        waiting = await put_off(engine, program)
    with ProcessSandbox(spares=0) as sandbox:
        toolkit = durable(till.pay, sandbox, name=toolkit.name)
        async with engine_of(file, toolkit) as engine:
            result = await result_of(DurableProgram(program.id, engine.client))

    assert "SandboxLost: the sandbox was closed while the program ran" in str(waiting.error)
    assert (result.output, till.effects) == ("[1, 2, 3]\n", [1, 2, 3])


@pytest.mark.parametrize(
    ("ends", "error"),
    [
        ("import os; os._exit(3)", "it ended itself with the status 3"),
        ("import os; os.abort()", "it crashed (SIGABRT)"),
        ("x = bytearray(1 << 30)", "MemoryError"),
        ("import os; os.kill(os.getpid(), 9)", "PermissionError"),
    ],
)
async def test_what_a_program_does_itself_is_its_outcome_at_once(
    file: str, tmp_path: Path, ends: str, error: str
) -> None:
    till = Till(tmp_path)
    with ProcessSandbox(spares=0) as sandbox:
        toolkit = durable(till.pay, sandbox)
        async with engine_of(file, toolkit) as engine:
            program = await toolkit.start(f"pay(1)\n{ends}")
            result = await result_of(program)
            status = await engine.client.status(program.id)

    assert error in str(result.error)
    assert status is not None
    assert (status.attributes, till.effects) == (None, [1])


async def test_a_program_that_kills_itself_without_a_seal_is_tried_so_often_and_no_more(
    file: str, tmp_path: Path
) -> None:
    till = Till(tmp_path)
    name = f"kit_{uuid4().hex[:8]}"
    queue = Queue(name, polling=QUICK, tries=2)
    toolkit = DurableToolkit(Toolkit([till.pay], sandbox="subprocess"), queue, name=name)
    async with engine_of(file, toolkit):
        result = await result_of(await toolkit.start("import os\npay(1)\nos.kill(os.getpid(), 9)"))

    assert "which was tried 2 times" in str(result.error)
    assert "it was ended by SIGKILL, perhaps from outside" in str(result.error)
    assert till.effects == [1]


async def test_a_program_that_was_killed_is_interrupted_in_the_record_and_then_goes_on(
    file: str, tmp_path: Path
) -> None:
    till = Till(tmp_path, 1)
    with ProcessSandbox(spares=0) as sandbox:
        toolkit = durable(till.pay, sandbox)
        async with engine_of(file, toolkit, record=True) as engine:
            assert engine.sink is not None
            log = engine.sink.sink.log()
            program = await toolkit.start("pay(1)")
            await put_off(engine, program)
            engine.sink.sink.flush()
            (interrupted,) = log.activities(ActivityFilter(sources=("program",)))
            await result_of(program)
            engine.sink.sink.flush()
            (done,) = log.activities(ActivityFilter(sources=("program",)))

    assert [activity.status for activity in (interrupted, done)] == ["interrupted", "completed"]


def test_a_queue_has_at_least_one_try() -> None:
    with pytest.raises(ValueError, match="the queue `q`: tries must be at least 1, and is 0"):
        Queue("q", tries=0)
