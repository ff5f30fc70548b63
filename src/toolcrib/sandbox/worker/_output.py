"""What a program prints: two streams that keep text for a while and pass it on in the order it was written."""

from __future__ import annotations

import io
import signal
import threading
from collections.abc import Callable
from types import FrameType

__all__ = ["Printed", "PrintedStream"]

_KEPT = 64_000  # characters, then it is passed on
_LATEST = 0.1  # seconds that text is kept while the program computes
_SOON = 0.005


class Printed:
    """Takes text of both streams.

    Args:
        pass_on: Given the text, and whether it is of stderr.
        may_not: Tells whether it could not be passed on now, because something else is being written.
    """

    def __init__(self, pass_on: Callable[[str, bool], None], may_not: Callable[[], bool] = lambda: False) -> None:
        self._pass_on, self._may_not = pass_on, may_not
        self._parts: list[str] = []
        self._size = 0
        self._error = False
        self._is_busy = self._is_timed = False
        self._has_timer = False
        self.out, self.err = PrintedStream(self, False), PrintedStream(self, True)

    def keep_time(self) -> None:
        """Pass text on soon, whatever the program computes; only the main thread may ask for it."""
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGALRM, self._ring)
            self._has_timer = True

    def add(self, text: str, error: bool) -> None:
        """Take text of one stream."""
        if error is not self._error:
            self.flush()
        self._is_busy = True
        self._error = error
        self._parts.append(text)
        self._size += len(text)
        self._is_busy = False
        if self._size > _KEPT:
            self.flush()
        elif self._has_timer and not self._is_timed:
            self._is_timed = True
            signal.setitimer(signal.ITIMER_REAL, _LATEST)

    def flush(self) -> None:
        """Pass on what is kept."""
        if not self._parts:
            return
        self._is_busy = True
        try:
            text = "".join(self._parts)
            self._parts.clear()
            self._size = 0
            for start in range(0, len(text), _KEPT):
                self._pass_on(text[start : start + _KEPT], self._error)
        finally:
            self._is_busy = False

    def _ring(self, number: int, frame: FrameType | None) -> None:
        """Pass text on in the middle of whatever the main thread does, unless that is in the middle of this."""
        if self._is_busy or (self._parts and self._may_not()):
            signal.setitimer(signal.ITIMER_REAL, _SOON)
            return
        self._is_timed = False
        self.flush()


class PrintedStream(io.TextIOBase):
    """A program's `sys.stdout` or `sys.stderr`."""

    def __init__(self, printed: Printed, error: bool) -> None:
        self._printed, self._error = printed, error

    @property
    def encoding(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride] -- constant, as a property says
        return "utf-8"

    def writable(self) -> bool:
        return True

    def write(self, text: str, /) -> int:
        if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance] -- a program passes anything
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        self._printed.add(str.__str__(text), self._error)
        return len(text)

    def flush(self) -> None:
        self._printed.flush()

    def close(self) -> None:
        """Stay open: a program has one of each."""
