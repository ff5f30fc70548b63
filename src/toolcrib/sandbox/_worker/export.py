"""Export of values from a program as JSON shapes: tuples and sets as lists, dates as ISO text, objects as fields."""

from __future__ import annotations

import array
import collections
import dataclasses
import datetime
import enum
import fractions
import ipaddress
import pathlib
import re
import sys
import types
import uuid
from collections.abc import (
    AsyncIterator,
    Callable,
    Coroutine,
    ItemsView,
    Iterable,
    Iterator,
    KeysView,
    Mapping,
    ValuesView,
)
from decimal import Decimal
from math import isfinite
from typing import Any, cast

from .imports import PACKAGES
from .tables import COLUMNS, MARK, PackedTable, columns_of, is_table, packed, rows_of

__all__ = ["ExportedByName", "ValueRefused", "exported", "exported_arguments", "exported_result"]

_DEPTH = 100  # of lists in lists
_DIGITS = 4_000  # of an int: Python refuses to read more than 4,300 as text
_BITS = int(_DIGITS * 3.32)
_SMALL = 1 << 62
_PER_ITEM = 2  # characters of punctuation that an item costs
_TEXT = 1_000  # characters of the text for a function, a class or a module
_LISTS = (list, tuple, set, frozenset, collections.deque, range, array.array, KeysView, ValuesView, ItemsView)
_NAMED_TYPES: tuple[type, ...] = (
    type,
    types.FunctionType,
    types.BuiltinFunctionType,
    types.MethodType,
    types.ModuleType,
)
_READ_ONCE = (Iterator, Coroutine, AsyncIterator)
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
_AS_TEXT = (
    *(uuid.UUID, fractions.Fraction, pathlib.PurePath, ipaddress.IPv4Address, ipaddress.IPv6Address),
    *(ipaddress.IPv4Network, ipaddress.IPv6Network, ipaddress.IPv4Interface, ipaddress.IPv6Interface, Decimal),
)


Fields = Callable[[Any], Mapping[str, Any] | None]
"""Returns the fields of an object; None for a value that has none."""


class ExportedByName:
    """An object, such as a tool, that leaves a program as its name."""

    __name__: str


class ValueRefused(ValueError):
    """A value is too large, too deep, or of a kind that cannot leave the program; the message says which."""


def exported(value: Any, most: int, fields: Fields | None = None, *, floats: bool = False) -> Any:
    """Return a copy of a value as JSON shapes.

    A value may be small inside and huge outside, as one list that holds another a thousand times, each of which does
    the same: every occurrence counts.

    Args:
        most: The characters, about, that its JSON may take.
        fields: Returns the fields of an engine's own objects; those of the program's own classes when None.
        floats: Leave NaN and the infinities what they are; texts that stand for them otherwise.

    Raises:
        ValueRefused: It is larger, nested too deep, or has no JSON form.
    """
    kind = cast("type[Any]", type(value))
    if value is None or kind is bool or (kind is int and -_SMALL < value < _SMALL):
        return value  # the usual ones, at once
    if kind is str and len(value) <= most:
        return value
    return _Copier(most, fields or _fields, floats=floats).copy(value, _DEPTH)


def exported_arguments(
    name: str, args: Iterable[Any], kwargs: Mapping[str, Any], most: int, fields: Fields | None = None
) -> tuple[list[Any], dict[str, Any]]:
    """Return the arguments of a call of `name` as JSON shapes.

    Raises:
        ValueError: One of them cannot leave the program; the message says which.
    """
    positional: list[Any] = []
    named: dict[str, Any] = {}
    which = ""
    try:
        for value in args:
            which = f"argument {len(positional) + 1}"
            positional.append(exported(value, most, fields))
        for key, value in kwargs.items():
            which = f"the argument `{key}`"
            named[key] = exported(value, most, fields)
    except ValueRefused as refused:
        raise ValueError(f"{which} of `{name}` cannot be passed to it: {refused}") from None
    return positional, named


def exported_result(value: Any, most: int, tables: list[PackedTable] | None = None) -> Any:
    """Return a program's last value as JSON shapes, NaN and the infinities as they are; of a function or class a text.

    Args:
        most: The characters, about, that its JSON may take.
        tables: Takes the tables in it, for each of which a mark is there; where it is None, they become rows.

    Raises:
        ValueRefused: It is too large, too deep, or holds what has no JSON form.
    """
    if isinstance(value, _NAMED_TYPES):
        return _ADDRESS.sub("", repr(value))[:_TEXT]
    return _Copier(most, _fields, tables, floats=True).copy(value, _DEPTH)


class _Copier:
    __slots__ = ("_done", "_fields", "_floats", "_most", "_remaining", "_tables")

    def __init__(
        self, most: int, fields: Fields, tables: list[PackedTable] | None = None, *, floats: bool = False
    ) -> None:
        self._most = self._remaining = most
        self._fields, self._tables, self._floats = fields, tables, floats
        self._done: dict[int, tuple[Any, int, Any]] = {}  # the copy, its cost, and the value, lest its id recur

    def copy(self, value: Any, depth: int) -> Any:
        kind = cast("type[Any]", type(value))
        if kind is str:
            self._count(len(value) + _PER_ITEM)
            return value
        if value is None or kind is bool:
            self._count(_PER_ITEM)
            return value
        if kind is int:
            return self._integer(value)
        if kind is float:
            return self._float(value)
        again = self._done.get(id(value))
        if again is not None:
            self._count(again[1])
            return again[0]
        if depth == 0:
            raise ValueRefused(f"it is nested more than {_DEPTH} deep")
        before = self._remaining
        copied = self._other(value, depth)
        self._done[id(value)] = (copied, before - self._remaining, value)
        return copied

    def _other(self, value: Any, depth: int) -> Any:
        if isinstance(value, enum.Enum):
            return self.copy(value.value, depth - 1)
        if isinstance(value, Mapping):
            return self._mapping(cast("Mapping[Any, Any]", value), depth)
        if isinstance(value, _LISTS):
            return self._items(cast("Iterable[Any]", value), depth)
        text = _leaf(value)
        if text is not None:
            self._count(len(text) + _PER_ITEM)
            return text
        if isinstance(value, int):
            return self._integer(int(value))
        if isinstance(value, float):
            return self._float(float(value))
        if is_table(value):
            return self._table(value, depth)
        plain = self._plain(value)
        if plain is not value:
            return self.copy(plain, depth - 1)
        fields = self._fields(value)
        if fields is None and self._tables is not None and type(value).__module__.partition(".")[0] in PACKAGES:
            return self.copy(_ADDRESS.sub("", f"{value!r:.{_TEXT}}"), depth - 1)  # a plot, as a last value
        if fields is None:
            value_text = _ADDRESS.sub("", f"{value!r:.100}")
            hint = "read it into a list first" if isinstance(value, Iterator) else "pass text, numbers, lists and dicts"
            raise ValueRefused(f"{value_text} has no JSON form; {hint}")
        return self._mapping(fields, depth)

    def _table(self, value: Any, depth: int) -> Any:
        try:
            if self._tables is not None:
                self._tables.append(packed(value))
                return {MARK: len(self._tables) - 1}
            if depth == _DEPTH and not len(value):
                return self._mapping({COLUMNS: columns_of(value)}, depth)
            self._count(len(value) * len(value.columns) * _PER_ITEM)  # at least, before there are rows
            return self._items(rows_of(value), depth)
        except ValueRefused:
            raise
        except ValueError as error:
            raise ValueRefused(str(error)) from None

    def _plain(self, value: Any) -> Any:
        """Convert a value of numpy or pandas to Python's own types; any other value is returned unchanged."""
        home = type(value).__module__.partition(".")[0]
        if home not in ("numpy", "pandas") or home not in sys.modules:
            return value
        package: Any = sys.modules[home]
        if home == "numpy":
            if isinstance(value, package.datetime64 | package.timedelta64):
                return str(value)
            is_array = isinstance(value, package.ndarray)
            return self._listed(value) if is_array else value.item() if isinstance(value, package.generic) else value
        if value is package.NA:
            return None
        if isinstance(value, package.Series):
            listed, index = self._listed(value), value.index
            if isinstance(index, package.RangeIndex) or not index.is_unique:
                return listed
            return dict(zip(index.tolist(), listed, strict=True))
        if isinstance(value, package.Index | package.api.extensions.ExtensionArray):
            return self._listed(value)
        return str(value) if isinstance(value, package.Period | package.Interval) else value

    def _listed(self, values: Any) -> list[Any]:
        if values.size * _PER_ITEM > self._remaining:  # before there are as many objects
            self._count(values.size * _PER_ITEM)
        return values.tolist()

    def _items(self, values: Iterable[Any], depth: int) -> list[Any]:
        items: list[Any] = []
        for value in values:
            self._count(_PER_ITEM)
            items.append(self.copy(value, depth - 1))
        return items

    def _mapping(self, values: Mapping[Any, Any], depth: int) -> dict[str, Any]:
        copied: dict[str, Any] = {}
        for key, value in values.items():
            name: Any = key if type(key) is str else _key(self.copy(key, 2))
            self._count(len(name) + _PER_ITEM)
            copied[name] = self.copy(value, depth - 1)
        return copied

    def _integer(self, value: int) -> int:
        bits = value.bit_length()
        if bits > _BITS:
            raise ValueRefused(f"an int of more than {_DIGITS} digits; pass it as text, in parts")
        self._count(_PER_ITEM + bits // 3)
        return value

    def _float(self, value: float) -> float | str:
        self._count(_PER_ITEM)
        return value if self._floats else _written(value)

    def _count(self, characters: int) -> None:
        self._remaining -= characters
        if self._remaining < 0:
            raise ValueRefused(f"it is larger than {self._most} characters as JSON (SandboxLimits.value_size)")


def _leaf(value: Any) -> str | None:
    """Return the text that stands for a value; None for a value without such a text."""
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, ExportedByName):
        return value.__name__
    if isinstance(value, datetime.datetime | datetime.time):
        text = value.isoformat()
        return f"{text[:-6]}Z" if text.endswith("+00:00") else text
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, datetime.timedelta):
        return _duration(value)
    if isinstance(value, bytes | bytearray):
        try:
            return value.decode()
        except UnicodeDecodeError:
            raise ValueRefused("bytes that are not UTF-8 text; pass base64.b64encode(data).decode()") from None
    if isinstance(value, complex):
        return str(value).strip("()")
    if isinstance(value, re.Pattern):
        return str(cast("re.Pattern[Any]", value).pattern)
    return str(value) if isinstance(value, _AS_TEXT) else None


def _duration(value: datetime.timedelta) -> str:
    """Return ISO 8601 text, with years of 365 days: `P1DT2H0.5S`."""
    duration = abs(value)
    years, days = divmod(duration.days, 365)
    minutes, seconds = divmod(duration.seconds, 60)
    hours, minutes = divmod(minutes, 60)
    fraction = f".{duration.microseconds:06}".rstrip("0") if duration.microseconds else ""
    day = "".join(f"{number}{unit}" for number, unit in ((years, "Y"), (days, "D")) if number)
    clock = "".join(f"{number}{unit}" for number, unit in ((hours, "H"), (minutes, "M")) if number)
    if seconds or fraction:
        clock += f"{seconds}{fraction}S"
    sign = "-" if value.days < 0 else ""
    return f"{sign}P{day}T{clock}" if clock else f"{sign}P{day or 'T0S'}"


def _fields(value: Any) -> Mapping[str, Any] | None:
    """Return the fields of an object of a program's own class; None for anything else."""
    if isinstance(value, (*_NAMED_TYPES, *_READ_ONCE)):
        return None
    if dataclasses.is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, types.SimpleNamespace) or type(value).__module__ == "__main__":
        if isinstance(value, BaseException):
            return None
        found: dict[str, Any] = {}
        for kind in reversed(type(value).__mro__):
            slots: Any = vars(kind).get("__slots__", ())
            for slot in (slots,) if isinstance(slots, str) else slots:
                if slot not in ("__dict__", "__weakref__") and hasattr(value, slot):
                    found[slot] = getattr(value, slot)
        return {**found, **getattr(value, "__dict__", {})}
    return None


def _written(value: float) -> float | str:
    """Return a number, or the text for one that JSON does not have."""
    if isfinite(value):
        return value
    return "NaN" if value != value else ("Infinity" if value > 0 else "-Infinity")


def _key(key: Any) -> str:
    if isinstance(key, bool):
        return "true" if key else "false"
    if isinstance(key, list):
        return ",".join(map(str, cast("list[Any]", key)))
    return "null" if key is None else str(_written(key) if isinstance(key, float) else key)
