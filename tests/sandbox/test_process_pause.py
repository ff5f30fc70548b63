"""A paused program is run again, up to where it paused, and goes on from there."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping
from typing import Any

import pytest

from tests.code.hosts import TableHost
from tests.sandbox.fake_worker import WorkerEnd, faked
from toolcrib.errors import SandboxError
from toolcrib.sandbox import Emit, ProcessSandbox, Program, Reply, SuspendedReply, Value

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="its processes need Linux")
TOOLS = ("ask", "get")


class Journaled:
    """Answers `ask` when it was allowed to, and the other calls as they were answered before."""

    def __init__(self, earlier: Journaled | None = None, **allowed: Any) -> None:
        self.known: dict[str, Value] = {} if earlier is None else dict(earlier.known)
        self.allowed = allowed
        self.made: list[str] = []
        self.heard, self.was_heard = "", asyncio.Event()

    async def call(self, name: str, args: list[Any], kwargs: dict[str, Any], emit: Emit | None = None) -> Reply:
        key = f"{name}{args}"
        if key in self.known:
            return self.known[key]
        if name == "ask" and args[0] not in self.allowed:
            return SuspendedReply(f"may it {args[0]}?")
        if args[0] == "late":
            await self.was_heard.wait()
        self.made.append(key)
        self.known[key] = Value(self.allowed[args[0]] if name == "ask" else args[0])
        return self.known[key]

    def output(self, text: str, stream: str) -> None:
        self.heard += text
        self.was_heard.set()


async def paused(sandbox: ProcessSandbox, code: str) -> tuple[Journaled, Mapping[str, Any]]:
    """Run a program to its pause."""
    host = Journaled()
    result = await sandbox.run(Program(code, TOOLS), host)
    assert result.error is not None
    assert result.error.kind == "paused", result.error
    assert result.state is not None
    return host, result.state


SEVERAL = """
print('first', get(1))
a = ask('pay')
print('then', a, get(2))
b = ask('send')
[a, b, get(3)]
"""


async def test_a_program_goes_on_where_it_paused(process_sandbox: ProcessSandbox) -> None:
    first, state = await paused(process_sandbox, SEVERAL)
    second = Journaled(first, pay="paid")
    result = await process_sandbox.resume(Program(SEVERAL, TOOLS), state, second)

    assert first.made == ["get[1]"]
    assert second.made == ["ask['pay']", "get[2]"]
    assert result.state is not None
    assert str(result.error) == "Paused (line 5): may it send?"

    third = Journaled(second, send="sent")
    result = await process_sandbox.resume(Program(SEVERAL, TOOLS), result.state, third)

    assert third.made == ["ask['send']", "get[3]"]
    assert (result.value, result.error, result.calls) == (["paid", "sent", 3], None, 5)


async def test_output_comes_back_whole_and_is_heard_once(process_sandbox: ProcessSandbox) -> None:
    first, state = await paused(process_sandbox, SEVERAL)
    second = Journaled(first, pay="paid", send="sent")

    result = await process_sandbox.resume(Program(SEVERAL, TOOLS), state, second)

    assert result.output == "first 1\nthen paid 2\n"
    assert (first.heard, second.heard) == ("first 1\n", "then paid 2\n")


async def test_chance_and_time_are_as_they_were(process_sandbox: ProcessSandbox) -> None:
    code = """
import random, time, uuid, datetime
seen = [random.random(), str(uuid.uuid4()), time.time(), str(datetime.datetime.now()), hash('text')]
time.sleep(0.01)
get(str(seen))
ask('go')
get(str(seen + [time.monotonic() > 0]))
seen
"""
    first, state = await paused(process_sandbox, code)
    second = Journaled(first, go=True)

    result = await process_sandbox.resume(Program(code, TOOLS), state, second)

    assert result.error is None
    assert second.made[0] == "ask['go']"
    assert len(second.made) == 2  # not three: the first `get` had the same argument
    assert first.made == [f"get{[str(result.value)]}"]


PARALLEL = """
import asyncio
order = []
async def one(tool, argument, name):
    order.append([name, await tool(argument)])
    print(name)
async def main():
    await asyncio.gather(one(get, 'late', 'a'), one(ask, 'x', 'x'), one(get, 'soon', 'b'), one(ask, 'y', 'y'))
asyncio.run(main())
order
"""


async def test_parallel_calls_are_delivered_in_the_order_they_were(process_sandbox: ProcessSandbox) -> None:
    first, state = await paused(process_sandbox, PARALLEL)
    second = Journaled(first, x=1, y=2)

    result = await process_sandbox.resume(Program(PARALLEL, TOOLS), state, second)

    assert state["order"] == [[3], [1]]  # though both replies are there at once, the second time
    assert state["suspended"] == [2, 4]
    assert result.value[:2] == [["b", "soon"], ["a", "late"]]
    assert sorted(second.made) == ["ask['x']", "ask['y']"]


async def test_some_may_go_on_waiting(process_sandbox: ProcessSandbox) -> None:
    first, state = await paused(process_sandbox, PARALLEL)
    second = Journaled(first, x=1)

    again = await process_sandbox.resume(Program(PARALLEL, TOOLS), state, second)
    assert again.state is not None
    third = Journaled(second, y=2)
    result = await process_sandbox.resume(Program(PARALLEL, TOOLS), again.state, third)

    assert str(again.error) == "Paused (line 5): may it y?"
    assert again.state["order"] == [[3], [1], [2]]
    assert result.value == [["b", "soon"], ["a", "late"], ["x", 1], ["y", 2]]


async def test_a_program_pauses_only_when_the_rest_of_it_has_come_to_a_stop(process_sandbox: ProcessSandbox) -> None:
    code = """
import asyncio
async def other():
    for i in range(3):
        await asyncio.sleep(0.02)
        get(i)
async def main():
    await asyncio.gather(other(), ask('x'))
asyncio.run(main())
"""

    first, state = await paused(process_sandbox, code)

    assert first.made == ["get[0]", "get[1]", "get[2]"]
    assert [0] in state["order"]


_SEED = "0" * 32
STATE = {"engine": "fake", "seed": _SEED, "clock": [], "order": [[1]], "calls": 2, "suspended": [2], "printed": [0, 0]}


def calls_another(worker: WorkerEnd) -> None:
    worker.read()
    worker.call(1, "get", 1)
    worker.call(2, "ask", "pay")
    worker.call(3, "get", 2)
    worker.until_killed()


def ends(worker: WorkerEnd) -> None:
    worker.read()
    worker.call(1, "get", 1, wait=True)
    worker.read()
    worker.send("done", v=1)


def waits_too_soon(worker: WorkerEnd) -> None:
    worker.read()
    worker.send("wait", **{"for": None})
    worker.until_killed()


def pauses_too_soon(worker: WorkerEnd) -> None:
    worker.read()
    worker.call(1, "get", 1)
    worker.call(2, "ask", "pay", wait=True)
    worker.until_killed()


@pytest.mark.parametrize(
    ("act", "where"),
    [
        (calls_another, "it makes call 3, and had made 2"),
        (ends, "it comes to its end"),
        (waits_too_soon, "it has not called 1, whose result it had got here"),
        (pauses_too_soon, "it waits after 2 calls and 0 waits"),
    ],
)
async def test_a_program_that_does_something_else_is_ended_before_it_begins_anything(act: Any, where: str) -> None:
    host = Journaled(pay="paid")
    host.known["get[1]"] = Value(1)
    with faked(act) as sandbox:
        state = {**STATE, "engine": sandbox.engine}

        result = await sandbox.resume(Program("", TOOLS), state, host)

    assert host.made == []
    assert result.error is not None
    assert (result.error.kind, result.error.type) == ("sandbox", "ReplayDiverged")
    assert f"did something else than before: {where}" in result.error.message


@pytest.mark.parametrize(
    "change",
    [
        {"engine": "process-2.7"},
        {"engine": None},
        {"seed": 1},
        {"clock": ["now"]},
        {"order": [1]},
        {"calls": True},
        {"suspended": []},
        {"printed": [1]},
    ],
    ids=str,
)
async def test_a_state_of_another_is_refused(process_sandbox: ProcessSandbox, change: dict[str, Any]) -> None:
    state = {**STATE, "engine": process_sandbox.engine, **change}

    with pytest.raises(SandboxError, match="paused"):
        await process_sandbox.resume(Program("1", TOOLS), state, TableHost())


async def test_the_state_is_json_and_small(process_sandbox: ProcessSandbox) -> None:
    code = "for i in range(300): get(i)\nask('go')"

    _, state = await paused(process_sandbox, code)

    assert len(json.dumps(state)) < 300
    assert json.loads(json.dumps(state)) == state
