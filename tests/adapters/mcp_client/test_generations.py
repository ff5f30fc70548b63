"""The generation of the protocol that a server of a file is spoken to in."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp.client.streamable_http import StreamableHTTPTransport
from mcp.server.mcpserver import MCPServer

from tests.adapters.mcp_client import classic_server
from tests.adapters.mcp_client.servers import asked_over_http, served, serving
from tests.adapters.mcp_server.clients import Way, every_generation, text_of
from tests.networks import free_port
from toolcrib.adapters.mcp_client import _connection, connect
from toolcrib.adapters.mcp_server import build_server
from toolcrib.errors import TargetError
from toolcrib.gateway import toolset_of_file
from toolcrib.toolsets import Toolset, sources_of


async def elicit(context: Any, params: Any) -> types.ElicitResult:
    return types.ElicitResult(action="accept", content={"name": "Ann"})


async def sample(context: Any, params: Any) -> types.CreateMessageResult:
    return types.CreateMessageResult(role="assistant", content=types.TextContent(text="4"), model="m")


def file_of(folder: Path, **options: Any) -> Toolset:
    """Return the tools of a file with one server."""
    words = {"command": sys.executable, "args": [str(classic_server.__file__)]}
    (folder / "mcp.json").write_text(json.dumps({"mcpServers": {"classic": {**words, "toolcrib": options}}}))
    return toolset_of_file(folder / "mcp.json")


@every_generation
async def test_what_a_tool_asks_in_the_older_way_reaches_clients_of_both(way: Way, tmp_path: Path) -> None:
    gateway = build_server(file_of(tmp_path, ask_client=True))

    async with way(gateway, elicitation_callback=elicit, sampling_callback=sample) as client:
        texts = [text_of(await client.call_tool(name, {})) for name in ("greet", "add_up")]

    assert texts == ["Hello, Ann.", "It is 4."]


@pytest.mark.parametrize(("mode", "version"), [("older", "2025-11-25"), ("auto", "2026-07-28")])
async def test_a_file_chooses_the_generation(mode: str, version: str, tmp_path: Path) -> None:
    tools = file_of(tmp_path, mode=mode)

    async with tools.open():
        assert spoken(tools) == version


def test_a_generation_that_there_is_not_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(TargetError, match=r"`toolcrib.mode`: 'newest' is not a mode; write one of auto, older, legacy"):
        file_of(tmp_path, mode="newest")
    with pytest.raises(ValueError, match="mode must be one of auto, older, legacy"):
        connect(["x"], mode="newest")


async def test_a_server_without_the_older_one_is_spoken_to_in_the_newer(tmp_path: Path) -> None:
    port = free_port()
    async with serving(newest_alone, port):
        tools = connect(f"http://127.0.0.1:{port}/mcp", mode="older")
        async with tools.open() as opened:
            assert (opened.names(), spoken(tools)) == (["new"], "2026-07-28")


def spoken(tools: Toolset) -> str | None:
    """Return the version that the one server of an open toolset is spoken to in."""
    source: Any = sources_of(tools)[0]
    return source.opened[-1].kept.connection.session.protocol_version


async def newest_alone(scope: Any, receive: Any, send: Any) -> None:
    """Answer as a server that knows no handshake; an ASGI application."""
    asked = await asked_over_http(scope, receive)
    method = asked.get("method", "")
    answers: dict[str, Any] = {
        "server/discover": {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}},
        "tools/list": {"tools": [{"name": "new", "inputSchema": {"type": "object"}}]},
    }
    told = {"ttlMs": 0, "cacheScope": "private", "resultType": "complete", **answers.get(method, {})}
    unknown = {"error": {"code": -32601, "message": "Method not found"}}
    said = {"jsonrpc": "2.0", "id": asked.get("id"), **({"result": told} if method in answers else unknown)}
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"application/json")]})
    await send({"type": "http.response.body", "body": json.dumps(said).encode()})


async def test_a_server_that_does_not_let_its_session_end_holds_nothing_up(monkeypatch: pytest.MonkeyPatch) -> None:
    ending = asyncio.Event()

    async def never_ends(self: object, client: object) -> None:
        ending.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(_connection, "_CLOSE_SECONDS", 0.05)
    monkeypatch.setattr(StreamableHTTPTransport, "terminate_session", never_ends)

    port = free_port()
    calm = connect(f"http://127.0.0.1:{port}/mcp", mode="older")
    async with asyncio.timeout(30), served(MCPServer("calm"), port), calm.open():
        pass

    assert ending.is_set()
