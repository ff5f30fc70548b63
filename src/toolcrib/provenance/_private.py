"""Private values, found by their pieces in whatever is about to leave."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice, pairwise
from typing import Final

from toolcrib.provenance._kinds import without_moments
from toolcrib.provenance._texts import flat, words_in

__all__ = ["PrivateValues"]

_LEAST: Final = 4  # characters of a word that counts
_MOST_PIECES: Final = 500_000  # of one run
_MOST_FOUND: Final = 16  # in one text
_DIGITS: Final = re.compile(r"\d(?:[\W_]{0,3}\d){5,}")
_FEWEST_DIGITS: Final = 6  # that stand in a row, whatever is between them
_JOINED: Final = 16  # letters of words without anything between them


class PrivateValues:
    """Values that few may read; to find those that a text has takes time by the length of the text alone.

    A value is found by each of its numbers and identifiers, and by each two of its longer words that follow each other,
    whatever short words and marks are between them. Of a value with a single longer word, that word is a piece. So are
    six digits in a row, however they are grouped, and words that are joined without a space.

    Attributes:
        is_full: Whether there were more pieces than are kept.
    """

    __slots__ = ("_pieces", "is_full")

    def __init__(self) -> None:
        self._pieces: dict[str, tuple[int, frozenset[str]]] = {}
        self.is_full = False

    def __bool__(self) -> bool:
        return bool(self._pieces)

    def add(self, text: str, number: int, readers: frozenset[str]) -> None:
        """Keep a flat text, what it is from, and who may read it."""
        words = _long_words(text)
        alone = words if len(words) == 1 else [word for word in words if _is_identifier(word)]
        for piece in (*alone, *(f"{a} {b}" for a, b in pairwise(words)), *_digits_in(text), *_joined_words(text)):
            if len(self._pieces) >= _MOST_PIECES:
                self.is_full = True
                return
            _, known = self._pieces.get(piece, (number, readers))
            self._pieces[piece] = number, known & readers

    def within(self, text: str) -> Iterator[tuple[str, int, frozenset[str]]]:
        """Yield the pieces that a text has, in the form of `plain_text`, each with what it is from and its readers."""
        if not self._pieces:
            return
        words = _long_words(text)
        joined = (word for word in words if len(word) >= _JOINED)
        found = (
            *words,
            *(f"{a} {b}" for a, b in pairwise(words)),
            *_digits_in(text),
            *(f"+{word[at : at + _JOINED]}" for word in joined for at in range(len(word) - _JOINED + 1)),
        )
        known = dict.fromkeys(piece for piece in found if piece in self._pieces)
        sources: set[int] = set()
        for piece in islice(known, _MOST_FOUND):
            number, readers = self._pieces[piece]
            if piece[0] != "+" or number not in sources:  # of what is joined, one piece shows the value
                yield piece.removeprefix("+"), number, readers
            sources.add(number)


def _long_words(text: str) -> list[str]:
    return [word for word in words_in(text.replace("_", " ")) if len(word) >= _LEAST]


def _digits_in(text: str) -> Iterator[str]:
    """Yield each six digits that stand in a row, whatever is between them; dates and times are none."""
    for run in _DIGITS.findall(without_moments(flat(text))):
        digits = "".join(char for char in run if char.isdigit())
        for at in range(len(digits) - _FEWEST_DIGITS + 1):
            yield f"+{digits[at : at + _FEWEST_DIGITS]}"


def _joined_words(text: str) -> Iterator[str]:
    """Yield the letters from the beginning of each word on, with nothing between words."""
    words = words_in(text.replace("_", " "))
    joined, at = "".join(words), 0
    for word in words:
        if at + _JOINED <= len(joined):
            yield f"+{joined[at : at + _JOINED]}"
        at += len(word)


def _is_identifier(word: str) -> bool:
    return any(char.isdigit() for char in word)
