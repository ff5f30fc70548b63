"""A server whose tools come from other MCP servers: they come and go, and clients of both generations are notified."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp_types import ToolListChangedNotification
from mcp_types.version import LATEST_MODERN_VERSION

from tests.adapters.mcp_client import small_server as module
from tests.adapters.mcp_server.clients import OLD, Way, every_way, text_of
from tests.adapters.mcp_server.http import COMMAND, served
from toolcrib.adapters.mcp_client import connect
from toolcrib.adapters.mcp_server import ServerOptions, build_server
from toolcrib.toolsets import Toolset


def small(tmp_path: Path, **options: Any) -> Toolset:
    """Return the small server as a process of its own."""
    words = [sys.executable, str(module.__file__), str(tmp_path / "notes")]
    return connect(words, name="small", include_resources=False, **options)


@asynccontextmanager
async def changes(client: Client, seen: asyncio.Event) -> AsyncIterator[None]:
    """Set an event when the client is notified; one of the newer generation has to listen for it."""
    if client.session.protocol_version != LATEST_MODERN_VERSION:
        yield
        return

    async def listen() -> None:
        async with client.listen(tools_list_changed=True) as events:
            listening.set()
            async for _ in events:
                seen.set()

    listening = asyncio.Event()
    task = asyncio.create_task(listen())
    await listening.wait()
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


def noting(seen: asyncio.Event) -> Callable[[Any], Any]:
    """Return a message handler of a client that sets an event for a changed list of tools."""

    async def note(message: Any) -> None:
        if isinstance(message, ToolListChangedNotification):
            seen.set()

    return note


async def notified(seen: asyncio.Event) -> None:
    async with asyncio.timeout(240):
        await seen.wait()
    seen.clear()


async def names(client: Client) -> set[str]:
    return {tool.name for tool in (await client.list_tools()).tools}


async def names_once(client: Client, seen: asyncio.Event, name: str, *, there: bool) -> set[str]:
    """Return the names once the client was notified and a name is, or is not, among them.

    One change may be notified twice: what is listed after the first notification may be what the client knows.
    """
    await notified(seen)
    while (name in (found := await names(client))) is not there:
        await notified(seen)
    return found


async def follow_changes(client: Client, seen: asyncio.Event) -> None:
    """Have the small server grow and shrink behind the gateway, and look at it from a client."""
    await client.call_tool("s_grow", {"name": "oak"})
    grown = await names_once(client, seen, "s_oak", there=True)
    oak = await client.call_tool("s_oak", {})
    await client.call_tool("s_shrink", {"name": "oak"})
    shrunk = await names_once(client, seen, "s_oak", there=False)
    gone = await client.call_tool("s_oak", {})

    assert "s_oak" in grown
    assert text_of(oak) == "oak grew"
    assert shrunk == grown - {"s_oak"}
    assert gone.is_error
    assert "NotAvailable" in text_of(gone)


@every_way
async def test_a_tool_that_a_server_adds_is_served_and_clients_are_notified(way: Way, tmp_path: Path) -> None:
    seen, gateway = asyncio.Event(), build_server(Toolset([small(tmp_path, prefix="s_")]))

    async with way(gateway, message_handler=noting(seen)) as client, changes(client, seen):
        await follow_changes(client, seen)


@pytest.mark.parametrize("generation", [OLD, LATEST_MODERN_VERSION])
async def test_so_are_clients_over_http(generation: str, tmp_path: Path) -> None:
    seen = asyncio.Event()
    async with (
        served(small(tmp_path, prefix="s_")) as url,
        Client(url, mode=generation, cache=None, message_handler=noting(seen)) as client,
        changes(client, seen),
    ):
        await follow_changes(client, seen)


@pytest.mark.parametrize("generation", [OLD, LATEST_MODERN_VERSION])
async def test_so_are_clients_of_the_command_for_a_file_of_servers(generation: str, tmp_path: Path) -> None:
    seen = asyncio.Event()
    server = {"command": sys.executable, "args": [str(module.__file__), str(tmp_path / "notes")]}
    section = {"prefix": "s_", "resources": False, "pins": False}
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": {"small": {**server, "toolcrib": section}}}), "utf-8")
    command, *arguments = [*COMMAND, "serve", "mcp.json"]

    with (tmp_path / "log").open("w") as log:
        place = stdio_client(StdioServerParameters(command=command, args=arguments, cwd=tmp_path), errlog=log)
        async with (
            Client(place, mode=generation, cache=None, message_handler=noting(seen)) as client,
            changes(client, seen),
        ):
            await follow_changes(client, seen)


async def test_an_error_over_http_names_the_server_that_was_lost_and_hides_what_it_wrote(tmp_path: Path) -> None:
    async with served(small(tmp_path)) as url, Client(url, mode=OLD, cache=None) as client:
        lost = text_of(await client.call_tool("die", {"code": 3}))

    assert "its server `small` was lost during the call, and whether it took effect is unknown" in lost
    assert "(reference e_" in lost
    assert "it hurts" not in lost


async def test_an_error_over_http_says_that_a_server_which_is_down_was_asked_nothing(tmp_path: Path) -> None:
    program, words = tmp_path / "server", [sys.executable, str(module.__file__), str(tmp_path / "notes")]
    program.write_text(f"#!/bin/sh\nexec {shlex.join(words)}\n")
    program.chmod(0o700)
    tools = connect([str(program)], name="small", include_resources=False)

    async with served(tools) as url, Client(url, mode=OLD, cache=None) as client:
        program.unlink()
        await client.call_tool("die", {"code": 3})
        refused = text_of(await client.call_tool("add", {"a": 1, "b": 2}))

    assert "its server `small` cannot be reached now, and was asked nothing" in refused


async def test_a_new_tool_can_be_found_by_a_search(tmp_path: Path) -> None:
    seen, gateway = asyncio.Event(), build_server(small(tmp_path), ServerOptions(search=7))

    async with Client(gateway, mode=OLD, message_handler=noting(seen)) as client:
        assert "wait" not in await names(client)
        await client.call_tool("grow", {"name": "oak"})
        await notified(seen)
        found = await client.call_tool("search_tools", {"query": "oak"})
        oak = await client.call_tool("oak", {})

    assert "oak" in text_of(found)
    assert text_of(oak) == "oak grew"


async def test_a_program_can_call_a_new_tool(tmp_path: Path) -> None:
    seen, gateway = asyncio.Event(), build_server(small(tmp_path), ServerOptions(code_mode=True))

    async with Client(gateway, mode=OLD, message_handler=noting(seen)) as client:
        grown = await client.call_tool("run_python", {"code": "print(grow(name='oak'))"})
        await notified(seen)
        oak = await client.call_tool("run_python", {"code": "print(oak())"})

    assert "grown" in text_of(grown)
    assert "oak grew" in text_of(oak)


async def test_a_server_that_is_killed_comes_back_behind_the_gateway(tmp_path: Path) -> None:
    gateway = build_server(Toolset([small(tmp_path)]))

    async with Client(gateway, mode=OLD) as client:
        first = text_of(await client.call_tool("process", {}))
        os.kill(int(first), signal.SIGKILL)
        second = first
        while second == first:  # the pipe may be seen to be closed a moment later
            second = text_of(await client.call_tool("process", {}))
        listed = await names(client)

    assert "was lost" in second or second.isdigit()
    assert "process" in listed


@every_way
async def test_a_server_that_starts_late_is_served_from_then_on(way: Way, tmp_path: Path) -> None:
    ready, seen = tmp_path / "ready", asyncio.Event()
    late = f"import sys, os; os.path.exists({str(ready)!r}) or sys.exit('not yet'); sys.argv[1:] = [os.devnull]; "
    late += f"import runpy; runpy.run_path({str(module.__file__)!r}, run_name='__main__')"
    tools = Toolset(
        [small(tmp_path, prefix="s_"), connect([sys.executable, "-c", late], name="late", prefix="l_")]
    ).with_approval(names=["l_add"])
    gateway = build_server(tools)

    async with way(gateway, message_handler=noting(seen)) as client, changes(client, seen):
        before = await names(client)
        works = await client.call_tool("s_add", {"a": 1, "b": 2})
        ready.touch()
        after = await names_once(client, seen, "l_add", there=True)
        held = await client.call_tool("l_add", {"a": 1, "b": 2})
        fact = await client.call_tool("l_facts", {})

    assert not any(name.startswith("l_") for name in before)
    assert works.structured_content == {"result": 3}
    assert {"l_add", "l_facts"} <= after
    assert held.structured_content is not None
    assert held.structured_content["status"] == "suspended"
    assert text_of(fact) == '{"height": 3}'
