"""Journal of programs in a file: a line for each entry."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from toolcrib.code._journal import JournalEntry
from toolcrib.code._paused import PausedProgram, paused_program_in
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

    def append(self, entry: JournalEntry) -> None:
        """Append an entry."""
        if self._file is None:
            self._file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            if not _ends_with_newline(self.path):
                os.write(self._file, b"\n")  # a line that was cut when the process died stays one of its own
        data = entry.to_json().encode() + b"\n"
        while data:
            data = data[os.write(self._file, data) :]
        self._written += 1

    async def flush(self) -> None:
        """Return when the lines survive the process; with `sync`, when they are on the disk."""
        if self._sync and self._file is not None and self._synced < self._written:
            written = self._written
            await asyncio.to_thread(os.fsync, self._file)
            self._synced = max(self._synced, written)

    async def read(self) -> Sequence[JournalEntry]:
        """Return the entries in the file; raises PausedProgramError where it cannot be read."""
        return await asyncio.to_thread(lambda: list(_entries(self.path)))

    def paused(self) -> PausedProgram:
        """Return the last program in the file where it stopped, for `Toolkit.resume`.

        Resumed without answers, the program comes to the calls that had begun and not ended, and reports them: those of
        an `idempotent` tool are made again, and the others wait for a person, `in_doubt`.

        Raises:
            PausedProgramError: The file has no program, it came to its end, or its engine does not run a program again.
        """
        program = paused_program_in(_entries(self.path))
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


def _entries(path: Path) -> Iterator[JournalEntry]:
    try:
        text = path.read_bytes()
    except OSError as error:
        raise PausedProgramError(f"{path} cannot be read ({error.strerror})") from None
    for line in text.split(b"\n"):
        try:
            data = json.loads(line)
        except ValueError:  # empty, or cut when the process died while it wrote
            continue
        yield JournalEntry.from_dict(data)


def _ends_with_newline(path: Path) -> bool:
    with path.open("rb") as file:
        if file.seek(0, os.SEEK_END) == 0:
            return True
        file.seek(-1, os.SEEK_END)
        return file.read(1) == b"\n"
