"""Journals as lines: the file that keeps them, and the program that they describe after a crash."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from toolcrib.calls import Grant, StoredFields, Suspended, outcome_from_dict
from toolcrib.code._journal import JournalEntry, reply_from_dict
from toolcrib.code._paused import PausedProgram
from toolcrib.errors import PausedProgramError, explain_options


@explain_options()
class FileJournal:
    """A file with the calls of programs: a line before each call, and one after it.

    The file holds real arguments and results and is not signed: only its owner can read it, and it can be trusted as
    far as its folder can.

    Args:
        path: The file; lines are appended. Of several programs in the file the last one counts.
        sync: Have each line on the disk before going on, so that it survives a power failure; slower.
    """

    def __init__(self, path: str | Path, *, sync: bool = False) -> None:
        self.path, self._sync = Path(path), sync
        self._file: int | None = None
        self._written = self._synced = 0

    @property
    def waited(self) -> float:
        """Always 0: a file is not away."""
        return 0.0

    def write(self, line: Mapping[str, Any]) -> None:
        """Append a line."""
        if self._file is None:
            self._file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            if not _ends_with_newline(self.path):
                os.write(self._file, b"\n")  # a line that was cut when the process died stays one of its own
        data = json.dumps(line, separators=(",", ":")).encode() + b"\n"
        while data:
            data = data[os.write(self._file, data) :]
        self._written += 1

    async def flush(self) -> None:
        """Return when the lines survive the process; with `sync`, when they are on the disk."""
        if self._sync and self._file is not None and self._synced < self._written:
            written = self._written
            await asyncio.to_thread(os.fsync, self._file)
            self._synced = max(self._synced, written)

    def paused(self) -> PausedProgram:
        """Return the last program in the file where it stopped, for `Toolkit.resume`.

        Resumed without answers, the program comes to the calls that had begun and not ended, and reports them: those of
        an `idempotent` tool are made again, and the others wait for a person, `in_doubt`.

        Raises:
            PausedProgramError: The file has no program, it came to its end, or its engine does not run a program again.
        """
        program = paused_program_in(_lines(self.path))
        if program is None:
            raise PausedProgramError(f"{self.path} holds no program that has yet to end")
        return program

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def __enter__(self) -> FileJournal:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


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


def _ends_with_newline(path: Path) -> bool:
    with path.open("rb") as file:
        if file.seek(0, os.SEEK_END) == 0:
            return True
        file.seek(-1, os.SEEK_END)
        return file.read(1) == b"\n"


# --- the program that the lines describe -----------------------------------------------------------------------------


def paused_program_in(lines: Iterable[Mapping[str, Any]]) -> PausedProgram | None:
    """Return the last program in a journal where it stopped; None when no program began, or the last one ended.

    Raises:
        PausedProgramError: Its engine does not run a program again.
    """
    found: PausedProgram | None = None
    later: list[Mapping[str, Any]] = []
    for line in lines:
        if line["t"] == "program":
            found, later = PausedProgram.from_dict(line), []
        elif line["t"] == "done":
            found = None
        elif found is not None:
            later.append(line)
    if found is not None and later and not found.replays:
        raise PausedProgramError(
            f"its process ended while it ran, and {found.engine} does not run a program again: it goes on from "
            "`result.paused` only"
        )
    return None if found is None else program_with(found, later)


def program_with(
    paused: PausedProgram, lines: Iterable[Mapping[str, Any]], *, store_knows: bool = False
) -> PausedProgram:
    """Return a paused program where it stopped, by the lines of a journal that were written since.

    Args:
        paused: The program.
        lines: The lines.
        store_knows: Whether an approval store knows which of its suspended calls have begun.
    """
    entries, state = {entry.id: entry.copy() for entry in paused.journal}, dict(paused.state)
    for line in (StoredFields("JournalLine", line) for line in lines):
        before = entries.get(str(line.get("id")))
        suspended = None if before is None else before.suspended
        _apply(line, entries, state)
        if store_knows and line["t"] == "started" and before is not None and suspended is not None:
            before.suspended, before.in_doubt = suspended, False
    return replace(paused, journal=tuple(entries.values()), state=state)


def _apply(line: Mapping[str, Any], entries: dict[str, JournalEntry], state: dict[str, Any]) -> None:
    if line["t"] == "state":
        for name, part in line["state"].items():
            known = state.get(name)
            state[name] = [*known, *part] if isinstance(known, list) and isinstance(part, list) else part
        return
    if line["t"] == "started" and line["id"] not in entries:
        entries[line["id"]] = JournalEntry(line["id"], line["name"], line["digest"], dict(line["summary"]))
    entry = entries.get(line["id"])
    if entry is None:
        return
    match line["t"]:
        case "started":
            entry.in_doubt, entry.suspended, entry.begun = True, None, entry.begun + 1
            entry.grant = Grant.from_dict(line["grant"]) if "grant" in line else None
        case "value":
            entry.values.append(line["value"])
        case "suspended":
            outcome = outcome_from_dict(line["outcome"])
            entry.suspended = outcome if isinstance(outcome, Suspended) else None
            entry.in_doubt = line["in_doubt"]
        case "retried":  # it raised, and may have been done in part
            entry.reply, entry.in_doubt = None, True
        case "cancelled":
            entry.cancelled, entry.in_doubt, entry.reply, entry.suspended = True, False, None, None
        case _:
            entry.reply, entry.summary, entry.in_doubt = reply_from_dict(line["reply"]), dict(line["summary"]), False
