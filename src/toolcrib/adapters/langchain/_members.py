"""Tools of LangChain, and those of an agent or a graph, as members of a toolset, with our gates around them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool as TheirTool
from langchain_core.tools import ToolException
from langgraph.prebuilt import ToolNode
from langgraph.pregel import Pregel
from langgraph.types import Command
from pydantic import BaseModel

from toolcrib.adapters.langchain._calls import ENTRY
from toolcrib.adapters.langchain._tools import GatedTool
from toolcrib.errors import RemoteToolError
from toolcrib.schema import RunContext
from toolcrib.serving.frameworks import FrameworkMember, gates_lost, media_at, require_tools
from toolcrib.tools import Tool
from toolcrib.toolsets import Toolset


def from_tools(tools: Iterable[TheirTool]) -> list[Tool[..., Any]]:
    """Return tools of LangChain as members for `Toolset([...])`.

    A tool that wants the state, the store or the runtime of a graph finds none of them outside a graph.
    """
    wrap = "the `tool(...)` of langchain"
    return [Member(tool).tool() for tool in require_tools("from_tools", tools, TheirTool, wrap)]


def member_of(value: object) -> Toolset | Tool[..., Any] | None:
    """Return the tools of an agent, a graph or a `ToolNode`, or a tool, as a member; None for anything else.

    A tool that has gates of ours keeps them.

    Raises:
        TypeError: The agent has middleware around its tools, which would not be around them elsewhere.
    """
    if isinstance(value, TheirTool):
        return value.tools.only(value.name) if isinstance(value, GatedTool) else Member(value).tool()
    if isinstance(value, ToolNode):
        return _in_node(value)
    if not isinstance(value, Pregel):
        return None
    nodes: list[Any] = [node.bound for node in value.nodes.values()]
    return Toolset([_in_node(node) for node in nodes if isinstance(node, ToolNode)])


def _in_node(node: ToolNode) -> Toolset:
    around: Any = node  # what it has around its tools is said nowhere else
    if around._wrap_tool_call or around._awrap_tool_call:
        raise gates_lost("the middleware")
    return Toolset([member_of(tool) for tool in node.tools_by_name.values()])


class Member(FrameworkMember):
    """One of their tools."""

    def __init__(self, theirs: TheirTool) -> None:
        self.theirs = theirs
        schema: Any = theirs.tool_call_schema
        self._model = None if isinstance(schema, dict) else cast("type[BaseModel]", schema)
        parameters = cast("dict[str, Any]", schema) if self._model is None else self._model.model_json_schema()
        super().__init__(theirs.name, theirs.description, parameters)

    def check(self, arguments: dict[str, Any]) -> None:
        if self._model is not None:
            self._model.model_validate(arguments)

    async def make(self, ctx: RunContext[Any], arguments: dict[str, Any]) -> Any:
        call = {"type": "tool_call", "name": self.theirs.name, "args": arguments, "id": ctx.call_id}
        try:
            return value_of(await self.theirs.ainvoke(call))
        except ToolException as error:
            raise failed_tool(error) from error


def failed_tool(error: ToolException) -> RemoteToolError:
    """Return the error of a failure that a tool of theirs tells the model, which is expected and not logged."""
    return RemoteToolError(ENTRY, str(error))


def value_of(result: Any) -> Any:
    """Return the value of a tool's message, with media in the place of content blocks.

    Raises:
        RemoteToolError: The tool says that it failed.
    """
    parts = cast("list[Any]", result) if isinstance(result, list) else [result]
    if not any(isinstance(part, Command | ToolMessage) for part in parts):
        return cast("Any", result)
    messages = [message for part in parts for message in _messages_in(part)]
    return _content_of(messages[-1]) if messages else "the graph goes on by a command of the tool"


def _messages_in(part: Any) -> list[ToolMessage]:
    """Return the messages in a part of a result: one, or those that a command adds to the graph's."""
    if isinstance(part, ToolMessage):
        return [part]
    update: Any = cast("Command[Any]", part).update if isinstance(part, Command) else None
    messages: Any = cast("dict[str, Any]", update).get("messages") if isinstance(update, dict) else update
    items = cast("list[Any]", messages) if isinstance(messages, list) else [messages]
    return [item for item in items if isinstance(item, ToolMessage)]


def _content_of(result: ToolMessage) -> Any:
    content: Any = result.content
    value = [_part(part) for part in cast("list[Any]", content)] if isinstance(content, list) else content
    if result.status == "error":
        raise RemoteToolError(ENTRY, result.text)
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
