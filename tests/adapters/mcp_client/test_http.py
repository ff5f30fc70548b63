"""What is sent to a URL with each request."""

from __future__ import annotations

import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp.server.mcpserver import Context, MCPServer

from tests.adapters.mcp_client.servers import called, served
from tests.networks import free_port
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


@pytest.mark.skipif(sys.platform != "linux", reason="it is read from /proc")
async def test_the_system_asks_now_and_then_whether_a_server_is_there() -> None:
    server, port = MCPServer("watched", log_level="CRITICAL"), free_port()

    @server.tool(structured_output=False)
    def timers() -> str:
        """Return the timers of the connections to this server."""
        rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
        return " ".join(
            {row[5].partition(":")[0] for row in rows if row[2].endswith(f":{port:04X}") and row[3] == "01"}
        )

    async with served(server, port), connect(f"http://127.0.0.1:{port}/mcp").open() as tools:
        assert await called(tools, "timers") == "02"  # keep-alive
