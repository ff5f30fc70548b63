"""Writings of a run: values that its calls wrote, so that they are known when they come back in another spelling."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass
from typing import Final

from toolcrib.provenance._private import folded
from toolcrib.provenance._texts import words_in

_ANYWHERE: Final = 8  # characters that are found in the middle of words, too
_SHORTEST_WORD: Final = 4  # characters of a word that stands for a value
_HIGHEST_SHARE: Final = 2  # of how many characters one is a digit, in a number such as a telephone's


def letters_of(text: str) -> str:
    """Return the letters and digits of a text, as a store may spell it that decodes it, or leaves marks out."""
    return "".join(filter(str.isalnum, folded(text)))


@dataclass(frozen=True, slots=True, eq=False)
class Writing:
    """The values that a call with an effect was given.

    Attributes:
        tool: The tool.
        call_id: The call's id.
        since: The number of values that the run had read before it.
        letters: The letters and digits of all its values.
        ends: Where words begin and end in them.
        names: The letters of the texts that were known: they stand for what was not.
        unknown: The values that were not known, as a person reads them; of those that decide something.
        is_said: Whether something was not known in what it says.
        marks: The marks of the values that were asked about.
    """

    tool: str
    call_id: str
    since: int
    letters: str
    ends: frozenset[int]
    names: frozenset[str] = frozenset()
    unknown: tuple[str, ...] = ()
    is_said: bool = False
    marks: frozenset[str] = frozenset()

    def has(self, part: str) -> bool:
        """Return whether letters stand in it, as whole words unless they are many."""
        return has_words(self.letters, self.ends, part, anywhere=len(part) >= _ANYWHERE)


def has_words(letters: str, ends: Set[int], part: str, *, anywhere: bool = False) -> bool:
    """Return whether letters stand in others, as whole words unless they may stand anywhere."""
    at = letters.find(part)
    while at >= 0:
        if anywhere or (at in ends and at + len(part) in ends):
            return True
        at = letters.find(part, at + 1)
    return False


def spelled(texts: Iterable[str]) -> tuple[str, frozenset[int]]:
    """Return the letters and digits of texts, and where words begin and end in them."""
    letters, ends, size = list[str](), {0}, 0
    for word in (word for text in texts for word in words_in(folded(text).replace("_", " "))):
        letters.append(word)
        size += len(word)
        ends.add(size)
    return "".join(letters), frozenset(ends)


def parts_of(text: str) -> Iterator[str]:
    """Yield the letters of what shows that a text is a written one: all of it, and for a long number its parts.

    A short number stands in any text.
    """
    letters = letters_of(text)
    if len(letters) >= _SHORTEST_WORD or (letters and not letters.isdecimal()):
        yield letters
    if sum(map(str.isdigit, letters)) * _HIGHEST_SHARE >= len(letters):
        yield from (letters[at : at + _ANYWHERE] for at in range(1, len(letters) - _ANYWHERE + 1))


def words_of(text: str) -> Iterator[str]:
    """Yield the words of a text that are long enough to stand for a value."""
    return (word for word in words_in(folded(text).replace("_", " ")) if len(word) >= _SHORTEST_WORD)
