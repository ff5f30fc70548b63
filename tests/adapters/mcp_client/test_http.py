"""What is sent to a URL with each request."""

from __future__ import annotations

import asyncio
import itertools
import sys
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager
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


@asynccontextmanager
async def closing_the_first(port: int, to: int) -> AsyncGenerator[None]:
    """Pass connections on, but end the first one as its request comes, as a server ends an idle one just then."""
    numbers = itertools.count()

    async def copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        while part := await source.read(65_536):
            target.write(part)
        target.close()

    async def pass_on(client: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        request = await client.read(65_536)
        if next(numbers):
            source, target = await asyncio.open_connection("127.0.0.1", to)
            target.write(request)
            await asyncio.gather(copy(client, target), copy(source, back))
        back.close()

    async with await asyncio.start_server(pass_on, "127.0.0.1", port):
        yield


async def test_a_handshake_on_a_connection_that_the_server_closes_is_made_once_more() -> None:
    server, behind, port = MCPServer("who", log_level="CRITICAL"), free_port(), free_port()

    @server.tool(structured_output=False)
    def whoami() -> str:
        """Tell who."""
        return "ann"

    async with (
        served(server, behind),
        closing_the_first(port, behind),
        connect(f"http://127.0.0.1:{port}/mcp").open() as tools,
    ):
        assert await called(tools, "whoami") == "ann"
