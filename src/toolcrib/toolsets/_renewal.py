"""Tools that change while a toolset is open: who gives them, who has them, who is told."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol, runtime_checkable
from weakref import WeakSet

from toolcrib.toolsets._entry import ToolEntry
from toolcrib.toolsets._members import Step, add

__all__ = ["Followed", "Renewable", "Renewed"]


class Renewed(Protocol):
    """Somebody who keeps something that was made of a toolset's tools."""

    def renewed(self) -> None:
        """Forget it: they are others now."""
        ...


class Renewable:
    """A toolset, as far as its tools may change while it is open."""

    _entries: dict[str, ToolEntry]
    _told: WeakSet[Any] | None = None

    def renew_entries(self, names: Iterable[str], entries: Iterable[ToolEntry]) -> None:
        """Have other tools in the place of those named; for a source that changes while it is open.

        Raises:
            DuplicateNameError: One has the name of another member; nothing is changed.
        """
        before = frozenset(names)
        made = {name: entry for name, entry in self._entries.items() if name not in before}
        for entry in entries:
            add(made, entry)
        self._entries = made
        for one in self._told or ():
            one.renewed()

    def tell_when_renewed(self, one: Renewed) -> None:
        """Tell somebody, as long as they live, when the tools are others."""
        if self._told is not None:
            self._told.add(one)


@runtime_checkable
class Followed(Protocol):
    """The tools of a source that may change; whoever was opened with them gets those that come later."""

    def follow(self, bound: Any, steps: Sequence[Step]) -> None:
        """Have an opened toolset follow."""
        ...
