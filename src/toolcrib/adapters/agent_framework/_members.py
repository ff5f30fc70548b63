"""Function tools of the framework as members of a toolset, with our gates around them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

from agent_framework import AgentSession, Content, FunctionInvocationContext, FunctionTool, normalize_tools

from toolcrib.schema import RunContext
from toolcrib.serving.frameworks import FrameworkMember, media_at, provided, require_tools
from toolcrib.tools import Tool


def from_tools(tools: Iterable[FunctionTool | Callable[..., Any]]) -> list[Tool[..., Any]]:
    """Return functions and function tools of the framework as members for `Toolset([...])`.

    Those of a connected MCP tool are its `functions`. Inside an agent of the framework they see its session.

    Raises:
        TypeError: One of them has no function, so that there is nothing that the pipeline could run.
    """
    wrapped: list[Tool[..., Any]] = []
    for tool in normalize_tools(require_tools("from_tools", tools, FunctionTool)):
        if not isinstance(tool, FunctionTool) or tool.declaration_only:
            name = getattr(tool, "name", tool)
            raise TypeError(f"{name!r} has no function here: the model's provider, or the client of the agent, runs it")
        wrapped.append(Member(tool).tool(requires_approval=tool.approval_mode == "always_require"))
    return wrapped


class Member(FrameworkMember):
    """One of their tools."""

    def __init__(self, theirs: FunctionTool) -> None:
        self.theirs = theirs
        super().__init__(theirs.name, theirs.description, theirs.parameters())

    def check(self, arguments: dict[str, Any]) -> None:
        if self.theirs.input_model is not None:
            self.theirs.input_model.model_validate(arguments)

    async def make(self, ctx: RunContext[Any], arguments: dict[str, Any]) -> Any:
        around = provided(ctx, FunctionInvocationContext)
        kwargs: Mapping[str, Any] = {} if around is None else around.kwargs
        session = provided(ctx, AgentSession)
        context = FunctionInvocationContext(self.theirs, arguments, session, kwargs=kwargs)
        return value_of(
            await self.theirs.invoke(arguments=arguments, context=context, tool_call_id=ctx.call_id, skip_parsing=True)
        )


def value_of(result: Any) -> Any:
    """Return a tool's value with media in the place of the framework's content."""
    match result:
        case list():
            parts = [value_of(part) for part in cast("list[Any]", result)]
            return parts[0] if len(parts) == 1 and isinstance(cast("list[Any]", result)[0], Content) else parts
        case Content(type="text"):
            return result.text or ""
        case Content(type="data" | "uri", uri=str() as uri):
            return media_at(uri, result.media_type or "application/octet-stream")
        case Content():
            return result.to_dict()
        case _:
            return result
