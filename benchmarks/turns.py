"""Turns and agents: a turn alone, ten thousand in a queue, many at a time, a stream, and what waiting costs."""

# ruff: noqa: PLC0415 -- a contender's process imports what that contender needs, and nothing of the others

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from benchmarks._measure import Contender, Measure, Metric, Sample, Target
from benchmarks._timing import async_sample, on_loop
from benchmarks._tools import count_up, double

ALONE = 500
QUEUED = 10_000
STREAMED = 100_000
AT_ONCE = 100


def _alone(library: Any) -> Sample:
    library.tool()(double)

    async def batch() -> Any:
        for number in range(ALONE):
            output = await library.Turn("double", kwargs={"number": number}).returning()
        return output

    return async_sample("us", batch, ALONE, (ALONE - 1) * 2)


def _names() -> Callable[[], str]:
    made = iter(range(1_000_000))
    return lambda: f"agent_{next(made)}"  # a registry takes each name once


def _agent(library: Any, **options: Any) -> Sample:
    tool, name = library.tool()(double), _names()

    async def batch() -> Any:
        agent = library.Agent(name(), "Doubles numbers", [tool])
        for number in range(QUEUED):
            await agent.put(library.Turn("double", kwargs={"number": number}))
        total = 0
        async for _, value in agent.run(**options):
            total += value
        return total

    return async_sample("us", batch, QUEUED, sum(range(QUEUED)) * 2, once=True)


def _stream(library: Any) -> Sample:
    tool, name = library.tool()(count_up), _names()

    async def batch() -> Any:
        agent = library.Agent(name(), "Counts", [tool])
        await agent.put(library.Turn("count_up", kwargs={"upto": STREAMED}))
        async for _, value in agent.run():
            last = value
        return last

    return async_sample("us", batch, STREAMED, STREAMED - 1, once=True)


def _waiting(library: Any) -> Sample:
    tool, name = library.tool()(double), _names()

    async def put(agent: Any, count: int) -> None:
        for number in range(count):
            await agent.put(library.Turn("double", kwargs={"number": number}))

    def sample() -> dict[str, float]:
        agent = library.Agent(name(), "Doubles numbers", [tool])
        on_loop(put(agent, 10))
        gc.collect()
        tracemalloc.start()
        on_loop(put(agent, QUEUED))
        gc.collect()
        allocated = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        return {"bytes": allocated / QUEUED}

    sample()
    return sample


def _of_toolcrib(make: Callable[..., Sample], **options: Any) -> Callable[[], Sample]:
    def setup() -> Sample:
        from toolcrib import Agent, Turn, tool

        return make(SimpleNamespace(Agent=Agent, Turn=Turn, tool=tool), **options)

    return setup


def _of_pygents(make: Callable[..., Sample]) -> Callable[[], Sample]:
    def setup() -> Sample:
        import pygents

        return make(pygents)

    return setup


def _against(
    name: str, title: str, metric: Metric, make: Callable[..., Sample], at_most: float, often: int = 1
) -> Measure:
    return Measure(
        name=name,
        title=title,
        metrics=(metric,),
        contenders=(Contender("pygents", _of_pygents(make)), Contender("toolcrib", _of_toolcrib(make))),
        baseline="pygents",
        often=often,
        targets=(Target(metric.key, "toolcrib", "pygents", at_most),),
    )


_PER_TURN = Metric("us", "per turn", "us")

MEASURES = (
    _against("turn", "a turn made and run alone", _PER_TURN, _alone, 1 / 8, often=3),
    Measure(
        name="agent",
        title="an agent with 10,000 turns, put and run",
        metrics=(_PER_TURN,),
        contenders=(
            Contender("pygents", _of_pygents(_agent)),
            Contender("toolcrib", _of_toolcrib(_agent)),
            Contender(f"toolcrib, {AT_ONCE} at a time", _of_toolcrib(_agent, max_concurrency=AT_ONCE)),
        ),
        baseline="pygents",
        targets=(
            Target("us", "toolcrib", "pygents", 1 / 8),
            Target("us", f"toolcrib, {AT_ONCE} at a time", "pygents", 1 / 8),
        ),
        notes=("pygents has no concurrent agent; the tool does not wait, so running many at a time can only cost.",),
    ),
    _against("agent-stream", "100,000 values through an agent", Metric("us", "per value", "us"), _stream, 1 / 10),
    _against("queue", "10,000 turns waiting", Metric("bytes", "per waiting turn", "bytes"), _waiting, 1 / 2),
)
