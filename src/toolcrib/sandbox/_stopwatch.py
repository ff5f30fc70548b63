"""The clocks of a program, which count no seconds in which this process stood still."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from toolcrib.sandbox._frames import do_nothing
from toolcrib.sandbox._protocol import Program

_GRACE = 0.05  # seconds: the program's last frame may be here already, and the loop have been busy with other things
_PATIENCE = 10  # times its seconds, which a program that has no processor may go on
_TICK = 0.5  # seconds between two looks at most; from one that is late, the process or its machine was stopped


class Stopwatch:
    """Counts the seconds that a program computes, or takes.

    Args:
        seconds: The most that the program may have.
        on_over: Called when the program has had so many and goes on.
        waited: The seconds so far that are not to be counted, for reasons of the host's own.
        on_look: Called twice a second, whether the program computes or waits.
        used: The seconds that the program's process has had a processor so far; None where that is not known. A program
            whose time is over by the clock has the rest of these, since its machine or its host may have been busy, up
            to ten times its time by the clock.
    """

    __slots__ = (
        *("_due", "_is_late", "_loop", "_on_look", "_on_over", "_patience", "_remaining", "_seconds", "_since"),
        *("_timer", "_used", "_waited", "_waited_before"),
    )

    def __init__(
        self,
        seconds: float,
        on_over: Callable[[], None],
        waited: Callable[[], float] | None = None,
        on_look: Callable[[], None] = do_nothing,
        used: Callable[[], float | None] | None = None,
    ) -> None:
        self._seconds, self._used, self._patience = seconds, used, seconds * _PATIENCE
        self._remaining, self._on_over, self._on_look = seconds, on_over, on_look
        self._waited, self._waited_before = waited, 0.0
        self._since: float | None = None
        self._is_late = False
        self._loop = asyncio.get_running_loop()
        self._set(seconds)

    def start(self) -> None:
        """Count from now on: the program computes."""
        if self._since is None:
            self._begin()

    def pause(self) -> None:
        """Pause the count: the program waits."""
        if self._since is not None:
            self._remaining -= self._computed()
            self._since = None
            if self._remaining > 0:  # else it would gain time by a call now and then
                self._is_late = False

    def charge(self, seconds: float) -> None:
        """Count seconds that the host computed for the program, too."""
        self._remaining -= seconds
        self._seconds -= seconds

    @property
    def is_over(self) -> bool:
        """True if the program has used all its time."""
        return self._remaining <= 0 and not self._goes_on()

    def _goes_on(self) -> bool:
        """Return whether a program that had its time by the clock had a processor for less, and give it the rest."""
        used = None if self._used is None else self._used()
        rest = 0.0 if used is None else self._seconds - used
        if rest <= 0 or self._patience <= 0:
            return False
        self._patience -= rest
        self._remaining = rest
        return True

    def stop(self) -> None:
        """End the count."""
        self._timer.cancel()
        self._on_over = self._on_look = do_nothing
        self._used = None

    def _check(self) -> None:
        self._on_look()
        if self._since is not None:
            self._remaining -= self._computed()
            self._begin()
            if self.is_over:
                if self._is_late:
                    self._on_over()
                    return
                self._is_late = True
        self._set(max(self._remaining, _GRACE))

    def _begin(self) -> None:
        self._since = time.monotonic()
        if self._waited is not None:
            self._waited_before = self._waited()

    def _set(self, seconds: float) -> None:
        delay = min(seconds, _TICK)
        self._due = time.monotonic() + delay
        self._timer = self._loop.call_later(delay, self._check)

    def _computed(self) -> float:
        """Return the seconds since the count began, those after a look that did not come in time left out."""
        if self._since is None:
            return 0.0
        waited = 0.0 if self._waited is None else self._waited() - self._waited_before
        return max(0.0, min(time.monotonic(), self._due + _GRACE) - self._since - waited)


class WallClock:
    """The deadline of a program: its body is left by a TimeoutError when `wall_time` is over, or at once on demand.

    It does not count the seconds in which the host waited for what keeps the program.
    """

    __slots__ = ("_loop", "_program", "_timeout", "_watch")

    def __init__(self, program: Program) -> None:
        self._program, self._loop = program, asyncio.get_running_loop()
        self._timeout = asyncio.timeout(None)
        self._watch: Stopwatch | None = None

    async def __aenter__(self) -> WallClock:
        await self._timeout.__aenter__()
        seconds = self._program.limits.wall_time
        if seconds is not None:
            self._watch = Stopwatch(seconds, self.end, self._program.waited)
            self._watch.start()
        return self

    async def __aexit__(self, *error: Any) -> bool | None:
        if self._watch is not None:
            self._watch.stop()
        return await self._timeout.__aexit__(*error)

    def end(self) -> None:
        """Leave the body at once."""
        with suppress(RuntimeError):  # it was left meanwhile, or was not entered
            self._timeout.reschedule(self._loop.time())

    @property
    def is_over(self) -> bool:
        """True if the time was over, or `end` was called."""
        return self._timeout.expired()
