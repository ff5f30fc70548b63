"""Pieces of what a run has read: texts and numbers with their sources, and the look-ups in them."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, Final

from toolcrib.provenance._kinds import number_of
from toolcrib.provenance._question import Origin
from toolcrib.provenance._texts import TextIndex, flat
from toolcrib.provenance._writings import Writings
from toolcrib.tools import Place, Trust

_MOST_TEXT: Final = 20_000_000  # characters of results that one run keeps
_MOST_EXACT: Final = 2**53  # the whole numbers that a float holds
_SHORT: Final = 3  # characters
_MOST_BITS: Final = 24  # of results of others; with more a stranger spells out a value
_BUDGET: Final = 4_000  # texts that are looked up in those of others, for the values of one call
_COST_OF_FOUND: Final = 40  # of these, one that is found, whose line is counted
_LONG: Final = 2_000  # characters of a text that is in marks as it is


class Reading:
    """One reading of a result.

    Attributes:
        tool: The tool.
        call_id: The call's id, which another call may have as well.
        about: The subject of the call, for a person.
        arguments: The arguments by which the result was looked up, as JSON shapes.
        root: The place of the result, which all values of a stream have in common.
        digests: Digests of its long texts that have been asked about, by place.
    """

    __slots__ = ("about", "arguments", "call_id", "digests", "root", "tool")

    def __init__(self, tool: str, call_id: str, arguments: Mapping[str, Any], about: str, root: Place) -> None:
        self.tool, self.call_id, self.arguments, self.about, self.root = tool, call_id, arguments, about, root
        self.digests: dict[Place, str] = {}

    @property
    def source(self) -> str:
        """The source as a person reads it."""
        return f"`{self.tool}`{f' ({self.about})' if self.about else ''}"


@dataclass(frozen=True, slots=True, eq=False)
class Piece:
    """A text or a number of a result.

    Attributes:
        reading: The reading that it is of.
        place: Where it stands; of a key, where its object does.
        text: The text.
        trust: How far it can be trusted.
        is_beside: Whether a text of others is in the same record.
        is_key: Whether it is a key of an object.
        field: The place of it, or of the list that it is an item of.
        record: The place of the record that it is in; None where it is in none.
    """

    reading: Reading
    place: Place
    text: str
    trust: Trust = "untrusted"
    is_beside: bool = False
    is_key: bool = False
    field: Place = dataclasses.field(init=False)
    record: Place | None = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        parent = self.place.parent
        above = parent if parent is not None and isinstance(self.place.key, int) else self.place
        record = above.parent if isinstance(above.key, str) and not self.is_key else None
        object.__setattr__(self, "field", above)  # looked at for each value that may be in one record
        object.__setattr__(self, "record", record)

    def located(self, line: int = 0) -> Origin:
        """Return its origin with the line, and with what stands for the place in marks.

        A result that is one text and that was looked up by arguments is the place that these name, such as a file or a
        page. Of another one the place is the text itself.
        """
        reading, path = self.reading, str(self.place)
        is_named = bool(reading.arguments) and not path
        source = (reading.arguments,) if is_named else (reading.arguments, path, self._text_in_marks())
        kind = "untrusted" if self.trust == "untrusted" else "trusted"
        return Origin(kind, reading.tool, reading.call_id, reading.about, path, line, source=source)

    def _text_in_marks(self) -> str:
        """Return the text, or its digest where it is long."""
        if len(self.text) <= _LONG:
            return self.text
        digests = self.reading.digests
        if self.place not in digests:
            digests[self.place] = hashlib.sha256(self.text.encode("utf-8", "surrogatepass")).hexdigest()
        return digests[self.place]


class Pieces:
    """The texts that a run knows: the user's, those of trusted results, and those that others may have written."""

    def __init__(self) -> None:
        self._user, self._trusted, self._untrusted = TextIndex(), TextIndex(), TextIndex(is_loose=True)
        self._sources: list[Piece] = []
        self._left, self._is_lost = _MOST_TEXT, False
        self.is_told = False
        self.today: date | None = None
        self._writings = Writings()
        self._covers: dict[tuple[object, Any], Sequence[Origin]] = {}  # of values, for one call
        self._written: dict[str, float] = {}  # what was read before a text was written, for the values of one call
        self._read_before: dict[str, bool] = {}  # words that were written: whether a trusted result had them before
        self._echoes: dict[int, set[str | float]] = {}  # of pieces: what their calls were given, and not by others
        self._values: dict[str | float, list[int]] = {}  # the trusted pieces that are a value, and no longer text
        self._looked_up: dict[str, tuple[int, int] | None] = {}  # in texts of others, for the values of one call
        self._budget = _BUDGET
        self._bits = 0  # of true, false and nothing in results of others
        self._has_chosen = False  # whether it has read names, or objects, that strangers chose

    @property
    def is_full(self) -> bool:
        """True if text of others is not here: then no result counts as trusted, and what is unknown may be theirs."""
        return self._is_lost or self._left < 0

    @property
    def _reads_others(self) -> bool:
        is_read = len(self._untrusted) > 0 or self.is_told or self._has_chosen
        return is_read or self.is_full or self._bits > _MOST_BITS

    def _places(self, text: str, *, but_said: bool = False) -> Iterator[tuple[int, int]]:
        """Yield the trusted pieces that have a text, with the line; of names those that are the text as a whole."""
        if self.is_full:
            return
        for place in self._trusted.places(text):
            if not self._is_rewritten(text, place[0], but_said=but_said):
                yield place
        for at in self._values.get(text, ()) if self._has_chosen else ():
            if self._sources[at].trust == "name" and not self._is_rewritten(text, at, but_said=but_said):
                yield at, 0

    def _find_of_others(self, text: str) -> tuple[int, int] | None:
        """Return the first untrusted text with a value, and the line; not one of a call that was given the value."""
        if text in self._looked_up:
            return self._looked_up[text]
        found = next((at for at in self._untrusted.places(text) if text not in self._echoes.get(at[0], ())), None)
        self._looked_up[text] = found
        self._budget -= 1 if found is None else _COST_OF_FOUND
        return found

    def _add_of_others(self, text: str, number: int, but: Collection[str | float] = ()) -> None:
        """Add a text of others, and forget what was looked up before."""
        self._untrusted.add(text, number, but)
        self._looked_up.clear()
        self._covers.clear()

    def _begin(self) -> None:
        """Begin to look up the values of a call."""
        self._covers.clear()
        self._looked_up.clear()
        self._written.clear()
        self._budget = _BUDGET

    def _is_rewritten(self, text: str, number: int, *, but_said: bool = False) -> bool:
        """Return whether a trusted value was read after the run had written it, in whatever spelling.

        So is one of an object that has a name which the run gave to something unknown, and one of such a call's result.

        Args:
            text: The value.
            number: The number of its piece.
            but_said: Whether objects count as known whose unknown texts are only content.
        """
        if number < self._writings.first:
            return False
        if text not in self._written:
            self._written[text] = self._writings.count_before(text, self._is_new)
        return self._written[text] <= number or self._writings.has_bound(self._sources[number].place, but_said=but_said)

    def _is_new(self, word: str, since: int) -> bool:
        """Return whether neither the user nor a trusted result read before so many values has a word."""
        if self._user.find(word) is not None:
            return False
        if word not in self._read_before:
            self._read_before[word] = (self._trusted.find(word) or (since, 0))[0] < since
        return not self._read_before[word]

    def _first_known(self, text: str, number: int | None) -> int | None:
        """Return the first trusted value that has what a text stands for; None for one that the run wrote before."""
        return None if number is None or self.is_full or self._is_rewritten(text, number) else number

    def _is_ambiguous(self, text: str) -> bool:
        """Return whether a value is so short that, where a stranger wrote it as well as the user, it may be either's.

        A name that the user wrote with a capital is not.
        """
        return len(text) <= _SHORT and not self._user.has_name(text)


def key_of(value: Any) -> str | float:
    """Return a text or a number as it is looked up."""
    if isinstance(value, int) and abs(value) >= _MOST_EXACT:
        return str(value) if abs(value) < 10**4_000 else hex(value)
    return float(value) if isinstance(value, int | float) else flat(str(value))


def number_text(value: float) -> str:
    """Return a number as the shortest text that stands for it and no other."""
    return f"{value:.15g}" if float(f"{value:.15g}") == value else repr(value)


def value_of(text: str) -> str | float:
    """Return a text of a result as a value that is looked up as a whole."""
    plain = flat(text)
    number = number_of(plain)
    return plain if number is None else number
