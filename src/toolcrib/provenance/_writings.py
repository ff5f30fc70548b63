"""Writings of a run: values that its calls wrote, so that they are known when they come back in another spelling."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import accumulate, islice, takewhile
from math import inf
from typing import Final

from toolcrib.provenance._kinds import times_in
from toolcrib.provenance._private import days_in, folded
from toolcrib.provenance._question import digest_of
from toolcrib.provenance._texts import flat, words_in
from toolcrib.tools import Effect, Place

Moment = tuple[int, ...]
"""A day, as 0, its month and its day, or a time, as its hour and minute."""

GIVING: Final = frozenset({"send", "share"})
"""The effects that give others what stands under a name."""

_ANYWHERE: Final = 8  # characters that are found in the middle of words, too
_SHORTEST_WORD: Final = 4  # characters of a word that stands for a value
_SHORTEST_NUMBER: Final = 3  # digits; fewer stand in any text
_HIGHEST_SHARE: Final = 2  # of how many characters one is a digit, in a number such as a telephone's
_WORDS: Final = re.compile(r"\d+|[^\W\d_]+")
_LONG: Final = 2_000  # characters of a text of which all stands beside a name
_MOST_PARTS: Final = 500_000  # of words, that are kept
_MOST_MARKS: Final = 100  # of one name
_MOST_SHOWN: Final = 8  # unknown values, of one name
_FOLDER: Final = re.compile(r"[/\\]")
_MOST_FOLDERS: Final = 200  # of one path


@dataclass(frozen=True, slots=True, eq=False)
class Binding:
    """Unknown values to which calls in the user's own space gave a name.

    Attributes:
        tool: The tool of the last call.
        call_id: The call's id.
        unknown: The unknown values among those that decide something, as a person reads them; of many the last ones.
        marks: The marks of the values that were asked about; of many a digest, which nobody has approved.
        stated: Digests of the unknown texts of their content, or one of many.
        links: The links of others in these texts, and the unknown ones.
        chosen: The trusted values that the user did not name, which may not be paid under the name.
        private: The private values that stand under the name: the number of a piece, and who may read it.
    """

    tool: str
    call_id: str
    unknown: tuple[str, ...] = ()
    marks: frozenset[str] = frozenset()
    stated: frozenset[str] = frozenset()
    links: tuple[str, ...] = ()
    chosen: tuple[str, ...] = ()
    private: tuple[tuple[int, frozenset[str]], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.unknown or self.stated or self.links or self.chosen or self.private)

    def with_earlier(self, earlier: Iterable[Binding]) -> Binding:
        """Return the binding with what earlier calls gave the same names to."""
        bindings = [*earlier, self]
        return replace(
            self,
            unknown=_last(value for binding in bindings for value in binding.unknown),
            marks=_few(frozenset[str]().union(*(binding.marks for binding in bindings))),
            stated=_few(frozenset[str]().union(*(binding.stated for binding in bindings))),
            links=_last(link for binding in bindings for link in binding.links),
            chosen=_last(value for binding in bindings for value in binding.chosen),
            private=_some(tuple(dict.fromkeys(piece for binding in bindings for piece in binding.private))),
        )

    def values_for(self, effect: Effect, approved: Set[str]) -> tuple[str, ...]:
        """Return the values under the name that an effect is asked about, as a person reads them; none for none."""
        unknown = self.unknown if not self.marks <= approved else ()
        chosen = self.chosen if effect == "spend" else ()
        return (*unknown, *chosen, *(self.links if effect in GIVING else ()))

    @property
    def digests(self) -> tuple[str, ...]:
        """The digests and values that an approval of the name holds for."""
        return (*sorted(self.marks | self.stated), *self.links, *self.chosen)


class Writings:
    """The values that the calls of a run wrote, by their letters: a look-up takes the same time after many.

    Attributes:
        first: How many values had been read before the first one was written.
        stated: Digests of the unknown texts that calls wrote into the user's own space, or one of many.
        writer: The tool of the last one of these calls.
        private: Digests of the private values that calls wrote there, or one of many.
        readers: To whom all of these values may be sent; None where there are none.
        writer_of_private: The tool of the last call that wrote one.
        made_by: The bindings by tool and id of the call.
        is_full: Whether more was written than is kept.
        lost: The tool of the last call of an earlier process that wrote an unknown value; empty for none.
    """

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}  # by each eight letters, and by shorter words: what was read before them
        self._moments: dict[Moment, int] = {}  # by how many values were read before they were written
        self._names: dict[str, Binding] = {}  # by their letters
        self._lengths: set[int] = set()  # of names, in words
        self._unknown: dict[str, bool] = {}  # letters of unknown texts: whether one decides something
        self._bound: dict[
            Place, bool
        ] = {}  # objects and texts of results with such a name, or text: whether it decides
        self.first = inf
        self.stated = frozenset[str]()
        self.writer = ""
        self.private = frozenset[str]()
        self.readers: frozenset[str] | None = None
        self.writer_of_private = ""
        self.made_by: dict[tuple[str, str], Binding] = {}
        self.is_full = False
        self.lost = ""

    @property
    def last_tool(self) -> str:
        """The tool of the last call that wrote an unknown value, also in an earlier process; empty for none."""
        return next((binding.tool for binding in reversed(self.made_by.values())), self.lost)

    def add(self, texts: Iterable[str], count: int) -> None:
        """Keep the values of a call, before which so many values were read."""
        words = [word for text in texts for word in _words_in(text)]
        letters, start = "".join(words), 0
        self.first = min(self.first, count)
        self.is_full = self.is_full or len(self._counts) + len(letters) > _MOST_PARTS
        if self.is_full:
            return
        for at in range(len(letters) - _ANYWHERE + 1):
            self._counts.setdefault(letters[at : at + _ANYWHERE], count)
        for at, word in enumerate(words):
            ends = takewhile(lambda size: size < _ANYWHERE, accumulate(map(len, words[at : at + _ANYWHERE])))
            for size in ends:
                self._counts.setdefault(letters[start : start + size], count)
            start += len(word)

    def add_moment(self, moment: Moment, count: int) -> None:
        """Keep a date or a time that only the model knew when it wrote it."""
        self._moments.setdefault(moment, count)

    def bind(self, binding: Binding, names: Iterable[str], unknown: Iterable[str], stated: Iterable[str]) -> None:
        """Keep the known names that a call gave to unknown values, and the unknown texts."""
        for words in map(_words_in, names):
            self._lengths.add(len(words))
            self._names["".join(words)] = binding
        for texts, decides in ((stated, False), (unknown, True)):
            letters = (text for text in map(letters_of, texts) if _SHORTEST_WORD <= len(text) <= _LONG)
            self._unknown.update((text, decides or self._unknown.get(text, False)) for text in letters)
        self.made_by[binding.tool, binding.call_id] = binding
        if binding.stated:
            self.stated, self.writer = _few(self.stated | binding.stated), binding.tool

    def bind_places(self, binding: Binding, paths: Iterable[str], numbers: Iterable[str]) -> None:
        """Keep the numbers of objects as names, and the folders of files, with and without those that they are in.

        A folder stands for the links and the private values that a call wrote there.
        """
        for number in numbers:
            self._names[number] = binding.with_earlier(self.numbered([number]))
        inside = Binding(binding.tool, binding.call_id, links=binding.links, private=binding.private)
        for path in paths if inside.links or inside.private else ():
            folders = [path[: found.start()] for found in islice(_FOLDER.finditer(path), _MOST_FOLDERS)]
            for name in dict.fromkeys(part for folder in folders for part in (folder, _FOLDER.split(folder)[-1])):
                words = _words_in(name)
                if words:
                    self._lengths.add(len(words))
                    self._names["".join(words)] = inside.with_earlier(self.named_in(name))

    def add_private(self, tool: str, values: Mapping[str, frozenset[str]]) -> None:
        """Keep the private values that a call wrote into the user's own space, by their digests: who may read each."""
        for readers in values.values():
            self.readers = readers if self.readers is None else self.readers & readers
        if values:
            self.private, self.writer_of_private = _few(self.private.union(values)), tool

    def numbered(self, numbers: Iterable[str]) -> Sequence[Binding]:
        """Return the bindings of the numbers of objects, each with the name of what it counts."""
        return [self._names[number] for number in numbers if number in self._names]

    def named_in(self, value: str) -> Iterator[Binding]:
        """Yield the bindings of the names in a value."""
        words = _words_in(value) if self._names else []
        for size in self._lengths:
            parts = ("".join(words[at : at + size]) for at in range(len(words) - size + 1))
            yield from (self._names[part] for part in parts if part in self._names)

    def read_all(self, tool: str, call_id: str, arguments: Iterable[str], place: Place) -> None:
        """Mark a result as unknown that is of a call which made something of an unknown value, or is about its name."""
        binding = self.made_by.get((tool, call_id))
        if (binding is not None and binding.unknown) or self._has_name(arguments):
            self._bound[place] = True

    def read(self, place: Place, text: str) -> None:
        """Mark the object or the text of a result that has a name, or an unknown text, which the run wrote."""
        if not (self._names or self._unknown) or len(text) > _LONG:
            return
        above = place.parent
        is_item = isinstance(place.key, int) and above is not None and isinstance(above.key, str)
        decides = self._decides(letters_of(text))
        if decides is not None:
            self._mark((above.parent if is_item and above else above) or above or place, decides=decides)
        elif self._has_name([text]):
            self._mark(place, decides=True)
        while place.parent is not None:
            decides = self._decides(letters_of(place.key)) if isinstance(place.key, str) else None
            if decides is not None:
                self._mark(place, decides=decides)
            place = place.parent

    def _mark(self, place: Place, *, decides: bool) -> None:
        self._bound[place] = decides or self._bound.get(place, False)

    def _has_name(self, texts: Iterable[str]) -> bool:
        return any(binding.unknown for text in texts for binding in self.named_in(text))

    def _decides(self, letters: str) -> bool | None:
        """Return whether what a name, or an unknown text, stands for decides something; None for another text."""
        binding, is_unknown = self._names.get(letters), self._unknown.get(letters)
        if binding is None or not (binding.unknown or binding.stated):
            return is_unknown
        return bool(binding.unknown) or bool(is_unknown)

    def has_bound(self, place: Place | None, *, but_said: bool = False) -> bool:
        """Return whether a value of a result stands beside a name of an unknown value.

        Args:
            place: The place of the value.
            but_said: Whether a name of what was only said is no such name.
        """
        while self._bound and place is not None:
            if place in self._bound and (self._bound[place] or not but_said):
                return True
            place = place.parent
        return False

    def count_before(self, text: str, is_new: Callable[[str, int], bool]) -> float:
        """Return how many values had been read before the run first wrote what a text stands for.

        All of its letters show that, unless it is a short number, which stands in any text; of a long number so do each
        eight of them, and a longer word that is new.

        Args:
            text: The text.
            is_new: Whether a word was not known before so many values had been read.
        """
        words = words_in(folded(text).replace("_", " "))
        letters = "".join(words)
        is_telling = len(letters) >= (_SHORTEST_NUMBER if letters.isdecimal() else 1)
        count = self._count_of(letters) if is_telling else inf
        if not letters.isalpha() and sum(map(str.isdigit, letters)) * _HIGHEST_SHARE >= len(letters):
            eights = [letters[at : at + _ANYWHERE] for at in range(1, len(letters) - _ANYWHERE + 1)]
            count = min([count, *(self._counts[part] for part in eights if part in self._counts)])
        for word in words:
            before = self._count_of(word) if len(word) >= _SHORTEST_WORD else inf
            if before < count and is_new(word, int(before)):
                count = before
        for moment in moments_in(text) if self._moments else ():
            count = min(count, self._moments.get(moment, inf))
        return count

    def _count_of(self, letters: str) -> float:
        """Return how many values had been read before each eight of some letters were written, or all of fewer."""
        count = 0
        for end in range(_ANYWHERE, max(len(letters), _ANYWHERE) + 1):
            found = self._counts.get(letters[end - _ANYWHERE : end])
            if found is None:
                return inf
            count = max(count, found)
        return count


def _words_in(text: str) -> list[str]:
    return _WORDS.findall(folded(text))


def _last(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(values))[-_MOST_SHOWN:]


def _few(marks: frozenset[str]) -> frozenset[str]:
    return marks if len(marks) <= _MOST_MARKS else frozenset([digest_of(sorted(marks))])


def _some(private: Sequence[tuple[int, frozenset[str]]]) -> tuple[tuple[int, frozenset[str]], ...]:
    """Return private values; of many the last ones, of which the first may be read by those who may read all before."""
    if len(private) <= _MOST_MARKS:
        return tuple(private)
    earlier, last = private[: 1 - _MOST_MARKS], private[1 - _MOST_MARKS :]
    return (earlier[-1][0], earlier[-1][1].intersection(*(readers for _, readers in earlier))), *last


def letters_of(text: str) -> str:
    """Return the letters and digits of a text, as a store may spell it that decodes it, or leaves marks out."""
    return "".join(_words_in(text))


def moments_in(text: str) -> Iterator[Moment]:
    """Yield the dates of a text, without their years and also where they are three numbers, and the times."""
    yield from ((0, *day) for day in days_in(text))
    yield from times_in(flat(text))
