"""A streaming tool: the cost of one value on its way from the tool's `yield` to the consumer's loop."""

# ruff: noqa: PLC0415 -- a contender's process imports what that contender needs, and nothing of the others

from __future__ import annotations

from typing import Any

from benchmarks._measure import Contender, Measure, Metric, Sample, Target
from benchmarks._timing import async_sample
from benchmarks._tools import count_up

COUNT = 10_000


def bare() -> Sample:
    async def batch() -> Any:
        async for value in count_up(COUNT):
            last = value
        return last

    return async_sample("us", batch, COUNT, COUNT - 1)


def _toolcrib(**options: Any) -> Sample:
    from toolcrib.calls import ToolCall, Yielded
    from toolcrib.pipeline import Pipeline, Run
    from toolcrib.tools import tool
    from toolcrib.toolsets import Toolset

    pipeline = Pipeline(Toolset([tool(**options)(count_up)]))
    raw = f'{{"upto": {COUNT}}}'

    async def batch() -> Any:
        async for item in pipeline.stream(ToolCall("count_up", raw), Run()):
            if isinstance(item, Yielded):
                last = item.value
        return last

    return async_sample("us", batch, COUNT, COUNT - 1)


def toolcrib_pipeline() -> Sample:
    return _toolcrib()


def toolcrib_deadline() -> Sample:
    return _toolcrib(timeout=60)


def toolcrib_direct() -> Sample:
    from toolcrib.tools import tool

    counted = tool()(count_up)

    async def batch() -> Any:
        async for value in counted(upto=COUNT):
            last = value
        return last

    return async_sample("us", batch, COUNT, COUNT - 1)


def pygents_tool() -> Sample:
    from pygents import tool

    counted = tool()(count_up)

    async def batch() -> Any:
        async for value in counted(upto=COUNT):
            last = value
        return last

    return async_sample("us", batch, COUNT, COUNT - 1)


def pygents_turn() -> Sample:
    from pygents import Turn, tool

    tool()(count_up)

    async def batch() -> Any:
        async for value in Turn("count_up", kwargs={"upto": COUNT}).yielding():
            last = value
        return last

    return async_sample("us", batch, COUNT, COUNT - 1)


MEASURE = Measure(
    name="streaming",
    title="10,000 values from an async generator",
    metrics=(Metric("us", "per value", "us"),),
    contenders=(
        Contender("async for", bare),
        Contender("toolcrib pipeline.stream", toolcrib_pipeline),
        Contender("toolcrib pipeline.stream, deadline", toolcrib_deadline),
        Contender("toolcrib tool", toolcrib_direct),
        Contender("pygents tool", pygents_tool),
        Contender("pygents Turn", pygents_turn),
    ),
    baseline="async for",
    often=3,
    targets=(
        Target("us", "toolcrib pipeline.stream", "pygents Turn", 1 / 8),
        Target("us", "toolcrib pipeline.stream, deadline", "pygents Turn", 1 / 8),
        Target("us", "toolcrib tool", "pygents tool", 1 / 8),
    ),
    notes=(
        "the pipeline's counterpart is pygents' turn, which always has a deadline; a direct call's is a direct call.",
    ),
)
