"""Draws docs/pictures/trace.svg: the spans that a real run exports, as a trace viewer shows them.

    python -m tests.docs.trace_picture [FILE]

The model of a session writes a program, which runs in the sandbox; one of its tools comes from an MCP server, where it
is a tool of another toolset. Everything is exported by the SDK of OpenTelemetry. Run it again when the spans change: a
test compares the names in the picture, and what is inside of what, with those of a new run.
"""

from __future__ import annotations

import asyncio
import sys
from html import escape
from pathlib import Path
from typing import Any

from mcp import Client
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from toolcrib.adapters.mcp_client import connect
from toolcrib.adapters.mcp_server import ServerOptions, build_server
from toolcrib.approvals import approve_all
from toolcrib.calls import ToolCall
from toolcrib.code import Toolkit
from toolcrib.pipeline import Channel, Run
from toolcrib.rounds import ChatRequest, Session
from toolcrib.telemetry import OtelSink
from toolcrib.testing import ScriptedModel
from toolcrib.tools import ez_tool
from toolcrib.toolsets import Toolset

PICTURE = Path(__file__).resolve().parents[2] / "docs" / "pictures" / "trace.svg"
PROGRAM = "order = find_order(number='A-7')\nif order['late']:\n    print(refund(order['id'], order['price']))"
_ROW, _NAMES, _BARS, _TOP = 30, 380, 520, 46
_COLOURS = {
    "invoke_agent": "#5b4db2",
    "chat": "#7d6fd0",
    "program": "#b26b00",
    "execute_tool": "#1f7a4d",
    "MCP": "#1d6fa5",
}


class Model(ScriptedModel):
    """A model that has a name, and takes a while."""

    model, provider = "large-1", "openai"

    async def reply(self, request: ChatRequest) -> object:
        await asyncio.sleep(0.01)
        return await super().reply(request)


@ez_tool
async def find_order(number: str) -> dict[str, Any]:
    """Look an order up."""
    with trace.get_tracer("shop").start_as_current_span("SELECT orders"):
        await asyncio.sleep(0.004)
    return {"id": number, "price": 19.5, "late": True}


@ez_tool(requires_approval=True)
async def refund(order: str, amount: float) -> str:
    """Give money back."""
    await asyncio.sleep(0.002)
    return f"{amount} for {order}"


async def exported() -> list[ReadableSpan]:
    """Run the agent, and return the spans of its trace in the order they began."""
    spans, tracers = InMemorySpanExporter(), TracerProvider()
    tracers.add_span_processor(SimpleSpanProcessor(spans))
    trace.set_tracer_provider(tracers)
    sink = OtelSink()
    server = build_server([find_order], ServerOptions(sinks=(sink,)))
    async with connect(Client(server, mode="legacy")).open() as bound:
        toolkit = Toolkit(Toolset.combined(bound, Toolset([refund])), approver=approve_all)
        await toolkit.execute_async("1")  # so that a sandbox is there, as in a process that runs for a while
        run = Run(sinks=(sink,), channel=Channel(agent="support"), approver=approve_all)
        with Model(ToolCall("run_python", {"code": PROGRAM}), "The money is on its way.") as model:
            session = Session(model, tools=[toolkit.as_tool()], run=run)
            await session.say("Where is order A-7?").run()
    if "19.5 for A-7" not in str(session.transcript):
        raise RuntimeError(f"the program went another way: {session.transcript}")
    found = list(spans.get_finished_spans())
    root = next(span for span in found if span.name.startswith("invoke_agent"))
    assert root.context is not None
    mine = [span for span in found if span.context is not None and span.context.trace_id == root.context.trace_id]
    return sorted(mine, key=lambda span: span.start_time or 0)


def depth(span: ReadableSpan, spans: list[ReadableSpan]) -> int:
    """Return how many spans one is inside of."""
    parent = span.parent
    if parent is None:
        return 0
    return 1 + depth(next(s for s in spans if s.context is not None and s.context.span_id == parent.span_id), spans)


def drawn(spans: list[ReadableSpan]) -> str:
    """Return the picture."""
    first = min(span.start_time or 0 for span in spans)
    whole = max(span.end_time or 0 for span in spans) - first
    height, width = _TOP + _ROW * len(spans) + 12, _NAMES + _BARS + 90
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        'font-family="ui-monospace, Menlo, Consolas, monospace" font-size="13">',
        f'<rect width="{width}" height="{height}" rx="8" fill="#ffffff" stroke="#d0d7de"/>',
        f'<text x="16" y="28" fill="#57606a">{len(spans)} spans, one trace, {whole / 1e6:.1f} ms</text>',
    ]
    for row, span in enumerate(spans):
        top, level = _TOP + row * _ROW, depth(span, spans)
        start, end = (span.start_time or 0) - first, (span.end_time or 0) - first
        left, long = _NAMES + _BARS * start / whole, max(_BARS * (end - start) / whole, 2)
        colour = _COLOURS.get(span.name.split()[0], "#1d6fa5" if "/" in span.name else "#6e7781")
        lines += [
            f'<text class="span" data-depth="{level}" x="{16 + 18 * level}" y="{top + 18}" fill="#1f2328">'
            f"{escape(span.name)}</text>",
            f'<rect x="{left:.1f}" y="{top + 5}" width="{long:.1f}" height="18" rx="3" fill="{colour}"/>',
            *(
                f'<circle cx="{_NAMES + _BARS * (event.timestamp - first) / whole:.1f}" cy="{top + 14}" r="4" '
                f'fill="#ffffff" stroke="#1f2328"><title>{escape(event.name)}</title></circle>'
                for event in span.events
                if event.name == "toolcrib.approval"
            ),
            f'<text x="{left + long + 6:.1f}" y="{top + 18}" fill="#57606a" font-size="11">'
            f"{(end - start) / 1e6:.1f} ms</text>",
        ]
    return "\n".join([*lines, "</svg>", ""])


if __name__ == "__main__":
    Path(sys.argv[1] if len(sys.argv) > 1 else PICTURE).write_text(drawn(asyncio.run(exported())), encoding="utf-8")
