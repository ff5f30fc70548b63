"""The clock of a program: real readings, which are recorded, or those of an earlier run.

Modules read it in place of the real one, so that a program that runs a second time sees the times of the first run.
"""

from __future__ import annotations

import time

_MOST_RECORDED = 2_000  # readings between two frames
_STEP = 1_000  # ns from one reading to the next, beyond those
_wall, _monotonic = time.time_ns, time.monotonic_ns


class Clock:
    """Returns the time, in nanoseconds, and records each reading."""

    __slots__ = ("_earlier", "_monotonic", "_new", "_next", "_shift", "_wall")

    def __init__(self) -> None:
        self._earlier: list[int] = []
        self._next = 0
        self._new: list[int] = []
        self._wall = self._monotonic = self._shift = 0

    def start(self, earlier: list[int]) -> None:
        """Begin with the readings of an earlier run, in the order they were read."""
        self._earlier, self._next, self._new = earlier, 0, []

    def take(self) -> list[int]:
        """Return the readings since the last `take`."""
        new, self._new = self._new, []
        return new

    @property
    def last(self) -> int:
        """The last reading of `monotonic`."""
        return self._monotonic

    def wall(self) -> int:
        """Return the time since 1970."""
        if len(self._new) >= _MOST_RECORDED:
            self._wall += _STEP
            return self._wall
        earlier = self._earlier_reading()
        self._wall = _wall() if earlier is None else earlier
        self._new.append(self._wall)
        return self._wall

    def monotonic(self) -> int:
        """Return a time that never goes back, and goes on where the recorded readings end."""
        if len(self._new) >= _MOST_RECORDED:
            self._monotonic += _STEP
            return self._monotonic
        earlier = self._earlier_reading()
        if earlier is None:
            self._monotonic = max(_monotonic() + self._shift, self._monotonic)
        else:
            self._shift = earlier - _monotonic()
            self._monotonic = earlier
        self._new.append(self._monotonic)
        return self._monotonic

    def reach(self, until: int) -> None:
        """Set `monotonic` to `until` at least, when the host has sent that the time of a wait is over."""
        self._shift = max(self._shift, until - _monotonic())

    def _earlier_reading(self) -> int | None:
        if self._next == len(self._earlier):
            return None
        self._next += 1
        return self._earlier[self._next - 1]


CLOCK = Clock()
"""The clock that the modules of this process read."""
