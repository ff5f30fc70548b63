"""What to tell a program that takes for a date what is the text of one: tools give dates as text, as in JSON."""

from __future__ import annotations

__all__ = ["taken_for_a_date", "used_as_a_date"]

_TOLD = "A date that a tool gave is text: `datetime.fromisoformat(text)` makes a date of it."
_ATTRIBUTES = frozenset(
    {
        *("year", "month", "day", "hour", "minute", "second", "date", "time", "weekday", "isoweekday"),
        *("isoformat", "strftime", "timestamp", "astimezone"),
    }
)
_TEXT = ("'str'", "to str", "not str")


def taken_for_a_date(attribute: str) -> str:
    """Return what to say when a text has no such attribute; nothing where dates have none either."""
    return _TOLD if attribute in _ATTRIBUTES else ""


def used_as_a_date(message: str) -> str:
    """Return what to say when an operation failed with this message; nothing where it is not of dates and texts."""
    mixed = "datetime." in message and any(word in message for word in _TEXT)
    return _TOLD if mixed or message.endswith("for -: 'str' and 'str'") else ""
