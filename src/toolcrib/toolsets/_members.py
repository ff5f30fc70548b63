"""Entries of a toolset: added, guarded, described, switched off, offered, and asked whether they are available."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from inspect import isawaitable, iscoroutine
from typing import Any, TypeAlias, cast

from toolcrib import results as _results
from toolcrib import toolsets
from toolcrib.errors import DuplicateNameError, ToolConstraintError
from toolcrib.hooks import GateStep, GlobalHooks, HookSet
from toolcrib.schema import RunContext
from toolcrib.tools import Tool, require_own_object
from toolcrib.toolsets._entry import Availability, ToolEntry, steps_after, steps_before
from toolcrib.toolsets._names import check_gates, require_same_gates

Change: TypeAlias = Callable[[Iterable[ToolEntry]], Iterable[ToolEntry]]


class Step:
    """One change that a toolset or view makes to its entries, kept for members that are known only when a run opens.

    Attributes:
        names: The tools that it names, each of which some member has to have.
        known: The entries that members had when it was made, by name.
        gates: The gates that it puts on its tools: those that it names, or all.
    """

    __slots__ = ("change", "gates", "known", "names")

    def __init__(
        self,
        change: Change,
        names: Iterable[str] = (),
        known: Mapping[str, ToolEntry] | None = None,
        gates: Iterable[GateStep] = (),
    ) -> None:
        self.change, self.names, self.known, self.gates = change, frozenset(names), {**(known or {})}, tuple(gates)

    def chosen(self, entries: Mapping[str, ToolEntry]) -> dict[str, Tool[..., Any]]:
        """Return the tools that its gates are put on, of the entries that passed it."""
        return {name: entry.tool for name, entry in entries.items() if not self.names or name in self.names}


def require(found: Mapping[Step, Mapping[str, ToolEntry]]) -> None:
    """Check the names of all steps, given the entries that passed each: a gate would be missing in silence.

    Raises:
        ToolConstraintError: A step, or one of its gates, is about a tool that no member has.
        ValueError: One of its gates cannot hold for the tools.
    """
    for step, entries in found.items():
        missing = next(iter(sorted(step.names - entries.keys())), None)
        if missing is not None:
            problem = "a hook, an approval or another name is given for it, and no member has it"
            raise ToolConstraintError(missing, problem, tuple(sorted(entries)))
        check_gates(step.gates, step.chosen(entries))


EntryFilter: TypeAlias = Callable[[RunContext[Any], ToolEntry], Any]
"""A function that returns True if a tool is available in a run; sync or async."""


def listed(tools: object) -> Iterable[Any]:
    """Return tools that were given as a list; TypeError for one tool by itself, or for anything else."""
    value: Any = tools
    if isinstance(tools, Iterable) and not isinstance(tools, str | type | Mapping):
        return cast("Iterable[Any]", tools)
    require_own_object(value)
    mend = "write [tool] for one" if callable(value) else "give tools, functions or toolsets"
    mend = "await it first" if iscoroutine(value) else mend
    raise TypeError(f"{tools!r} is not a list of tools; {mend}")


def define(entry: ToolEntry, description: str | None = None) -> toolsets.Definition:
    """Return the definition of an entry for models."""
    text = entry.description if description is None else description
    return toolsets.Definition(entry.name, text, entry.parameters, entry.return_schema)


def offered_names(entries: Mapping[str, ToolEntry], available: toolsets.ToolAvailability | None) -> frozenset[str]:
    """Return the names that an availability comes to; ToolConstraintError for one that no entry has."""
    choice = available or toolsets.ToolAvailability()
    if not isinstance(cast("object", choice), toolsets.ToolAvailability):
        raise TypeError(
            f"say what is available as in ToolAvailability.only('name'), and not as {choice!r:.40}; what else "
            "there is to give is given by name, as in definitions(format='openai') or decode(..., run=run)"
        )
    unknown = next((name for name in choice.names if name not in entries), None)
    if unknown is not None:
        raise ToolConstraintError(unknown, "it is not in the toolset", tuple(entries))
    if choice.kind == "all":
        return frozenset(entries)
    if choice.kind == "only":
        return frozenset(choice.names)
    return frozenset(name for name, entry in entries.items() if not entry.off) | set(choice.names)


def switched_off(entries: Iterable[ToolEntry]) -> Iterable[ToolEntry]:
    """Return the entries, none of them offered by default."""
    return (replace(entry, off=True) for entry in entries)


def named(entry: ToolEntry, name: str) -> ToolEntry:
    """Return the entry with another name; ValueError where one of its gates is about the name that it has."""
    if name != entry.name:
        require_same_gates(entry.gates, entry.name, name)
    return replace(entry, name=name)


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
    present = members.get(entry.name)
    if present == entry:
        return  # a subtool that was also listed by itself; with other gates it is a clash, lest one set of them is lost
    if present is not None:
        mend = "Give one of them another name, or put one set under a prefix."
        raise DuplicateNameError(entry.name, present.origin, entry.origin, mend)
    members[entry.name] = entry


def merged(
    parts: Sequence[tuple[int | None, Iterable[ToolEntry]]], clash: Callable[[ToolEntry, ToolEntry], object]
) -> dict[str, ToolEntry]:
    """Return the entries of several parts, in order.

    Args:
        parts: Each with a rank. One without gives way to none: two entries of one name are a DuplicateNameError. Of
            the others those of a higher rank, else the first, keep their names.
        clash: Called with each entry that is left out, and the one that has its name.
    """
    members: dict[str, ToolEntry] = {}
    for rank, entries in sorted(parts, key=lambda part: (part[0] is not None, -(part[0] or 0))):
        for entry in entries:
            if rank is None:
                add(members, entry)
            elif members.setdefault(entry.name, entry) != entry:
                clash(entry, members[entry.name])
    return {entry.name: entry for _, part in parts for entry in part if members[entry.name] is entry}


def keeping(entry: ToolEntry, results: _results.ResultStore) -> ToolEntry:
    """Return the entry with a store for its long results, unless it has one, or is the tool that reads them."""
    if entry.results is not None or isinstance(entry.tool.source, _results.ReadResult):
        return entry
    return replace(entry, results=results)


def guard(entry: ToolEntry, pre: Any, post: Any, wide: GlobalHooks, hooks: HookSet | None) -> ToolEntry:
    """Return the entry with a toolset's middleware and hooks around it."""
    name = entry.name
    before = steps_before(name, wide.pre, wide=True) + steps_before(name, pre, wide=False)
    after = steps_after(name, post, wide=False) + steps_after(name, wide.post, wide=True)
    guarded = entry.with_middleware(before, after) if before or after else entry
    return guarded if hooks is None else guarded.with_hooks(hooks)
