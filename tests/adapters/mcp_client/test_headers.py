"""Arguments that are sent as headers, too: null has no header."""

from __future__ import annotations

from typing import Any

import mcp_types as types
import pytest
from mcp.server.lowlevel import Server

from tests.adapters.mcp_client.servers import called, failed
from toolcrib.adapters.mcp_client import connect

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "verbose": {"type": "boolean", "x-mcp-header": "Verbose"},
        "at": {"type": "object", "properties": {"zone": {"type": "string", "x-mcp-header": "Zone"}}},
        "count": {"type": "integer", "x-mcp-header": "Count"},
        "query": {"type": "string"},
    },
    "required": ["region"],
}


def echoing(schema: dict[str, Any]) -> Server[Any]:
    """Return a server whose tool returns its arguments."""

    async def list_tools(ctx: Any, params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[types.Tool(name="echo", input_schema=schema)])

    async def call_tool(ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        return types.CallToolResult(content=[], structured_content=params.arguments)

    return Server("echoing", on_list_tools=list_tools, on_call_tool=call_tool)


async def test_null_for_an_optional_one_is_left_out() -> None:
    given: dict[str, Any] = {"region": "eu", "verbose": None, "at": {"zone": None, "more": None}}

    async with connect(echoing(SCHEMA)).open() as tools:
        sent = await called(tools, "echo", **given)

    assert sent == {"region": "eu", "at": {"more": None}}
    assert given["verbose"] is None


async def test_an_integer_is_sent_as_one() -> None:
    async with connect(echoing(SCHEMA)).open() as tools:
        sent = await called(tools, "echo", region="eu", count=2.0)

    assert repr(sent) == "{'region': 'eu', 'count': 2}"


@pytest.mark.parametrize("name", ["region", "query"])
async def test_null_for_a_required_one_and_for_one_that_is_no_header_is_an_error(name: str) -> None:
    async with connect(echoing(SCHEMA)).open() as tools:
        outcome = await failed(tools, "echo", **{"region": "eu", name: None})

    assert outcome.code == "invalid_arguments"
    assert f"{name}: must be a string" in outcome.text()
