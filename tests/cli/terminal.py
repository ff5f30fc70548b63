"""The command in a process of its own, on a pseudo-terminal."""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import IO

# What runs in the background of a shell has Ctrl-C switched off, and so has what it starts: it is switched on again.
START = """
import signal

signal.signal(signal.SIGINT, signal.default_int_handler)

from toolcrib.cli import main

main()
"""
RUN = [sys.executable, "-c", START]


class Screen:
    """A command on a terminal: what it has shown, and a keyboard."""

    def __init__(self, process: subprocess.Popen[bytes], descriptor: int) -> None:
        self.process, self._descriptor = process, descriptor
        self._shown = b""

    @property
    def text(self) -> str:
        """What it has shown since the last line that was typed, read whole: a piece may end within a sequence."""
        text = self._shown.decode("utf-8", "replace")
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text).replace("\r\n", "\n")

    def wait_for(self, words: str) -> None:
        """Read until the command shows `words`; the test's own timeout ends the wait."""
        while words not in self.text and self._read():
            pass
        assert words in self.text, self.text

    def type(self, line: str) -> None:
        self._shown = b""
        os.write(self._descriptor, line.encode() + b"\n")

    def interrupt(self) -> None:
        self.process.send_signal(signal.SIGINT)

    def end(self) -> int:
        """Read to the end and return the exit status."""
        while self._read():
            pass
        return self.process.wait()

    def _read(self) -> bool:
        try:
            data = os.read(self._descriptor, 65536)
        except OSError:  # how Linux says that the other side is closed
            return False
        self._shown += data
        return bool(data)


@contextmanager
def terminal(
    *args: str, command: Sequence[str] = RUN, columns: int = 100, stdout: IO[bytes] | None = None
) -> Generator[Screen]:
    """Run the command, or another, with a terminal as its stdin, stderr, and stdout where that goes nowhere else."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": str(columns), "NO_COLOR": "1"}
    process = subprocess.Popen([*command, *args], stdin=theirs, stdout=stdout or theirs, stderr=theirs, env=environment)
    os.close(theirs)
    try:
        yield Screen(process, ours)
    finally:
        process.kill()
        process.wait()
        os.close(ours)
