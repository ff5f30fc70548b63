"""Origins of values: the source of each component of a value, among the texts and results that a run has read."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import takewhile
from math import inf
from typing import Any, Final, Literal, cast

from toolcrib.provenance._kinds import Component, components, number_of, phrases, whole_of, without_moments
from toolcrib.provenance._question import ASKED, Origin
from toolcrib.provenance._texts import TextIndex, flat, is_long_number, words_in
from toolcrib.provenance._writings import Writings, parts_of
from toolcrib.tools import Place, Trust

WORDS_OF_USER: Final = 0
"""The writer of a text of the user's: the user."""
PROGRAM: Final = 1
"""The writer of a text that counts as the user's: the model, in a program, before any text of others was read."""
APART: Final = "\0"
"""A mark between the literals of a program, so that no value is made of two; a value that has it is unknown."""

_MOST_TEXT: Final = 20_000_000  # characters of results that one run keeps
_MOST_EXACT: Final = 2**53  # the whole numbers that a float holds
_SHORT: Final = 3  # characters
_MOST_BITS: Final = 24  # of results of others; with more a stranger spells out a value
_IN_ANY_TEXT: Final = 100  # smaller whole numbers stand in any text, by chance
_MOST_OF_RESULT: Final = 5_000  # values of one result, for what all its records have
_NEAR: Final = 32  # values of one record that are looked through
_MOST_SAME: Final = 1_000  # equal values that are looked through
_BUDGET: Final = 4_000  # texts that are looked up in those of others, for the values of one call
_COST_OF_FOUND: Final = 40  # of these, one that is found, whose line is counted
_LONG: Final = 2_000  # characters of a text that is looked at word by word
_MOST_WORDS: Final = 24  # of a value that is looked at for what stands in it side by side
_LONGEST_PHRASE: Final = 8  # words
_BY_KIND: Final[Mapping[str, int]] = {"untrusted": 4, "flag": 3, "model": 2, "chosen": 1}
_PATHS: Final = re.compile(r"(?<![^\s/])(?=[^\s/]+\.[^\s/])[^\s/]++/(\S+)")  # what follows the host of a link
_ODD_SPACE: Final = re.compile(r"[^\S ]")
_EXACT: Final = re.compile(r"^-|[\d_/]")
_MOMENT: Final = re.compile(r"(?i)\d(?:st|nd|rd|th|[ap]\.?m\.?|t\d\d.*)$|^\d+(?:[-/:.]\d+)+z?$")
_INDEX: Final = re.compile(r"\[\d+\]")
_NUMBERS: Final = frozenset({"id", "ids", "number", "numbers", "no"})  # names of fields that tell objects apart
_SEGMENTS: Final = re.compile(r"[/?&=#+]")
_PLAIN: Final = re.compile(r"[a-z]+")


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
    """

    reading: Reading
    place: Place
    text: str
    trust: Trust = "untrusted"
    is_beside: bool = False
    is_key: bool = False

    @property
    def field(self) -> Place:
        """The place of it, or of the list that it is an item of."""
        parent = self.place.parent
        return parent if parent is not None and isinstance(self.place.key, int) else self.place

    @property
    def record(self) -> Place | None:
        """The place of the record that it is in; None where it is in none."""
        return self.field.parent if isinstance(self.field.key, str) and not self.is_key else None

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


class Origins:
    """The texts that a run knows: the user's, those of trusted results, and those that others may have written."""

    def __init__(self) -> None:
        self._user, self._trusted, self._untrusted = TextIndex(), TextIndex(), TextIndex(is_loose=True)
        self._sources: list[Piece] = []
        self._left, self._is_lost = _MOST_TEXT, False
        self.is_told = False
        self._writings = Writings()
        self._covers: dict[tuple[object, Any], Sequence[Origin]] = {}  # of values, for one call
        self._written: dict[str, float] = {}  # what was read before a text was written, for the values of one call
        self._read_before: dict[str, bool] = {}  # words that were written: whether a trusted result had them before
        self._echoes: dict[int, set[str | float]] = {}  # of pieces: what their calls were given, and not by others
        self._values: dict[str | float, list[int]] = {}  # the trusted pieces that are a value, and no longer text
        self._looked_up: dict[str, tuple[int, int] | None] = {}  # in texts of others, for the values of one call
        self._texts_of_others, self._budget = 0, _BUDGET
        self._bits = 0  # of true, false and nothing in results of others
        self._has_chosen = False  # whether it has read names, or objects, that strangers chose

    @property
    def is_full(self) -> bool:
        """Whether text of others is not here: then no result counts as trusted, and what is unknown may be theirs."""
        return self._is_lost or self._left < 0

    @property
    def _reads_others(self) -> bool:
        is_spelled = self._bits > _MOST_BITS
        return len(self._untrusted) > 0 or self.is_full or self.is_told or self._has_chosen or is_spelled

    def origin(self, value: Any) -> Origin:
        """Return the origin of a text or a number: of several components the one that is trusted least."""
        self._begin()
        return self._least_trusted(value)

    def _least_trusted(self, value: Any) -> Origin:
        return max(self.cover(value), key=lambda each: _BY_KIND.get(each.kind, 0))

    def cover(self, value: Any) -> Sequence[Origin]:
        """Return the origin of a text or a number as a whole, or else of each of its components.

        It is unknown where too much was looked up for the same call.

        Args:
            value: The text or number.
        """
        self._forget_before_others()
        key = (cast("object", type(value)), value)
        if key not in self._covers and self._budget < 0:
            return [Origin("model")]
        if key not in self._covers:
            self._covers[key] = self._origins_of(value)
        return self._covers[key]

    def _origins_of(self, value: Any) -> list[Origin]:
        text = key_of(value)
        if isinstance(text, str) and APART in text:
            return [Origin("model")]
        number = whole_of(text) if isinstance(text, str) else text
        if number is not None or not isinstance(text, str):
            is_plain = not isinstance(value, str) or value.isascii()
            return [self._origin_of_number(number or 0.0) if is_plain else Origin("model", part=str(text))]
        whole = self._origin_of_text(text)
        if not self._reads_others:
            return [Origin("derived") if whole is None else whole]
        if whole is not None and whole.kind == "user" and not without_moments(text).strip():
            whole = None  # a name and a number of the user's may look like a date
        parts = [] if whole is not None else components(text)
        found = [self._origin_of(part, is_whole=len(parts) == 1) for part in parts] if whole is None else [whole]
        if len(parts) > 1 and any(origin.kind in ASKED for origin in found):
            found = self._cover_phrases(text) or found
        if any(origin.kind in ASKED for origin in found):
            return found
        unclear = _spelling(str(value), self._has_cased)
        if unclear is None and parts:
            unclear = (
                text
                if _is_joined(text, parts, found)
                else next((p for p in phrases(text) if not self._is_one(p)), None)
            )
        return found if unclear is None else [Origin("model", part=flat(unclear))]

    def _is_one(self, phrase: str) -> bool:
        """Return whether words stand side by side, with the same marks, in a text of the user's or a trusted one."""
        if self._user.find(phrase) is not None:
            return True
        found = self._find_trusted(phrase)
        return found is not None and found.kind == "trusted"

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
            self._written[text] = self._count_before(text)
        return self._written[text] <= number or self._writings.has_bound(self._sources[number].place, but_said=but_said)

    def _count_before(self, text: str) -> float:
        """Return how many values had been read before the run first wrote what a text stands for."""
        parts, words = parts_of(text)
        counts = ((word, self._writings.count_before(word)) for word in words)
        new = (count for word, count in counts if count < inf and self._is_new(word, int(count)))
        return min(self._writings.count_before_moments(text), *map(self._writings.count_before, parts), *new, inf)

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

    def _has_cased(self, segment: str) -> bool:
        named = (self._sources[at] for at in self._values.get(flat(segment), ()))
        is_name = any(piece.trust == "name" and piece.text == segment for piece in named)
        return self._user.has_cased(segment) or (not self.is_full and (is_name or self._trusted.has_cased(segment)))

    def _cover_phrases(self, text: str) -> list[Origin]:
        """Return the components of what is left of a text without words that stand side by side in one of ours."""
        words = text.split()
        if len(words) > _MOST_WORDS:
            return []
        rest, at = list[str](), 0
        while at < len(words):
            longest = min(len(words) - at, _LONGEST_PHRASE)
            ends = (end for end in range(longest, 1, -1) if self._is_ours(" ".join(words[at : at + end])))
            end = next(ends, 0)
            if not end:
                rest.append(words[at])
            elif rest and rest[-1] != "\n":
                rest.append("\n")
            at += end or 1
        if len(rest) == len(words):
            return []
        parts = [part for line in " ".join(rest).split("\n") if line.strip() for part in components(line.strip())]
        return [Origin("derived"), *(self._origin_of(part, is_whole=False) for part in parts)]

    def _is_ours(self, phrase: str) -> bool:
        phrase = phrase.strip(".,:;!?'\"()")
        if " " not in phrase:
            return False
        if self._user.find(phrase) is not None:
            return True
        found = self._find_trusted(phrase)
        return found is not None and found.kind == "trusted" and self._find_of_others(phrase) is None

    def _is_put_together(self, text: str) -> bool:
        """Return whether a text is made of words of ours, and stands in no text of others as it is."""
        if len(text) > _LONG or self._find_of_others(text) is not None:
            return self._user.find(text) is not None
        words = [part.text for part in components(without_moments(text)) if part.kind in ("word", "name", "host")]
        return bool(words) and all(
            self._user.find(word) is not None or self._find_trusted(word) is not None for word in words
        )

    # --- one component

    def _origin_of(self, part: Component, *, is_whole: bool) -> Origin:
        name = "" if is_whole else part.text
        match part.kind:
            case "number":
                return replace(self._origin_of_number(part.number), part=name)
            case "date":
                return replace(self._origin_of_date(part.parts), part=name)
            case "time":
                return replace(self._origin_of_key("times", part.parts, part.text), part=name)
            case "measure":
                origin = self._origin_of_key("measures", (part.number, part.unit), part.text)
                of_others = self._untrusted.numbers.get(part.number) if origin.kind == "model" else None
                return replace(origin if of_others is None else self._sources[of_others].located(), part=name)
            case "host":
                return replace(self._origin_of_host(part.text), part=name)
            case "word":
                origin = self._origin_of_text(part.text, is_part=True) or Origin("model")
                return replace(Origin("model") if origin.kind == "untrusted" else origin, part=name)
            case "name":
                return replace(self._origin_of_text(part.text, is_part=True) or Origin("model"), part=name)
            case "unclear":
                return Origin("model", part=name)

    def _origin_of_text(self, text: str, *, is_part: bool = False) -> Origin | None:
        """Return the origin of a text as a whole; None when it is nowhere."""
        is_users = self._user.find(text) is not None or self._user.has_grouped(text) or self._user.has_mark(text)
        if is_users and (is_part or not self._is_ambiguous(text)):
            return Origin("user")
        trusted = self._find_trusted(text)
        found = self._find_of_others(text)  # before the trusted ones: a stranger may name what is in them
        if found is not None:
            meant = self._find_meant(text) if trusted is not None and len(text) > _SHORT else None
            return meant or self._sources[found[0]].located(found[1])
        return Origin("user") if is_users else trusted

    def _find_trusted(self, text: str) -> Origin | None:
        """Return where a trusted result has a text; `chosen` where a stranger may have brought all that have it."""
        number, line = next(self._places(text), (-1, 0))
        if number < 0:
            return None
        if self._sources[number].is_beside:
            of_its_own = (at for at in self._places(text) if not self._sources[at[0]].is_beside)
            number, line = next(of_its_own, (number, line))
        piece = self._sources[number]
        if piece.is_beside:
            return self._find_meant(text) or replace(piece.located(line), kind="chosen")
        return piece.located(line)

    def _places(self, text: str, *, but_said: bool = False) -> Iterator[tuple[int, int]]:
        """Yield the trusted pieces that have a text, with the line; of names those that are the text as a whole."""
        if self.is_full:
            return
        named = self._values.get(text, ()) if self._has_chosen else ()
        names = ((at, 0) for at in named if self._sources[at].trust == "name")
        for found in (self._trusted.places(text), names):
            yield from (place for place in found if not self._is_rewritten(text, place[0], but_said=but_said))

    def _find_meant(self, text: str) -> Origin | None:
        """Return where a text is in a trusted result, in a record that the user named; None when in none."""
        return self._first_meant(at for at, _ in self._places(text))

    def _first_meant(self, numbers: Iterable[int]) -> Origin | None:
        for number in numbers:
            pointer = self._pointer_to(number)
            if pointer is not None:
                is_meant = self._points_at_one(pointer, number) and not self._is_given_anew(pointer)
                return replace(self._sources[number].located(), is_meant=is_meant)
        return None

    def _find_of_others(self, text: str) -> tuple[int, int] | None:
        """Return the first untrusted text with a value, and the line; not one of a call that was given the value."""
        self._forget_before_others()
        if text not in self._looked_up:
            found = next((at for at in self._untrusted.places(text) if text not in self._echoes.get(at[0], ())), None)
            self._looked_up[text] = found
            self._budget -= 1 if found is None else _COST_OF_FOUND
        return self._looked_up[text]

    def _forget_before_others(self) -> None:
        """Forget what was looked up before more texts of others were read."""
        if self._texts_of_others != len(self._untrusted):
            self._texts_of_others = len(self._untrusted)
            self._looked_up.clear()
            self._covers.clear()

    def _begin(self) -> None:
        """Begin to look up the values of a call."""
        self._covers.clear()
        self._looked_up.clear()
        self._written.clear()
        self._budget = _BUDGET

    def _origin_of_number(self, value: float) -> Origin:
        others, is_users = self._untrusted.numbers.get(value), value in self._user.numbers
        is_either = others is not None and self._is_ambiguous(number_text(value))
        if is_users and not is_either:
            return Origin("user")
        trusted = self._first_known(number_text(value), self._trusted.numbers.get(value))
        is_beside = trusted is not None and self._sources[trusted].is_beside
        if trusted is not None and not is_either and (is_beside or others is not None):
            meant = self._find_meant_number(value)
            if meant is not None:
                return meant
        if others is not None and (trusted is None or abs(value) >= _IN_ANY_TEXT or value % 1):
            return self._sources[others].located()
        if trusted is not None:
            is_chosen = is_beside or others is not None
            return replace(self._sources[trusted].located(), kind="chosen" if is_chosen else "trusted")
        return Origin("model" if self._reads_others else "derived")

    def _find_meant_number(self, value: float) -> Origin | None:
        places = (at for at, _ in self._places(number_text(value)))
        return self._first_meant(at for at in places if number_of(flat(self._sources[at].text)) == value)

    def _find_named_number(self, tool: str, path: str, value: Any) -> Origin | None:
        """Return the origin of the number of an object that the user named by another value; None where it is of none.

        A stranger may have written the same number by chance, as short as it is: the argument is named like the field,
        and the tool like the one that gave the object.
        """
        text = key_of(value)
        number = whole_of(text) if isinstance(text, str) else text
        if number is None or number not in self._trusted.numbers:
            return None
        found = self._places(number_text(number), but_said=True)
        places = ((at, self._sources[at]) for at, _ in found)
        return self._first_meant(
            at
            for at, piece in places
            if number_of(flat(piece.text)) == number
            and _is_named_alike(path, piece)
            and _is_of_thing(path, piece, _things_of(tool))
        )

    def _is_ambiguous(self, text: str) -> bool:
        """Return whether a value is so short that, where a stranger wrote it as well as the user, it may be either's.

        A name that the user wrote with a capital is not.
        """
        return len(text) <= _SHORT and not self._user.has_name(text)

    def _origin_of_host(self, host: str) -> Origin:
        """Return the origin of the host of a link; one that is known by `https` alone is unknown by `http`."""
        bare = host.removeprefix("http://")
        origin = self._origin_of_key("hosts", bare, bare)
        is_open = bare != host and origin.kind in ("user", "trusted")
        if is_open and any(
            f"https://{bare}" in texts.hosts and host not in texts.hosts for texts in (self._user, self._trusted)
        ):
            return Origin("model")
        return origin

    def _origin_of_key(self, index: Literal["times", "hosts", "measures"], key: Any, text: str) -> Origin:
        """Return where a time of day, a host or a number with its unit comes from, which a text stands for."""
        indexes = (self._user, self._trusted, self._untrusted)
        user, trusted, others = (cast("Mapping[Any, int]", getattr(texts, index)) for texts in indexes)
        if key in user:
            return Origin("user")
        if key in others:
            return self._sources[others[key]].located()
        known = self._first_known(text, trusted.get(key))
        if known is not None and not self._sources[known].is_beside:
            return self._sources[known].located()
        return Origin("model" if self._reads_others else "derived")

    def _origin_of_date(self, date: tuple[int, ...]) -> Origin:
        """Return the origin of a date; one that is known without a year is known in the years that are."""
        year, day = date[0], (date[1], date[2])
        user, others = self._user.dates.get(day, {}), self._untrusted.dates.get(day, {})
        trusted = {} if self.is_full else self._trusted.dates.get(day, {})
        if self._is_known(year, user):
            return Origin("user")
        if others:
            return self._sources[others.get(year, next(iter(others.values())))].located()
        known = self._first_known(f"2000-{day[0]:02}-{day[1]:02}", next(iter(trusted.values()), None))
        if known is not None and self._is_known(year, trusted):
            return self._sources[known].located()
        return Origin("model" if self._reads_others else "derived")

    def _is_known(self, year: int, years: Mapping[int, int]) -> bool:
        if not years or not year or year in years:
            return bool(years)
        return 0 in years and (year in self._user.years or (not self.is_full and year in self._trusted.years))

    # --- the record that a value is in

    def _pointer_to(self, number: int) -> Piece | None:
        """Return the value by which the user named the record that a trusted value is in; None where he did not.

        That is a trusted one that no other record of the tool has, or one of others such as the title of an event. A
        value of a mapping is named by its key.
        """
        piece = self._sources[number]
        near = [sibling for sibling in self._siblings(number) if sibling.field is not piece.field]
        for sibling in near:
            if sibling.trust != "untrusted" and self._is_pointer(sibling) and self._is_of_record(sibling, number):
                return sibling
        named = (sibling for sibling in near if sibling.trust == "untrusted" and self._names_one(sibling, piece))
        return next(named, None) or self._key_of(number, near)

    def _is_given_anew(self, pointer: Piece) -> bool:
        """Return whether the run gave a name to a trusted value that the user did not name."""
        return any(binding.chosen for binding in self._writings.named_in(pointer.text))

    def _points_at_one(self, pointer: Piece, number: int) -> bool:
        """Return whether a pointer names one value alone, and not a list of them."""
        piece = self._sources[number]
        if not isinstance(piece.place.key, int) or isinstance(pointer.place.key, int):
            return True
        beside = self._sources[max(0, number - 1) : number] + self._sources[number + 1 : number + 2]
        return all(neighbour.place.parent is not piece.place.parent for neighbour in beside)

    def _siblings(self, number: int) -> Iterator[Piece]:
        """Yield the values of the record that a value is in; of columns those with the same index."""
        piece = self._sources[number]
        record, key = piece.record, piece.place.key
        for sibling in self._sources[max(0, number - _NEAR) : number + _NEAR] if record is not None else ():
            is_other_row = isinstance(key, int) and isinstance(sibling.place.key, int) and sibling.place.key != key
            if sibling.record is record and (sibling.field is piece.field or not is_other_row):
                yield sibling

    def _is_of_record(self, pointer: Piece, number: int) -> bool:
        """Return whether the object of two values is a record, and no mapping by name.

        Other records of the result have the same fields, or the two values are of two kinds.
        """
        piece = self._sources[number]
        if _sort_of(pointer.text) != _sort_of(piece.text):
            return True
        key, record, others = piece.field.key, piece.record, self._of_result(number)
        return any(other.field.key == key and other.record not in (None, record) for other in others)

    def _key_of(self, number: int, near: Sequence[Piece]) -> Piece | None:
        """Return the key by which the user named a value of a mapping, or an object of one; None where he did not.

        In a mapping all values look alike, or all objects have the same fields; other keys are those of a schema.
        """
        piece = self._sources[number]
        record, places = piece.record, list[Place]()
        if near and all(_sort_of(sibling.text) == _sort_of(piece.text) for sibling in near):
            places.append(piece.field)
        others = (value.record for value in self._of_result(number) if value.field.key == piece.field.key)
        if record and any(other and other is not record and other.parent is record.parent for other in others):
            places.append(record)
        for place in places:
            key = flat(place.key) if isinstance(place.key, str) else ""
            for at in self._values.get(value_of(key), ())[:1] if key and self._is_users_name(key, piece) else ():
                if self._sources[at].is_key and self._is_single(self._sources[at]):
                    return self._sources[at]
        return None

    def _column(self, number: int) -> Iterator[str]:
        """Yield the trusted values that a result has in the field of a value, those next to it first."""
        place = self._sources[number].place
        for piece in self._of_result(number):
            is_known = piece.trust != "untrusted" and not piece.is_key and not self._writings.has_bound(piece.place)
            if is_known and _is_same_field(piece.place, place):
                yield flat(piece.text)

    def _of_result(self, number: int) -> Iterator[Piece]:
        """Yield the values of the result that a value is in, in no order; up to 5,000 before and behind it."""
        root, size = self._sources[number].reading.root, len(self._sources)
        for places in (range(number, min(number + _MOST_OF_RESULT, size)), range(number - 1, -1, -1)[:_MOST_OF_RESULT]):
            pieces = (self._sources[place] for place in places)
            yield from takewhile(lambda each: each.reading.root is root, pieces)

    def _is_record_number(self, value: Any, path: str) -> bool:
        """Return whether a whole number tells the records of a trusted result apart, and no stranger wrote it.

        It does so for an argument that is named like the field, and so not as a quantity.
        """
        number = None if self.is_full or not isinstance(value, int) else self._trusted.numbers.get(value)
        if number is None or value in self._untrusted.numbers or not _is_named_alike(path, self._sources[number]):
            return False
        column = list(self._column(number))
        return len(set(column)) == len(column) > 1 and all(text.isdecimal() for text in column)

    def _is_column(self, number: int, given: Set[str]) -> bool:
        """Return whether texts are all that a result has in the field of a value."""
        found = set[str]()
        for text in self._column(number):
            if text not in given or self._is_rewritten(text, number):
                return False
            found.add(text)
        return len(found) == len(given)

    def _is_pointer(self, piece: Piece) -> bool:
        """Return whether a trusted value of a record says which record the user means: no other record has it.

        Beside a text of others a word does not, nor does a date or a number: a stranger may bring one.
        "That 10.00" does.
        """
        text = flat(piece.text)
        number = number_of(text)
        is_figure = number is not None or not without_moments(text).strip()
        if piece.is_beside and is_figure and number not in self._user.definite:
            return False
        if number is None:
            return self._is_users_name(text, piece) and self._is_single(piece)
        return number in self._user.numbers and len(text) > 1 and self._is_single(piece)

    def _is_users_name(self, text: str, piece: Piece) -> bool:
        """Return whether the user wrote a text, with which a stranger cannot have named a record."""
        if self._user.find(text) is None or (self._is_ambiguous(text) and self._find_of_others(text) is not None):
            return False
        return not piece.is_beside or _PLAIN.fullmatch(text) is None

    def _is_single(self, piece: Piece) -> bool:
        """Return whether no other record of the tool has a value, and no other mapping has a key."""
        same = self._values.get(value_of(piece.text), ())
        return 0 < len(same) <= _MOST_SAME and all(self._is_same_record(piece, at, same) for at in same)

    def _is_same_record(self, piece: Piece, at: int, same: Sequence[int]) -> bool:
        """Return whether two equal values are of one record, which may have been read twice, or of two tools."""
        other = self._sources[at]
        if piece is other or (piece.record is not None and piece.record is other.record):
            return True
        reading, again = piece.reading, other.reading
        if piece.is_key or other.is_key:
            is_again = reading.root is not again.root and reading.tool == again.tool
            is_again = is_again and reading.arguments == again.arguments and piece.is_key is other.is_key
            return is_again and str(piece.place) == str(other.place)
        number = next(index for index in same if self._sources[index] is piece)
        if reading.tool != again.tool:
            return not (piece.is_beside and self._is_other_object(number, at))
        return self._texts_beside(number) == self._texts_beside(at)

    def _is_other_object(self, number: int, at: int) -> bool:
        """Return whether two records of one name differ in a field that both have: a stranger brought one of them."""
        fields = {sibling.field.key: sibling.text for sibling in self._siblings(number) if not sibling.is_key}
        others = (sibling for sibling in self._siblings(at) if sibling.trust != "untrusted" and not sibling.is_key)
        return any(fields.get(sibling.field.key, sibling.text) != sibling.text for sibling in others)

    def _texts_beside(self, number: int) -> list[str]:
        return [sibling.text for sibling in self._siblings(number)]

    def _names_one(self, name: Piece, value: Piece) -> bool:
        """Return whether the user wrote a text of others that names a record, and no record with another value."""
        text, key = flat(name.text), value.field.key
        if _PLAIN.fullmatch(text) or number_of(text) is not None or self._user.find(text) is None:
            return False
        named = [at for at, _ in self._untrusted.places(text) if flat(self._sources[at].text) == text]
        found = [frozenset(sibling.text for sibling in self._siblings(at) if sibling.field.key == key) for at in named]
        return len(set(found)) == 1 and value.text in found[0]


def _is_same_field(place: Place, other: Place) -> bool:
    """Return whether two places are the same but for their indexes."""
    at: Place | None = place
    to: Place | None = other
    while at is not None and to is not None:
        if at is to:
            return True
        if at.key != to.key and not (isinstance(at.key, int) and isinstance(to.key, int)):
            return False
        at, to = at.parent, to.parent
    return at is to


def _is_named_alike(path: str, piece: Piece) -> bool:
    """Return whether an argument and the field of a value are named alike: `file_id` and `id`, or `number`."""
    names = [words_named(path)[-1:], words_named(str(piece.field.key))[-1:]]
    return names[0] == names[1] or all(name and name[0] in _NUMBERS for name in names)


def _is_of_thing(path: str, piece: Piece, things: Set[str]) -> bool:
    """Return whether an argument and the things of its tool are what the tool of a value is about: `file_id`."""
    about, field = _things_of(piece.reading.tool), words_named(str(piece.field.key))
    named = {word.removesuffix("s") for word in words_named(path)[:-1] if word not in field}
    return not about.isdisjoint(things) and named <= about


def _things_of(tool: str) -> set[str]:
    """Return the things that a tool is about, by its name: `file` of `share_file` and of `list_files`."""
    return {word.removesuffix("s") for word in words_named(tool)[1:] if len(word) > _SHORT}


def words_named(name: str) -> list[str]:
    """Return the words of a name, or of the last one of a path."""
    return words_in(flat(_INDEX.sub("", name).rpartition(".")[2]).replace("_", " "))


def _sort_of(text: str) -> str:
    """Return the sort of a value: a number, an account, an address or a text."""
    plain = flat(text)
    if number_of(plain) is not None:
        return "number"
    return "account" if is_long_number(plain) else "address" if "@" in plain else "text"


def _is_joined(text: str, parts: Sequence[Component], found: Sequence[Origin]) -> bool:
    """Return whether a link or a path was put together of values of several records, or of one with the user's host."""
    places = {(origin.call_id, origin.path) for origin in found if origin.kind == "trusted"}
    hosts = [origin for part, origin in zip(parts, found, strict=False) if part.kind == "host"]
    is_path = bool(hosts) or ("/" in text and all(part.kind == "name" for part in parts))
    return is_path and (len(places) > 1 or (bool(places) and any(host.kind == "user" for host in hosts)))


def _spelling(value: str, has_cased: Callable[[str], bool]) -> str | None:
    """Return the part of a text that another program may read in another way than we compare it; None for none.

    That is a text with compatible characters, one of several lines, and a segment of a link, a path, an option or an
    identifier in other capitals.
    """
    bare = value.strip(" \t\r\n")
    if _ODD_SPACE.search(bare) is not None and not has_cased(bare):
        return value
    if not value.isascii() and unicodedata.normalize("NFKC", value) != value:
        return value
    segments = [part for path in _PATHS.findall(value) for part in _SEGMENTS.split(path.rstrip(".,:;!?"))]
    words = () if segments or is_long_number(bare) else map(_stripped, bare.split())
    exact = [*segments, *filter(_is_exact, words)]
    return next((part for part in exact if part.lower() != part.upper() and not has_cased(part)), None)


def _stripped(word: str) -> str:
    return word.strip(".,:;!?()\"'")


def _is_exact(word: str) -> bool:
    """Return whether other capitals make another value of a word: of an option, a path or an identifier."""
    is_exact = _EXACT.search(word) is not None and "@" not in word and "://" not in word
    return is_exact and _MOMENT.search(word) is None


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
