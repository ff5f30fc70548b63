"""Tools of the SDK as members of a toolset, with our gates around them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast, get_type_hints

from claude_agent_sdk import SdkMcpTool
from pydantic import create_model

from toolcrib.errors import ModelRetry
from toolcrib.schema import RunContext
from toolcrib.serving import FrameworkMember, media_at
from toolcrib.tools import Tool

__all__ = ["from_tools"]


def from_tools(tools: Iterable[SdkMcpTool[Any]]) -> list[Tool[..., Any]]:
    """Return tools of the SDK, made by its `@tool`, as members for `Toolset([...])`."""
    return [_Member(tool).tool() for tool in tools]


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
    given: Any = theirs.input_schema
    if isinstance(given, dict) and isinstance(cast("dict[str, Any]", given).get("type"), str):
        return cast("dict[str, Any]", given)
    is_dict = isinstance(given, dict)
    kinds = cast("dict[str, Any]", given) if is_dict else get_type_hints(given, include_extras=True)
    required: Any = kinds if is_dict else given.__required_keys__
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
