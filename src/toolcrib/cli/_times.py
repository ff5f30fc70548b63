"""Times in options: a span before or after now, or a date."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime

import typer

from toolcrib._numbers import parse_span, parse_time
from toolcrib.calls import now


def time_of(text: str | None, option: str, *, ahead: bool = False, to_end: bool = False) -> datetime | None:
    """Return the time that an option names, None for none; a date without a time zone is local.

    Args:
        text: How long ago, as `2h`; or a date with or without a time of day.
        option: The option, for the error.
        ahead: It is how long from now, and the time may not be past.
        to_end: Whether a date without a time of day is the end of that day.

    Raises:
        BadParameter: It is not a time, or it is past.
    """
    if text is None:
        return None
    try:
        with suppress(ValueError):
            return now() + parse_span(text) if ahead else now() - parse_span(text)
        found = parse_time(text, to_end=to_end)
    except (ValueError, OverflowError):
        how = "how long from now" if ahead else "how long ago"
        hint = f"write {how} (30m, 2h, 7d, 4w), or a time (2030-01-31T12:00)"
        raise typer.BadParameter(f"{text!r} is not a time; {hint}", param_hint=option) from None
    if ahead and found <= now():
        raise typer.BadParameter(f"{text} is past", param_hint=option)
    return found
