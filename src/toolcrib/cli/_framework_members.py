"""Agents and tools of other frameworks as the target of a command."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from toolcrib.errors import TargetError
from toolcrib.tools import Tool, adapter_of
from toolcrib.toolsets import Toolset


def member_of(target: str, value: object) -> Toolset | Tool[..., Any] | None:
    """Return the tools of another framework's agent, or its tool; None for any other object.

    Raises:
        MissingExtraError: The extra of the framework's adapter is missing.
        TargetError: An MCP server among the options of an agent cannot be used.
        TypeError: The agent has gates that would be lost.
    """
    name = adapter_of(value)
    if name is None:
        return None
    if name == "mcp_client":
        return _server_of(value)
    adapter: Any = importlib.import_module(f"toolcrib.adapters.{name}")  # of an extra, which its error names
    member = adapter.member_of(value)
    servers = adapter.servers_of(value) if member is None and name == "claude_agent_sdk" else None
    return member if servers is None else _connected(target, servers)


def _server_of(value: object) -> Toolset | None:
    """Return the tools of an MCP server; None for another object of its package, and for one that cannot be used so."""
    client: Any = importlib.import_module("toolcrib.adapters.mcp_client")
    try:
        return client.connect(value)
    except TypeError:
        return None


def _connected(target: str, servers: Mapping[str, Any] | Path) -> Toolset:
    """Return the tools of MCP servers, as those of a file of servers are named."""
    if isinstance(servers, Path):
        gateway: Any = importlib.import_module("toolcrib.gateway")  # of an extra, which its error names
        return gateway.toolset_of_file(servers)
    client: Any = importlib.import_module("toolcrib.adapters.mcp_client")
    prefixes = {name: f"{name}_" if len(servers) > 1 else "" for name in servers}
    return Toolset([_server(client, target, name, servers[name], prefix) for name, prefix in prefixes.items()])


def _server(client: Any, target: str, name: str, server: Any, prefix: str) -> Toolset:
    match server:
        case Toolset():
            return server.prefixed(prefix) if prefix else server
        case {"type": "sdk", "instance": source}:
            return client.connect(source, prefix=prefix, name=name)
        case {"command": command}:
            described = cast("Mapping[str, Any]", server)
            words = [command, *described.get("args", ())]
            return client.connect(words, prefix=prefix, name=name, env=described.get("env") or {})
        case {"type": "http", "url": url}:
            return client.connect(url, prefix=prefix, name=name, headers=server.get("headers"))
        case _:
            raise TargetError(
                target, f"the MCP server `{name}` cannot be used here, where one is a command, http or sdk"
            )
