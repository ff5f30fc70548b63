"""Tools of ADK, and those of its agents, as members of a toolset, with our gates around them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.agents.invocation_context import InvocationContext
from google.adk.apps import App
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.sessions import InMemorySessionService, Session
from google.adk.tools import BaseTool as TheirTool
from google.adk.tools import FunctionTool, ToolContext
from google.adk.tools.base_toolset import BaseToolset
from google.adk.tools.tool_confirmation import ToolConfirmation

from toolcrib.adapters.google_adk._tools import GatedTool
from toolcrib.schema import RunContext
from toolcrib.serving.frameworks import AgentTools, FrameworkMember, gates_lost, provided, require_tools
from toolcrib.tools import Tool
from toolcrib.toolsets import Toolset


def from_tools(tools: Iterable[Any]) -> list[Tool[..., Any]]:
    """Return tools of ADK, or functions as it takes them, as members for `Toolset([...])`.

    Inside an agent of ADK they see its context. Outside one they see that of a new session of our principal. One that
    asks for a confirmation needs approval, which is its confirmation.

    Raises:
        TypeError: One of them has no declaration: the model's provider runs it.
    """
    found = require_tools("from_tools", tools, TheirTool)
    members = [Member(tool if isinstance(tool, TheirTool) else FunctionTool(tool)) for tool in found]
    return [member.tool(requires_approval=member.asks if member.may_ask else False) for member in members]


def member_of(value: object) -> Toolset | Tool[..., Any] | None:
    """Return the tools of an agent or an app, or a tool, as a member for `Toolset([...])`; None for anything else.

    Of an agent these are the tools that it has itself, and those of its toolsets, such as MCP servers. A tool that has
    gates of ours keeps them, and one that asks for a confirmation needs approval.

    Raises:
        TypeError: A callback or a plugin is around the tools of the agent, which would not be around them elsewhere.
    """
    if isinstance(value, TheirTool):
        return _member(value) if _is_declared(value) else None
    if isinstance(value, App):
        base = BasePlugin.before_tool_callback
        guards = [plugin.name for plugin in value.plugins if type(plugin).before_tool_callback is not base]
        if guards:
            raise gates_lost(f"the plugin `{guards[0]}`")
        return member_of(value.root_agent)
    if not isinstance(value, LlmAgent):
        return None
    if value.before_tool_callback:
        raise gates_lost("the before_tool_callback")
    return Toolset([AgentTools(partial(_opened, value))])


def _member(tool: TheirTool) -> Toolset | Tool[..., Any]:
    return tool.tools.only(tool.name) if isinstance(tool, GatedTool) else from_tools([tool])[0]


@asynccontextmanager
async def _opened(agent: LlmAgent, ctx: RunContext[Any]) -> AsyncGenerator[list[Toolset | Tool[..., Any]]]:
    try:
        yield [_member(tool) for tool in await agent.canonical_tools() if _is_declared(tool)]
    finally:
        owner: Any = agent
        for toolset in (tool for tool in owner.tools if isinstance(tool, BaseToolset)):
            await toolset.close()


def _is_declared(tool: TheirTool) -> bool:
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
        parameters: Any = declaration.parameters_json_schema
        if parameters is None and schema is not None:
            parameters = schema.json_schema.model_dump(mode="json", exclude_none=True)
        super().__init__(theirs.name, theirs.description, parameters or {"type": "object", "properties": {}})

    @property
    def may_ask(self) -> bool:
        return bool(getattr(self.theirs, "_require_confirmation", False))

    async def asks(self, arguments: dict[str, Any], ctx: RunContext[Any]) -> bool:
        return await self.theirs.check_require_confirmation(arguments, _context(ctx))

    async def make(self, ctx: RunContext[Any], arguments: dict[str, Any]) -> Any:
        return await self.theirs.run_async(args=arguments, tool_context=_context(ctx))


def _context(ctx: RunContext[Any]) -> ToolContext:
    """Return the context of ADK in which an agent makes the call, or a new one, with our approval as confirmation."""
    found = provided(ctx, ToolContext)
    confirmed = ToolConfirmation(confirmed=True) if ctx.approved else None
    if found is not None:
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
