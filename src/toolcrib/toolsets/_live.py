"""LiveTools: the toolset of a source whose tools may change while it is open."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any
from weakref import WeakSet

from toolcrib.toolsets._entry import ToolEntry
from toolcrib.toolsets._members import Step
from toolcrib.toolsets._toolset import Toolset


class LiveTools(Toolset):
    """The tools of a source, which it may renew; the toolsets that were opened with it follow.

    Args:
        fault: Why the source has no tools yet. A toolset that is opened with no other tools raises it.
        may_be_empty: Have such a toolset open without tools.
        left_out: Called when a toolset opens without the tools of the source.
        rank: Of several sources that have one, the tools of a higher rank, else of the first, keep their names, and
            the others are left out with an error in the log. Without one, two tools of one name are an error.
    """

    def __init__(
        self,
        tools: Iterable[Any] = (),
        *,
        fault: Exception | None = None,
        may_be_empty: bool = False,
        left_out: Callable[[], None] = lambda: None,
        rank: int | None = None,
    ) -> None:
        super().__init__(tools)
        self._rank = rank
        self._fault, self._may_be_empty, self._left_out = fault, may_be_empty, left_out
        self._followers: list[Callable[[], None]] = []

    def _note_left_out(self) -> None:
        self._left_out()

    def _send_renewals_to(self, bound: Toolset, steps: Sequence[Step]) -> None:
        bound._listeners = WeakSet()
        shown, at = self._through(steps), len(bound._parts) - 1

        def again() -> None:
            nonlocal shown
            now = self._through(steps)
            removed = [replace(entry, off=True) for name, entry in shown.items() if name not in now]
            bound._renew(at, [*now.values(), *removed])
            shown = {**{entry.name: entry for entry in removed}, **now}

        self._followers.append(again)

    def renew(self, tools: Iterable[Any]) -> None:
        """Replace the tools; those that are gone stay known, and are not offered any more.

        Raises:
            DuplicateNameError: Two have one name; a toolset that would have both is not changed.
        """
        self._entries = dict(Toolset(tools).entries)
        for again in self._followers:
            again()

    def _through(self, steps: Sequence[Step]) -> dict[str, ToolEntry]:
        entries: Iterable[ToolEntry] = self
        for step in steps:
            entries = [*step.change(entries)]
        return {entry.name: entry for entry in entries}
