"""The moment right before a tool's first line: a recorder keeps that it begins, and a fence may hold it back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from tests.virtual_time import in_virtual_time
from toolcrib.calls import Completed, ToolCall
from toolcrib.pipeline import Call, Durability, Pipeline, Run, run_for
from toolcrib.tools import ez_tool


class Recorder:
    """A recorder that lists which calls began."""

    def __init__(self) -> None:
        self.begun: list[str] = []

    async def begin(self, call: Call) -> None:
        self.begun.append(call.id)


async def never() -> None:
    """Hold what asks back, as for a worker whose work was handed over."""
    await asyncio.Event().wait()


@pytest.mark.parametrize("streams", [False, True])
@in_virtual_time
async def test_a_call_that_waits_for_a_lock_has_not_begun(streams: bool) -> None:
    go_on, recorder = asyncio.Event(), Recorder()

    @ez_tool(lock=True)
    async def count() -> AsyncIterator[int]:
        await go_on.wait()
        yield 1

    @ez_tool(lock=True)
    async def work() -> int:
        await go_on.wait()
        return 1

    pipeline, run = Pipeline([count if streams else work]), Run(durability=Durability(recorder=recorder))
    name = "count" if streams else "work"
    calls = [asyncio.create_task(pipeline.run(ToolCall(name, {}, call_id), run)) for call_id in ("c1", "c2")]
    await asyncio.sleep(0.05)
    before = list(recorder.begun)
    go_on.set()
    outcomes = await asyncio.gather(*calls)

    assert (before, recorder.begun) == (["c1"], ["c1", "c2"])
    assert all(isinstance(outcome, Completed) for outcome in outcomes)


@pytest.mark.parametrize("name", ["plain", "locked", "streaming", "watched"])
async def test_a_fence_holds_a_tool_back(name: str) -> None:
    ran: list[str] = []

    @ez_tool
    async def plain() -> None:
        ran.append("plain")

    @ez_tool(lock=True)
    def locked() -> None:
        ran.append("locked")

    @ez_tool
    async def streaming() -> AsyncIterator[int]:
        ran.append("streaming")
        yield 1

    @ez_tool
    async def watched() -> None:
        ran.append("watched")

    @watched.before_invoke
    async def before() -> None:
        pass

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await Pipeline([plain, locked, streaming, watched]).run(
                ToolCall(name, {}, "c1"), Run(durability=Durability(fence=never))
            )

    assert ran == []


@in_virtual_time
async def test_what_runs_inside_a_tool_is_held_back_by_the_same_fence() -> None:
    ran: list[str] = []

    @ez_tool
    async def inner() -> None:
        ran.append("inner")

    @ez_tool
    async def outer() -> None:
        ran.append("outer")
        await Pipeline([inner]).run(ToolCall("inner", {}, "c2"), run_for(None, "round"))

    async def fence() -> None:
        if ran:
            await never()

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await Pipeline([outer]).run(ToolCall("outer", {}, "c1"), Run(durability=Durability(fence=fence)))

    assert ran == ["outer"]
