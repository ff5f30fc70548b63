"""Tools of an agent of LangChain, or of a graph, as members of a toolset."""

from __future__ import annotations

from typing import Any

from langchain_core.tools import BaseTool
from langgraph.prebuilt import ToolNode
from langgraph.pregel import Pregel

from toolcrib.adapters.langchain._members import Member
from toolcrib.adapters.langchain._tools import GatedTool
from toolcrib.tools import Tool
from toolcrib.toolsets import Toolset

__all__ = ["member_of"]


def member_of(value: object) -> Toolset | Tool[..., Any] | None:
    """Return the tools of an agent, a graph or a `ToolNode`, or a tool, as a member; None for anything else.

    A tool that has gates of ours keeps them.

    Raises:
        TypeError: The agent has middleware around its tools, which would not be around them elsewhere.
    """
    if isinstance(value, BaseTool):
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
        raise TypeError("the middleware around its tools would be lost; name the tools themselves, with gates of yours")
    return Toolset([member_of(tool) for tool in node.tools_by_name.values()])
