"""Writings of a run: what its calls gave away, so that it is known where it comes back in another spelling."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import inf
from typing import Final

from toolcrib.provenance._kinds import times_in
from toolcrib.provenance._private import days_in, folded
from toolcrib.provenance._texts import flat, words_in
from toolcrib.tools import Place

Moment = tuple[int, ...]
"""A day, as 0, its month and its day, or a time, as its hour and minute."""

_ANYWHERE: Final = 8  # characters that are found in the middle of words, too
_SHORTEST_WORD: Final = 4  # characters of a word that stands for a value
_SHORTEST_NUMBER: Final = 3  # digits; fewer stand in any text
_HIGHEST_SHARE: Final = 2  # of how many characters one is a digit, in a number such as a telephone's
_WORDS: Final = re.compile(r"\d+|[^\W\d_]+")
_LONG: Final = 2_000  # characters of a text of which all stands beside a name


@dataclass(frozen=True, slots=True, eq=False)
class Binding:
    """Names that a call in the user's own space gave to what was not known.

    Attributes:
        tool: The tool.
        call_id: The call's id.
        letters: The letters and digits of all its values.
        unknown: The values that were not known, as a person reads them; of those that decide something.
        is_said: Whether something was not known in what it says.
        marks: The marks of the values that were asked about.
    """

    tool: str
    call_id: str
    letters: str
    unknown: tuple[str, ...] = ()
    is_said: bool = False
    marks: frozenset[str] = frozenset()


class Writings:
    """What the calls of a run gave away, in order; one index, so that a look-up takes the same time after many."""

    def __init__(self) -> None:
        self._letters, self._ends = "", set[int]()  # of all values; where words begin and end
        self._starts, self._counts = list[int](), list[int]()  # of each call: its letters, and what was read before it
        self._moments: dict[Moment, int] = {}  # by how many values were read before they were written
        self._names: dict[str, list[Binding]] = {}  # by their letters
        self._unknown: set[str] = set()  # letters of unknown texts: what stands beside one in a result was made with it
        self.made_by: dict[tuple[str, str], Binding] = {}  # by tool and id of the call
        self._bound: set[Place] = set()  # objects and texts of results that have such a name
        self._longest = 0  # words of a name

    def __bool__(self) -> bool:
        return bool(self._starts)

    def add(self, texts: Iterable[str], count: int) -> tuple[str, int]:
        """Keep the values of a call, before which so many values were read; return its letters, and how many words."""
        start, words = len(self._letters), [word for text in texts for word in _words_in(text)]
        self._starts.append(start)
        self._counts.append(count)
        self._ends.add(start)
        for word in words:
            self._ends.add(start := start + len(word))
        letters = "".join(words)
        self._letters += f"{letters}\n"
        return letters, len(words)

    def add_moment(self, moment: Moment, count: int) -> None:
        """Keep a date or a time that only the model knew when it wrote it."""
        self._moments.setdefault(moment, count)

    def bind(self, binding: Binding, names: Iterable[str], unknown: Iterable[str]) -> None:
        """Keep the known names that a call gave to what was not known, and the unknown texts."""
        for name in names:
            words = _words_in(name)
            self._longest = max(self._longest, len(words))
            self._names.setdefault("".join(words), []).append(binding)
        self._unknown.update(each for each in map(letters_of, unknown) if len(each) >= _SHORTEST_WORD)
        self.made_by[binding.tool, binding.call_id] = binding

    def named_in(self, value: str) -> Iterator[Binding]:
        """Yield the bindings of the names that stand in a value."""
        words = _words_in(value) if self._names else []
        for at in range(len(words)):
            for end in range(at + 1, min(at + self._longest, len(words)) + 1):
                yield from self._names.get("".join(words[at:end]), ())

    def read_all(self, tool: str, call_id: str, arguments: Iterable[str], place: Place) -> None:
        """Mark a result as unknown that is of a call which made something of an unknown value, or is about its name."""
        creator = self.made_by.get((tool, call_id))
        if (creator is not None and creator.unknown) or self._has_name(arguments):
            self._bound.add(place)

    def read(self, place: Place, text: str) -> None:
        """Mark the object or the text of a result that has a name, or an unknown text, which the run wrote."""
        if not (self._names or self._unknown) or len(text) > _LONG:
            return
        above = place.parent
        is_item = isinstance(place.key, int) and above is not None and isinstance(above.key, str)
        if self._is_name(letters_of(text)):
            self._bound.add((above.parent if is_item and above else above) or above or place)
        elif self._has_name([text]):
            self._bound.add(place)
        while place.parent is not None and place not in self._bound:
            if isinstance(place.key, str) and self._is_name(letters_of(place.key)):
                self._bound.add(place)
            place = place.parent

    def _has_name(self, texts: Iterable[str]) -> bool:
        return any(each.unknown for text in texts for each in self.named_in(text))

    def _is_name(self, letters: str) -> bool:
        return letters in self._names or letters in self._unknown

    def has_bound(self, place: Place | None) -> bool:
        """Return whether a value of a result stands beside a name of what was not known."""
        while self._bound and place is not None:
            if place in self._bound:
                return True
            place = place.parent
        return False

    def count_before(self, part: str) -> float:
        """Return how many values had been read before letters were first written; as whole words unless many."""
        at = self._letters.find(part)
        while at >= 0:
            if len(part) >= _ANYWHERE or (at in self._ends and at + len(part) in self._ends):
                return self._counts[bisect_right(self._starts, at) - 1]
            at = self._letters.find(part, at + 1)
        return inf

    def count_before_moments(self, text: str) -> float:
        """Return how many values had been read before a date or a time of a text was first written."""
        found = moments_in(text) if self._moments else ()
        return min((self._moments.get(each, inf) for each in found), default=inf)


def _words_in(text: str) -> list[str]:
    return _WORDS.findall(folded(text))


def letters_of(text: str) -> str:
    """Return the letters and digits of a text, as a store may spell it that decodes it, or leaves marks out."""
    return "".join(_words_in(text))


def moments_in(text: str) -> Iterator[Moment]:
    """Yield the dates of a text, without their years and also where they are three numbers, and the times."""
    yield from ((0, *day) for day in days_in(text))
    yield from times_in(flat(text))


def parts_of(text: str) -> tuple[list[str], list[str]]:
    """Return the letters of what shows that a text is a written one, and its words that are long enough to.

    That is all of it but a short number, which stands in any text, and of a long number its parts.
    """
    text = folded(text)
    letters = "".join(_WORDS.findall(text))
    is_short = len(letters) < (_SHORTEST_NUMBER if letters.isdecimal() else 1)
    parts = [] if is_short else [letters]
    if sum(map(str.isdigit, letters)) * _HIGHEST_SHARE >= len(letters):
        parts += [letters[at : at + _ANYWHERE] for at in range(1, len(letters) - _ANYWHERE + 1)]
    return parts, [word for word in words_in(text.replace("_", " ")) if len(word) >= _SHORTEST_WORD]
