"""Snapshot of the names that a program leaves: those that hold data, for a session that goes on in another worker.

Data is written as JSON. What JSON has not is an object with one key: `$tuple`, `$set`, `$frozenset` and `$dict` with
the parts; `$bytes`, `$float`, `$decimal`, `$datetime`, `$date`, `$time` and `$timedelta` with a text or numbers.
"""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Callable, Collection, Mapping
from decimal import Decimal
from typing import Any, Final, cast

from .export import ExportedByName

_DEPTH: Final = 100  # of lists in lists
_NAMED: Final = 1_000  # of the names that are left out
_KIND_CHARS: Final = 100
_PARTS: Final[dict[type, str]] = {tuple: "$tuple", set: "$set", frozenset: "$frozenset"}
_TEXTS: Final[dict[type, tuple[str, Callable[[Any], Any], Callable[[Any], Any]]]] = {
    bytes: ("$bytes", bytes.hex, bytes.fromhex),
    Decimal: ("$decimal", str, Decimal),
    datetime.datetime: ("$datetime", datetime.datetime.isoformat, datetime.datetime.fromisoformat),
    datetime.date: ("$date", datetime.date.isoformat, datetime.date.fromisoformat),
    datetime.time: ("$time", datetime.time.isoformat, datetime.time.fromisoformat),
    datetime.timedelta: (
        "$timedelta",
        lambda value: [value.days, value.seconds, value.microseconds],
        lambda parts: datetime.timedelta(parts[0], parts[1], parts[2]),
    ),
}
_READERS: Final[dict[str, Callable[[Any], Any]]] = {
    **{mark: read for mark, _, read in _TEXTS.values()},
    "$float": float,
    "$dict": lambda pairs: {_read(key): _read(value) for key, value in pairs},
    **{mark: (lambda parts, kind=kind: kind(map(_read, parts))) for kind, mark in _PARTS.items()},
}


class _NoData(Exception):
    """A value is not data, or there is no room for it."""


def data_values(names: Mapping[str, Any], others: Collection[str], most: int) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the names that hold data, as JSON shapes as far as they fit, and the kinds of the others.

    Args:
        names: The names of the program.
        others: Names that are not the program's own.
        most: Bytes of JSON that all of them may take.
    """
    values: dict[str, Any] = {}
    left_out: dict[str, str] = {}
    for name, value in list(names.items()):
        if name.startswith("_") or name in others or issubclass(type(value), ExportedByName):
            continue
        try:
            written = _Writer(most).write(value, _DEPTH)
            size = len(json.dumps({name: written}))
        except (_NoData, ValueError, RecursionError, MemoryError):
            size, written = most + 1, None
        if size <= most:
            most -= size
            values[name] = written
        elif len(left_out) < _NAMED:
            left_out[name] = str(type.__dict__["__name__"].__get__(type(value)))[:_KIND_CHARS]
    return values, left_out


def read_values(written: Mapping[str, Any]) -> dict[str, Any]:
    """Return the names that `data_values` wrote; one that is not written so, as somebody else may have, is left out."""
    found: dict[str, Any] = {}
    for name, value in written.items():
        try:
            found[name] = _read(value)
        except Exception:
            continue
    return found


class _Writer:
    """Writes a value, looking at no more parts than there is room for."""

    def __init__(self, most: int) -> None:
        self._remaining = most

    def write(self, value: Any, depth: int) -> Any:
        """Return the JSON shape of a value; raises _NoData."""
        self._remaining -= 1
        if self._remaining < 0 or depth == 0:
            raise _NoData
        kind = cast("type[Any]", type(value))
        if kind in (str, bool, int, type(None)):
            return value
        if kind is float:
            return value if math.isfinite(value) else {"$float": str(value)}
        if kind is list:
            return self._parts(value, depth)
        if kind is dict:
            return self._mapping(value, depth)
        if kind in _PARTS:
            return {_PARTS[kind]: self._parts(value, depth)}
        mark, write, _ = _TEXTS.get(kind) or _refuse()
        return {mark: write(value)}

    def _parts(self, values: Collection[Any], depth: int) -> list[Any]:
        if len(values) > self._remaining:
            raise _NoData
        return [self.write(value, depth - 1) for value in values]

    def _mapping(self, table: dict[Any, Any], depth: int) -> dict[str, Any]:
        if len(table) > self._remaining:
            raise _NoData
        if {*map(type, table)} <= {str} and not any(key.startswith("$") for key in table):
            return {key: self.write(value, depth - 1) for key, value in table.items()}
        pairs = [[self.write(key, depth - 1), self.write(value, depth - 1)] for key, value in table.items()]
        return {"$dict": pairs}


def _refuse() -> Any:
    raise _NoData


def _read(written: Any) -> Any:
    if isinstance(written, list):
        return [_read(part) for part in cast("list[Any]", written)]
    if not isinstance(written, dict):
        return written
    table = cast("dict[str, Any]", written)
    mark = next(iter(table), "")
    if len(table) == 1 and mark.startswith("$"):
        return _READERS[mark](table[mark])
    return {key: _read(value) for key, value in table.items()}
