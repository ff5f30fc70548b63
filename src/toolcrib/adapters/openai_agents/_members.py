"""Function tools of the OpenAI Agents SDK as members of a toolset, with our gates around them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from inspect import isawaitable
from typing import Any, cast

from agents import FunctionTool, RunContextWrapper, ToolOutputFileContent, ToolOutputImage, ToolOutputText
from agents.tool_context import ToolContext

from toolcrib.errors import ToolcribError
from toolcrib.hooks import ambient_context
from toolcrib.schema import RunContext, ToolSpec
from toolcrib.serving import media_at
from toolcrib.tools import BaseTool, Tool, ToolOptions

__all__ = ["from_tools", "member"]


def from_tools(tools: Iterable[Any]) -> list[Tool[..., Any]]:
    """Return function tools of the SDK as members for `Toolset([...])`.

    Inside an agent of the SDK they see its context. Outside one they see one made of our `deps`.

    Raises:
        TypeError: One of them is no function tool, so that there is nothing that the pipeline could run.
    """
    found = list(tools)
    other = next((each for each in found if not isinstance(each, FunctionTool)), None)
    if other is not None:
        raise TypeError(f"{getattr(other, 'name', other)!r} is no FunctionTool: the SDK or a provider runs it itself")
    return [member(tool) for tool in found]


def member(theirs: FunctionTool) -> Tool[..., Any]:
    """Return one function tool as a tool of ours."""
    return _Member(theirs).tool()


class _Member(BaseTool):
    def __init__(self, theirs: FunctionTool) -> None:
        self._theirs = theirs

    def tool(self) -> Tool[..., Any]:
        theirs = self._theirs
        spec = ToolSpec.from_schema(
            self._call, theirs.params_json_schema, name=theirs.name, description=theirs.description
        )
        asks = self._asks if callable(theirs.needs_approval) else theirs.needs_approval
        return Tool(spec, ToolOptions(requires_approval=asks), source=self)

    def get_definition(self) -> Mapping[str, Any]:
        theirs = self._theirs
        return {"name": theirs.name, "description": theirs.description, "parameters": theirs.params_json_schema}

    async def _asks(self, arguments: dict[str, Any], ctx: RunContext[Any]) -> bool:
        """Return what the tool's own condition says."""
        condition: Any = self._theirs.needs_approval
        asks = condition(_wrapper(ctx), arguments, ctx.call_id)
        return bool(await asks if isawaitable(asks) else asks)

    async def _call(self, **arguments: Any) -> Any:
        ctx = ambient_context()
        if ctx is None:
            raise ToolcribError(f"`{self._theirs.name}` is called outside a run")
        text = json.dumps(arguments)
        theirs = _wrapper(ctx)
        agent = theirs.agent if isinstance(theirs, ToolContext) else None
        context = ToolContext(
            theirs.context,
            theirs.usage,
            self._theirs.name,
            ctx.call_id,
            text,
            theirs.tool_call if isinstance(theirs, ToolContext) else None,
            agent=agent,
            turn_input=theirs.turn_input,
        )
        return _value_of(await self._theirs.on_invoke_tool(context, text))


def _wrapper(ctx: RunContext[Any]) -> RunContextWrapper[Any]:
    """Return the SDK's context where an agent of it makes the call, or one made of ours."""
    provided = cast("Mapping[Any, Any]", ctx.provided)
    for kind in (ToolContext, RunContextWrapper):
        found = provided.get(kind)
        if isinstance(found, RunContextWrapper):
            return cast("RunContextWrapper[Any]", found)
    return RunContextWrapper(ctx.deps)


def _value_of(result: Any) -> Any:
    """Return a tool's value with media in the place of the SDK's content."""
    match result:
        case list():
            return [_value_of(part) for part in cast("list[Any]", result)]
        case ToolOutputText():
            return result.text
        case ToolOutputImage(image_url=str() as url):
            return media_at(url, "image/png", "")
        case ToolOutputFileContent(file_data=str() as data) if data.startswith("data:"):
            return media_at(data, "application/octet-stream", result.filename or "")
        case ToolOutputFileContent(file_url=str() as url):
            return media_at(url, "application/octet-stream", result.filename or "")
        case _:
            return result
