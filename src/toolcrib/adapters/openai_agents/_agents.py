"""Tools of an agent of the SDK, as members of a toolset."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any

from agents import Agent, FunctionTool, RunContextWrapper

from toolcrib.adapters.openai_agents._members import member
from toolcrib.adapters.openai_agents._tools import Invocation
from toolcrib.schema import RunContext
from toolcrib.serving.frameworks import AgentTools
from toolcrib.tools import Tool
from toolcrib.toolsets import Toolset

__all__ = ["member_of"]


def member_of(value: object) -> Toolset | Tool[..., Any] | None:
    """Return the tools of an agent, or a function tool, as a member for `Toolset([...])`; None for anything else.

    Of an agent these are the function tools that it has itself, and those of its MCP servers, which are connected
    while the toolset is open. A tool that has gates of ours keeps them.
    """
    if isinstance(value, FunctionTool):
        return _member(value)
    return Toolset([AgentTools(partial(_opened, value))]) if isinstance(value, Agent) else None


def _member(tool: FunctionTool) -> Toolset | Tool[..., Any]:
    ours = getattr(tool.on_invoke_tool, "__self__", None)
    return ours.tools.only(ours.name) if isinstance(ours, Invocation) else member(tool)


@asynccontextmanager
async def _opened(agent: Agent[Any], ctx: RunContext[Any]) -> AsyncGenerator[list[Toolset | Tool[..., Any]]]:
    async with AsyncExitStack() as stack:
        for server in agent.mcp_servers:
            await server.connect()
            stack.push_async_callback(server.cleanup)
        tools = await agent.get_all_tools(RunContextWrapper(ctx.deps))
        yield [_member(tool) for tool in tools if isinstance(tool, FunctionTool)]
