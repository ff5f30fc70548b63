"""Error output of a server that is a command: logged, and its last lines kept for errors."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections import deque
from typing import TextIO

__all__ = ["ErrorOutput"]

_log = logging.getLogger("toolcrib.mcp")
_KEPT = 20  # lines
_WIDE = 500  # characters of a line
_SECONDS = 1.0  # for what a process that ended has written to arrive


class ErrorOutput:
    """A pipe for the error output of a process, read by a thread.

    Attributes:
        file: The end that the process writes to.
    """

    def __init__(self, server: str) -> None:
        reading, writing = os.pipe()
        self.file: TextIO = os.fdopen(writing, "w", encoding="utf-8")
        self._server, self._lines = server, deque[str](maxlen=_KEPT)
        self._reader = threading.Thread(target=self._read, args=(reading,), name=f"{server}: stderr", daemon=True)
        self._reader.start()

    def _read(self, reading: int) -> None:
        with os.fdopen(reading, encoding="utf-8", errors="replace") as lines:
            for line in iter(lambda: lines.readline(_WIDE), ""):  # one without an end comes in pieces
                text = line.rstrip()
                self._lines.append(text)
                _log.debug("%s: %s", self._server, text)

    def close(self) -> None:
        """Close this process's end of the pipe; the thread ends with the process."""
        self.file.close()

    async def last(self) -> list[str]:
        """Return the last lines of a process that ended."""
        self.close()
        await asyncio.to_thread(self._reader.join, _SECONDS)
        return [line for line in self._lines if line]
