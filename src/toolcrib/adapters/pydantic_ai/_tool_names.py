"""Names of the tools of a toolset of Pydantic AI, as far as they are known before a run lists them."""

from __future__ import annotations

from typing import Any

from pydantic_ai.agent import AbstractAgent
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.toolsets import (
    AbstractToolset,
    CombinedToolset,
    FilteredToolset,
    FunctionToolset,
    PrefixedToolset,
    PreparedToolset,
    RenamedToolset,
    WrapperToolset,
)

from toolcrib.adapters.pydantic_ai._toolset import ToolcribToolset


def names_of(guarded: AbstractAgent[Any, Any] | AbstractToolset[Any]) -> tuple[set[str], bool]:
    """Return the names of tools of an agent or a toolset that are known now, and whether these are all."""
    match guarded:
        case AbstractAgent():
            capabilities: list[AbstractCapability[Any]] = []
            guarded.root_capability.apply(capabilities.append)
            names, are_all = names_of(CombinedToolset(guarded.toolsets))
            return names, are_all and not any(_is_around_tools(type(capability)) for capability in capabilities)
        case CombinedToolset():
            parts = [names_of(part) for part in guarded.toolsets]
            return set[str]().union(*(names for names, _ in parts)), all(are_all for _, are_all in parts)
        case FunctionToolset():
            return {*guarded.tools}, _is_theirs(guarded)
        case ToolcribToolset():
            return {*guarded.tools.entries}, guarded.tools.is_open
        case WrapperToolset() if _is_theirs(guarded):
            names, are_all = names_of(guarded.wrapped)
            new = {old: new for new, old in guarded.name_map.items()} if isinstance(guarded, RenamedToolset) else {}
            prefix = f"{guarded.prefix}_" if isinstance(guarded, PrefixedToolset) else ""
            return {prefix + new.get(name, name) for name in names}, are_all
        case _:
            return set(), False


def may_list_more(toolset: AbstractToolset[Any]) -> bool:
    """Return whether a toolset may list tools later in a run that it has not listed at first."""
    if names_of(toolset)[1]:
        return False
    match toolset:
        case CombinedToolset():
            return any(may_list_more(part) for part in toolset.toolsets)
        case FilteredToolset() | ToolcribToolset():
            return True
        case PreparedToolset() if not toolset.prepare_func.__module__.startswith("pydantic_ai."):
            return True
        case WrapperToolset() if _is_theirs(toolset):
            return may_list_more(toolset.wrapped)
        case _:
            return not _is_theirs(toolset) or type(toolset).__name__ == "DynamicToolset"


def _is_theirs(toolset: AbstractToolset[Any]) -> bool:
    return type(toolset).__module__.startswith("pydantic_ai.")


def _is_around_tools(capability: type[AbstractCapability[Any]]) -> bool:
    """Return whether a capability of the host's may rename the tools of its agent, or add some."""
    is_own = not capability.__module__.startswith("pydantic_ai.")
    return is_own and capability.get_wrapper_toolset is not AbstractCapability.get_wrapper_toolset
