"""FileJournal: the journal of a program in a file, from which it is taken up when its process did not live to end."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from toolcrib.calls import Suspended, outcome_from_dict
from toolcrib.code._journal import JournalEntry, reply_from_dict
from toolcrib.code._paused import PausedProgram
from toolcrib.errors import PausedProgramError

__all__ = ["FileJournal"]


class FileJournal:
    """Keeps what programs ask for in a file, line by line, before and after each call.

    The file holds real arguments and results and is not signed: only its owner can read it, and it is to be trusted as
    far as its folder is.

    Args:
        path: The file; lines are added to what is there. Of several programs in it the last one counts.
        sync: Have each line on the disk before going on, which a failure of power does not undo; slower.
    """

    def __init__(self, path: str | Path, *, sync: bool = False) -> None:
        self.path, self._sync = Path(path), sync
        self._file: int | None = None

    def write(self, line: Mapping[str, Any]) -> None:
        """Add a line."""
        if self._file is None:
            self._file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            if not _ends_well(self.path):
                os.write(self._file, b"\n")  # a line that was cut when the process died stays one of its own
        data = json.dumps(line, separators=(",", ":")).encode() + b"\n"
        while data:
            data = data[os.write(self._file, data) :]
        if self._sync:
            os.fsync(self._file)

    def paused(self) -> PausedProgram:
        """Return the last program in the file as far as it came, for `Toolkit.resume`.

        Resumed without answers it comes to the calls that had begun and not ended, and reports them: those of an
        `idempotent` tool are made again, and the others wait for a person, `in_doubt`.

        Raises:
            PausedProgramError: There is none, it came to its end, or its engine does not run a program again.
        """
        program: PausedProgram | None = None
        found: _Found | None = None
        for line in _lines(self.path):
            if line["t"] == "program":
                program = PausedProgram.from_dict(line)
                found = _Found(program)
            elif line["t"] == "done":
                program = None
            elif found is not None:
                found.take(line)
        if program is None or found is None:
            raise PausedProgramError(f"{self.path} holds no program that has yet to end")
        return found.program()

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def __enter__(self) -> FileJournal:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


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
            entry.cancelled, entry.in_doubt = True, False
        case _:
            entry.reply, entry.told, entry.in_doubt = reply_from_dict(line["reply"]), dict(line["told"]), False


def _merge(state: dict[str, Any], piece: Mapping[str, Any]) -> None:
    for name, part in piece.items():
        known = state.get(name)
        state[name] = [*known, *part] if isinstance(known, list) and isinstance(part, list) else part


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    try:
        text = path.read_bytes()
    except OSError as error:
        raise PausedProgramError(f"{path} cannot be read ({error.strerror})") from None
    for line in text.split(b"\n"):
        try:
            yield json.loads(line)
        except ValueError:  # empty, or cut when the process died while it wrote
            continue


def _ends_well(path: Path) -> bool:
    with path.open("rb") as file:
        if file.seek(0, os.SEEK_END) == 0:
            return True
        file.seek(-1, os.SEEK_END)
        return file.read(1) == b"\n"
