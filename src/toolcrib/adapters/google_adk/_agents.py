"""Tools of an agent of ADK, as members of a toolset."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.tools import BaseTool
from google.adk.tools.base_toolset import BaseToolset

from toolcrib.adapters.google_adk._members import from_tools, is_declared
from toolcrib.adapters.google_adk._tools import GatedTool
from toolcrib.schema import RunContext
from toolcrib.serving.frameworks import AgentTools
from toolcrib.tools import Tool
from toolcrib.toolsets import Toolset

__all__ = ["member_of"]


def member_of(value: object) -> Toolset | Tool[..., Any] | None:
    """Return the tools of an agent or an app, or a tool, as a member for `Toolset([...])`; None for anything else.

    Of an agent these are the tools that it has itself, and those of its toolsets, such as MCP servers. A tool that has
    gates of ours keeps them, and one that asks for a confirmation needs approval.

    Raises:
        TypeError: A callback or a plugin is around the tools of the agent, which would not be around them elsewhere.
    """
    if isinstance(value, BaseTool):
        return _member(value) if is_declared(value) else None
    if isinstance(value, App):
        guards = [each.name for each in value.plugins if _is_around_tools(each)]
        if guards:
            raise TypeError(_problem(f"plugin `{guards[0]}`"))
        return member_of(value.root_agent)
    if not isinstance(value, LlmAgent):
        return None
    if value.before_tool_callback:
        raise TypeError(_problem("before_tool_callback"))
    return Toolset([AgentTools(partial(_opened, value))])


def _member(tool: BaseTool) -> Toolset | Tool[..., Any]:
    return tool.tools.only(tool.name) if isinstance(tool, GatedTool) else from_tools([tool])[0]


@asynccontextmanager
async def _opened(agent: LlmAgent, ctx: RunContext[Any]) -> AsyncGenerator[list[Toolset | Tool[..., Any]]]:
    try:
        yield [_member(tool) for tool in await agent.canonical_tools() if is_declared(tool)]
    finally:
        given: Any = agent
        for toolset in (each for each in given.tools if isinstance(each, BaseToolset)):
            await toolset.close()


def _is_around_tools(plugin: BasePlugin) -> bool:
    return type(plugin).before_tool_callback is not BasePlugin.before_tool_callback


def _problem(what: str) -> str:
    return f"the {what} around its tools would be lost; name the tools themselves, with gates of yours"
