"""Records of results: by which value the user named the one that a value is in."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import replace
from functools import lru_cache
from itertools import takewhile
from typing import Any, Final

from toolcrib.provenance._kinds import number_of, whole_of, without_moments
from toolcrib.provenance._pieces import Piece, Pieces, key_of, number_text, value_of
from toolcrib.provenance._question import Origin
from toolcrib.provenance._texts import flat, is_long_number, words_in
from toolcrib.tools import Place

_MOST_OF_RESULT: Final = 5_000  # values of one result, for what all its records have
_NEAR: Final = 32  # values of one record that are looked through
_MOST_SAME: Final = 1_000  # equal values that are looked through
_SHORT: Final = 3  # characters
_INDEX: Final = re.compile(r"\[\d+\]")
_NUMBERS: Final = frozenset({"id", "ids", "number", "numbers", "no"})  # names of fields that tell objects apart
_PLAIN: Final = re.compile(r"[a-z]+")


class Records(Pieces):
    """The records of the results that a run has read, and what names them."""

    def _find_meant(self, text: str) -> Origin | None:
        """Return where a text is in a trusted result, in a record that the user named; None when in none."""
        return self._first_meant(at for at, _ in self._places(text))

    def _find_meant_number(self, value: float) -> Origin | None:
        places = (at for at, _ in self._places(number_text(value)))
        return self._first_meant(at for at in places if number_of(flat(self._sources[at].text)) == value)

    def _first_meant(self, numbers: Iterable[int]) -> Origin | None:
        for number in numbers:
            pointer = self._pointer_to(number)
            if pointer is not None:
                is_meant = self._points_at_one(pointer, number) and not self._is_given_anew(pointer)
                return replace(self._sources[number].located(), is_meant=is_meant)
        return None

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
            and is_named_alike(path, piece)
            and _is_of_thing(path, piece, things_of(tool))
        )

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
            if sibling.record is not record:
                continue
            is_other_row = isinstance(key, int) and isinstance(sibling.place.key, int) and sibling.place.key != key
            if sibling.field is piece.field or not is_other_row:
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
            yield from takewhile(lambda piece: piece.reading.root is root, pieces)

    def _is_record_number(self, value: Any, path: str) -> bool:
        """Return whether a whole number tells the records of a trusted result apart, and no stranger wrote it.

        It does so for an argument that is named like the field, and so not as a quantity.
        """
        number = None if self.is_full or not isinstance(value, int) else self._trusted.numbers.get(value)
        if number is None or value in self._untrusted.numbers or not is_named_alike(path, self._sources[number]):
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


def is_named_alike(path: str, piece: Piece) -> bool:
    """Return whether an argument and the field of a value are named alike: `file_id` and `id`, or `number`."""
    names = [words_named(path)[-1:], words_named(str(piece.field.key))[-1:]]
    return names[0] == names[1] or all(name and name[0] in _NUMBERS for name in names)


def _is_of_thing(path: str, piece: Piece, things: Set[str]) -> bool:
    """Return whether an argument and the things of its tool are what the tool of a value is about: `file_id`."""
    about, field = things_of(piece.reading.tool), words_named(str(piece.field.key))
    named = {word.removesuffix("s") for word in words_named(path)[:-1] if word not in field}
    return not about.isdisjoint(things) and named <= about


def things_of(tool: str) -> set[str]:
    """Return the things that a tool is about, by its name: `file` of `share_file` and of `list_files`."""
    return {word.removesuffix("s") for word in words_named(tool)[1:] if len(word) > _SHORT}


def words_named(name: str) -> list[str]:
    """Return the words of a name, or of the last one of a path."""
    return words_in(flat(_INDEX.sub("", name).rpartition(".")[2]).replace("_", " "))


def numbers_named(tool: str, path: str, value: Any) -> set[str]:
    """Return the number of an object with the names of what it counts, such as `folder#26`; empty for other values.

    The object is what the argument is named after (`folder_id`, `folder`), or what the tool is about: `share_folder`.
    """
    number = value if isinstance(value, int) and not isinstance(value, bool) else flat(str(value))
    named = {word.removesuffix("s") for word in words_named(path) if word not in _NUMBERS}
    return {f"{thing}#{number}" for thing in named or things_of(tool)} if str(number).isdecimal() else set()


@lru_cache(1_000)
def is_number_of_object(tool: str, path: str) -> bool:
    """Return whether an argument is named as a number, or as what its tool is about; one of a quantity is not."""
    words = words_named(path)
    return words[-1:] != [] and (words[-1] in _NUMBERS or words[-1].removesuffix("s") in things_of(tool))


def _sort_of(text: str) -> str:
    """Return the sort of a value: a number, an account, an address or a text."""
    plain = flat(text)
    if number_of(plain) is not None:
        return "number"
    return "account" if is_long_number(plain) else "address" if "@" in plain else "text"
