"""Tools of an agent of Pydantic AI, as members of a toolset."""

from __future__ import annotations

from typing import Any, cast

from pydantic_ai import Agent
from pydantic_ai.capabilities import (
    AbstractCapability,
    CombinedCapability,
    DynamicCapability,
    Hooks,
    PrepareTools,
    WrapperCapability,
)
from pydantic_ai.tools import Tool
from pydantic_ai.toolsets import AbstractToolset, CombinedToolset

from toolcrib.adapters.pydantic_ai._source import PydanticToolset, from_tools
from toolcrib.serving.frameworks import gates_lost
from toolcrib.toolsets import Toolset

_AROUND_TOOLS = (
    "before_tool_validate",
    "wrap_tool_validate",
    "after_tool_validate",
    "on_tool_validate_error",
    "before_tool_execute",
    "wrap_tool_execute",
    "after_tool_execute",
    "on_tool_execute_error",
    "prepare_tools",
    "get_wrapper_toolset",
)
"""What a capability has around the tools of its agent, by the names of its methods."""


def member_of(value: object) -> Toolset | None:
    """Return the tools of an agent, a toolset or a tool as a member for `Toolset([...])`; None for anything else.

    Raises:
        TypeError: A capability of the agent is around its tools, and would not be around them elsewhere.
    """
    match value:
        case Agent():
            agent = cast("Agent[Any, Any]", value)
            around = _around_tools(agent._root_capability)  # pyright: ignore[reportPrivateUsage] -- there is no other way to it
            if around is not None:
                raise gates_lost(f"the capability {type(around).__name__}")
            return Toolset([PydanticToolset(CombinedToolset(agent.toolsets))])
        case AbstractToolset():
            return Toolset(from_tools(cast("AbstractToolset[Any]", value)))
        case Tool():
            return Toolset(from_tools([cast("Tool[Any]", value)]))
        case _:
            return None


def _around_tools(capability: AbstractCapability[Any]) -> AbstractCapability[Any] | None:
    """Return what may refuse, edit or hide calls of tools; None where nothing does."""
    base: type[Any] = AbstractCapability
    if isinstance(capability, CombinedCapability):
        return next(filter(None, map(_around_tools, capability.capabilities)), None)
    if isinstance(capability, DynamicCapability):
        return capability  # what it is in a run is not known before
    if isinstance(capability, Hooks):
        base = Hooks
        if any(capability._registry.get(name) for name in _AROUND_TOOLS):  # pyright: ignore[reportPrivateUsage] -- as above
            return capability
    elif isinstance(capability, WrapperCapability):
        base = WrapperCapability
        inside = _around_tools(capability.wrapped)
        if inside is not None:
            return inside
    if type(capability).__module__.startswith("pydantic_ai.") and not isinstance(capability, PrepareTools):
        return None  # instrumentation, tool search and the like, which are not gates
    is_own = any(getattr(type(capability), name) is not getattr(base, name) for name in _AROUND_TOOLS)
    return capability if is_own else None
