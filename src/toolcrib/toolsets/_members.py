"""What toolsets do with entries: admit, guard, describe, switch off, ask whether they are available."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from inspect import isawaitable
from typing import Any, TypeAlias, cast

from toolcrib.errors import DuplicateNameError
from toolcrib.hooks import GlobalHooks, HookSet
from toolcrib.schema import RunContext
from toolcrib.toolsets._entry import Availability, ToolEntry, steps_after, steps_before
from toolcrib.toolsets._select import Definition

__all__ = ["EntryFilter", "add", "conditional", "define", "guard", "is_available", "listed", "switched_off"]

EntryFilter: TypeAlias = Callable[[RunContext[Any], ToolEntry], Any]
"""Whether a tool is available in a run; sync or async."""


def listed(tools: object) -> Iterable[Any]:
    """Return tools that were given as a list; TypeError for one tool by itself, or for anything else."""
    if isinstance(tools, Iterable) and not isinstance(tools, str | type):
        return cast("Iterable[Any]", tools)
    mend = "write [tool] for one" if callable(tools) else "give tools, functions or toolsets"
    raise TypeError(f"{tools!r} is no list of tools; {mend}")


def define(entry: ToolEntry, description: str | None = None) -> Definition:
    """Return what a model is told of an entry."""
    text = entry.description if description is None else description
    return Definition(entry.name, text, entry.parameters, entry.return_schema)


def switched_off(entries: Iterable[ToolEntry]) -> Iterable[ToolEntry]:
    """Return the entries, none of them offered by default."""
    return (replace(entry, off=True) for entry in entries)


def conditional(condition: EntryFilter, entry: ToolEntry) -> Availability:
    """Return the condition as one of this entry."""
    return lambda ctx: condition(ctx, entry)


async def is_available(entry: ToolEntry, ctx: RunContext[Any]) -> bool:
    """Return whether every condition of an entry says that it is available now."""
    for predicate in entry.availability:
        answer = predicate(ctx)
        if not (await answer if isawaitable(answer) else answer):
            return False
    return True


def add(members: dict[str, ToolEntry], entry: ToolEntry) -> None:
    """Add an entry, unless its name is taken; DuplicateNameError then."""
    taken = members.get(entry.name)
    if taken == entry:
        return  # a subtool that was also listed by itself; with other gates it is a clash, lest one set of them is lost
    if taken is not None:
        mend = "Give one of them another name, or put one set under a prefix."
        raise DuplicateNameError(entry.name, taken.origin, entry.origin, mend)
    members[entry.name] = entry


def guard(entry: ToolEntry, pre: Any, post: Any, wide: GlobalHooks, hooks: HookSet | None) -> ToolEntry:
    """Return the entry with a toolset's middleware and hooks around it."""
    name = entry.name
    before = steps_before(name, wide.pre, wide=True) + steps_before(name, pre, wide=False)
    after = steps_after(name, post, wide=False) + steps_after(name, wide.post, wide=True)
    guarded = entry.with_middleware(before, after) if before or after else entry
    return guarded if hooks is None else guarded.with_hooks(hooks)
