"""A large set served with a search: a few tools listed, the rest found, for each principal alone."""

import asyncio
from typing import Any

import pytest
from mcp.shared.exceptions import MCPError

from tests.adapters.mcp_server.clients import IN_MEMORY, OVER_STDIO, Way, every_generation, text_of
from toolcrib.adapters.mcp_server import ServerOptions, acting_as, build_server
from toolcrib.tools import Tool, ez_tool

pytest.importorskip("bm25s")


def numbered(number: int) -> Tool[..., Any]:
    @ez_tool(name=f"tool_{number}", description=f"Count to {number}.")
    async def count() -> int:
        return number

    return count


@ez_tool
async def send_email(recipient: str) -> str:
    """Send a message to somebody."""
    return f"sent to {recipient}"


def searching(**options: Any) -> Any:
    return build_server([*(numbered(n) for n in range(8)), send_email], ServerOptions(search=2, **options))


async def names(client: Any) -> list[str]:
    return [tool.name for tool in (await client.list_tools()).tools]


@every_generation
async def test_what_is_found_is_listed_and_may_be_called(way: Way) -> None:
    async with way(searching()) as client:
        before = await names(client)
        refused = await client.call_tool("send_email", {"recipient": "ann"})
        await client.call_tool("search_tools", {"query": "send a message"})
        after = await names(client)
        done = await client.call_tool("send_email", {"recipient": "ann"})

    assert before == ["tool_0", "tool_1", "search_tools"]
    assert refused.is_error
    assert after == [*before, "send_email"]
    assert text_of(done) == "sent to ann"


@every_generation
async def test_what_one_principal_found_nobody_else_did(way: Way) -> None:
    server = searching()
    with acting_as("ann"):
        async with way(server) as client:
            await client.call_tool("search_tools", {"query": "send a message"})

    with acting_as("eve"):
        async with way(server) as client:
            listed, refused = await names(client), await client.call_tool("send_email", {"recipient": "ann"})

    assert "send_email" not in listed
    assert refused.is_error


async def test_an_older_client_is_told_that_its_tools_have_changed() -> None:
    told: asyncio.Queue[str] = asyncio.Queue()

    async def heard(message: Any) -> None:
        told.put_nowait(getattr(message, "method", ""))

    async with OVER_STDIO[0](searching(), message_handler=heard) as client:
        await client.call_tool("search_tools", {"query": "send a message"})
        method = await asyncio.wait_for(told.get(), 60)

        assert client.server_capabilities.tools is not None
        assert client.server_capabilities.tools.list_changed
    assert method == "notifications/tools/list_changed"


async def test_a_newer_client_listens_for_it() -> None:
    async with OVER_STDIO[1](searching()) as client, client.listen(tools_list_changed=True) as events:
        await client.call_tool("search_tools", {"query": "send a message"})
        event = await asyncio.wait_for(anext(aiter(events)), 60)

    assert type(event).__name__ == "ToolsListChanged"


@every_generation
async def test_a_small_set_is_listed_whole(way: Way) -> None:
    async with way(build_server([send_email], ServerOptions(search=True))) as client:
        assert await names(client) == ["send_email"]


async def test_without_a_search_nothing_can_be_listened_for() -> None:
    async with IN_MEMORY[1](build_server([send_email])) as client:
        with pytest.raises(MCPError, match="Method not found"):
            async with client.listen(tools_list_changed=True):
                pass
