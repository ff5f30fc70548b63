"""`toolcrib serve`, and tools that end the process."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters

from tests.adapters.mcp_server import exiting_tools
from tests.adapters.mcp_server.clients import text_of
from tests.adapters.mcp_server.http import command_over_http

GO_ON = {"in_a_task_on_its_own", "in_a_callback", "in_a_thread_of_its_own"}  # whose call is not what exits
TARGET = str(exiting_tools.__file__)


@asynccontextmanager
async def served(transport: str, folder: Path) -> AsyncIterator[Client]:
    """Give a client of `toolcrib serve` in a process of its own."""
    if transport == "http":
        with command_over_http(folder, TARGET) as url:
            async with Client(url) as client:
                yield client
        return
    words = ["-m", "toolcrib", "serve", TARGET]
    async with Client(StdioServerParameters(command=sys.executable, args=words, cwd=folder)) as client:
        yield client


@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_a_tool_that_exits_is_a_failed_call_and_ends_nothing(transport: str, tmp_path: Path) -> None:
    ends: dict[str, bool] = {}

    async with served(transport, tmp_path) as client:
        for name in [tool.name for tool in (await client.list_tools()).tools]:
            result = await client.call_tool(name, {})
            ends[name] = result.is_error
            assert result.is_error or text_of(result) in ("fine", "gone on")
            assert text_of(await client.call_tool("fine", {})) == "fine"

    assert {name for name, failed in ends.items() if not failed} == {"fine", *GO_ON}
    assert len(ends) == 12
