"""Forms of secret values: where a text has one, as it is or as Python, JSON, HTML or an address writes it."""

from __future__ import annotations

import html
import re
from base64 import b64decode
from bisect import bisect_right
from collections.abc import Collection, Iterator
from typing import Final

SHORTEST: Final = 4  # characters of a value that is found
MARGIN: Final = 400  # characters around a part of a text in which a value may stand that reaches into it
_ANYWHERE: Final = 8  # characters from which on it is found inside of a word or a number, too
_LONG: Final = 16  # characters from which on its parts are found, too
_PART: Final = 12  # characters of such a part
_BASE64: Final = ";base64,"
_CONTROLS: Final = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v", "0": "\0"}
_TIMES: Final = 3  # that a text is read of what was escaped
_BYTE: Final = re.compile(r"(?:\\x|%)([0-9a-fA-F]{2})")
_ESCAPE: Final = re.compile(
    # code points, UTF-16, bytes, a control character, backslashes before any other, HTML, the space of a query
    r"\\+U(?P<point>[0-9a-fA-F]{8})|(?P<units>(?:\\+(?:u|U(?![0-9a-fA-F]{8}))[0-9a-fA-F]{4})+)"
    r"|(?P<bytes>(?:\\\\){0,4}?(?P<sign>\\{1,9}x|%)[0-9a-fA-F]{2}(?:(?P=sign)[0-9a-fA-F]{2})+|(?:\\+x|%)[0-9a-fA-F]{2})"
    r"|\\+(?P<control>[ntrabfv0]?)"
    r"|&(?P<entity>#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|amp|lt|gt|quot|apos);|(?P<space>\+)"
)


class SecretForms:
    """The forms of secret values, found in time that grows with the text, and not with their number.

    A value of at least 8 characters is found wherever it stands, and of one of at least 16 each part of 12. A value of
    4 to 7 characters is found where it stands by itself, as a word or a number.
    """

    def __init__(self, values: Collection[str]) -> None:
        forms = {_folded(form) for value in values for form in _written(value)}
        self._parts = {
            form[start : start + _PART]
            for form in forms
            if len(form) >= _LONG
            for start in range(len(form) - _PART + 1)
        }
        self._whole: dict[int, set[str]] = {}
        for form in forms:
            if SHORTEST <= len(form) < _LONG:
                self._whole.setdefault(len(form), set()).add(form)
        self._beginnings = {form[:SHORTEST] for found in (self._parts, *self._whole.values()) for form in found}

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Return where a text has values, in order; those that overlap as one."""
        spans: list[tuple[int, int]] = []
        for begins, ends in sorted({*self._found(text, _TIMES)}):
            if spans and begins < spans[-1][1]:
                spans[-1] = spans[-1][0], max(ends, spans[-1][1])
            else:
                spans.append((begins, ends))
        return spans

    def _found(self, text: str, times: int) -> Iterator[tuple[int, int]]:
        yield from self._places(_folded(text))
        for read in _readings(text) if times else ():
            yield from (read.span_of(*place) for place in self._found(read.text, times - 1))

    def _places(self, text: str) -> Iterator[tuple[int, int]]:
        known = self._beginnings
        for start in [index for index in range(len(text)) if text[index : index + SHORTEST] in known]:
            if text[start : start + _PART] in self._parts:
                yield start, start + _PART
            for size, forms in self._whole.items():
                if text[start : start + size] in forms and (size >= _ANYWHERE or _is_alone(text, start, start + size)):
                    yield start, start + size


class _Read:
    """A text with its escapes read, and where in the text what was read stands."""

    def __init__(self, text: str, encoding: str) -> None:
        pieces, places, length, position = list[str](), list[tuple[int, int, int]](), 0, 0
        for escape in _ESCAPE.finditer(text):
            for piece, begins, ends in (
                (text[position : escape.start()], position, 0),
                (_character(escape, encoding), escape.start(), escape.end()),
            ):
                pieces.append(piece)
                places.append((length, begins, ends))
                length += len(piece)
            position = escape.end()
        self.text = "".join([*pieces, text[position:]])
        self._places = [*places, (length, position, 0)]
        self._starts = [start for start, _, _ in self._places]

    def span_of(self, start: int, end: int) -> tuple[int, int]:
        """Return where in the text as it was a part of what was read stands; of an escape all of it."""
        return self._place(start)[0], self._place(end - 1)[1]

    def _place(self, index: int) -> tuple[int, int]:
        start, begins, ends = self._places[bisect_right(self._starts, index) - 1]
        return (begins, ends) if ends else (begins + index - start, begins + index - start + 1)


def _readings(text: str) -> Iterator[_Read]:
    """Yield a text with its escapes read, where it has some, for each encoding that the bytes in it may be of."""
    if _ESCAPE.search(text):
        yield _Read(text, "utf-8")
    if _BYTE.search(text):
        yield _Read(text, "latin-1")


def _read_value(value: str, times: int = _TIMES) -> Iterator[str]:
    yield value
    for read in _readings(value) if times else ():
        yield from _read_value(read.text, times - 1)


def _written(value: str) -> Iterator[str]:
    """Yield a value as texts have it: as it is, with what looks like an escape in it read, and as bytes."""
    yield from _read_value(value)
    if _BASE64 in value:  # bytes that are not text
        encoded = value.partition(_BASE64)[2]
        yield encoded
        try:
            yield b64decode(encoded).decode("latin-1")
        except ValueError:  # it only looks like them
            return


def _character(escape: re.Match[str], encoding: str) -> str:
    """Return the character of an escape; nothing for a backslash before a character that stands for itself."""
    found = escape[0]
    match escape.lastgroup:
        case "point":
            return chr(int(escape["point"], 16)) if int(escape["point"], 16) < 0x110000 else found
        case "units":
            units = bytes.fromhex("".join(unit[-4:] for unit in re.findall(r"[uU][0-9a-fA-F]{4}", found)))
            return units.decode("utf-16-be", "replace")
        case "bytes":
            raw = bytes.fromhex("".join(_BYTE.findall(found)))
            try:
                return raw.decode(encoding)
            except UnicodeDecodeError:
                return raw.decode("latin-1")
        case "entity":
            return html.unescape(f"&{escape['entity']};")
        case "space":
            return " "
        case _:
            return _CONTROLS.get(escape["control"], "")


def _folded(text: str) -> str:
    """Return a text in small letters, of the same length."""
    folded = text.lower()
    if len(folded) == len(text):
        return folded
    return "".join(letter.lower() if len(letter.lower()) == 1 else letter for letter in text)


def _is_alone(text: str, start: int, end: int) -> bool:
    return not (_goes_on(text[start - 1 : start], text[start]) or _goes_on(text[end : end + 1], text[end - 1]))


def _goes_on(beside: str, edge: str) -> bool:
    return (beside.isdigit() and edge.isdigit()) or (beside.isalpha() and edge.isalpha())
