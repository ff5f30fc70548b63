"""Programs that paused in Monty, taken up from its snapshot."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.code.hosts import TableHost
from toolcrib.errors import SandboxError
from toolcrib.sandbox import (
    MontySandbox,
    Program,
    Raised,
    Resumable,
    SandboxLimits,
    SandboxResult,
    SuspendedReply,
    Value,
)


class Waiting(TableHost):
    """A host whose `book` waits for a person until it is told of a city, and whose `find` answers at once."""

    def __init__(self, **answers: Any) -> None:
        super().__init__(find=len, book=lambda city: answers.get(city, SuspendedReply(f"{city} waits")))


class Runs:
    def __init__(self, sandbox: MontySandbox, may_block: bool) -> None:
        self._sandbox, self._may_block = sandbox, may_block

    def program(self, code: str, **limits: Any) -> Program:
        return Program(code, ("find", "book"), limits=SandboxLimits(**limits), may_block=self._may_block)

    async def run(self, code: str, host: TableHost, **limits: Any) -> SandboxResult:
        return await self._sandbox.run(self.program(code, **limits), host)

    async def resume(self, code: str, result: SandboxResult, host: TableHost, **limits: Any) -> SandboxResult:
        """Take it up, with a state that has been to JSON and back."""
        assert result.state is not None
        state = json.loads(json.dumps(result.state))
        return await self._sandbox.resume(self.program(code, **limits), state, host)


@pytest.fixture(params=[False, True], ids=["thread", "inline"])
def runs(request: pytest.FixtureRequest, sandbox: MontySandbox) -> Runs:
    return Runs(sandbox, request.param)


async def test_a_program_goes_on_where_it_paused(runs: Runs) -> None:
    code = "n = find('Oslo')\nprint('found', n)\nb = book('Oslo')\nprint('booked', b)\n[n, b, find('Rome')]"
    first = await runs.run(code, Waiting())
    host = Waiting(Oslo="yes")

    result = await runs.resume(code, first, host)

    assert (first.error and first.error.kind, first.output) == ("paused", "found 4\n")
    assert (result.value, result.error, result.calls) == ([4, "yes", 4], None, 3)
    assert (host.names, result.output) == (["book", "find"], "found 4\nbooked yes\n")
    assert host.printed == [("stdout", "booked yes\n")]


async def test_everything_that_can_go_on_does_before_the_pause(runs: Runs) -> None:
    code = """
import asyncio
async def trip(city):
    n = await find(city)
    b = await book(city)
    return [n, b, await find(b)]
await asyncio.gather(trip('A'), trip('BB'), find('CCC'))
"""
    host = Waiting()

    first = await runs.run(code, host)
    second = await runs.resume(code, first, half := Waiting(BB="later"))
    third = await runs.resume(code, second, last := Waiting(A="now"))

    assert sorted(host.names) == ["book", "book", "find", "find", "find"]
    assert (sorted(half.names), last.names) == (["book", "book", "find"], ["book", "find"])
    assert (second.error and second.error.message, second.error and second.error.line) == ("A waits", 5)
    assert third.value == [[1, "now", 3], [2, "later", 5], 3]


async def test_a_reply_that_came_before_the_pause_is_there_after_it(runs: Runs) -> None:
    code = """
import asyncio
async def plain():
    return book('A')
async def other():
    return await find('BB')
await asyncio.gather(other(), plain())
"""
    first = await runs.run(code, Waiting())
    host = Waiting(A="yes")

    result = await runs.resume(code, first, host)

    assert result.value == [2, "yes"]
    assert host.names.count("book") == 1


async def test_a_denial_is_raised_where_the_call_was_made(runs: Runs) -> None:
    code = "f = book\ntry:\n    r = f('Oslo')\nexcept PermissionError as e:\n    r = str(e)\nr"
    first = await runs.run(code, Waiting())

    result = await runs.resume(code, first, Waiting(Oslo=Raised("PermissionError", "no")))

    assert result.value == "no"


async def test_a_program_may_pause_again_and_again(runs: Runs) -> None:
    code = "r = []\nfor c in ['A', 'BB', 'CCC']:\n    print(c)\n    r.append(book(c))\nr"
    result = await runs.run(code, Waiting())

    for city in ("A", "BB", "CCC"):
        assert result.error is not None
        assert result.error.message == f"{city} waits"
        result = await runs.resume(code, result, Waiting(**{city: city.lower()}))

    assert (result.value, result.output) == (["a", "bb", "ccc"], "A\nBB\nCCC\n")


async def test_the_limits_of_the_run_go_on_counting(runs: Runs) -> None:
    code = "import time\ntime.sleep(0.05)\nfind('A')\nbook('A')\ntime.sleep(0.05)\nfind('A')\nfind('A')"
    first = await runs.run(code, Waiting(), calls=3, sleep_time=0.08)

    slept = await runs.resume(code, first, Waiting(A=1), calls=3, sleep_time=0.08)
    counted = await runs.resume(code.replace("0.05", "0.01"), first, Waiting(A=1), calls=3, sleep_time=0.08)

    assert (slept.error and slept.error.kind, counted.error and counted.error.kind) == ("time", "time")


async def test_the_calls_of_the_run_go_on_counting(runs: Runs) -> None:
    code = "find('A')\nbook('A')\nfind('A')\nfind('A')"
    first = await runs.run(code, Waiting(), calls=3)

    result = await runs.resume(code, first, Waiting(A=1), calls=3)

    assert result.error is not None
    assert (result.error.kind, result.error.line, result.calls) == ("calls", 4, 4)


async def test_a_state_of_another_version_is_refused(sandbox: MontySandbox) -> None:
    program = Program("book('A')", ("book",))
    state = dict((await sandbox.run(program, Waiting())).state or {})

    with pytest.raises(SandboxError, match=r"was written by monty-0.9, and this is monty-"):
        await sandbox.resume(program, state | {"engine": "monty-0.9"}, Waiting())
    for bad in ({"snapshot": "?"}, {"suspended": 3}, {"lines": [1]}, {"settled": None}):
        with pytest.raises(SandboxError, match="not the state of a paused program"):
            await sandbox.resume(program, state | bad, Waiting())


async def test_a_snapshot_that_is_none_is_an_error(sandbox: MontySandbox) -> None:
    program = Program("book('A')", ("book",))
    state = dict((await sandbox.run(program, Waiting())).state or {})

    with pytest.raises(SandboxError):
        await sandbox.resume(program, state | {"snapshot": "aGVsbG8="}, Waiting(A=1))
    assert (await sandbox.resume(program, state, Waiting(A=1))).value == 1


def test_the_sandbox_says_what_it_is(sandbox: MontySandbox) -> None:
    assert isinstance(sandbox, Resumable)
    assert sandbox.engine.startswith("monty-1.")
    assert not sandbox.replays


async def test_a_result_of_its_own_has_no_state(sandbox: MontySandbox) -> None:
    assert (await sandbox.run(Program("1"), TableHost(find=lambda: Value(1)))).state is None
