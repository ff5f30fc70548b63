"""Servers that send without end what nobody asked for: it costs bounded memory, and the newest is known."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from typing import Any

import mcp_types as types
import pytest
from mcp.server import Server
from mcp.shared.message import SessionMessage

from toolcrib.adapters.mcp_client import connect
from toolcrib.adapters.mcp_client._pace import Pace, PacedMessages
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

    left_out = "storming: left out here, because too many came at once: 200 lines"
    assert (len(first), first[-1]) == (1_000, "storming: line 1000")
    assert [record.getMessage() for record in caplog.records][1_000:1_002] == [left_out, "storming: line 1"]


# --- messages of any kind


class Announced:
    """Notes what a server announces."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def list_changed(self) -> None:
        self.said.append("list")

    def updated(self, uri: str) -> None:
        self.said.append(uri)

    def elicitation_completed(self, elicitation_id: str) -> None:
        self.said.append(elicitation_id)


def told(method: str, **params: Any) -> SessionMessage:
    return SessionMessage(types.JSONRPCNotification(jsonrpc="2.0", method=f"notifications/{method}", params=params))


ANSWER = SessionMessage(types.JSONRPCResponse(jsonrpc="2.0", id=7, result={}))
UNASKED: dict[str, tuple[SessionMessage | Exception, list[str]]] = {  # what is sent, and what is announced of it
    "lines of its log": (told("message", level="info", data="x"), []),
    "progress": (told("progress", progressToken=8, progress=1), []),
    "changes of its tools": (told("tools/list_changed"), ["list"]),
    "changes of its resources": (told("resources/list_changed"), ["list"]),
    "changes of its prompts": (told("prompts/list_changed"), ["list"]),
    "updates of resources": (told("resources/updated", uri="odd://r"), ["odd://r"]),
    "visits of pages": (told("elicitation/complete", elicitationId="e"), ["e"]),
    "notifications": (told("cancelled", requestId=9), []),
    "requests": (SessionMessage(types.JSONRPCRequest(jsonrpc="2.0", id="q", method="ping")), []),
    "lines that are not messages": (ValueError("odd"), []),
}


async def passed_on(items: list[SessionMessage | Exception], announced: Announced, clock: FakeClock) -> list[Any]:
    async def stream() -> AsyncIterator[SessionMessage | Exception]:
        for item in items:
            yield item

    return [item async for item in PacedMessages(stream(), "storming", announced, clock)]


@pytest.mark.parametrize("kind", UNASKED)
async def test_a_storm_of_what_nobody_asked_for_ends_before_the_answer(
    kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    (item, each), announced = UNASKED[kind], Announced()
    others = [other for other, _ in UNASKED.values()]

    found = await passed_on([item] * MANY + [ANSWER, *others], announced, FakeClock())

    assert (len(found), found[1_000]) == (1_000 + len(others), ANSWER)
    assert announced.said == each * (MANY - 1_000 + 1)
    assert f"storming: its {kind} arrive too fast" in caplog.text


async def test_the_newest_progress_of_a_storm_comes_before_the_answer() -> None:
    reports = [told("progress", progressToken=7, progress=number) for number in range(MANY)]

    found = await passed_on([*reports, ANSWER], Announced(), FakeClock())

    assert found[-3:] == [reports[999], reports[-1], ANSWER]
