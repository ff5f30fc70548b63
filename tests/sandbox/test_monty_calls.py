from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.code.hosts import TableHost
from toolcrib.sandbox import Emit, Program, Raised, Reply, SandboxLimits, SuspendedReply, Value
from toolcrib.sandbox._endings import ProgramEnded
from toolcrib.sandbox._monty_calls import MontyCall, MontyCalls, MontySleep


def at_once(calls: int) -> Program:
    return Program("", (), SandboxLimits(calls_in_flight=calls))


def call(number: int, name: str, *args: Any) -> MontyCall:
    return MontyCall(number, name, list(args), {})


async def test_one_call_has_one_reply() -> None:
    calls = MontyCalls(TableHost(), at_once(10))

    assert await calls.answer([call(3, "add", 1, 2)]) == [(3, Value(3))]


async def test_replies_come_as_they_are_ready() -> None:
    calls = MontyCalls(TableHost(), at_once(10))

    first = await calls.answer([call(1, "slow", 0.05, "late"), call(2, "add", 1), MontySleep(3, 0)])
    rest: list[Any] = []
    while len(first) + len(rest) < 3:
        rest += await calls.answer([])

    assert {number for number, _ in first} <= {2, 3}
    assert rest[-1] == (1, Value("late"))


async def test_no_more_calls_run_at_a_time_than_are_allowed() -> None:
    running = most = 0

    async def one() -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.001)
        running -= 1

    calls, replies = MontyCalls(TableHost(one=one), at_once(2)), 0
    replies += len(await calls.answer([call(n, "one") for n in range(7)]))
    while replies < 7:
        replies += len(await calls.answer([]))

    assert most == 2


async def test_a_call_that_waits_for_a_person_gives_its_turn_to_the_next() -> None:
    async def stop() -> SuspendedReply:
        await asyncio.sleep(0.01)
        return SuspendedReply("wait")

    host = TableHost(stop=stop, add=lambda: 1)
    calls = MontyCalls(host, at_once(1))

    replies = await calls.answer([call(1, "stop"), call(2, "add")])
    while len(replies) < 2:
        replies += await calls.answer([])

    assert replies == [(1, SuspendedReply("wait")), (2, Value(1))]


async def test_what_the_host_raises_is_raised() -> None:
    def broken() -> None:
        raise ZeroDivisionError("a bug")

    calls = MontyCalls(TableHost(broken=broken, add=lambda: 1), at_once(10))

    with pytest.raises(ZeroDivisionError):
        await calls.answer([call(1, "broken"), call(2, "add")])
    with pytest.raises(ZeroDivisionError):
        await calls.answer([call(1, "broken")])
    await calls.close()


@pytest.mark.parametrize("more", [[], [call(2, "slow", 60)]], ids=["alone", "with another"])
async def test_a_call_that_cancels_itself_ends_the_program_and_not_the_run(more: list[MontyCall]) -> None:
    async def gone() -> None:
        raise asyncio.CancelledError

    calls = MontyCalls(TableHost(gone=gone, slow=asyncio.sleep), at_once(10))

    with pytest.raises(ProgramEnded) as ended:
        await calls.answer([call(1, "gone"), *more])
    assert ended.value.error is not None
    assert ended.value.error.message == "a tool call was cancelled"
    await calls.close()


async def test_closing_stops_what_runs() -> None:
    host = TableHost()
    calls = MontyCalls(host, at_once(10))
    waiting = asyncio.create_task(calls.answer([call(1, "slow", 60), call(2, "slow", 60)]))
    await asyncio.sleep(0.01)

    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    await calls.close()

    assert host.cancelled == ["slow", "slow"]


class Streaming(TableHost):
    """Answers with one value after another, `most` of them at the most."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.most, self.made = most, 0

    async def call(self, name: str, args: list[Any], kwargs: dict[str, Any], emit: Emit | None = None) -> Reply:
        assert emit is not None
        while self.made < self.most:
            self.made += 1
            await emit("x" * 10)
        return Value(None)


@pytest.mark.parametrize("beside", [0, 1])
async def test_a_stream_is_stopped_when_its_values_are_too_much(beside: int) -> None:
    host = Streaming(1_000_000)
    program = Program("", ("count",), SandboxLimits(reply_size=100), streams=frozenset({"count"}))
    calls = MontyCalls(host, program)

    replies = dict(await calls.answer([call(1, "count"), *[MontySleep(2, 9)] * beside]))
    await calls.close()

    assert isinstance(replies[1], Raised)
    assert "100 is the most" in replies[1].message
    assert host.made < 12


async def test_the_values_of_a_stream_are_a_list() -> None:
    program = Program("", ("count",), SandboxLimits(), streams=frozenset({"count"}))

    assert await MontyCalls(Streaming(2), program).answer([call(1, "count")]) == [(1, Value(["x" * 10] * 2))]
