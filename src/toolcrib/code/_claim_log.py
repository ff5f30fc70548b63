"""Journal of a resumption beside the claim on its program: the next resumption repeats none of its calls."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping
from typing import Any

from toolcrib.approvals import KeepsJournals
from toolcrib.errors import PausedProgramError

_MOST_CHARS = 16_000_000  # of the results that are kept, as JSON
_RESULTS = ("ended", "value")


class ClaimLog:
    """Lines of a journal, which the holder of a claim alone can write.

    Once the results in it are too long, no more of them are kept: a call without one counts as begun, and is in doubt.

    Args:
        store: The store of the claim.
        key: The claim's.
        journal: The name of the journal.
    """

    def __init__(self, store: KeepsJournals, key: str, journal: str) -> None:
        self._store, self._key, self._journal = store, key, journal
        self._lines: list[str] = []
        self._chars, self._waited = 0, 0.0
        self._saving: asyncio.Future[None] | None = None
        self._has_started = False  # a call: until then nothing is lost where the lines are

    @property
    def waited(self) -> float:
        """The seconds so far in which the program waited for the store."""
        return self._waited

    def write(self, line: Mapping[str, Any]) -> None:
        """Append one line, of JSON shapes, unless it is a result too many."""
        self._has_started = self._has_started or line["t"] == "started"
        text = json.dumps(line, separators=(",", ":"))
        if line["t"] in _RESULTS:
            if self._chars + len(text) > _MOST_CHARS:
                return
            self._chars += len(text)
        self._lines.append(text)

    async def flush(self) -> None:
        """Return when every line so far is in the store.

        Raises:
            PausedProgramError: Another process writes there, which took this one for lost.
        """
        begun = time.monotonic()
        try:
            while (self._lines and self._has_started) or self._saving is not None:
                if self._saving is None:
                    self._saving = asyncio.ensure_future(self._save())
                await asyncio.shield(self._saving)  # it comes to its end also where the program is cancelled meanwhile
        finally:
            self._waited += time.monotonic() - begun

    async def _save(self) -> None:
        lines, self._lines = f"[{','.join(self._lines)}]", []
        try:
            if not await self._store.append_line(self._key, self._journal, lines):
                raise PausedProgramError("another process resumes it now, which took this one for lost")
        finally:
            self._saving = None

    async def load(self) -> list[Mapping[str, Any]]:
        """Return the lines of earlier resumptions; those of this one come after them."""
        stored = await self._store.read_lines(self._journal)
        self._chars += sum(map(len, stored))
        return [line for lines in stored for line in json.loads(lines)]

    async def delete(self) -> None:
        """Remove all lines."""
        await self._store.remove_lines(self._journal)
