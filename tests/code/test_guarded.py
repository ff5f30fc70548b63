"""A guarded tool does not run before somebody said yes, whatever a program tries; on every engine."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from toolcrib.approvals import approve_all
from toolcrib.code import ExecutionResult, FileJournal, PausedProgram, Toolkit
from toolcrib.errors import ApprovalError, PausedProgramError
from toolcrib.sandbox import sandbox_named
from toolcrib.tools import Tool, ez_tool

KEY = b"a key of more than sixteen bytes"
ENGINES = ["monty", *(["process"] if sys.platform == "linux" else [])]


class Till:
    """A guarded tool, a guarded stream and a free tool, which note what they did."""

    def __init__(self) -> None:
        self.done: list[str] = []

    def tools(self) -> list[Tool[..., Any]]:
        @ez_tool(requires_approval=True)
        async def pay(sum: int) -> int:
            self.done.append(f"pay {sum}")
            return sum

        @ez_tool(requires_approval=True)
        async def drip(sum: int) -> Any:
            for part in range(sum):
                self.done.append(f"drip {part}")
                yield part

        @ez_tool
        async def look(at: int) -> int:
            self.done.append(f"look {at}")
            return at

        return [pay, drip, look]


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def till() -> Till:
    return Till()


@pytest.fixture
def kit(engine: str, till: Till) -> Toolkit:
    return Toolkit(till.tools(), sandbox=sandbox_named(engine))


def sent(result: ExecutionResult) -> PausedProgram:
    """Return the paused program as another process reads it."""
    assert result.paused is not None, result
    return PausedProgram.from_bytes(result.paused.to_bytes(KEY), KEY)


TRICKS = {
    "alias": "f = pay\nf(1)",
    "a list of functions": "[g(1) for g in [look, pay]]",
    "retry code": (
        "r = None\nfor n in range(5):\n    try:\n        r = pay(1)\n        break\n    except BaseException:\n"
        "        look(n)\nr"
    ),
    "finally": "try:\n    pay(1)\nfinally:\n    look(1)",
    "streaming": "for part in drip(1):\n    look(part)",
    "a list of a stream": "list(drip(1))",
    "gather": "import asyncio\nawait asyncio.gather(pay(1), look(1))",
    "a wrapper": "def safe(f, *a):\n    return f(*a)\nsafe(pay, 1)",
    "keywords": "pay(**{'sum': 1})",
}
ONLY_IN_THE_WORKER = {"map": "list(map(pay, [1]))", "parallel": "parallel((pay, 1), (look, 1))"}


@pytest.mark.parametrize("code", TRICKS.values(), ids=TRICKS)
async def test_no_trick_runs_a_guarded_tool(kit: Toolkit, till: Till, code: str) -> None:
    result = await kit.execute_async(code)

    assert (result.is_paused, result.success) == (True, False), result
    assert [call for call in till.done if not call.startswith("look")] == []
    assert len(result.suspended_calls) == 1


@pytest.mark.parametrize("code", TRICKS.values(), ids=TRICKS)
async def test_after_a_yes_it_runs_once(kit: Toolkit, till: Till, code: str) -> None:
    first = await kit.execute_async(code)

    result = await kit.resume_async(sent(first), grants=[first.suspended_calls[0].grant()])

    assert result.success, result
    assert len([call for call in till.done if not call.startswith("look")]) == 1


@pytest.mark.skipif("process" not in ENGINES, reason="there is no worker here")
@pytest.mark.parametrize("code", ONLY_IN_THE_WORKER.values(), ids=ONLY_IN_THE_WORKER)
async def test_what_only_the_worker_has_runs_no_guarded_tool_either(till: Till, code: str) -> None:
    kit = Toolkit(till.tools(), sandbox="process")
    first = await kit.execute_async(code)
    assert (first.is_paused, "pay 1" in till.done) == (True, False)

    result = await kit.resume_async(sent(first), grants=[first.suspended_calls[0].grant()])

    assert (result.success, till.done.count("pay 1")) == (True, 1)


async def test_where_a_call_looks_like_a_function_nothing_runs(till: Till) -> None:
    result = await Toolkit(till.tools(), sandbox="monty").execute_async("list(map(pay, [1]))")

    assert (result.success, result.is_paused, till.done) == (False, False, [])


async def test_a_stale_paused_program_runs_nothing(kit: Toolkit, till: Till) -> None:
    first = await kit.execute_async("pay(1)\nlook(2)")
    grant = first.suspended_calls[0].grant()
    await kit.resume_async(sent(first), grants=[grant])

    for answer in (grant, first.suspended_calls[0].grant("another")):
        with pytest.raises(ApprovalError, match="used before"):
            await kit.resume_async(sent(first), grants=[answer])

    assert till.done == ["pay 1", "look 2"]


async def test_of_two_that_resume_at_once_one_goes_on(kit: Toolkit, till: Till) -> None:
    first = await kit.execute_async("pay(1)")
    grant = first.suspended_calls[0].grant()

    results = await asyncio.gather(
        *(kit.resume_async(sent(first), grants=[grant]) for _ in range(3)), return_exceptions=True
    )

    assert sum(isinstance(result, ExecutionResult) for result in results) == 1
    assert sum(isinstance(result, ApprovalError) for result in results) == 2
    assert till.done == ["pay 1"]


async def test_a_grant_for_one_call_is_for_no_other(kit: Toolkit, till: Till) -> None:
    first = await kit.execute_async("pay(1)\npay(1)\npay(2)")

    second = await kit.resume_async(sent(first), grants=[first.suspended_calls[0].grant()])
    with pytest.raises(ApprovalError):
        await kit.resume_async(sent(second), grants=[first.suspended_calls[0].grant()])

    assert second.is_paused
    assert till.done == ["pay 1"]


async def test_all_that_waits_at_once_is_reported_and_taken_up(kit: Toolkit, till: Till) -> None:
    code = """
import asyncio
async def trip(n):
    a = await look(n)
    b = await pay(n)
    return a + b + await look(b * 10)
await asyncio.gather(*[trip(n) for n in range(3)])
"""
    first = await kit.execute_async(code)
    calls = first.suspended_calls

    second = await kit.resume_async(sent(first), grants=[calls[2].grant(), calls[0].grant()])
    third = await kit.resume_async(sent(second), denials=[second.suspended_calls[0].deny(message="no")])

    assert [call.arguments["sum"] for call in calls] == [0, 1, 2]
    assert [call.arguments["sum"] for call in second.suspended_calls] == [1]
    assert "no" in (third.error or "")
    assert sorted(till.done) == ["look 0", "look 0", "look 1", "look 2", "look 20", "pay 0", "pay 2"]


async def test_an_inline_approver_needs_no_pause(engine: str, till: Till) -> None:
    kit = Toolkit(till.tools(), sandbox=sandbox_named(engine), approver=approve_all)

    result = await kit.execute_async("[pay(1), list(drip(2))]")

    assert (result.success, result.return_value) == (True, [1, [0, 1]])


async def test_many_calls_may_wait_at_once(kit: Toolkit, till: Till) -> None:
    code = "import asyncio\nsum(await asyncio.gather(*[pay(n) for n in range(130)], *[look(n) for n in range(5)]))"
    first = await kit.execute_async(code)

    result = await kit.resume_async(sent(first), grants=[call.grant() for call in first.suspended_calls])

    assert (len(first.suspended_calls), result.return_value) == (130, sum(range(130)) + 10)
    assert len(till.done) == len(set(till.done)) == 135


# --- a process that is killed ----------------------------------------------------------------------------------------

KILLED = """
    import os, signal, sys
    from toolcrib.code import FileJournal, Toolkit
    from toolcrib.tools import ez_tool

    @ez_tool
    async def look(at: int) -> int:
        return at

    @ez_tool
    async def note(text: str) -> str:
        os.kill(os.getpid(), signal.SIGKILL)

    with open(sys.argv[2]) as file:
        code = file.read()
    Toolkit([look, note], sandbox=sys.argv[3]).execute(code, journal=FileJournal(sys.argv[1]))
"""
CODE = """
import asyncio, random, time
luck = random.random()
begun = time.time()
first = await asyncio.gather(*[look(n) for n in range(3)])
await asyncio.sleep(0.001)
token = f"{luck} {begun}"
[first, look(7), note(token)]
"""


def killed(folder: Path, engine: str) -> FileJournal:
    """Run the program in a process that dies in its last call."""
    (folder / "code").write_text(CODE)
    args = [str(folder / "journal"), str(folder / "code"), engine]
    ended = subprocess.run([sys.executable, "-c", textwrap.dedent(KILLED), *args], check=False)
    assert ended.returncode == -signal.SIGKILL
    return FileJournal(folder / "journal")


@pytest.mark.skipif("process" not in ENGINES, reason="only the worker runs a program again")
async def test_a_program_whose_process_was_killed_is_run_again_with_what_it_had(tmp_path: Path) -> None:
    journal, done = killed(tmp_path, "process"), list[str]()

    @ez_tool
    async def look(at: int) -> int:
        done.append("look")
        return at

    @ez_tool
    async def note(text: str) -> str:
        done.append(text)
        return text

    kit = Toolkit([look, note], sandbox="process")
    first = await kit.resume_async(journal.paused(), journal=journal)
    [call] = first.suspended_calls
    result = await kit.resume_async(journal.paused(), grants=[call.grant()], journal=journal)

    assert (call.tool, call.in_doubt) == ("note", True)
    assert result.return_value == [[0, 1, 2], 7, call.arguments["text"]]
    assert done == [call.arguments["text"]]


def test_what_monty_had_done_when_its_process_was_killed_is_not_run_again(tmp_path: Path) -> None:
    journal = killed(tmp_path, "monty")

    with pytest.raises(PausedProgramError, match=r"monty-.* does not run a program again"):
        journal.paused()
