"""The clock of a program: real readings, noted, or those of an earlier run, given out again.

Modules read it in the place of the real one, so that a program that runs a second time sees the times of the first.
"""

from __future__ import annotations

import time

__all__ = ["CLOCK", "Clock"]

_MOST = 2_000  # readings that are noted between two frames
_STEP = 1_000  # ns from one reading to the next, beyond those
_wall, _monotonic = time.time_ns, time.monotonic_ns


class Clock:
    """Tells the time, in nanoseconds, and remembers what it told."""

    __slots__ = ("_given", "_monotonic", "_recorded", "_shift", "_told", "_wall")

    def __init__(self) -> None:
        self._recorded: list[int] = []
        self._given = 0
        self._told: list[int] = []
        self._wall = self._monotonic = self._shift = 0

    def start(self, recorded: list[int]) -> None:
        """Give out `recorded` first: the readings of an earlier run, in the order they were read."""
        self._recorded, self._given, self._told = recorded, 0, []

    def take(self) -> list[int]:
        """Return what was read since the last time this was asked."""
        told, self._told = self._told, []
        return told

    @property
    def last(self) -> int:
        """What `monotonic` told last."""
        return self._monotonic

    def wall(self) -> int:
        """Return the time since 1970."""
        if len(self._told) >= _MOST:
            self._wall += _STEP
            return self._wall
        noted = self._noted()
        self._wall = _wall() if noted is None else noted
        self._told.append(self._wall)
        return self._wall

    def monotonic(self) -> int:
        """Return a time that never goes back, and goes on where the recorded readings end."""
        if len(self._told) >= _MOST:
            self._monotonic += _STEP
            return self._monotonic
        noted = self._noted()
        if noted is None:
            noted = max(_monotonic() + self._shift, self._monotonic)
        else:
            self._shift = noted - _monotonic()
        self._monotonic = noted
        self._told.append(noted)
        return noted

    def reach(self, moment: int) -> None:
        """Let `monotonic` be at `moment` now: that is when the host says that the time waited for is over."""
        self._shift = max(self._shift, moment - _monotonic())

    def _noted(self) -> int | None:
        if self._given == len(self._recorded):
            return None
        self._given += 1
        return self._recorded[self._given - 1]


CLOCK = Clock()
"""The one that the modules of this process read."""
