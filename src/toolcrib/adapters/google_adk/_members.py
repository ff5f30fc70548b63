"""Tools of ADK as members of a toolset, with our gates around them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

from google.adk.agents import LlmAgent
from google.adk.agents.invocation_context import InvocationContext
from google.adk.sessions import InMemorySessionService, Session
from google.adk.tools import BaseTool as TheirTool
from google.adk.tools import FunctionTool, ToolContext
from google.adk.tools.tool_confirmation import ToolConfirmation

from toolcrib.schema import RunContext
from toolcrib.serving.frameworks import FrameworkMember
from toolcrib.tools import Tool

__all__ = ["Member", "from_tools", "is_declared"]


def from_tools(tools: Iterable[Any]) -> list[Tool[..., Any]]:
    """Return tools of ADK, or functions as it takes them, as members for `Toolset([...])`.

    Inside an agent of ADK they see its context. Outside one they see that of a new session of our principal. One that
    asks for a confirmation needs approval, which is its confirmation.

    Raises:
        TypeError: One of them has no declaration: the model's provider runs it.
    """
    members = [Member(tool if isinstance(tool, TheirTool) else FunctionTool(tool)) for tool in tools]
    return [member.tool(requires_approval=member.asks if member.may_ask else False) for member in members]


def is_declared(tool: TheirTool) -> bool:
    """Return whether a tool has a declaration; another one is run by the model's provider."""
    return tool._get_declaration() is not None  # pyright: ignore[reportPrivateUsage] -- tools declare themselves by it alone


class Member(FrameworkMember):
    """One of their tools."""

    def __init__(self, theirs: TheirTool) -> None:
        self.theirs = theirs
        declaration = theirs._get_declaration()  # pyright: ignore[reportPrivateUsage] -- tools declare themselves by it alone
        if declaration is None:
            raise TypeError(f"`{theirs.name}` has no declaration: the model's provider runs it itself")
        schema = declaration.parameters
        given: Any = declaration.parameters_json_schema
        if given is None and schema is not None:
            given = schema.json_schema.model_dump(mode="json", exclude_none=True)
        super().__init__(theirs.name, theirs.description, given or {"type": "object", "properties": {}})

    @property
    def may_ask(self) -> bool:
        """Whether it may ask for a confirmation."""
        return bool(getattr(self.theirs, "_require_confirmation", False))

    async def asks(self, arguments: dict[str, Any], ctx: RunContext[Any]) -> bool:
        """Return whether it asks for a confirmation of these arguments."""
        return await self.theirs.check_require_confirmation(arguments, _context(ctx))

    async def make(self, ctx: RunContext[Any], arguments: dict[str, Any]) -> Any:
        return await self.theirs.run_async(args=arguments, tool_context=_context(ctx))


def _context(ctx: RunContext[Any]) -> ToolContext:
    """Return the context of ADK in which an agent makes the call, or a new one, with our approval as confirmation."""
    found = cast("Mapping[Any, Any]", ctx.provided).get(ToolContext)
    confirmed = ToolConfirmation(confirmed=True) if ctx.approved else None
    if isinstance(found, ToolContext):
        return found
    user = getattr(ctx.run, "principal", None) or "user"
    session = Session(id=ctx.run_id, app_name="toolcrib", user_id=user)
    invocation = InvocationContext(
        session_service=InMemorySessionService(),
        invocation_id=ctx.run_id,
        agent=LlmAgent(name="toolcrib"),
        session=session,
    )
    return ToolContext(invocation, function_call_id=ctx.call_id, tool_confirmation=confirmed)
