"""Pieces of a result's text: written one after another, so that a long result is never in memory as one text."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Literal, TypeAlias, cast

from toolcrib._arrow import is_table, part_columns, plain_table, table_facts, table_parts, table_rows
from toolcrib.calls import Media, json_text, jsonable, shapes_and_text, value_class

Form: TypeAlias = Literal["text", "rows", "table", "members", "glue", "more"]
"""The kind of a piece.

- `text`: characters of a text, or all of a value that is neither a list nor an object.
- `rows`: whole items of a list.
- `table`: rows of a table, as an Arrow IPC stream in place of text; a result has no other pieces.
- `members`: whole members of an object.
- `glue`: brackets, and the name of a member whose rows follow.
- `more`: the rest of the piece before, which was too long.
"""

_CHARS = 128 * 1024  # of a piece, about
_MOST_CHARS = 1024 * 1024  # of a piece; what is longer goes on in the next
_MOST_ITEMS = 50_000
_LONG = 50  # items from which on a list that is a member of an object has pieces of its own


@value_class
class Piece:
    """A piece of a result's text; all of them in their order are the whole.

    Attributes:
        key: The member of an object whose rows these are, or that goes on in the next piece; else None.
        first: The number of the first row.
        count: How many rows or members it holds.
        data: The bytes of a piece of a table.
    """

    text: str
    form: Form = "text"
    key: str | None = None
    first: int = 0
    count: int = 0
    data: bytes = b""


def pieces_of(value: object, tool: str, media: list[Media]) -> Iterator[Piece]:
    """Yield the pieces of a tool's value; the media in it are collected in `media`.

    Raises:
        ResultNotSerializable: Something in it has no JSON form.
    """
    for piece in _pieces(value, tool, media):
        text = piece.text
        if len(text) <= _MOST_CHARS:
            yield piece
            continue
        yield Piece(text[:_MOST_CHARS], piece.form, piece.key, piece.first, piece.count)
        for start in range(_MOST_CHARS, len(text), _MOST_CHARS):
            yield Piece(text[start : start + _MOST_CHARS], "more", piece.key, piece.first)


def _pieces(value: Any, tool: str, media: list[Media]) -> Iterator[Piece]:
    kind = cast("type[Any]", type(value))
    if is_table(value) and (table := plain_table(value)) is not None and table.num_rows:
        for start, count, data in table_parts(table):
            yield Piece("", "table", None, start, count, data)
        return
    if is_table(value):
        yield Piece("[", "glue")
        yield from _row_pieces(table_facts(value).rows, partial(table_rows, value), None, tool, media)
        yield Piece("]", "glue")
        return
    if kind is not str and kind is not list and not _is_object(value):
        value = shapes_and_text(value, tool, media)[0]
        kind = cast("type[Any]", type(value))
    if kind is str:
        for start in range(0, len(value), _CHARS):
            yield Piece(value[start : start + _CHARS])
    elif kind is list:
        yield Piece("[", "glue")
        yield from _rows(value, None, tool, media)
        yield Piece("]", "glue")
    elif kind is dict:
        yield Piece("{", "glue")
        yield from _members(value, tool, media)
        yield Piece("}", "glue")
    else:
        yield Piece(json_text(value, tool, media))


def rows_in(text: str) -> list[Any]:
    """Return the rows in the text of a piece."""
    return json.loads(f"[{text.removeprefix(', ')}]")


def members_in(text: str) -> dict[str, Any]:
    """Return the members in the text of a piece."""
    return json.loads(f"{{{text.removeprefix(', ')}}}")


def table_rows_in(
    piece: Piece, start: int = 0, stop: int | None = None, column: str | None = None
) -> list[dict[str, Any]]:
    """Return rows of a piece of a table as JSON shapes, with all columns or the one that is named."""
    columns = part_columns(piece.data, start, stop, None if column is None else [column])
    values = [values_of_column if is_json else jsonable(values_of_column) for _, values_of_column, is_json in columns]
    names = [name for name, _, _ in columns]
    return [dict(zip(names, row, strict=True)) for row in zip(*values, strict=True)]


def _is_object(value: Any) -> bool:
    return type(value) is dict and all(type(key) is str for key in cast("dict[Any, Any]", value))


def _rows(items: list[Any], key: str | None, tool: str, media: list[Media]) -> Iterator[Piece]:
    if not (len(items) < _LONG and any(map(_holds_much, items))):
        yield from _row_pieces(len(items), lambda start, end: items[start:end], key, tool, media)
        return
    for number, item in enumerate(items):
        text = ", " if number else ""
        if _holds_much(item):
            yield from _going_on(Piece(text, "rows", key, number, 1), item, tool, media)
        else:
            yield Piece(text + json_text([item], tool, media)[1:-1], "rows", key, number, 1)


def _going_on(piece: Piece, value: Any, tool: str, media: list[Media]) -> Iterator[Piece]:
    """Yield a piece with the rest of it in pieces of their own: a value of which no text is made at once."""
    yield piece
    for part in _pieces(value, tool, media):
        yield Piece(part.text, "more", piece.key, piece.first)


def _holds_much(value: Any, depth: int = 4) -> bool:
    """Return whether a value inside another is, or has, a long list or object."""
    if type(value) is dict:
        members = cast("dict[Any, Any]", value)
        return len(members) >= _LONG or (depth > 0 and any(_holds_much(part, depth - 1) for part in members.values()))
    return type(value) is list and len(cast("list[Any]", value)) >= _LONG


def _row_pieces(
    total: int, rows: Callable[[int, int], list[Any]], key: str | None, tool: str, media: list[Media]
) -> Iterator[Piece]:
    for start, count, text in _slices(total, lambda start, end: json_text(rows(start, end), tool, media)[1:-1]):
        yield Piece(f", {text}" if start else text, "rows", key, start, count)


def _members(value: dict[str, Any], tool: str, media: list[Media]) -> Iterator[Piece]:
    """Yield the members of an object in their order, those that are long lists in rows."""
    separator, others = "", list[tuple[str, Any]]()

    def written() -> Iterator[Piece]:
        nonlocal separator, others
        members, others = others, []

        def write(start: int, end: int) -> str:
            return json_text(dict(members[start:end]), tool, media)[1:-1]

        for _, count, text in _slices(len(members), write):
            yield Piece(separator + text, "members", count=count)
            separator = ", "

    for key, member in value.items():
        if isinstance(member, list) and len(cast("list[Any]", member)) >= _LONG:
            yield from written()
            name = json_text({key: 0}, tool)[1:-2]
            yield Piece(f"{separator}{name}[", "glue")
            yield from _rows(cast("list[Any]", member), key, tool, media)
            yield Piece("]", "glue")
            separator = ", "
        elif len(value) < _LONG and _holds_much(member):
            yield from written()
            name = json_text({key: 0}, tool)[1:-2]
            yield from _going_on(Piece(separator + name, "members", key, count=1), member, tool, media)
            separator = ", "
        else:
            others.append((key, cast("Any", member)))
    yield from written()


def _slices(total: int, write: Callable[[int, int], str]) -> Iterator[tuple[int, int, str]]:
    """Yield the start, the length and the text of slices that have about as many characters as a piece should."""
    start, most = 0, 16
    while start < total:
        count = min(most, total - start)
        text = write(start, start + count)
        yield start, count, text
        start += count
        fitting = count * _CHARS // max(len(text), 1)
        most = max(1, min(fitting, most * 8, _MOST_ITEMS))
