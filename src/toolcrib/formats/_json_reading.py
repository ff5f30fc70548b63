"""Readers of JSON from outside: a value of the kind that is expected, or an empty one."""

from __future__ import annotations

import json
from collections.abc import AsyncIterable, Iterator, Mapping
from inspect import isawaitable
from typing import Any, TypeGuard, cast

from pydantic import BaseModel

from toolcrib._short_repr import kind_of

_NOTHING: tuple[object, ...] = (None, "", [], {})  # in which nothing can be lost
_KINDS: dict[type, str] = {str: "string", bool: "boolean", list: "list", Mapping: "JSON object"}


def json_shape(value: object) -> Mapping[str, Any]:
    """Return a reply, a chunk or an item of a message list as JSON shapes: an SDK's object as what it was made of.

    Raises:
        TypeError: It is neither a dict nor an SDK's object.
    """
    if isinstance(value, Mapping):
        return cast("Mapping[str, Any]", value)
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", by_alias=True, exclude_none=True, warnings=False)
    raise TypeError(f"{kind_of(value)} is neither a dict nor an object of a provider's SDK{_hint(value)}")


def _hint(value: object) -> str:
    """Return the remedy for a value that will be a reply, or has the chunks of one; empty for any other value."""
    if isawaitable(value):
        return "; await it first"
    if isinstance(value, str):
        return "; give what the SDK returned, or the same as a dict: `json.loads(text)`"
    if isinstance(value, AsyncIterable):
        return "; it is a stream: `await decode_stream(tools, stream)`"
    return "; it is a stream: `decode(tools, list(stream))`" if isinstance(value, Iterator) else ""


def is_object(value: object) -> TypeGuard[Mapping[str, Any]]:
    """Return whether `value` is a JSON object."""
    return type(value) is dict or isinstance(value, Mapping)  # the first is quicker, and nearly always so


def object_or_empty(value: object) -> Mapping[str, Any]:
    """Return `value`, or an empty mapping when it is not a JSON object."""
    if value is None:  # as it nearly always is where there is none; a check against an ABC costs more than all else
        return {}
    return cast("Mapping[str, Any]", value) if type(value) is dict or isinstance(value, Mapping) else {}


def object_at(shape: Mapping[str, Any], key: str, misread: list[str]) -> Mapping[str, Any]:
    """Return the JSON object under a key, or an empty one; a value of another kind is noted in `misread`."""
    value: object = shape.get(key)
    if is_object(value):
        return value
    if value not in _NOTHING:
        misread.append(f"`{key}` of it is not a JSON object")
    return {}


def objects_at(shape: Mapping[str, Any], key: str, misread: list[str]) -> list[Mapping[str, Any]]:
    """Return the JSON objects in the list under a key; a value of another kind is noted in `misread`."""
    value: object = shape.get(key)
    if not isinstance(value, list | tuple):
        if value not in _NOTHING:
            misread.append(f"`{key}` of it is not a list")
        return []
    parts = cast("list[Any]", value)
    found = list(objects_in(parts))
    if len(found) < len(parts) and any(part not in _NOTHING for part in parts if not is_object(part)):
        misread.append(f"`{key}` of it has an entry that is not a JSON object")
    return found


def fields_of(shape: Mapping[str, Any], kinds: Mapping[str, type], misread: list[str]) -> dict[str, Any]:
    """Return an object without what is null, and without fields of another kind than theirs; these go to `misread`."""
    fields = dict[str, Any]()
    for key, value in shape.items():
        kind = kinds.get(key)
        if value is not None and (kind is None or isinstance(value, kind)):
            fields[key] = value
        elif value not in _NOTHING and kind is not None:
            misread.append(f"`{key}` of it is not a {_KINDS[kind]}")
    return fields


def number_at(shape: Mapping[str, Any], key: str, misread: list[str], otherwise: int = 0) -> int:
    """Return the whole number under a key, or another; a value of another kind is noted in `misread`."""
    value: object = shape.get(key)
    if type(value) is int:
        return value
    if value is not None:
        misread.append(f"`{key}` of it is not a whole number")
    return otherwise


def object_in(text: str) -> dict[str, Any] | None:
    """Return the JSON object that a text is; None for any other text."""
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def objects_in(value: object) -> Iterator[Mapping[str, Any]]:
    """Return the JSON objects in a list one after the other; nothing for what is not a list."""
    if not isinstance(value, list | tuple):
        return iter(())
    parts = cast("list[Any]", value)
    found: list[Any] = [part for part in parts if type(part) is dict or isinstance(part, Mapping)]
    return iter(found)


def text_or_empty(value: object) -> str:
    """Return `value`, or an empty text when it is another value."""
    return value if isinstance(value, str) else ""
