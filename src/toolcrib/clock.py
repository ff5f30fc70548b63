"""Clock by which code of this package waits: the seconds that have passed, and a pause.

What polls, tries again, or ends something idle takes a `Clock` and reads no other one, so that a test can pass
`toolcrib.testing.FakeClock`.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final, Protocol, TypeVar

__all__ = [
    "SYSTEM_CLOCK",
    "UPTIME_CLOCK",
    "WALL_CLOCK",
    "Clock",
    "WaitedTime",
    "first_of",
    "time_of",
    "wait_until_set",
    "wanted_pause",
]

T = TypeVar("T")


class Clock(Protocol):
    """A clock that never goes back."""

    def monotonic(self) -> float:
        """Return the seconds since a moment in the past."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Return after this number of seconds."""
        ...


class _SystemClock:
    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


SYSTEM_CLOCK: Final[Clock] = _SystemClock()
"""The clock of this computer, which is the default wherever a `Clock` is taken."""


class _UptimeClock(_SystemClock):
    def monotonic(self) -> float:
        return time.clock_gettime(time.CLOCK_BOOTTIME) if sys.platform == "linux" else time.monotonic()


UPTIME_CLOCK: Final[Clock] = _UptimeClock()
"""The clock of this computer that also runs while it is asleep, for the time that a right lasts."""


class _WallClock(_SystemClock):
    def monotonic(self) -> float:
        return time.time()


WALL_CLOCK: Final[Clock] = _WallClock()
"""The clock of this computer in seconds since 1970, for what several processes compare."""


def time_of(clock: Clock) -> datetime:
    """Return the time in UTC, by a clock whose seconds are those since 1970."""
    return datetime.fromtimestamp(clock.monotonic(), UTC)


async def first_of(*waits: Coroutine[Any, Any, T]) -> list[T]:
    """Wait for the first of some coroutines, cancel the others, and return the results of those that have ended."""
    tasks = [asyncio.create_task(wait) for wait in waits]
    try:
        ended, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
    return [task.result() for task in tasks if task in ended]


async def wait_until_set(event: asyncio.Event, seconds: float, clock: Clock = SYSTEM_CLOCK) -> bool:
    """Return whether an event is set within this number of seconds, as soon as it is."""
    await first_of(event.wait(), clock.sleep(seconds))
    return event.is_set()


def wanted_pause(retry_after: str) -> float | None:
    """Return the seconds for which a server wants to be left alone, by its `Retry-After`: a number, or a date.

    None where it is neither.
    """
    if retry_after.isascii() and retry_after.replace(".", "", 1).isdigit():
        return float(retry_after)
    try:
        return max(0.0, (parsedate_to_datetime(retry_after) - datetime.now(UTC)).total_seconds())
    except (TypeError, ValueError, OverflowError):  # neither a number nor a date, or one without a time zone
        return None


class WaitedTime:
    """Counts the seconds in which a piece of work waits for a store, however many of its parts wait at once."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._waiting, self._since, self._before = 0, 0.0, 0.0

    @property
    def seconds(self) -> float:
        """The seconds so far."""
        return self._before + (self._clock() - self._since if self._waiting else 0.0)

    @contextmanager
    def counted(self) -> Generator[None]:
        """Count the time of the body."""
        if not self._waiting:
            self._since = self._clock()
        self._waiting += 1
        try:
            yield
        finally:
            self._before = self.seconds if self._waiting == 1 else self._before
            self._waiting -= 1
