"""Shape of a result: its rows, columns and types, noted while its pieces are written."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, cast

from toolcrib.results._pieces import Piece, table_rows_in

__all__ = ["Shape", "beginning", "head_of", "members_in", "rows_in", "weight_of"]

_SAMPLE = 20  # rows that are looked at
_COLUMNS, _NAME, _CHARS = 8, 24, 160  # what is said of columns: how many, of a name, and in all
_KINDS = {"str": "text", "NoneType": "null", "dict": "object"}


class Shape:
    """The shape of a result, as far as its pieces were noted.

    Attributes:
        chars: How many characters they have; of a table, bytes.
        size: How many bytes.
        counts: The rows of each list, by the member that it is; None for a list by itself.
    """

    def __init__(self) -> None:
        self.chars = self.size = self._line_breaks = self._members = 0
        self.counts: dict[str | None, int] = {}
        self._columns: dict[str | None, str] = {}
        self._named: list[str] = []

    def note(self, piece: Piece, size: int) -> None:
        """Take a piece of so many bytes into account."""
        self.chars += len(piece.text) or size
        self.size += size
        match piece.form:
            case "rows" | "table":
                if piece.key not in self.counts and len(self.counts) < _COLUMNS:
                    of_text = piece.form == "rows"
                    some = _parsed(rows_in, piece)[:_SAMPLE] if of_text else table_rows_in(piece, 0, _SAMPLE)
                    self._columns[piece.key] = _columns_of(some)
                self.counts[piece.key] = self.counts.get(piece.key, 0) + piece.count
            case "members":
                if len(self._named) < _COLUMNS:
                    found = {} if piece.key is None else {piece.key: {"object": None}}
                    found |= {key: {_kind(member): None} for key, member in _parsed(members_in, piece).items()}
                    self._named += _described(found)
                self._members += piece.count
            case "text" | "more":
                self._line_breaks += piece.text.count("\n")
            case "glue":
                pass

    def __str__(self) -> str:
        if None in self.counts:
            return self._listed(None)
        if not self._members and not self.counts:
            return f"text of {self._line_breaks + 1:,} lines" if self._line_breaks else "text of one line"
        lists = [f"{_name(str(key))}: {self._listed(key)}" for key in list(self.counts)[:_COLUMNS]]
        named = [*lists, *self._named][:_COLUMNS]
        more = self._members + len(self.counts) - len(named)
        return f"object with {head_of(', '.join(named), _CHARS)}{f' and {more:,} more' if more else ''}"

    def _listed(self, key: str | None) -> str:
        return f"list of {self.counts[key]:,} {self._columns.get(key) or 'items'}"


def rows_in(text: str) -> list[Any]:
    """Return the rows in the text of a piece."""
    return json.loads(f"[{text.removeprefix(', ')}]")


def members_in(text: str) -> dict[str, Any]:
    """Return the members in the text of a piece."""
    return json.loads(f"{{{text.removeprefix(', ')}}}")


def weight_of(text: str) -> int:
    """Return what a text costs a model, about: one for each letter of ASCII, and more for any other."""
    return len(text) if text.isascii() else sum(1 if letter < "\x80" else 6 for letter in text)


def beginning(text: str, most: int) -> str:
    """Return the beginning of a text that costs so much."""
    kept = text[:most]
    while kept and (excess := weight_of(kept) - most) > 0:
        kept = kept[: -max(excess // 6, 1)]
    return kept


def head_of(text: str, most: int) -> str:
    """Return a text, or its beginning with dots."""
    return text if len(text) <= most and weight_of(text) <= most else f"{beginning(text, most - 3)}..."


def _parsed(read: Any, piece: Piece) -> Any:
    """Return what a piece holds; nothing where it goes on in the next piece."""
    try:
        return read(piece.text)
    except (ValueError, RecursionError):
        return read("")


def _columns_of(rows: list[Any]) -> str:
    if not rows or not all(isinstance(row, dict) for row in rows):
        kinds = dict.fromkeys(map(_kind, rows))
        return f"items ({'|'.join(kinds)})" if kinds else "items"
    found: dict[str, dict[str, None]] = {}
    for row in cast("list[Mapping[str, Any]]", rows):
        for name, value in row.items():
            found.setdefault(name, {})[_kind(value)] = None
    more = f", {len(found) - _COLUMNS:,} more" if len(found) > _COLUMNS else ""
    return f"rows ({head_of(', '.join(_described(found)), _CHARS)}{more})"


def _described(kinds: Mapping[str, Iterable[str]]) -> list[str]:
    return [f"{_name(name)} {'|'.join(of)}" for name, of in list(kinds.items())[:_COLUMNS]]


def _name(text: str) -> str:
    """Return the name of a column in one line, as a stranger may have written it."""
    return head_of("".join(letter if letter.isprintable() else " " for letter in text[: 2 * _NAME]), _NAME)


def _kind(value: object) -> str:
    name = type(value).__name__
    return _KINDS.get(name, name)
