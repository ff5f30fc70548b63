"""An agent that runs several turns at a time."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import pytest

from toolcrib.errors import ToolcribError
from toolcrib.tools import ToolType, tool
from toolcrib.turns import Agent, StopReason, Turn


async def filled(name: str, fn: Any, *arguments: Any) -> tuple[Agent, list[Turn[Any]]]:
    turns = [Turn(fn, args=[argument]) for argument in arguments]
    agent = Agent(name, "", [fn])
    for turn in turns:
        await agent.put(turn)
    return agent, turns


def cancelled_task() -> asyncio.Task[None]:
    task = asyncio.create_task(asyncio.sleep(60))
    task.cancel()
    return task


async def test_up_to_so_many_turns_run_at_a_time() -> None:
    running, most = 0, 0

    @tool()
    async def work(number: int) -> int:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1
        return number

    agent, _ = await filled("busy", work, *range(20))

    values = [value async for _, value in agent.run(max_concurrency=4)]

    assert (sorted(values), most) == (list(range(20)), 4)


async def test_values_of_streams_are_mixed_as_they_come() -> None:
    @tool()
    async def drip(name: str) -> AsyncIterator[str]:
        for number in range(3):
            yield f"{name}{number}"
            await asyncio.sleep(0.002)

    agent, turns = await filled("drips", drip, "a", "b")

    values = [value async for _, value in agent.run(max_concurrency=2)]

    assert values != sorted(values)
    assert sorted(values) == ["a0", "a1", "a2", "b0", "b1", "b2"]
    assert [turn.output for turn in turns] == [["a0", "a1", "a2"], ["b0", "b1", "b2"]]


async def test_locks_hold() -> None:
    inside = 0

    @tool(lock=True)
    async def alone(number: int) -> int:
        nonlocal inside
        inside += 1
        await asyncio.sleep(0)
        assert inside == 1
        inside -= 1
        return number

    agent, _ = await filled("careful", alone, *range(5))

    assert sorted([value async for _, value in agent.run(max_concurrency=5)]) == list(range(5))


async def test_a_reader_that_is_slow_holds_the_tools_back() -> None:
    made: list[int] = []

    @tool()
    async def drip(upto: int) -> AsyncIterator[int]:
        for number in range(upto):
            made.append(number)
            yield number

    agent, _ = await filled("drips", drip, 1000)

    async with aclosing(agent.run(max_concurrency=3)) as results:
        await anext(results)
        await asyncio.sleep(0.01)

    assert len(made) < 20


async def test_an_error_ends_the_run_and_interrupted_turns_go_back() -> None:
    @tool()
    async def work(number: int) -> int:
        if number == 1:
            raise LookupError("gone")
        await asyncio.sleep(0 if number == 0 else 60)
        return number

    agent, turns = await filled("busy", work, *range(5))
    values: list[Any] = []

    async def drain() -> None:
        async for _, value in agent.run(max_concurrency=3):
            values.append(value)

    with pytest.raises(LookupError, match="gone"):
        await drain()

    assert turns[1] not in agent.turns
    assert agent.turns[-3:] == turns[2:]
    assert agent.running_turns == []


async def test_a_cancellation_that_nothing_asked_for_ends_the_run_with_an_error() -> None:
    @tool()
    async def work(number: int) -> int:
        return number

    agent, turns = await filled("busy", work, *range(6))

    @turns[1].before_run
    async def join() -> None:
        await cancelled_task()

    with pytest.raises(ToolcribError, match="a turn was cancelled, and nothing had asked for that"):
        _ = [value async for _, value in agent.run(max_concurrency=2)]
    assert turns[1] in agent.turns


async def test_a_tool_that_awaits_what_was_cancelled_fails_and_loses_no_turn() -> None:
    @tool()
    async def join(number: int) -> int:
        await cancelled_task()
        return number

    agent, turns = await filled("busy", join, *range(4))

    with pytest.raises(ToolcribError):
        _ = [value async for _, value in agent.run(max_concurrency=2)]
    assert turns[2:] == agent.turns[-2:]


async def test_leaving_loses_neither_turns_nor_values() -> None:
    @tool()
    async def work(number: int) -> int:
        if number > 2:
            await asyncio.sleep(0.01)
        return number

    agent, turns = await filled("busy", work, *range(6))

    async with aclosing(agent.run(max_concurrency=4)) as results:
        seen = [(await anext(results))[1]]
        await asyncio.sleep(0.001)
    assert {turn for turn in turns if turn.stop_reason is StopReason.CANCELLED} <= set(agent.turns)
    seen += [value async for _, value in agent.run()]

    assert sorted(seen) == list(range(6))


async def test_a_stream_that_was_left_does_not_begin_again() -> None:
    @tool()
    async def drip(name: str) -> AsyncIterator[str]:
        yield name
        await asyncio.sleep(60)

    agent, turns = await filled("drips", drip, "a", "b")

    async with aclosing(agent.run(max_concurrency=2)) as results:
        turn, _ = await anext(results)

    assert turn.stop_reason is StopReason.CANCELLED
    assert agent.turns == [other for other in turns if other is not turn]


async def test_after_a_completion_check_nothing_new_begins() -> None:
    begun: list[int] = []

    @tool()
    async def work(number: int) -> int:
        begun.append(number)
        await asyncio.sleep(0.002)
        return number

    @tool(type=ToolType.COMPLETION_CHECK)
    async def enough() -> bool:
        return True

    agent = Agent("busy", "", [work, enough])
    for turn in (Turn(work, args=[1]), Turn(enough), Turn(work, args=[2]), Turn(work, args=[3])):
        await agent.put(turn)

    values = [value async for _, value in agent.run(max_concurrency=2)]

    assert (sorted(map(str, values)), begun) == (["1", "True"], [1])
    assert len(agent.turns) == 2


async def test_turns_put_by_turns_are_run() -> None:
    @tool()
    async def split(depth: int) -> AsyncIterator[Any]:
        if depth:
            yield Turn(split, args=[depth - 1])
            yield Turn(split, args=[depth - 1])
        else:
            yield "leaf"

    agent, _ = await filled("trees", split, 4)

    assert [value async for _, value in agent.run(max_concurrency=3)] == ["leaf"] * 16


async def test_so_many_has_to_be_at_least_one() -> None:
    agent, _ = await filled("idle", tool()(_nothing))

    with pytest.raises(ValueError, match="at least 1"):
        agent.run(max_concurrency=0)


async def _nothing(x: int) -> None: ...
