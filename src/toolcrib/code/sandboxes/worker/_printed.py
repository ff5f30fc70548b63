"""What a program prints: two streams that keep text for a while and pass it on in the order it was written."""

from __future__ import annotations

import io
from collections.abc import Callable

__all__ = ["Printed", "PrintedStream"]

_KEPT = 64_000  # characters, then it is passed on


class Printed:
    """Takes text of both streams.

    Args:
        pass_on: Given the text, and whether it is of stderr.
    """

    def __init__(self, pass_on: Callable[[str, bool], None]) -> None:
        self._pass_on = pass_on
        self._parts: list[str] = []
        self._size = 0
        self._error = False
        self.out, self.err = PrintedStream(self, False), PrintedStream(self, True)

    def add(self, text: str, error: bool) -> None:
        """Take text of one stream."""
        if error is not self._error:
            self.flush()
            self._error = error
        self._parts.append(text)
        self._size += len(text)
        if self._size > _KEPT:
            self.flush()

    def flush(self) -> None:
        """Pass on what is kept."""
        if not self._parts:
            return
        text = "".join(self._parts)
        self._parts.clear()
        self._size = 0
        for start in range(0, len(text), _KEPT):
            self._pass_on(text[start : start + _KEPT], self._error)


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
