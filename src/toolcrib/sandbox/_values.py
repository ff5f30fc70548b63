"""Values that cross the wall: copied as JSON shapes, and counted on the way, lest what is small inside is huge here."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from datetime import date, time, timedelta
from decimal import Decimal
from math import isfinite
from pathlib import PurePath
from typing import Any, cast

from pydantic_core import PydanticSerializationError, to_json

from toolcrib.calls import jsonable

__all__ = ["Foreign", "OversizedValue", "body_of", "exported", "json_size", "memory_size", "memory_size_of_json"]

_DEPTH = 100  # of lists in lists: what JSON writers and readers take without a thought
_DIGITS = 4_000  # of an int: Python itself refuses to write more than 4,300 of them as text
_BITS = int(_DIGITS * 3.32)
_SMALL = 1 << 62
_CONTAINER = 64  # bytes that an empty list or dict takes
_ITEM = 40  # bytes that a number takes, and its place in a list
_PER_ITEM = 2  # characters of punctuation that an item costs in JSON
_LEAVES = (date, time, timedelta, Decimal, PurePath, bytes)

Foreign = Callable[[Any], Mapping[str, Any] | None]
"""Tells the fields of an engine's own object; None for what has none, such as a function."""


class OversizedValue(ValueError):
    """A value is too large, too deep, or of a kind that cannot leave the program; the message says which."""


def exported(value: Any, most: int, foreign: Foreign) -> Any:
    """Return a copy of a program's value as JSON shapes: tuples and sets as lists, dates as ISO text.

    A value may be small inside and huge outside, as one list that holds another a thousand times, each of which does
    the same: every occurrence counts.

    Args:
        most: The characters, about, that its JSON may take.
        foreign: Tells the fields of the engine's own objects.

    Raises:
        OversizedValue: It is larger, nested too deep, or nothing that has a JSON form.
    """
    kind = cast("type[Any]", type(value))
    if (kind is str and len(value) <= most) or (kind is int and -_SMALL < value < _SMALL) or value is None:
        return value  # the usual ones, at once
    return _Copier(most, foreign).copy(value, _DEPTH)


class _Copier:
    __slots__ = ("_done", "_foreign", "_left", "_most")

    def __init__(self, most: int, foreign: Foreign) -> None:
        self._most = self._left = most
        self._foreign = foreign
        self._done: dict[int, tuple[Any, int]] = {}  # what was copied, and what it cost: it may occur again

    def copy(self, value: Any, depth: int) -> Any:
        if isinstance(value, str):
            self._count(len(value))
            return value
        if value is None or isinstance(value, bool):
            self._count(_PER_ITEM)
            return value
        if isinstance(value, int):
            return self._integer(value)
        if isinstance(value, float):
            return self._float(value)
        if isinstance(value, _LEAVES):
            self._count(len(value) if isinstance(value, bytes) else _PER_ITEM)
            return jsonable(value)
        again = self._done.get(id(value))
        if again is not None:
            self._count(again[1])
            return again[0]
        if depth == 0:
            raise OversizedValue(f"it is nested more than {_DEPTH} deep")
        before = self._left
        made = self._container(value, depth)
        self._done[id(value)] = (made, before - self._left)
        return made

    def _container(self, value: Any, depth: int) -> Any:
        if isinstance(value, dict):
            return self._mapping(cast("dict[Any, Any]", value), depth)
        if isinstance(value, list | tuple | set | frozenset):
            return self._items(cast("Iterable[Any]", value), depth)
        fields = self._foreign(value)
        if fields is None:
            raise OversizedValue(f"{value!r:.100} has no JSON form; pass text, numbers, lists and dicts")
        return self._mapping(fields, depth)

    def _items(self, values: Iterable[Any], depth: int) -> list[Any]:
        made: list[Any] = []
        for value in values:
            self._count(_PER_ITEM)
            made.append(self.copy(value, depth - 1))
        return made

    def _mapping(self, values: Mapping[Any, Any], depth: int) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for key, value in values.items():
            name: Any = key if type(key) is str else _key(self.copy(key, 1))
            self._count(len(name) + _PER_ITEM)
            made[name] = self.copy(value, depth - 1)
        return made

    def _integer(self, value: int) -> int:
        bits = value.bit_length()
        if bits > _BITS:
            raise OversizedValue(f"an int of more than {_DIGITS} digits; pass it as text, in parts")
        self._count(_PER_ITEM + bits // 3)
        return value

    def _float(self, value: float) -> float | str:
        self._count(_PER_ITEM)
        if isfinite(value):
            return value
        return "NaN" if value != value else ("Infinity" if value > 0 else "-Infinity")

    def _count(self, characters: int) -> None:
        self._left -= characters
        if self._left < 0:
            raise OversizedValue(f"it is larger than {self._most} characters as JSON")


def _key(key: Any) -> str:
    if isinstance(key, bool):
        return "true" if key else "false"
    if isinstance(key, list):
        return ",".join(map(str, cast("list[Any]", key)))
    return "null" if key is None else str(key)


def body_of(value: Any) -> bytes:
    """Return the JSON of a value of JSON shapes."""
    try:
        return to_json(value)
    except PydanticSerializationError:  # a lone surrogate, which JSON can write as an escape
        return json.dumps(value).encode()


def json_size(value: Any) -> int:
    """Return about how many characters a value of JSON shapes takes as JSON."""
    if isinstance(value, list | dict):
        return len(body_of(value))
    return len(value) if isinstance(value, str) else _PER_ITEM


def memory_size(value: Any) -> int:
    """Return about how many bytes of memory a value of JSON shapes takes, or somewhat more."""
    if isinstance(value, list | dict):
        return memory_size_of_json(body_of(value))
    return len(value) if isinstance(value, str) else _ITEM


def memory_size_of_json(body: bytes) -> int:
    """Return about how many bytes of memory the objects take that a JSON text stands for, or somewhat more."""
    return len(body) + _CONTAINER * (body.count(b"{") + body.count(b"[")) + _ITEM * body.count(b",")
