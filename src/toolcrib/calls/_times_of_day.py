"""Times of the week at which a standing grant counts."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from toolcrib.errors import explain_options

_DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_SHORT: Final = tuple(day[:3].lower() for day in _DAYS)
_TYPED: Final = re.compile(
    r"(?:(?P<days>[a-z,-]+)\s+)?(?P<begin>\d\d?:\d\d)\s*-\s*(?P<end>\d\d?:\d\d)(?:\s+(?P<zone>[A-Za-z0-9_+/-]+))?",
    re.IGNORECASE,
)
_MEND: Final = "write a time from and to, days before it and a time zone behind it: mon-fri 09:00-17:00 Europe/Berlin"


@explain_options()
@dataclass(frozen=True, slots=True)
class TimesOfDay:
    """Times of day, on days of the week, in a time zone.

    Attributes:
        begin: From when on; by the clock of the time zone.
        end: Until when; the next day where it is not after `begin`. Midnight to midnight is the whole day.
        days: The days on which they begin, Monday being 0; every day when empty.
        zone: The time zone, such as `Europe/Berlin`.

    Raises:
        ValueError: `begin` is `end`, a day is not 0 to 6, or the time zone is not known here.
    """

    begin: time
    end: time
    days: tuple[int, ...] = ()
    zone: str = "UTC"

    def __post_init__(self) -> None:
        if self.begin == self.end != time():
            raise ValueError(f"the times are from {self.begin:%H:%M} to the same time; 00:00-24:00 is the whole day")
        if any(day not in range(7) for day in self.days):
            raise ValueError(f"days must be 0 for Monday to 6 for Sunday, and are {self.days!r}")
        try:
            ZoneInfo(self.zone)
        except (KeyError, ValueError, OSError):
            raise ValueError(
                f"{self.zone!r:.80} is not a time zone here: give one such as Europe/Berlin or UTC"
            ) from None

    @classmethod
    def parse(cls, text: str) -> TimesOfDay:
        """Return the times that a person typed, such as `mon-fri 09:00-17:00 Europe/Berlin`; raises ValueError."""
        found = _TYPED.fullmatch(text.strip())
        if found is None:
            raise ValueError(f"{text.strip()!r:.80} is not a time of day: {_MEND}")
        begin, end = (_time(found[name]) for name in ("begin", "end"))
        return cls(begin, end, _days(found["days"] or ""), found["zone"] or "UTC")

    def covers(self, at: datetime) -> bool:
        """Return whether a time, which has a time zone, is one of these."""
        local = at.astimezone(ZoneInfo(self.zone))
        if self.begin < self.end:
            return self._has(local) and self.begin <= local.time() < self.end
        is_early = local.time() < self.end
        return (local.time() >= self.begin and self._has(local)) or (is_early and self._has(local - timedelta(days=1)))

    def text(self) -> str:
        """Return them in words: `from 09:00 to 17:00 on Monday to Friday (Europe/Berlin)`."""
        end = "24:00" if self.end == time() else f"{self.end:%H:%M}"
        over = " of the next day" if self.end <= self.begin and self.end != time() else ""
        return f"from {self.begin:%H:%M} to {end}{over} {self._days_text()} ({self.zone})"

    def typed(self) -> str:
        """Return them as `parse` reads them."""
        days = ",".join(_SHORT[day] for day in sorted({*self.days}))
        return f"{days} {self.begin:%H:%M}-{self.end:%H:%M} {self.zone}".strip()

    def _has(self, local: datetime) -> bool:
        return not self.days or local.weekday() in self.days

    def _days_text(self) -> str:
        days = sorted({*self.days})
        if not days or len(days) == 7:
            return "every day"
        if len(days) > 2 and days[-1] - days[0] == len(days) - 1:
            return f"on {_DAYS[days[0]]} to {_DAYS[days[-1]]}"
        return f"on {', '.join(_DAYS[day] for day in days)}"


def _time(text: str) -> time:
    hours, _, minutes = text.partition(":")
    if text == "24:00":
        return time()
    if int(hours) > 23 or int(minutes) > 59:
        raise ValueError(f"{text!r} is not a time of day: {_MEND}")
    return time(int(hours), int(minutes))


def _days(text: str) -> tuple[int, ...]:
    """Return the days of a text such as `mon-wed,sat`; `fri-mon` goes over Sunday."""
    found: set[int] = set()
    for part in filter(None, text.lower().split(",")):
        first, dash, last = part.partition("-")
        if first not in _SHORT or (dash and last not in _SHORT):
            raise ValueError(f"{part!r} is not a day: {_MEND}")
        start = _SHORT.index(first)
        length = (_SHORT.index(last) - start) % 7 if dash else 0
        found.update((start + number) % 7 for number in range(length + 1))
    return tuple(sorted(found))
