"""Tools in the options of the SDK, as members of a toolset."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from claude_agent_sdk import ClaudeAgentOptions, SdkMcpTool

from toolcrib.adapters.claude_agent_sdk._calls import Gates
from toolcrib.adapters.claude_agent_sdk._members import from_tools
from toolcrib.adapters.claude_agent_sdk._options import GatedOptions
from toolcrib.adapters.claude_agent_sdk._tools import ToolGates
from toolcrib.tools import Tool
from toolcrib.toolsets import Toolset

__all__ = ["member_of", "servers_of"]


def member_of(value: object) -> Tool[..., Any] | None:
    """Return a tool made by the SDK's `@tool` as a member for `Toolset([...])`; None for anything else."""
    return from_tools([cast("SdkMcpTool[Any]", value)])[0] if isinstance(value, SdkMcpTool) else None


def servers_of(value: object) -> dict[str, Toolset | Mapping[str, Any]] | Path | None:
    """Return the MCP servers of options by name, or the file that they are in; None for anything else.

    In the place of a server that `add_tools` made is its toolset.

    Raises:
        TypeError: A hook or `can_use_tool` is around the tools, which would not be around them elsewhere.
    """
    if not isinstance(value, ClaudeAgentOptions):
        return None
    matchers = (value.hooks or {}).get("PreToolUse", [])
    owners = [getattr(hook, "__self__", None) for matcher in matchers for hook in matcher.hooks]
    if value.can_use_tool is not None or not all(isinstance(owner, ToolGates) for owner in owners):
        raise TypeError("hooks and can_use_tool of the options would be lost; name the tools, with gates of yours")
    if isinstance(value.mcp_servers, str | Path):
        return Path(value.mcp_servers)
    gates: tuple[Gates, ...] = value.gates if isinstance(value, GatedOptions) else ()
    ours = {each.name: each.toolset for each in gates if isinstance(each, ToolGates)}
    return {name: ours.get(name, cast("Mapping[str, Any]", server)) for name, server in value.mcp_servers.items()}
