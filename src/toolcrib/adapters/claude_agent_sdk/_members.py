"""Tools of the SDK, and the servers of options, as members of a toolset, with our gates around them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, cast, get_type_hints

from claude_agent_sdk import ClaudeAgentOptions, SdkMcpTool
from pydantic import create_model

from toolcrib.adapters.claude_agent_sdk._calls import Gates
from toolcrib.adapters.claude_agent_sdk._options import GatedOptions
from toolcrib.adapters.claude_agent_sdk._tools import ToolGates
from toolcrib.errors import ModelRetry
from toolcrib.schema import RunContext
from toolcrib.serving.frameworks import FrameworkMember, gates_lost, media_at, require_tools
from toolcrib.tools import Tool
from toolcrib.toolsets import Toolset


def from_tools(tools: Iterable[SdkMcpTool[Any]]) -> list[Tool[..., Any]]:
    """Return tools of the SDK, made by its `@tool`, as members for `Toolset([...])`."""
    wrap = "the `tool(name, description, schema)` of the SDK"
    return [_Member(tool).tool() for tool in require_tools("from_tools", tools, SdkMcpTool, wrap)]


def member_of(value: object) -> Tool[..., Any] | None:
    """Return a tool made by the SDK's `@tool` as a member for `Toolset([...])`; None for anything else."""
    return from_tools([cast("SdkMcpTool[Any]", value)])[0] if isinstance(value, SdkMcpTool) else None


def servers_of(value: object) -> dict[str, Toolset | Mapping[str, Any]] | Path | None:
    """Return the MCP servers of options by name, or the file that they are in; None for anything else.

    In the place of a server that `as_tools` made is its toolset.

    Raises:
        TypeError: A hook or `can_use_tool` is around the tools, which would not be around them elsewhere.
    """
    if not isinstance(value, ClaudeAgentOptions):
        return None
    matchers = (value.hooks or {}).get("PreToolUse", [])
    owners = [getattr(hook, "__self__", None) for matcher in matchers for hook in matcher.hooks]
    if value.can_use_tool is not None or not all(isinstance(owner, ToolGates) for owner in owners):
        raise gates_lost("hooks or can_use_tool")
    if isinstance(value.mcp_servers, str | Path):
        return Path(value.mcp_servers)
    gates: tuple[Gates, ...] = value.gates if isinstance(value, GatedOptions) else ()
    ours = {gate.name: gate.toolset for gate in gates if isinstance(gate, ToolGates)}
    return {name: ours.get(name, cast("Mapping[str, Any]", server)) for name, server in value.mcp_servers.items()}


class _Member(FrameworkMember):
    """One of their tools."""

    def __init__(self, theirs: SdkMcpTool[Any]) -> None:
        self._theirs = theirs
        super().__init__(theirs.name, theirs.description, _schema(theirs))

    async def make(self, ctx: RunContext[Any], arguments: dict[str, Any]) -> Any:
        result = await self._theirs.handler(arguments)
        parts = [_value(part) for part in result.get("content", [])]
        if result.get("is_error"):
            raise ModelRetry("\n".join(map(str, parts)))
        return parts[0] if len(parts) == 1 else parts


def _schema(theirs: SdkMcpTool[Any]) -> dict[str, Any]:
    """Return the JSON schema of a tool's input, which the SDK takes as such, as a dict of types, or as a TypedDict."""
    schema: Any = theirs.input_schema
    if isinstance(schema, dict) and isinstance(cast("dict[str, Any]", schema).get("type"), str):
        return cast("dict[str, Any]", schema)
    is_dict = isinstance(schema, dict)
    kinds = cast("dict[str, Any]", schema) if is_dict else get_type_hints(schema, include_extras=True)
    required: Any = kinds if is_dict else schema.__required_keys__
    wanted: dict[str, Any] = {name: (kind, ... if name in required else None) for name, kind in kinds.items()}
    return create_model(theirs.name, **wanted).model_json_schema()


def _value(part: Any) -> Any:
    match part:
        case {"type": "text", "text": str() as text}:
            return text
        case {"type": "image" | "audio", "data": str() as data, "mimeType": str() as kind}:
            return media_at(f"data:{kind};base64,{data}", kind)
        case _:
            return part
