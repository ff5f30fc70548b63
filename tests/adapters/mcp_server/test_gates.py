"""Small gates of a server, each by itself: which call a client may name a request with."""

import pytest
from mcp.shared.exceptions import MCPError

from tests.adapters.mcp_server.clients import Way, booking, every_generation, request_of
from toolcrib.adapters.mcp_server import ServerOptions, build_server
from toolcrib.approvals import MemoryApprovalStore
from toolcrib.tools import ez_tool


@every_generation
async def test_a_request_is_named_with_the_tool_that_waits_for_it(way: Way) -> None:
    booked: list[str] = []

    @ez_tool
    async def look(place: str) -> str:
        return place

    server = build_server([booking(booked), look], ServerOptions(approvals=MemoryApprovalStore()))
    async with way(server) as client:
        asked = request_of(await client.call_tool("book", {"place": "Oslo"}))

        with pytest.raises(MCPError, match="no call of `look` waits for the request"):
            await client.call_tool("look", {"place": "Oslo"}, meta={"toolcrib/request": asked})
