"""Private values, found in texts that are about to be sent."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from toolcrib.provenance._texts import words_in

__all__ = ["PrivateValues"]

_MOST_WORDS: Final = 12  # of a value that is found in other text
_LEAST_CHARS: Final = 4


class PrivateValues:
    """Values that few may read; to find those that a text has takes time by the length of the text alone."""

    __slots__ = ("_lengths", "_values")

    def __init__(self) -> None:
        self._values: dict[str, tuple[int, frozenset[str]]] = {}
        self._lengths: set[int] = set()

    def add(self, text: str, number: int, readers: frozenset[str]) -> None:
        """Keep a flat text, what it is from, and who may read it."""
        words = words_in(text)
        if len(words) <= _MOST_WORDS and sum(map(len, words)) >= _LEAST_CHARS:
            self._values[" ".join(words)] = number, readers
            self._lengths.add(len(words))

    def within(self, text: str) -> Iterator[tuple[str, int, frozenset[str]]]:
        """Yield the values that a flat text has, each with what it is from and who may read it."""
        words = words_in(text) if self._values else []
        for length in self._lengths:
            for start in range(len(words) - length + 1):
                value = " ".join(words[start : start + length])
                if value in self._values:
                    yield value, *self._values[value]
