"""Tools of an agent of Pydantic AI, as members of a toolset."""

from __future__ import annotations

from typing import Any, cast

from pydantic_ai import Agent
from pydantic_ai.tools import Tool
from pydantic_ai.toolsets import AbstractToolset, CombinedToolset, FunctionToolset

from toolcrib.adapters.pydantic_ai._source import from_toolset
from toolcrib.toolsets import Toolset

__all__ = ["member_of"]


def member_of(value: object) -> Toolset | None:
    """Return the tools of an agent, a toolset or a tool as a member for `Toolset([...])`; None for anything else."""
    match value:
        case Agent():
            return Toolset([from_toolset(CombinedToolset(cast("Agent[Any, Any]", value).toolsets))])
        case AbstractToolset():
            return Toolset([from_toolset(cast("AbstractToolset[Any]", value))])
        case Tool():
            return Toolset([from_toolset(FunctionToolset([cast("Tool[Any]", value)]))])
        case _:
            return None
