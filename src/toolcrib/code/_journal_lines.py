"""What the lines of a journal say of the program that wrote them, up to where its process ended."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from toolcrib.calls import Suspended, outcome_from_dict
from toolcrib.code._journal import JournalEntry, reply_from_dict
from toolcrib.code._paused import PausedProgram
from toolcrib.errors import PausedProgramError

__all__ = ["paused_program_in"]


def paused_program_in(lines: Iterable[Mapping[str, Any]]) -> PausedProgram | None:
    """Return the last program in a journal as far as it came; None when there is none, or it came to its end.

    Raises:
        PausedProgramError: Its engine does not run a program again.
    """
    found: _Found | None = None
    for line in lines:
        if line["t"] == "program":
            found = _Found(PausedProgram.from_dict(line))
        elif line["t"] == "done":
            found = None
        elif found is not None:
            found.take(line)
    return None if found is None else found.program()


class _Found:
    """What is known of a program from the lines after its first."""

    def __init__(self, paused: PausedProgram) -> None:
        self._paused = paused
        self._entries = {entry.id: entry for entry in paused.copied()}
        self._state: dict[str, Any] = dict(paused.state)
        self._moved = False

    def take(self, line: Mapping[str, Any]) -> None:
        self._moved = True
        if line["t"] == "state":
            _merge(self._state, line["state"])
            return
        if line["t"] == "started" and line["id"] not in self._entries:
            told = dict(line["told"])
            self._entries[line["id"]] = JournalEntry(line["id"], line["name"], line["digest"], told)
        entry = self._entries.get(line["id"])
        if entry is not None:
            _apply(entry, line)

    def program(self) -> PausedProgram:
        if self._moved and not self._paused.replays:
            raise PausedProgramError(
                f"its process ended while it ran, and {self._paused.engine} does not run a program again: it goes on "
                "from `result.paused` only"
            )
        return replace(self._paused, journal=tuple(self._entries.values()), state=self._state)


def _apply(entry: JournalEntry, line: Mapping[str, Any]) -> None:
    match line["t"]:
        case "started":
            entry.in_doubt, entry.suspended = True, None
        case "value":
            entry.values.append(line["value"])
        case "suspended":
            outcome = outcome_from_dict(line["outcome"])
            entry.suspended = outcome if isinstance(outcome, Suspended) else None
            entry.in_doubt = line["in_doubt"]
        case "cancelled":
            entry.cancelled, entry.in_doubt, entry.reply, entry.suspended = True, False, None, None
        case _:
            entry.reply, entry.told, entry.in_doubt = reply_from_dict(line["reply"]), dict(line["told"]), False


def _merge(state: dict[str, Any], piece: Mapping[str, Any]) -> None:
    for name, part in piece.items():
        known = state.get(name)
        state[name] = [*known, *part] if isinstance(known, list) and isinstance(part, list) else part
