"""The stopwatch of a program: counts the seconds that it computes, and not those in which this process stood still."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from toolcrib.sandbox._frames import do_nothing

__all__ = ["Stopwatch"]

_GRACE = 0.05  # seconds: the program's last frame may be here already, and the loop have been busy with other things
_TICK = 0.5  # seconds between two looks at most; from one that is late, the process or its machine was stopped


class Stopwatch:
    """Counts the seconds that a program computes.

    Args:
        seconds: The most that the program may compute.
        on_over: Called when the program has computed for so long and goes on.
    """

    __slots__ = ("_due", "_is_late", "_left", "_loop", "_on_over", "_since", "_timer")

    def __init__(self, seconds: float, on_over: Callable[[], None]) -> None:
        self._left, self._on_over = seconds, on_over
        self._since: float | None = None
        self._is_late = False
        self._loop = asyncio.get_running_loop()
        self._set(seconds)

    def start(self) -> None:
        """Count from now on: the program computes."""
        if self._since is None:
            self._since = time.monotonic()

    def pause(self) -> None:
        """Do not count from now on: the program waits."""
        if self._since is not None:
            self._left -= self._computed()
            self._since = None
            if self._left > 0:  # else it would gain time by a call now and then
                self._is_late = False

    def stop(self) -> None:
        """End the count."""
        self._timer.cancel()
        self._on_over = do_nothing

    def _check(self) -> None:
        if self._since is not None:
            self._left -= self._computed()
            self._since = time.monotonic()
            if self._left <= 0:
                if self._is_late:
                    self._on_over()
                    return
                self._is_late = True
        self._set(max(self._left, _GRACE))

    def _set(self, seconds: float) -> None:
        delay = min(seconds, _TICK)
        self._due = time.monotonic() + delay
        self._timer = self._loop.call_later(delay, self._check)

    def _computed(self) -> float:
        """Return the seconds since the count began, those after a look that did not come in time left out."""
        since = self._since
        return 0.0 if since is None else max(0.0, min(time.monotonic(), self._due + _GRACE) - since)
