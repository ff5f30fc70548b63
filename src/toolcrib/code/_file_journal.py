"""FileJournal: the journal of a program in a file, from which it is taken up when its process did not live to end."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from toolcrib.code._journal_lines import paused_program_in
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
        self._written = self._synced = 0

    def write(self, line: Mapping[str, Any]) -> None:
        """Add a line."""
        if self._file is None:
            self._file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            if not _ends_well(self.path):
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
        """Return the last program in the file as far as it came, for `Toolkit.resume`.

        Resumed without answers it comes to the calls that had begun and not ended, and reports them: those of an
        `idempotent` tool are made again, and the others wait for a person, `in_doubt`.

        Raises:
            PausedProgramError: There is none, it came to its end, or its engine does not run a program again.
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


def _ends_well(path: Path) -> bool:
    with path.open("rb") as file:
        if file.seek(0, os.SEEK_END) == 0:
            return True
        file.seek(-1, os.SEEK_END)
        return file.read(1) == b"\n"
