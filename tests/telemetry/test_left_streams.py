"""A streaming tool with a span of its own, left by a consumer that breaks off and closes nothing."""

import asyncio
import gc
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from opentelemetry.trace import get_current_span

from tests.telemetry.conftest import Watch
from toolcrib.calls import ToolCall
from toolcrib.pipeline import CallLimits, Pipeline, Run
from toolcrib.schema import RunContext
from toolcrib.tools import Tool, ez_tool, tool
from toolcrib.turns import Agent, Turn


def spanned(watch: Watch, *, sync: bool = False, **options: Any) -> Tool[..., Any]:
    tracer = watch.tracers.get_tracer("tool")

    async def steps() -> AsyncIterator[int]:
        with tracer.start_as_current_span("whole"):
            for n in range(3):
                with tracer.start_as_current_span("step"):
                    yield n

    def sync_steps() -> Any:
        with tracer.start_as_current_span("whole"):
            for n in range(3):
                with tracer.start_as_current_span("step"):
                    yield n

    return ez_tool(name="steps", **options)(sync_steps) if sync else tool(name="steps", **options)(steps)


async def break_off(values: AsyncIterator[Any]) -> None:
    async for _ in values:
        break


async def leave(way: Callable[[], Awaitable[None]], watch: Watch) -> None:
    """Leave a stream inside a span, which is the current one afterwards, too, and wait for the loop to close it."""
    with watch.tracers.get_tracer("taker").start_as_current_span("taker") as taker:
        await way()
        gc.collect()
        while not any(span.name == "whole" for span in watch.spans):  # noqa: ASYNC110 -- the loop closes it
            await asyncio.sleep(0.01)
        assert get_current_span() is taker


OPTIONS = [{}, {"timeout": 60.0}, {"lock": "a"}, {"sync": True}, {"sync": True, "thread": False}]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("limits", [None, CallLimits(total=3)], ids=["free", "limited"])
async def test_a_stream_through_a_pipeline(
    options: dict[str, Any], limits: CallLimits | None, watch: Watch, caplog: pytest.LogCaptureFixture
) -> None:
    pipeline = Pipeline([spanned(watch, **options)], sinks=[watch.sink()])

    await leave(lambda: break_off(pipeline.stream(ToolCall("steps", {}), Run(limits=limits))), watch)

    assert watch.tree() == {"taker": {"execute_tool steps": {"whole": {"step": {}}}}}
    assert caplog.text == ""


async def in_an_agent(streamed: Tool[..., Any]) -> None:
    agent = Agent("a", "An agent.", [streamed])
    await agent.put(Turn(streamed))
    await break_off(agent.run())


WAYS: dict[str, Callable[[Any], Awaitable[None]]] = {
    "a direct call": lambda streamed: break_off(streamed()),
    "a pipeline without sinks": lambda streamed: break_off(Pipeline([streamed]).stream(ToolCall("steps", {}))),
    "a turn": lambda streamed: break_off(Turn(streamed).yielding()),
    "an agent": in_an_agent,
}


@pytest.mark.parametrize("way", WAYS)
async def test_a_stream_that_nobody_watches(way: str, watch: Watch, caplog: pytest.LogCaptureFixture) -> None:
    streamed = spanned(watch)

    await leave(lambda: WAYS[way](streamed), watch)

    assert watch.tree() == {"taker": {"whole": {"step": {}}}}
    assert caplog.text == ""


async def test_a_tool_that_returns_and_reports(watch: Watch, caplog: pytest.LogCaptureFixture) -> None:
    tracer = watch.tracers.get_tracer("tool")

    @tool
    async def work(ctx: RunContext[Any]) -> str:
        with tracer.start_as_current_span("whole"):
            assert ctx.report is not None
            ctx.report("half")
            await asyncio.Event().wait()
        return "done"

    pipeline = Pipeline([work], sinks=[watch.sink()])

    await leave(lambda: break_off(pipeline.stream(ToolCall("work", {}))), watch)

    assert watch.tree() == {"taker": {"execute_tool work": {"whole": {}}}}
    assert caplog.text == ""
