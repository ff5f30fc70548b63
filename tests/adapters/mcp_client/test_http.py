"""What is sent to a URL with each request."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import httpx2
from mcp.server.mcpserver import Context, MCPServer

from tests.adapters.mcp_client.servers import called, free_port, served
from toolcrib.adapters.mcp_client import connect


class Signed(httpx2.Auth):
    """Signs each request, as an OAuth provider does."""

    def auth_flow(self, request: httpx2.Request) -> Generator[httpx2.Request, httpx2.Response]:
        request.headers["authorization"] = "Bearer t0ken"
        yield request


async def test_headers_and_authentication_are_sent() -> None:
    server, port = MCPServer("who", log_level="CRITICAL"), free_port()

    @server.tool(structured_output=False)
    def whoami(ctx: Context[Any, Any]) -> str:
        """Tell what was sent."""
        headers = ctx.headers or {}
        return f"{headers.get('x-team')}, {headers.get('authorization')}"

    async with (
        served(server, port),
        connect(f"http://127.0.0.1:{port}/mcp", headers={"x-team": "blue"}, auth=Signed()).open() as tools,
    ):
        assert await called(tools, "whoami") == "blue, Bearer t0ken"
