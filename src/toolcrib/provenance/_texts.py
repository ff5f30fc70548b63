"""An index of texts: whether one of them has a value, found by the value's rarest word."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import Final

from toolcrib.provenance._links import hosts_in

__all__ = ["TextIndex", "dates_in", "flat", "numbers_in", "words_in"]

_CHUNK: Final = 2_000  # characters
_LAP: Final = 100  # characters that a chunk shares with the next one, in which a word is whole
_TRIES: Final = 24  # chunks that are looked through for one value
_WORD: Final = re.compile(r"\w+")
_GAP: Final = re.compile(r"[ -]")
_SHORTEST_GROUPED: Final = 10  # characters; shorter ones stand side by side by chance
_LONGEST_GROUPED: Final = 64
_LOOKED_THROUGH: Final = 20_000  # characters of a text
_DIGIT: Final = re.compile(r"\d")
_NUMBER: Final = re.compile(r"(?<![\w.])-?\d{1,3}(?:,\d{3})+(?:\.\d+)?(?![\w])|(?<![\w.])-?\d+(?:\.\d+)?(?!\w)")
_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH: Final = rf"({'|'.join(_MONTHS)})[a-z]{{0,6}}"
_DAY: Final = r"(\d{1,2})(?:st|nd|rd|th)?"
_ISO: Final = re.compile(r"(?<!\d)\d{4}-(\d\d)-(\d\d)(?!\d)")
_MONTH_FIRST: Final = re.compile(rf"\b{_MONTH}\.? {_DAY}(?: ?(?:-|to|until|and) ?(?:the )?(?:{_MONTH} )?{_DAY})?\b")
_DAY_FIRST: Final = re.compile(rf"\b(?:{_DAY} ?(?:-|to|until|and) ?(?:the )?)?{_DAY}(?: of)? {_MONTH}\b")


def flat(text: str) -> str:
    """Return a text as it is compared: compatible characters, lower case, one space between words."""
    return _plain(text).lower()


def _plain(text: str) -> str:
    return " ".join((text if text.isascii() else unicodedata.normalize("NFKC", text)).split())


def words_in(text: str) -> list[str]:
    """Return the words of a flat text."""
    return _WORD.findall(text)


def numbers_in(text: str) -> Iterator[float]:
    """Yield the numbers of a flat text, rounded to what money and measures need."""
    for found in _NUMBER.findall(text):
        yield round(float(found.replace(",", "")), 4)


def dates_in(text: str) -> Iterator[tuple[int, int]]:
    """Yield the dates of a flat text as month and day: `2026-05-01`, `may 1st`, `1st to the 5th of may`."""
    for month, day in _ISO.findall(text):
        yield int(month), int(day)
    for month, day, other, until in _MONTH_FIRST.findall(text):
        yield _MONTHS.index(month) + 1, int(day)
        if until:
            yield _MONTHS.index(other or month) + 1, int(until)
    for start, day, month in _DAY_FIRST.findall(text):
        yield _MONTHS.index(month) + 1, int(day)
        if start:
            yield _MONTHS.index(month) + 1, int(start)


class TextIndex:
    """Texts, each with what it is from; finds those that have a value.

    A value is looked for in the parts of the texts that have its rarest word: what that costs does not grow with the
    texts. It is found where it stands by itself: `a@b.com` is not found in `xa@b.com`.
    """

    __slots__ = ("_chunks", "_places", "_texts", "dates", "hosts", "numbers")

    def __init__(self) -> None:
        self._texts: list[tuple[str, str, str, int]] = []  # flat; with its capitals; as it came; what it is from
        self._chunks: list[tuple[int, int]] = []  # a text, and where the chunk begins
        self._places: dict[str, list[int]] = {}
        self.numbers: dict[float, int] = {}
        self.dates: dict[tuple[int, int], int] = {}
        self.hosts: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._texts)

    def add(self, text: str, number: int) -> None:
        """Add a text.

        Args:
            text: The text as it came.
            number: What it is from, by the caller's count.
        """
        cased = _plain(text)
        plain = cased.lower()
        at = len(self._texts)
        self._texts.append((plain, cased if len(cased) == len(plain) else "", text, number))
        for start in range(0, len(plain), _CHUNK):
            chunk = len(self._chunks)
            self._chunks.append((at, start))
            for word in set(_WORD.findall(plain, start, start + _CHUNK + _LAP)):
                self._places.setdefault(word, []).append(chunk)
        for host in hosts_in(plain):
            self.hosts.setdefault(host, number)
        if _DIGIT.search(plain) is not None:
            for found in numbers_in(plain):
                self.numbers.setdefault(found, number)
            for date in dates_in(plain):
                self.dates.setdefault(date, number)

    def find(self, value: str) -> tuple[int, int] | None:
        """Return what the first text with a value is from, and the line where it stands there; None without one.

        Args:
            value: A flat text.
        """
        return next(self.places(value), None)

    def has_grouped(self, value: str) -> bool:
        """Return whether a text has a long value with a digit, such as an account's, be it written in groups or not."""
        letters = _GAP.sub("", value)
        if not _SHORTEST_GROUPED <= len(letters) <= _LONGEST_GROUPED or _DIGIT.search(letters) is None:
            return False
        grouped = re.compile(rf"(?<!\w){'[ -]?'.join(map(re.escape, letters))}(?!\w)")
        return any(grouped.search(plain, 0, _LOOKED_THROUGH) is not None for plain, *_ in self._texts[:_TRIES])

    def places(self, value: str) -> Iterator[tuple[int, int]]:
        """Yield what each text with a value is from, and the line where it stands there; of many texts the first."""
        words = _WORD.findall(value)
        places = min((self._places.get(word, ()) for word in words), key=len) if words else ()
        last = -1
        for chunk in places[:_TRIES]:
            at, start = self._chunks[chunk]
            plain, cased, text, number = self._texts[at]
            end = start + _CHUNK + _LAP + len(value)
            if at != last and _stands_in(value, plain, cased, max(0, start - len(value)), end):
                last = at
                yield number, _line_of(value, text)


def _stands_in(value: str, plain: str, cased: str, start: int, end: int) -> bool:
    """Return whether a value stands by itself in a part of a text."""
    at = plain.find(value, start, end)
    while at >= 0:
        if _is_alone(plain, cased, at, at + len(value)):
            return True
        at = plain.find(value, at + 1, end)
    return False


def _is_alone(plain: str, cased: str, start: int, end: int) -> bool:
    before, after, then = plain[max(0, start - 1) : start], plain[end : end + 1], plain[end + 1 : end + 2]
    if before and (before.isalnum() or before in "@._-+"):
        return False
    if after and (after.isalnum() or after in "@_"):
        return False
    if after and after in "./-" and then.isalnum():
        return after == "." and cased[end + 1 : end + 2].isupper()  # a sentence begins without a space before it
    return True


def _line_of(value: str, text: str) -> int:
    """Return the line of a text, counted from 1, that has a value, or the first word of it."""
    first = value.split(" ", 1)[0]
    lowered = text.lower()
    at = lowered.find(value)
    at = at if at >= 0 else lowered.find(first)
    return text.count("\n", 0, max(at, 0)) + 1
