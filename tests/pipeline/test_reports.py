"""A tool that returns tells how far it has come, and has a person asked, by its context."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Any

from toolcrib.calls import ApprovalRequest, Completed, Failed, Grant, ToolCall, Yielded
from toolcrib.pipeline import Pipeline, Run
from toolcrib.record import ListSink
from toolcrib.schema import RunContext
from toolcrib.tools import tool


@tool()
async def count_aloud(ctx: RunContext[Any], up_to: int) -> str:
    """Count."""
    for number in range(up_to):
        if ctx.report is not None:
            ctx.report(number)
        await asyncio.sleep(0)
    return "done"


async def test_what_a_tool_reports_comes_before_its_outcome() -> None:
    async with aclosing(Pipeline([count_aloud]).stream(ToolCall("count_aloud", {"up_to": 2}))) as items:
        told = [item async for item in items]

    assert told[:2] == [Yielded(0), Yielded(1)]
    assert isinstance(told[2], Completed)
    assert told[2].value == "done"


async def test_what_a_tool_reports_is_told_to_sinks_and_no_part_of_its_result() -> None:
    sink = ListSink()

    outcome = await Pipeline([count_aloud], sinks=[sink]).run(ToolCall("count_aloud", {"up_to": 2}))

    assert isinstance(outcome, Completed)
    assert outcome.value == "done"
    assert [event.data["value"] for event in sink.events if event.kind == "yielded"] == [0, 1]


async def test_nobody_who_follows_is_nobody_who_is_told() -> None:
    outcome = await Pipeline([count_aloud]).run(ToolCall("count_aloud", {"up_to": 2}))

    assert outcome.text() == "done"


async def test_leaving_the_stream_stops_the_tool() -> None:
    stopped = asyncio.Event()

    @tool()
    async def endless(ctx: RunContext[Any]) -> None:
        """Go on."""
        assert ctx.report is not None
        ctx.report("begun")
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    async with aclosing(Pipeline([endless]).stream(ToolCall("endless"))) as items:
        first = await anext(items)

    assert first == Yielded("begun")
    assert stopped.is_set()


async def test_what_the_tool_raises_ends_the_stream_with_its_outcome() -> None:
    @tool()
    async def broken(ctx: RunContext[Any]) -> None:
        """Fail."""
        assert ctx.report is not None
        ctx.report("begun")
        raise ValueError("no more")

    told = [item async for item in Pipeline([broken]).stream(ToolCall("broken"))]

    assert isinstance(told[1], Failed)
    assert told[1].message == "no more"


async def test_a_tool_has_the_run_s_approver_answer_something_else() -> None:
    @tool()
    async def greet(ctx: RunContext[Any]) -> str:
        """Ask for a name."""
        assert ctx.ask is not None
        request = ApprovalRequest("q1", ctx.call_id, ctx.tool_name, {}, "", reason="Who are you?")
        answer = await ctx.ask(request)
        return f"hello {answer.user_input}"

    async def ann(request: ApprovalRequest) -> Grant:
        return request.grant("ann", user_input="Ann")

    outcome = await Pipeline([greet]).run(ToolCall("greet"), Run(approver=ann))

    assert outcome.text() == "hello Ann"
