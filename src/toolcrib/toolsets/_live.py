"""LiveTools: what a source gives whose tools may change while it is open."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from toolcrib.toolsets._entry import ToolEntry
from toolcrib.toolsets._members import Step
from toolcrib.toolsets._toolset import Toolset

__all__ = ["LiveTools"]


class LiveTools(Toolset):
    """The tools of a source, which it may renew; the toolsets that were opened with it follow."""

    def __init__(self, tools: Iterable[Any] = ()) -> None:
        super().__init__(tools)
        self._followers: list[Callable[[], None]] = []

    def follow(self, bound: Toolset, steps: Sequence[Step]) -> None:
        """Have an opened toolset, which has these tools with `steps` taken, get those that come later."""
        shown = self._through(steps)

        def again() -> None:
            nonlocal shown
            now = self._through(steps)
            gone = [replace(entry, off=True) for name, entry in shown.items() if name not in now]
            bound.renew_entries(shown, [*now.values(), *gone])
            shown = {**{entry.name: entry for entry in gone}, **now}

        self._followers.append(again)

    def renew(self, tools: Iterable[Any]) -> None:
        """Take other tools; those that are gone stay known, and are not offered any more.

        Raises:
            DuplicateNameError: Two have one name; nothing is changed for whoever would have both.
        """
        self._entries = dict(Toolset(tools).entries)
        for again in self._followers:
            again()

    def _through(self, steps: Sequence[Step]) -> dict[str, ToolEntry]:
        entries: Iterable[ToolEntry] = self
        for step in steps:
            entries = [*step.change(entries)]
        return {entry.name: entry for entry in entries}
