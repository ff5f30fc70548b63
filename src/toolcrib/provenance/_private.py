"""Private values, found by their pieces in whatever is about to leave."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from toolcrib.provenance._texts import words_in

__all__ = ["PrivateValues"]

_LEAST: Final = 4  # characters of a word that counts
_MOST_PIECES: Final = 500_000  # of one run
_MOST_FOUND: Final = 16  # in one text


class PrivateValues:
    """Values that few may read; to find those that a text has takes time by the length of the text alone.

    A value is found by each of its numbers and identifiers, and by each two of its longer words that follow each other,
    whatever short words and marks are between them. Of a value with a single longer word, that word is a piece.

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
        for piece in (*alone, *(f"{a} {b}" for a, b in pairwise(words))):
            if len(self._pieces) >= _MOST_PIECES:
                self.is_full = True
                return
            _, known = self._pieces.get(piece, (number, readers))
            self._pieces[piece] = number, known & readers

    def within(self, text: str) -> Iterator[tuple[str, int, frozenset[str]]]:
        """Yield the pieces that a text has, in the form of `plain_text`, each with what it is from and its readers."""
        words = _long_words(text) if self._pieces else []
        found = (*words, *(f"{a} {b}" for a, b in pairwise(words)))
        left = _MOST_FOUND
        for piece in dict.fromkeys(found):
            if piece in self._pieces and left:
                left -= 1
                yield piece, *self._pieces[piece]


def _long_words(text: str) -> list[str]:
    return [word for word in words_in(text.replace("_", " ")) if len(word) >= _LEAST]


def _is_identifier(word: str) -> bool:
    return any(char.isdigit() for char in word)
