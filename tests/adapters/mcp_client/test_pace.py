"""Servers that send without end what nobody asked for: it costs bounded memory, and the newest is known."""

from __future__ import annotations

import logging
from typing import Any

import mcp_types as types
import pytest
from mcp.server import Server

from toolcrib.adapters.mcp_client import connect
from toolcrib.adapters.mcp_client._pace import Pace
from toolcrib.adapters.mcp_server import build_server
from toolcrib.calls import ToolCall
from toolcrib.pipeline import Pipeline
from toolcrib.schema import Progress
from toolcrib.testing import FakeClock
from toolcrib.toolsets import Toolset

MANY = 1_200
every_mode = pytest.mark.parametrize("mode", ["legacy", "auto"])


def storming() -> Server[Any]:
    """Return a server that sends very much progress and very many lines of a log during a call."""

    async def list_tools(ctx: Any, params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[types.Tool(name="storm", input_schema={"type": "object"})])

    async def call_tool(ctx: Any, params: Any) -> types.CallToolResult:
        for number in range(1, MANY + 1):
            await ctx.session.report_progress(number, MANY, "x" * 11_000)
            line = types.LoggingMessageNotificationParams(level="error", data=f"line {number}")
            await ctx.session.send_notification(types.LoggingMessageNotification(params=line), ctx.request_id)
        return types.CallToolResult(content=[types.TextContent(text="done")])

    return Server("storming", on_list_tools=list_tools, on_call_tool=call_tool)


async def streamed(tools: Toolset) -> list[Any]:
    return [item async for item in Pipeline(tools).stream(ToolCall("storm", {}))]


def test_a_pace_has_room_for_so_many_at_once_and_so_many_a_second() -> None:
    clock = FakeClock()
    pace = Pace(clock, 3, 2.0)

    at_once = [pace.has_room() for _ in range(5)]
    clock.advance(1)
    later = [pace.has_room() for _ in range(3)]
    clock.advance(3_600)

    assert at_once == [True, True, True, False, False]
    assert later == [True, True, False]
    assert [pace.has_room() for _ in range(4)] == [True, True, True, False]


@every_mode
@pytest.mark.parametrize("behind", [False, True], ids=["direct", "gateway"])
async def test_a_storm_of_progress_is_its_beginning_and_its_newest(mode: str, behind: bool) -> None:
    tools = connect(storming(), mode=mode, clock=FakeClock())
    async with (connect(build_server(tools), mode=mode) if behind else tools).open() as opened:
        *reports, outcome = await streamed(opened)

    values: list[Progress] = [report.value for report in reports]
    assert [value.progress for value in values] == [*range(1, 101), MANY]
    assert max(len(value.message or "") for value in values) <= 10_000
    assert outcome.text() == "done"


async def test_a_storm_of_lines_fills_no_log(caplog: pytest.LogCaptureFixture) -> None:
    clock = FakeClock()
    caplog.set_level(logging.ERROR, "toolcrib.mcp")
    async with connect(storming(), mode="legacy", clock=clock).open() as tools:
        await streamed(tools)
        first = [record.getMessage() for record in caplog.records]
        clock.advance(1)
        caplog.set_level(logging.WARNING, "toolcrib.mcp")
        await streamed(tools)

    left_out = "storming: left out here, as it came too fast: 200 lines"
    assert (len(first), first[-1]) == (1_000, "storming: line 1000")
    assert [record.getMessage() for record in caplog.records][1_000:1_002] == [left_out, "storming: line 1"]
