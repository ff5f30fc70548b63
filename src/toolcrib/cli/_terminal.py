"""Terminal: questions on stderr, answers from stdin, without blocking the event loop."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

from rich.console import Console


def escape_control(text: str) -> str:
    """Return a text with control characters escaped, so that it cannot move the cursor or hide a line."""
    return "".join(c if c.isprintable() or c in "\n\t" else ascii(c)[1:-1] for c in text)


class Terminal:
    """The terminal of this process, and the person at it, who answers questions with a line of text.

    Attributes:
        console: Shows everything but results, on stderr.
        pause_view: Hides a live view while a question is asked.
    """

    def __init__(self) -> None:
        self.console = Console(stderr=True, highlight=False, markup=False, emoji=False, soft_wrap=True)
        self.pause_view: Callable[[], AbstractContextManager[object]] = nullcontext

    @staticmethod
    def is_interactive() -> bool:
        """Return whether a person can be asked: stdin and stderr are terminals."""
        return sys.stdin.isatty() and sys.stderr.isatty()

    def say(self, text: str) -> None:
        """Show a text, with control characters escaped."""
        self.console.print(escape_control(text))

    def quiet(self) -> AbstractContextManager[object]:
        """Hide the live view while the body asks."""
        return self.pause_view()

    async def ask(self, question: str) -> str | None:
        """Show a question and return the line that is typed; None at the end of input."""
        sys.stderr.write(escape_control(question))
        sys.stderr.flush()
        line = await _line(sys.stdin.fileno())
        if not line.endswith(b"\n"):
            sys.stderr.write("\n")
        return line.decode(sys.stdin.encoding, "replace").strip() if line else None


async def _line(descriptor: int) -> bytes:
    """Return the next line of a terminal, without blocking the event loop; cancelling leaves no reader behind."""
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()

    def arrived() -> None:
        if not ready.done():
            ready.set_result(None)

    if sys.platform == "win32":  # its event loop cannot watch a console
        return await _line_by_thread(descriptor)
    loop.add_reader(descriptor, arrived)
    try:
        await ready
    finally:
        loop.remove_reader(descriptor)
    return os.read(descriptor, 65536)  # a terminal hands out one line at a time


async def _line_by_thread(descriptor: int) -> bytes:
    loop = asyncio.get_running_loop()
    read: asyncio.Future[bytes] = loop.create_future()

    def deliver(line: bytes) -> None:
        if not read.done():
            read.set_result(line)

    def wait() -> None:
        line = os.read(descriptor, 65536)
        if not loop.is_closed():
            loop.call_soon_threadsafe(deliver, line)

    threading.Thread(target=wait, daemon=True).start()
    return await read
