"""Values of streaming tools are made as a program takes them."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.code.hosts import TableHost
from toolcrib.sandbox import (
    Emit,
    ProcessSandbox,
    Program,
    Raised,
    Reply,
    SandboxLimits,
    SandboxResult,
    SuspendedReply,
    Value,
)

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="its processes need Linux")


class StreamHost(TableHost):
    """Answers `count` with values, one by one, until it is `stop`ped."""

    def __init__(self, ending: Callable[[], Reply | Awaitable[Reply]] = lambda: Value(None)) -> None:
        super().__init__()
        self.emitted: list[int] = []
        self.open = 0
        self._ending = ending

    async def call(self, name: str, args: list[Any], kwargs: dict[str, Any], emit: Emit | None = None) -> Reply:
        if emit is None:
            return await super().call(name, args, kwargs)
        self.calls.append((name, args, kwargs))
        self.open += 1
        try:
            for number in range(args[0]):
                self.emitted.append(number)
                await emit(number)
            made = self._ending()
            return await made if isinstance(made, Awaitable) else made
        except asyncio.CancelledError:
            self.cancelled.append(name)
            raise
        finally:
            self.open -= 1


@pytest.fixture(params=[False, True], ids=["loop", "blocking"])
def stream(request: pytest.FixtureRequest, process_sandbox: ProcessSandbox) -> Any:
    async def run(code: str, host: TableHost, limits: SandboxLimits | None = None) -> SandboxResult:
        tools = ("count", *host.table)
        given = Program(code, tools, limits or SandboxLimits(), may_block=request.param, streams=frozenset({"count"}))
        return await process_sandbox.run(given, host)

    return run


async def test_values_come_one_by_one(stream: Any) -> None:
    host = StreamHost()

    result = await stream("[add(n, 10) for n in count(3)]", host)

    assert result.value == [10, 11, 12]
    assert host.names == ["count", "add", "add", "add"]
    assert host.open == 0


async def test_no_value_is_made_before_it_is_wanted(stream: Any) -> None:
    host = StreamHost()
    code = "values = iter(count(1000))\none, two = next(values), next(values)\nslow(0.02)\n[one, two]"

    result = await stream(code, host)

    assert result.value == [0, 1]
    assert host.emitted == [0, 1]
    assert host.cancelled == ["count"]


async def test_a_stream_that_is_left_is_cancelled(stream: Any) -> None:
    host = StreamHost()
    code = "for n in count(1000):\n    if n == 2: break\nslow(0.01, 'after')"

    result = await stream(code, host)

    assert result.value == "after"
    assert host.cancelled == ["count"]


async def test_two_streams_may_be_open_beside_calls(stream: Any) -> None:
    code = "[[a, b, add(a, b)] for a, b in zip(count(3), count(5))]"

    result = await stream(code, StreamHost())

    assert result.value == [[0, 0, 0], [1, 1, 2], [2, 2, 4]]


async def test_streams_are_taken_in_a_loop_at_once(stream: Any) -> None:
    code = """
import asyncio
async def total():
    return sum([n async for n in count(4)])
async def main():
    return await asyncio.gather(total(), total(), add(1))
asyncio.run(main())
"""

    result = await stream(code, StreamHost())

    assert result.error is None
    assert result.value == [6, 6, 1]


async def test_an_open_stream_leaves_its_place_to_others(stream: Any) -> None:
    code = "open = [iter(count(9)) for i in range(5)]\n[[next(s) for s in open], slow(0.001, 'x')]"

    result = await stream(code, StreamHost(), SandboxLimits(calls_in_flight=1))

    assert result.value == [[0, 0, 0, 0, 0], "x"]


CAUGHT = """
got = []
try:
    for value in count(2):
        got.append(value)
except ValueError as error:
    got.append(str(error)[:31])
got
"""


async def test_a_failure_comes_after_the_values(stream: Any) -> None:
    result = await stream(CAUGHT, StreamHost(lambda: Raised("ValueError", "no more")))

    assert result.value == [0, 1, "no more"]


async def test_a_stream_that_waits_for_a_person_pauses_the_program(stream: Any) -> None:
    result = await stream("for n in count(0): print(n)", StreamHost(lambda: SuspendedReply("may it?")))

    assert result.error is not None
    assert (result.error.kind, result.error.message) == ("paused", "may it?")
    assert result.state["suspended"] == [1]


async def test_a_value_that_is_too_large_ends_the_stream(stream: Any) -> None:
    class Large(StreamHost):
        async def call(self, name: str, args: list[Any], kwargs: dict[str, Any], emit: Emit | None = None) -> Reply:
            assert emit is not None
            await emit("small")
            await emit("x" * 2_000)
            raise AssertionError("nobody wants more")

    result = await stream(CAUGHT, Large(), SandboxLimits(reply_size=1_000))

    assert result.value == ["small", "`count` returned about 2000 cha"]


async def test_the_values_of_a_stream_may_be_more_in_all_than_one_result(stream: Any) -> None:
    host = StreamHost(lambda: Value(["x" * 100] * 20))  # what the host keeps of them

    result = await stream("sum(1 for n in count(20))", host, SandboxLimits(reply_size=1_000))

    assert (result.value, result.error) == (20, None)


async def test_what_the_host_raises_between_values_is_raised(stream: Any) -> None:
    def broken() -> Reply:
        raise ZeroDivisionError("a bug of the host's")

    with pytest.raises(ZeroDivisionError, match="a bug"):
        await stream("list(count(2))", StreamHost(broken))
