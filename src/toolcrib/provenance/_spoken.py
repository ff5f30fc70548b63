"""Values that people say in words: `twenty`, `5kg`, `noon`, `from 9 to 10`, `tomorrow`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date, timedelta
from typing import Final

from toolcrib.provenance._kinds import figure_of, without_moments

_UNITS: Final = ("two", "three", "four", "five", "six", "seven", "eight", "nine")  # `one` is rarely a number
_TEENS: Final = (
    *("ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen"),
    *("sixteen", "seventeen", "eighteen", "nineteen"),
)
_TENS: Final = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_VALUES: Final = {
    **{"one": 1, "dozen": 12},
    **{word: number for number, word in enumerate(_UNITS, 2)},
    **{word: number for number, word in enumerate(_TEENS, 10)},
    **{word: 10 * number for number, word in enumerate(_TENS, 2)},
}
_SCALES: Final = {"hundred": 100, "thousand": 1_000, "million": 1_000_000, "billion": 1_000_000_000}
_ANY: Final = "|".join([*_VALUES, *_SCALES])
_NUMERAL: Final = re.compile(
    rf"(?<![\w-])(?<!\d )(?<!half )(?<!half a )(?<!quarter )(?<!quarter of a )(?:a )?"
    rf"(?:{_ANY})(?:(?: and |[ -])(?:{_ANY}))*(?![\w-])(?! and a (?:half|quarter)\b)"
)
_SCALED: Final = re.compile(rf"(?<![\w.,:/+\-])(\d[\d.,]*\d|\d) ({'|'.join(_SCALES)})(?![\w-])")
_MEASURED: Final = re.compile(  # a figure that a unit, or a currency, is written at
    r"(?<![\w.,:/+\-])(?:(?:eur|usd|gbp|chf)(?P<behind>\d[\d.,]*\d|\d)|(?P<before>\d[\d.,]*\d|\d)"
    r"(?:eur|usd|gbp|chf|kg|g|mg|km|m|cm|mm|l|ml|x|h|hrs|min|mins|s|sec|px|mb|gb|tb|\.-))(?![\w/])(?!\.\w)"
)
_NO_UNIT: Final = (
    r"(?=[.,;!?]?(?:\s+(?:on|to|until|till|and|with|for|in|please|tomorrow|today|then|sharp)\b|\s*$|[.;!?]\s|,\s))"
)
_HOUR: Final = re.compile(
    rf"\b(?:at|from|until|till|by|to) (\d{{1,2}})(?: o['\u2019]?clock)?{_NO_UNIT}|\b(\d{{1,2}}) o['\u2019]?clock\b"
)
_FROM_TO: Final = re.compile(r"(?<![\w:.,+\-/])(\d{1,2}):(\d\d) ?[-\u2013] ?(\d{1,2}):(\d\d)(?![\w:+/@]|[.\-]\w)")
_WORDED_TIME: Final = {"noon": (12, 0), "midday": (12, 0), "midnight": (0, 0)}
_DOTTED: Final = re.compile(r"(?<![\w.])(\d{1,2})\.(\d{1,2})\.(\d{4})(?!\w|\.\d)")  # day, month and year
_DAYS: Final = {"today": 0, "tonight": 0, "tomorrow": 1, "yesterday": -1}
_WEEKDAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_DAY: Final = re.compile(rf"\b(?:(day after )?({'|'.join(_DAYS)})|(next )?({'|'.join(_WEEKDAYS)}))\b")
_WEEK: Final = 7
_YEAR: Final = 365  # days


def numbers_said(text: str) -> Iterator[float]:
    """Yield the numbers that a flat text says in words, or with a unit: `fifty-five`, `a hundred`, `5kg`, `20eur`."""
    for match in _NUMERAL.finditer(text):
        words = [word for word in re.split(r"[ -]", match[0]) if word not in ("a", "and")]
        number = _number_of(words)
        if number is not None and words != ["one"]:
            yield number
    for found, scale in _SCALED.findall(text):
        figure = figure_of(found)
        if figure is not None:
            yield figure * _SCALES[scale]
    for match in _MEASURED.finditer(without_moments(text)):
        figure = figure_of(match["before"] or match["behind"])
        if figure is not None:
            yield figure


def _number_of(words: list[str]) -> float | None:
    """Return the number that numerals say; None where they are several numbers, such as `two three`."""
    total = part = last = 0
    for word in words:
        scale = _SCALES.get(word)
        if scale is None:
            value = _VALUES[word]
            if last and not (last >= 100 or (20 <= last < 100 and value < 10)):
                return None
            part, last = part + value, value
        elif scale == 100:
            part, last = (part or 1) * scale, scale
        else:
            total, part, last = total + (part or 1) * scale, 0, scale
    return total + part


def times_said(text: str) -> Iterator[tuple[int, int]]:
    """Yield the times of day that a flat text says in words, as hour and minute: `noon`, `from 9 to 10`, `15 o'clock`.

    Until noon an hour may be one of the afternoon.
    """
    yield from (time for word, time in _WORDED_TIME.items() if re.search(rf"\b{word}\b", text))
    for match in _FROM_TO.finditer(text):
        hour, minute, other, last = map(int, match.groups())
        yield from ((hour, minute), (other, last))
    for match in _HOUR.finditer(text):
        hour = int(match[1] or match[2])
        yield hour, 0
        if hour < 12:
            yield hour + 12, 0


def dates_said(text: str, today: date | None) -> Iterator[tuple[int, int, int]]:
    """Yield further dates of a flat text, as year, month and day: `tomorrow`, `next friday`, `5.6.2026`.

    Args:
        text: The text.
        today: The day on which it was said; None where that is not known.
    """
    yield from ((int(year), int(month), int(day)) for day, month, year in _DOTTED.findall(text))
    if today is None:
        return
    for after, word, other, weekday in _DAY.findall(text):
        if word:
            ahead = [_DAYS[word] + bool(after)]
        else:
            first = (_WEEKDAYS.index(weekday) - today.weekday()) % _WEEK
            ahead = [first or _WEEK, first + _WEEK] if other else [first]
        for days in ahead:
            then = today + timedelta(days)
            yield then.year, then.month, then.day


def is_near(year: int, month: int, day: int, today: date | None) -> bool:
    """Return whether a date is the next or the last one of its month and day."""
    try:
        return today is not None and abs(date(year, month, day) - today) <= timedelta(_YEAR)
    except ValueError:  # of no calendar
        return False
