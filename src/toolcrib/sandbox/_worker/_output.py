"""Output of a program: two streams that buffer text and send it in the order in which it was written."""

from __future__ import annotations

import io
import signal
import threading
from collections.abc import Callable
from types import FrameType

_BUFFERED = 64_000  # characters, after which the buffer is sent
_LATEST = 0.1  # seconds that text is buffered while the program computes
_RETRY = 0.005


class OutputBuffer:
    """Buffers the text of both streams.

    Args:
        send: Sends text, given whether it is of stderr.
        is_blocked: Returns whether nothing can be sent now, because a frame is being written.
    """

    def __init__(self, send: Callable[[str, bool], None], is_blocked: Callable[[], bool] = lambda: False) -> None:
        self._send, self._is_blocked = send, is_blocked
        self._parts: list[str] = []
        self._size = 0
        self._error = False
        self._is_busy = self._is_timed = False
        self._has_timer = False
        self.out, self.err = PrintedStream(self, False), PrintedStream(self, True)

    def keep_time(self) -> None:
        """Send text soon, also while the program computes; for the main thread only."""
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGALRM, self._ring)
            self._has_timer = True

    def add(self, text: str, error: bool) -> None:
        """Add text of one stream."""
        if error is not self._error:
            self.flush()
        self._is_busy = True
        self._error = error
        self._parts.append(text)
        self._size += len(text)
        self._is_busy = False
        if self._size > _BUFFERED:
            self.flush()
        elif self._has_timer and not self._is_timed:
            self._is_timed = True
            signal.setitimer(signal.ITIMER_REAL, _LATEST)

    def flush(self) -> None:
        """Send the buffered text."""
        if not self._parts:
            return
        self._is_busy = True
        try:
            text = "".join(self._parts)
            self._parts.clear()
            self._size = 0
            for start in range(0, len(text), _BUFFERED):
                self._send(text[start : start + _BUFFERED], self._error)
        finally:
            self._is_busy = False

    def _ring(self, number: int, frame: FrameType | None) -> None:
        """Send text while the main thread does something else, unless that is adding or sending text."""
        if self._is_busy or (self._parts and self._is_blocked()):
            signal.setitimer(signal.ITIMER_REAL, _RETRY)
            return
        self._is_timed = False
        self.flush()


class PrintedStream(io.TextIOBase):
    """A program's `sys.stdout` or `sys.stderr`."""

    def __init__(self, buffer: OutputBuffer, error: bool) -> None:
        self._buffer, self._error = buffer, error

    @property
    def encoding(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride] -- constant, as a property says
        return "utf-8"

    def writable(self) -> bool:
        return True

    def write(self, text: str, /) -> int:
        if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance] -- a program passes anything
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        self._buffer.add(str.__str__(text), self._error)
        return len(text)

    def flush(self) -> None:
        self._buffer.flush()

    def close(self) -> None:
        """Stay open: a program has one of each."""
