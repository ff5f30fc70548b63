"""Numbers that a host gives: each is checked where it is given, so that the error names it and not a later failure.

And numbers in texts: of what there is, and of time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta
from numbers import Integral, Real
from threading import TIMEOUT_MAX
from typing import Any, Final, cast

_UNITS: Final = {"w": 604_800, "d": 86_400, "h": 3_600, "m": 60, "s": 1}
_NAMES: Final = {"w": "week", "d": "day", "h": "hour", "m": "minute", "s": "second"}


def require_number(who: str, name: str, value: object, *, least: int | None, whole: bool = True) -> None:
    """Check that an option is a number, or None.

    Args:
        who: The object that has the option.
        name: The option.
        value: Its value.
        least: The least that it may be; None for any.
        whole: Whether it has to be a whole number.

    Raises:
        TypeError: It is not a number: a text, or True.
        ValueError: It is less than `least`.
    """
    if value is None:
        return
    if not _is_number(value, Integral if whole else Real):
        kind = "a whole number" if whole else "a number"
        raise TypeError(f"{who}: {name} must be {kind}, and is {value!r:.80}")
    if least is not None and not cast("float", value) >= least:
        raise ValueError(f"{who}: {name} must be at least {least}, and is {value}")


def _is_number(value: object, kind: type) -> bool:
    if type(value) is int or (type(value) is float and kind is Real):  # an abstract class takes long to say so
        return True
    return not isinstance(value, bool) and isinstance(value, kind)


def require_seconds(who: str, name: str, value: object, *, from_zero: bool = False) -> None:
    """Check that an option is a number of seconds, or None; raises as `require_number` does.

    Args:
        from_zero: Whether it may be 0.
    """
    if value is None:
        return
    if not _is_number(value, Real):
        raise TypeError(f"{who}: {name} must be a number of seconds, and is {value!r:.80}")
    seconds = cast("float", value)
    if not (0 < seconds <= TIMEOUT_MAX or (from_zero and seconds == 0)):
        least = f"at most {TIMEOUT_MAX:.0f}" if seconds > 0 else "at least 0" if from_zero else "more than 0"
        raise ValueError(f"{who}: {name} must be {least} seconds, and is {value!r:.80}")


def require_span(who: str, name: str, value: object) -> None:
    """Check that an option is a timedelta of more than nothing; raises as `require_number` does."""
    if not isinstance(value, timedelta):
        raise TypeError(f"{who}: {name} must be a timedelta, as timedelta(hours=1), and is {value!r:.80}")
    if value <= timedelta(0):
        raise ValueError(f"{who}: {name} must be more than no time, and is {value}")


def parse_span(text: str) -> timedelta:
    """Return the time that a text such as `30m`, `2h` or `7d` says; raises ValueError for another text."""
    number, unit = text.strip()[:-1].rstrip(), text.strip()[-1:]
    if unit not in _UNITS or not (number.isascii() and number.isdigit() and len(number) <= 6):
        raise ValueError(f"{text!r:.40} is not a time: give a whole number and s, m, h, d or w, as in 2h")
    return timedelta(seconds=int(number) * _UNITS[unit])


def count_text(number: int, noun: str) -> str:
    """Return a number with its noun: `1 call`, `2,000 calls`, `3 properties`.

    Args:
        noun: In the singular.
    """
    if number == 1:
        return f"1 {noun}"
    return f"{number:,} {noun[:-1]}ies" if noun.endswith("ty") else f"{number:,} {noun}s"


def span_text(seconds: float) -> str:
    """Return a time in words, in the largest unit that it is a whole number of: `90 minutes`."""
    unit = next((unit for unit, size in _UNITS.items() if seconds % size == 0), "s")
    number = seconds / _UNITS[unit]
    return f"{number:g} {_NAMES[unit]}{'' if number == 1 else 's'}"


def parse_time(text: str, *, to_end: bool = False) -> datetime:
    """Return the time that a text in ISO form names, which is local without a time zone.

    Args:
        text: A date with or without a time of day.
        to_end: Whether a date is the end of its day, and not its beginning.

    Raises:
        ValueError: It is not a time.
        OverflowError: It is too far away.
    """
    if to_end:
        with suppress(ValueError):
            text = datetime.combine(date.fromisoformat(text) + timedelta(days=1), time()).isoformat()
    return datetime.fromisoformat(text).astimezone(UTC)


def time_text(at: datetime) -> str:
    """Return a time as stores have it: in UTC, so that texts compare as times do. One without a time zone is local."""
    return at.astimezone(UTC).isoformat()


def require_numbers(
    who: str,
    owner: Any,
    least: Mapping[str, int],
    seconds: Iterable[str] = (),
    seconds_from_zero: Iterable[str] = (),
    spans: Iterable[str] = (),
) -> None:
    """Check options that are attributes of their owner; raises as `require_number` does.

    Args:
        least: The whole numbers, each with the least that it may be.
        seconds: The numbers of seconds, which are more than 0.
        seconds_from_zero: Those that may be 0.
        spans: The timedeltas.
    """
    for name, lowest in least.items():
        require_number(who, name, getattr(owner, name), least=lowest)
    for name in seconds:
        require_seconds(who, name, getattr(owner, name))
    for name in seconds_from_zero:
        require_seconds(who, name, getattr(owner, name), from_zero=True)
    for name in spans:
        require_span(who, name, getattr(owner, name))
