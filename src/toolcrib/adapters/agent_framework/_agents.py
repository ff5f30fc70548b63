"""Tools of an agent of the framework, as members of a toolset."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any

from agent_framework import Agent, AgentMiddleware, ChatMiddleware, FunctionTool

from toolcrib.adapters.agent_framework._guard import GuardProvider
from toolcrib.adapters.agent_framework._members import from_tools
from toolcrib.adapters.agent_framework._tools import ToolProvider
from toolcrib.schema import RunContext
from toolcrib.serving.frameworks import AgentTools, gates_lost
from toolcrib.tools import Tool
from toolcrib.toolsets import Toolset


def member_of(value: object) -> Toolset | Tool[..., Any] | None:
    """Return the tools of an agent, or a function tool, as a member for `Toolset([...])`; None for anything else.

    Of an agent these are its function tools, those of its MCP servers, which are connected while the toolset is open,
    and those of `as_tools`. The gates of `guard` are around them.

    Raises:
        TypeError: The agent has middleware around its tools, which would not be around them elsewhere.
    """
    if isinstance(value, FunctionTool):
        return None if value.declaration_only else from_tools([value])[0]
    if not isinstance(value, Agent):
        return None
    if any(not isinstance(each, AgentMiddleware | ChatMiddleware) for each in value.middleware or ()):
        raise gates_lost("the middleware")
    return Toolset([AgentTools(partial(_opened, value))])


@asynccontextmanager
async def _opened(agent: Agent[Any], ctx: RunContext[Any]) -> AsyncGenerator[Toolset]:
    async with AsyncExitStack() as stack:
        given: list[Any] = [*(agent.default_options.get("tools") or ())]
        for server in agent.mcp_tools:
            given += (await stack.enter_async_context(server)).functions
        theirs = [tool for tool in given if isinstance(tool, FunctionTool) and not tool.declaration_only]
        ours = [each.toolset for each in agent.context_providers if isinstance(each, ToolProvider)]
        tools = Toolset([*from_tools(theirs), *ours])
        for provider in agent.context_providers:
            if isinstance(provider, GuardProvider):
                tools = provider.policy.around(tools)
        yield tools
