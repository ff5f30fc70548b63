"""Hints for a program that takes the text of a date for a date: tools give dates as text, as in JSON."""

from __future__ import annotations

__all__ = ["hint_for_attribute", "hint_for_operation"]

_HINT = "A date that a tool gave is text: `datetime.fromisoformat(text)` makes a date of it."
_ATTRIBUTES = frozenset(
    {
        *("year", "month", "day", "hour", "minute", "second", "date", "time", "weekday", "isoweekday"),
        *("isoformat", "strftime", "timestamp", "astimezone"),
    }
)
_TEXT = ("'str'", "to str", "not str")


def hint_for_attribute(attribute: str) -> str:
    """Return the hint for a text that has no such attribute; empty where dates have none either."""
    return _HINT if attribute in _ATTRIBUTES else ""


def hint_for_operation(message: str) -> str:
    """Return the hint for an operation that failed with this message; empty where it is not of dates and texts."""
    mixed = "datetime." in message and any(word in message for word in _TEXT)
    return _HINT if mixed or message.endswith("for -: 'str' and 'str'") else ""
