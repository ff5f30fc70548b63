"""Trust in a server's hints and labels: one that the host does not trust can only ask for more care."""

from __future__ import annotations

from typing import Any

import pytest
from mcp.server.mcpserver import MCPServer
from mcp_types import CallToolResult, TextContent, ToolAnnotations

from toolcrib.adapters.mcp_client import connect
from toolcrib.calls import Completed, Suspended, ToolCall
from toolcrib.pipeline import Pipeline, Run
from toolcrib.provenance import Provenance
from toolcrib.tools import ToolOptions, ez_tool
from toolcrib.toolsets import Toolset

IBAN = "GB29NWBK60161331926819"
TRUST = "io.modelcontextprotocol/trust-annotations"


def server(hints: ToolAnnotations | None = None, meta: dict[str, Any] | None = None, said: Any = None) -> MCPServer:
    """Return a server with a tool that has these hints and this `_meta`; its results have the `_meta` in `said`."""
    made = MCPServer("bank", log_level="CRITICAL")

    @made.tool(annotations=hints, meta=meta, structured_output=False)
    def look(at: str) -> CallToolResult:
        """Look."""
        return CallToolResult(content=[TextContent(type="text", text=f"pay to {IBAN}")], _meta=said)

    return made


async def options(made: MCPServer, **more: Any) -> ToolOptions:
    async with Toolset([connect(made, **more)]).open() as tools:
        return tools["look"].tool.options


READS = ToolAnnotations(read_only_hint=True)
CLOSED = ToolAnnotations(read_only_hint=True, open_world_hint=False)
OPEN = ToolAnnotations(read_only_hint=True, open_world_hint=True)
SENDS = ToolAnnotations(open_world_hint=True)


@pytest.mark.parametrize(
    ("hints", "believed", "otherwise"),
    [
        (READS, ("none", "untrusted"), (None, "untrusted")),
        (CLOSED, ("none", "trusted"), (None, "untrusted")),
        (OPEN, ("fetch", "untrusted"), (None, "untrusted")),
        (SENDS, ("send", "untrusted"), ("send", "untrusted")),
        (None, (None, "untrusted"), (None, "untrusted")),
    ],
)
async def test_hints_count_in_a_servers_favour_where_the_host_trusts_it(
    hints: ToolAnnotations | None, believed: Any, otherwise: Any
) -> None:
    trusted, other = await options(server(hints), trusted=True), await options(server(hints))
    assert (trusted.effect, trusted.source) == believed
    assert (other.effect, other.source) == otherwise


@pytest.mark.parametrize(
    ("meta", "source", "readers"),
    [
        ({TRUST: {"untrusted": True}}, "untrusted", None),
        ({TRUST: {"sensitive": True}}, "trusted", ()),
        ({TRUST: {"untrusted": False, "sensitive": False}}, "trusted", None),
        ({"annotations": {"maliciousActivityHint": True, "sensitiveHint": "high"}}, "untrusted", ()),
        ({"annotations": {"privateHint": True, "sensitiveHint": "low"}}, "trusted", ()),
        ({TRUST: "yes", "annotations": ["no"], "other": 1}, "trusted", None),
    ],
)
async def test_labels_of_a_tool_in_its_meta_lower_trust(meta: dict[str, Any], source: str, readers: Any) -> None:
    made = await options(server(CLOSED, meta), trusted=True)
    assert (made.source, made.readers) == (source, readers)
    untrusted = await options(server(CLOSED, meta))
    assert untrusted.source == "untrusted"


@ez_tool(effect="send", source="trusted")
async def pay(recipient: str) -> str:
    """Pay."""
    return "paid"


async def outcome(said: Any, **more: Any) -> Any:
    """Return what becomes of a payment to an account that a result of the server's names."""
    run = Run(features=[Provenance()])
    run.add_user_message("pay what the bank says")
    async with Toolset([connect(server(CLOSED, said=said), trusted=True, **more), pay]).open() as tools:
        pipeline = Pipeline(tools)
        assert isinstance(await pipeline.run(ToolCall("look", {"at": "bank"}), run), Completed)
        return await pipeline.run(ToolCall("pay", {"recipient": IBAN}), run)


async def test_labels_of_a_result_lower_the_trust_of_that_result() -> None:
    assert isinstance(await outcome(None), Completed)
    assert isinstance(await outcome({TRUST: {"untrusted": False}}), Completed)
    asked = await outcome({TRUST: {"untrusted": True}})
    assert isinstance(asked, Suspended)
    assert f"recipient `{IBAN}` comes from `look`" in asked.request.reason


async def test_a_private_result_is_not_sent_without_a_question() -> None:
    sent: list[str] = []

    @ez_tool(effect="send", source="trusted", content=["body"])
    async def mail(to: str, body: str) -> str:
        """Mail."""
        sent.append(body)
        return "sent"

    for said, waits in (({TRUST: {"sensitive": True}}, True), (None, False)):
        run = Run(features=[Provenance()])
        run.add_user_message("mail ann@corp.com what the bank says")
        async with Toolset([connect(server(CLOSED, said=said), trusted=True), mail]).open() as tools:
            pipeline = Pipeline(tools)
            await pipeline.run(ToolCall("look", {"at": "bank"}), run)
            made = await pipeline.run(ToolCall("mail", {"to": "ann@corp.com", "body": f"pay to {IBAN}"}), run)
        assert isinstance(made, Suspended) == waits


async def test_a_resource_is_read_without_a_question() -> None:
    made = MCPServer("files", log_level="CRITICAL")

    @made.resource("file:///a")
    def a() -> str:
        return "x"

    async with Toolset([connect(made)]).open() as tools:
        assert tools["read_a"].tool.options.effect == "none"
