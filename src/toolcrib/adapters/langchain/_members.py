"""Tools of LangChain as members of a toolset, with our gates around them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool as TheirTool
from langchain_core.tools import ToolException
from langgraph.types import Command
from pydantic import BaseModel

from toolcrib.errors import ToolcribError
from toolcrib.hooks import ambient_context
from toolcrib.schema import RunContext, ToolSpec
from toolcrib.serving import media_at
from toolcrib.tools import BaseTool, Tool

__all__ = ["Member", "from_tools", "value_of"]


def from_tools(tools: Iterable[TheirTool]) -> list[Tool[..., Any]]:
    """Return tools of LangChain as members for `Toolset([...])`.

    A tool that wants the state, the store or the runtime of a graph finds none of them outside a graph.
    """
    return [Member(tool).tool() for tool in tools]


class Member(BaseTool):
    """One of their tools."""

    def __init__(self, theirs: TheirTool) -> None:
        self.theirs = theirs

    def tool(self) -> Tool[..., Any]:
        """Return it as one of ours."""
        spec = ToolSpec.from_schema(
            self._call, self._parameters, name=self.theirs.name, description=self.theirs.description
        )
        return Tool(spec, source=self)

    def get_definition(self) -> Mapping[str, Any]:
        return {"name": self.theirs.name, "description": self.theirs.description, "parameters": self._parameters}

    async def make(self, ctx: RunContext[Any], arguments: dict[str, Any]) -> Any:
        """Run their tool, and return its value."""
        call = {"type": "tool_call", "name": self.theirs.name, "args": arguments, "id": ctx.call_id}
        return value_of(await self.theirs.ainvoke(call))

    @property
    def _parameters(self) -> dict[str, Any]:
        schema: Any = self.theirs.tool_call_schema
        if isinstance(schema, dict):
            return cast("dict[str, Any]", schema)
        return cast("type[BaseModel]", schema).model_json_schema()

    async def _call(self, **arguments: Any) -> Any:
        ctx = ambient_context()
        if ctx is None:
            raise ToolcribError(f"`{self.theirs.name}` is called outside a run")
        return await self.make(ctx, arguments)


def value_of(result: Any) -> Any:
    """Return the value of a tool's message, with media in the place of content blocks.

    Raises:
        ToolException: The tool says that it failed.
    """
    if isinstance(result, Command):
        return "the graph goes on by a command of the tool"
    if not isinstance(result, ToolMessage):
        return result
    content: Any = result.content
    value = [_part(part) for part in cast("list[Any]", content)] if isinstance(content, list) else content
    if result.status == "error":
        raise ToolException(result.text)
    return value


def _part(part: Any) -> Any:
    match part:
        case {"type": "text", "text": str() as text}:
            return text
        case {"type": "image_url", "image_url": {"url": str() as url}}:
            return media_at(url, "image/png")
        case {"type": "image" | "audio" | "video" | "file", "base64": str() as data, "mime_type": str() as kind}:
            return media_at(f"data:{kind};base64,{data}", kind)
        case {"type": "image" | "audio" | "video" | "file", "url": str() as url}:
            return media_at(url, str(cast("dict[str, Any]", part).get("mime_type") or "application/octet-stream"))
        case _:
            return part
