"""Shapes of what a run reads: the JSON in a text, the files in a value with their texts, and how large it is."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, cast

from toolcrib._arrow import is_table, table_rows
from toolcrib.calls import Media, lenient, revived

UNREAD: Final = "\0"
"""The text of a file in which none can be read, such as an image."""

COST_OF_VALUE: Final = 32
"""The characters of a long text that take as much time and memory as a value does besides its own."""

_MOST_ROWS: Final = 50_000  # of a table
_SMALL: Final = 20_000  # characters, about, of results that are read on the event loop
_FACTS: Final = frozenset({"kind", "mime_type"})  # of a file, among its JSON shapes


def shapes_of(value: Any, *, with_files: bool) -> tuple[Any, bool]:
    """Return a value as JSON shapes, and whether that is all of it: of a table there may be more rows.

    Args:
        value: The value.
        with_files: Whether the texts of the files in it are among them.
    """
    if is_table(value):
        shapes = lenient(table_rows(value, 0, _MOST_ROWS))
        return shapes, len(shapes) < _MOST_ROWS
    shapes = lenient(value)
    return (_with_texts(revived(lenient(value, media=True))) if with_files and _has_files(shapes) else shapes), True


def text_of(file: Media) -> str:
    """Return the text of a file, or `UNREAD` where its bytes are not a text or are missing."""
    text = UNREAD if file.data is None else file.data.decode("utf-8", "replace")
    is_text = file.mime_type.lower().startswith("text/") and UNREAD not in text
    return text if is_text or "\ufffd" not in text else UNREAD


def _has_files(shapes: Any) -> bool:
    parts: Iterable[Any] = ()
    if isinstance(shapes, Mapping):
        named = cast("Mapping[str, Any]", shapes)
        if named.keys() >= _FACTS:
            return True
        parts = named.values()
    elif isinstance(shapes, list):
        parts = cast("list[Any]", shapes)
    return any(_has_files(part) for part in parts)


def _with_texts(shapes: Any) -> Any:
    """Return shapes with each file as its facts and its text."""
    if isinstance(shapes, Media):
        return {**cast("dict[str, Any]", lenient(shapes)), "text": text_of(shapes)}
    if isinstance(shapes, Mapping):
        return {key: _with_texts(part) for key, part in cast("Mapping[str, Any]", shapes).items()}
    return [_with_texts(part) for part in cast("list[Any]", shapes)] if isinstance(shapes, list) else shapes


def json_in(value: Any) -> Any:
    """Return the JSON object or list that a text is; another value as it is."""
    if isinstance(value, str) and value[:1] in ("{", "["):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


def media_in(value: Any) -> Iterator[Media]:
    """Yield the media in JSON shapes."""
    if isinstance(value, Media):
        yield value
    parts = cast("Mapping[str, Any]", value).values() if isinstance(value, Mapping) else value
    for part in cast("Iterable[Any]", parts) if isinstance(value, Mapping | list) else ():
        yield from media_in(part)


def is_small(value: Any, most: int = _SMALL) -> bool:
    """Return whether a value has few characters as JSON; not what contains itself, or is of any other type."""
    try:
        return _size(value, most) < most
    except RecursionError:
        return False


def _size(value: Any, most: int) -> int:
    """Return about how many characters a value has as JSON, or more than `most`."""
    if isinstance(value, str | bytes):
        return len(value)
    if isinstance(value, int | float | bool | None):
        return 1
    if not isinstance(value, Mapping | list | tuple):
        return most + 1  # any type: what it comes to as JSON is not known
    keys: Iterable[Any] = cast("Mapping[Any, Any]", value).keys() if isinstance(value, Mapping) else ()
    parts = cast("Mapping[Any, Any]", value).values() if isinstance(value, Mapping) else cast("list[Any]", value)
    size = COST_OF_VALUE * len(parts) + sum(len(key) for key in keys if isinstance(key, str))
    for part in parts:
        if size > most:
            break
        size += _size(part, most - size)
    return size
