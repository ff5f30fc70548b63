"""Tools of an agent of smolagents, as members of a toolset."""

from __future__ import annotations

from typing import Any

from smolagents import MultiStepAgent
from smolagents import Tool as TheirTool

from toolcrib.adapters.smolagents._calls import FINAL_ANSWER, tools_of
from toolcrib.adapters.smolagents._members import Member
from toolcrib.adapters.smolagents._tools import AgentTool
from toolcrib.tools import Tool
from toolcrib.toolsets import Toolset

__all__ = ["member_of"]


def member_of(value: object) -> Toolset | Tool[..., Any] | None:
    """Return the tools of an agent, or a tool, as a member for `Toolset([...])`; None for anything else.

    A tool that has gates of ours keeps them. `final_answer` is left out: it ends a run of the agent.
    """
    if isinstance(value, TheirTool):
        return value.tools.only(value.name) if isinstance(value, AgentTool) else Member(value).tool()
    if not isinstance(value, MultiStepAgent):
        return None
    return Toolset([member_of(tool) for name, tool in tools_of(value).items() if name != FINAL_ANSWER])
