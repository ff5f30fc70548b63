"""Calls of a round at once: in the task of their host as long as none waits, and all together when one does."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from typing import Any

import pytest

from tests.rounds.replies import round_of
from toolcrib.rounds import ToolRoundPlan
from toolcrib.tools import ez_tool

WHO: ContextVar[str] = ContextVar("WHO", default="nobody")


async def three(tool: Any) -> ToolRoundPlan:
    """Return a plan of three calls of a tool `work`."""
    return await round_of([tool], *(("work", {"n": n}) for n in range(3))).apply_hooks()


async def test_calls_that_wait_for_nothing_run_in_the_task_of_the_host() -> None:
    tasks: list[Any] = []

    @ez_tool
    async def work(n: int) -> int:
        tasks.append(asyncio.current_task())
        return n

    results = await (await three(work)).run_pending()

    assert [result.output for result in results] == [0, 1, 2]
    assert tasks == [asyncio.current_task()] * 3


async def test_all_calls_are_started_when_the_first_one_waits() -> None:
    started: list[int] = []
    everyone = asyncio.Event()

    @ez_tool
    async def work(n: int) -> int:
        started.append(n)
        if len(started) == 3:
            everyone.set()
        await everyone.wait()
        return n

    results = await (await three(work)).run_pending()

    assert ([result.output for result in results], started) == ([0, 1, 2], [0, 1, 2])


async def test_what_a_call_sets_in_its_context_no_other_sees() -> None:
    @ez_tool
    async def work(n: int) -> str:
        before = WHO.get()
        WHO.set(str(n))
        await asyncio.sleep(0)
        return f"{before}, {WHO.get()}"

    results = await (await three(work)).run_pending()

    assert [result.output for result in results] == ["nobody, 0", "nobody, 1", "nobody, 2"]
    assert WHO.get() == "nobody"


async def test_a_cancelled_host_stops_every_call() -> None:
    stopped: list[int] = []

    @ez_tool
    async def work(n: int) -> None:
        try:
            for _ in range(20):  # a wait for nothing, which no future ends when the task is cancelled
                await asyncio.sleep(0)
        except asyncio.CancelledError:
            stopped.append(n)
            raise

    plan = await three(work)
    running = asyncio.create_task(plan.run_pending())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    running.cancel()

    with pytest.raises(asyncio.CancelledError):
        await running

    assert sorted(stopped) == [0, 1, 2]


async def test_a_deadline_inside_of_a_tool_ends_that_call_alone() -> None:
    @ez_tool
    async def work(n: int) -> str:
        try:
            async with asyncio.timeout(0 if n == 0 else None):
                await asyncio.sleep(0.001)
        except TimeoutError:
            return "late"
        return "in time"

    results = await (await three(work)).run_pending()

    assert [result.output for result in results] == ["late", "in time", "in time"]
