"""Pace of what a server sends without being asked: a storm of it costs bounded memory, and delays nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from toolcrib.clock import Clock
from toolcrib.schema import Progress

_REPORTS, _REPORTS_A_SECOND = 100, 20.0  # of the progress of one call
_MAX_LINE: Final = 10_000  # characters of a line of a log, and of what progress says


class Pace:
    """Limit of how often something happens: so many times at once, and then so many times a second."""

    def __init__(self, clock: Clock, at_once: int, each_second: float) -> None:
        self._clock, self._at_once, self._each_second = clock, at_once, each_second
        self._room, self._since = float(at_once), clock.monotonic()

    def has_room(self) -> bool:
        """Return whether it may happen once more now, and count it if so."""
        now = self._clock.monotonic()
        self._room = min(self._at_once, self._room + (now - self._since) * self._each_second)
        self._since = now
        if self._room < 1:
            return False
        self._room -= 1
        return True


class ProgressReport:
    """Progress of one call, passed on as it comes; in a storm the newest is passed on at a pace."""

    def __init__(self, report: Callable[[Any], None] | None, clock: Clock) -> None:
        self._report, self._pace = report, Pace(clock, _REPORTS, _REPORTS_A_SECOND)
        self._newest: Progress | None = None  # that is not passed on

    async def __call__(self, progress: float, total: float | None, message: str | None) -> None:
        """Receive the progress of one notification."""
        self._newest = Progress(progress, total, cut_line(message))
        if self._pace.has_room():
            self.end()

    def end(self) -> None:
        """Pass on the newest, if it is not passed on."""
        newest, self._newest = self._newest, None
        if newest is not None and self._report is not None:
            self._report(newest)


def cut_line(data: Any) -> Any:
    """Return what a server says in one line, as a text of 10,000 characters where it is longer."""
    text = data if isinstance(data, str) else str(data)
    return data if len(text) <= _MAX_LINE else text[: _MAX_LINE - 1] + "…"
