"""Views of a toolset: new toolsets with other tools, names or gates. None of them loses a gate."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from toolcrib import approvals, toolsets
from toolcrib import hooks as _hooks
from toolcrib._numbers import require_seconds
from toolcrib.errors import UnknownTool
from toolcrib.hooks import (
    GateLike,
    GateStep,
    HookSet,
    gate_steps,
    require_hooks,
    require_parameters,
    require_policy,
)
from toolcrib.tools import require_name, require_prefix
from toolcrib.toolsets._entry import ToolEntry
from toolcrib.toolsets._members import Change, EntryFilter, Step, conditional, named
from toolcrib.toolsets._names import ToolNames, check_gates, misnamed, names_of, refusals
from toolcrib.toolsets._scopes import fits, is_pattern, read_scopes, scoped
from toolcrib.toolsets._sources import ToolSource

if TYPE_CHECKING:
    from toolcrib.toolsets._toolset import Toolset


class ToolsetViews:
    """The tools of a toolset by name, and the toolsets that are made of it."""

    _entries: dict[str, ToolEntry]
    _sources: tuple[tuple[ToolSource, tuple[Step, ...]], ...]  # with the steps that their tools still have to pass
    _names: ToolNames | None

    def _view(self, change: Change, names: Iterable[str] = (), gates: Iterable[GateStep] = ()) -> Toolset:
        """Return a new toolset with a change to all entries, also to those of its sources when they are known."""
        raise NotImplementedError

    @property
    def is_open(self) -> bool:
        """True if every tool is known; a toolset with sources has to be opened first."""
        return not self._sources

    def __getitem__(self, name: str) -> ToolEntry:
        try:
            return self._entries[name]
        except KeyError:
            raise UnknownTool(name, tuple(self._entries)) from None

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __iter__(self) -> Iterator[ToolEntry]:
        return iter(self._entries.values())

    def __len__(self) -> int:
        return len(self._entries)

    def subset(
        self, names: Iterable[toolsets.Selectable], *, include_auto_inherit: bool = False, inherit_hooks: bool = True
    ) -> Toolset:
        """Return the toolset with only these tools, in its own order.

        Args:
            names: Names or selectors; UnknownTool for one that is not a member.
            include_auto_inherit: Take tools that declare `auto_inherit = True`, too.
            inherit_hooks: Keep the middleware. Without it only middleware goes: approval, decisions, availability and
                limits stay.
        """
        wanted = {self[name].name for name in names_of(names)}
        if include_auto_inherit:
            wanted |= {e.name for e in self if e.tool.source is not None and e.tool.source.auto_inherit}
        without: dict[str, Any] = {} if inherit_hooks else {"pre": (), "post": ()}
        return self._view(lambda entries: (replace(e, **without) for e in entries if e.name in wanted))

    def hiding(self, names: Iterable[toolsets.Selectable]) -> Toolset:
        """Return the toolset with these tools left out of what is offered by default."""
        hidden = {self[name].name for name in names_of(names)}
        return self._view(lambda entries: (replace(e, off=True) if e.name in hidden else e for e in entries))

    def offering(self, names: Iterable[toolsets.Selectable]) -> Toolset:
        """Return the toolset with these tools among what is offered by default."""
        shown = {self[name].name for name in names_of(names)}
        return self._view(lambda entries: (replace(e, off=False) if e.name in shown else e for e in entries))

    def filtered(self, condition: EntryFilter, names: Iterable[str] = ("*",)) -> Toolset:
        """Return the toolset whose tools are available only while a condition says so.

        Args:
            condition: A function of the run context and the entry, sync or async.
            names: The tools that it is for, by name or pattern of names; all of them when left out.

        Raises:
            UnknownTool: No tool has such a name.
        """
        if not callable(condition):
            mend = "give a function (ctx, entry); to take some by name is toolset.subset([...])"
            raise TypeError(f"filtered: condition is {condition!r:.80}; {mend}")
        require_parameters("condition", condition, "ctx", "entry", result="True or False", takes_none=True)
        keys = self._known_keys(names)
        return self._view(
            lambda entries: (
                e.with_availability(conditional(condition, e)) if any(fits(e.name, key) for key in keys) else e
                for e in entries
            ),
            [key for key in keys if not is_pattern(key)],
            [GateStep("filter", "resolve", _never_asked, tool_names=tuple(key for key in keys if key != "*"))],
        )

    def prefixed(self, prefix: str) -> Toolset:
        """Return the toolset with `prefix` before every name; ValueError where no provider takes such names."""
        require_prefix("prefixed: the prefix", prefix)
        return self._view(lambda entries: (named(e, prefix + e.name) for e in entries))

    def renamed(self, names: Mapping[str, str]) -> Toolset:
        """Return the toolset with other names, given as `{old: new}`; UnknownTool for an old one it does not have."""
        if not isinstance(names, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance] -- a host's value
            raise TypeError(
                f"renamed: names is {names!r:.80}; give new names by old ones, as in {{'refund': 'pay_back'}}"
            )
        for new in names.values():
            require_name(new, "renamed: a name")
        if not self._sources:
            for old in names:
                self[old]
        return self._view(lambda entries: (named(e, names.get(e.name, e.name)) for e in entries), names)

    def with_hooks(self, hooks: HookSet) -> Toolset:
        """Return the toolset with a hook set that is asked before those it has.

        Raises:
            ValueError: A hook is for a tool that is not a member.
        """
        require_hooks("with_hooks", hooks)
        if not self._sources:
            hooks.check(self._entries)
        return self._view(lambda entries: (e.with_hooks(hooks) for e in entries), hooks.targets())

    def with_approval(
        self, policy: approvals.ApprovalPolicy = True, *, names: Iterable[toolsets.Selectable] | None = None
    ) -> Toolset:
        """Return the toolset whose tools (or those named) need approval when `policy` says so, beside their own."""
        if isinstance(policy, str | list | tuple | set):
            raise TypeError("with_approval: the names of tools are an option: with_approval(names=[...])")
        require_policy("with_approval: policy", policy)
        return self._with_each(lambda entry: entry.with_approval(policy), names)

    def with_gates(self, *gates: GateLike, names: Iterable[toolsets.Selectable] | None = None) -> Toolset:
        """Return the toolset whose tools (or those named) have gates of your own, asked before those they have.

        Args:
            gates: Objects with `stage` and `check(call)`, or functions of the call, asked at the stage `authorize`.
            names: The tools; None for all.

        Raises:
            TypeError: One is not a gate.
            ValueError: A gate has a stage or an occasion that does not exist, or cannot hold for the tools; or it is
                about a tool (`tool_names`) that none of them is (ToolConstraintError).
            UnknownTool: A name is not in the toolset.
        """
        steps = gate_steps("with_gates", gates)
        gated = self._with_each(lambda entry: entry.with_gates(gates), names, steps)
        chosen = None if names is None else frozenset(names_of(names))
        tools = {name: entry.tool for name, entry in self._entries.items() if chosen is None or name in chosen}
        if self.is_open:
            check_gates(steps, tools)
        for step in () if self.is_open else steps:
            if step.check_tools is not None:
                step.check_tools(tools, is_complete=False)
        return gated

    def requiring(self, names: Iterable[str], who: str) -> Toolset:
        """Return the toolset, which checks that it has the tools that something beside it is about.

        Args:
            names: Names of tools, and patterns.
            who: The gate that is about them, for errors.

        Raises:
            ToolConstraintError: There is no such tool. Where tools come later, the toolset raises it when it is opened.
        """
        step = GateStep(who, "resolve", _never_asked, tool_names=tuple(names))
        if self.is_open:
            check_gates([step], {name: entry.tool for name, entry in self._entries.items()})
        return self._view(lambda entries: entries, gates=[step])

    def beside(self, names: ToolNames) -> Toolset:
        """Return the toolset as a part of more tools, whose names may grow: gates of a run are about all."""
        view = self._view(lambda entries: entries)
        view._names = names
        return view

    def refusals_of(self, steps: Iterable[GateStep]) -> list[GateStep]:
        """Return a gate that refuses calls for each gate of a run with a name that is nearly that of a tool.

        Another name that no tool here has is logged once: the run may pass other toolsets.
        """
        return refusals(steps, self._known_names()) if any(step.tool_names for step in steps) else []

    def require_named(self, steps: Iterable[GateStep]) -> None:
        """Raise ToolConstraintError for a gate of a run with a name that is nearly that of a tool."""
        known = self._known_names()
        for _, error in misnamed((step for step in steps if step.tool_names and known), known):
            raise error

    def _known_names(self) -> ToolNames:
        if self._names is None:
            self._names = ToolNames()
        self._names.update(self._entries)
        return self._names

    def with_deliveries(
        self, *deliveries: _hooks.DeliveryLike, names: Iterable[toolsets.Selectable] | None = None
    ) -> Toolset:
        """Return the toolset whose values and results pass deliveries of your own before anyone has them.

        Args:
            deliveries: Objects with `deliver(call, value)`, or functions of the call and the value, which return what
                goes out; they come after those that the tools have.
            names: The tools; None for all.

        Raises:
            TypeError: One is not a delivery.
            UnknownTool: A name is not in the toolset.
        """
        _hooks.delivery_steps("with_deliveries", deliveries)
        return self._with_each(lambda entry: entry.with_deliveries(deliveries), names)

    def with_identity(self, text: str) -> Toolset:
        """Return the toolset whose approvals hold for what this text names alone, such as the URL of a database.

        It tells two servers or objects apart that have the same tools. It is kept as a digest.
        """
        return self._view(lambda entries: (e.with_identity(text) for e in entries))

    def with_scopes(self, scopes: Mapping[str, str | Sequence[str]]) -> Toolset:
        """Return the toolset whose tools need scopes of the token, beside those that they need already.

        Args:
            scopes: One scope or several, by the name of a tool or a pattern of names, such as `files_*`; a tool that
                several fit needs the scopes of all.

        Raises:
            UnknownTool: No tool has such a name.
            ValueError: A scope is not a valid scope.
        """
        needed = read_scopes(scopes)
        exact = [key for key in self._known_keys(needed) if not is_pattern(key)]
        patterns = GateStep("scopes", "resolve", _never_asked, tool_names=tuple(needed))
        return self._view(lambda entries: (scoped(e, needed) for e in entries), exact, [patterns])

    def with_timeout(self, seconds: float) -> Toolset:
        """Return the toolset with at most `seconds` for one execution of each tool; a shorter time of its own stays.

        Raises:
            ValueError: The time is not more than 0.
        """
        require_seconds("with_timeout", "seconds", seconds)
        return self._view(lambda entries: (e.with_timeout(seconds) for e in entries))

    def _known_keys(self, keys: Iterable[str]) -> tuple[str, ...]:
        """Return names and patterns of tools; UnknownTool for one that no tool has, where all tools are known."""
        keys = names_of(keys)
        unknown = next((key for key in keys if not any(fits(name, key) for name in self._entries)), None)
        if unknown not in (None, "*") and not self._sources:
            raise UnknownTool(unknown, tuple(self._entries))
        return keys

    def _with_each(
        self,
        change: Callable[[ToolEntry], ToolEntry],
        names: Iterable[toolsets.Selectable] | None,
        gates: Iterable[GateStep] = (),
    ) -> Toolset:
        """Return the toolset with a change to all its entries, or to those named; UnknownTool for another name."""
        chosen = None if names is None else frozenset(names_of(names))
        unknown = next((name for name in chosen or () if name not in self._entries), None)
        if unknown is not None and not self._sources:
            raise UnknownTool(unknown, tuple(self._entries))
        return self._view(
            lambda entries: (change(e) if chosen is None or e.name in chosen else e for e in entries),
            chosen or (),
            gates,
        )


def _never_asked(call: Any) -> None:
    """Stand for the check of a gate that is put on no tool: its names are looked at alone."""
