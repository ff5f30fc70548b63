"""Snapshot of the names that a program leaves: those that hold plain values, for a session whose worker is lost."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any, Final, cast

__all__ = ["plain_values"]

_LEAVES: Final = (str, int, float, bool, type(None))


def plain_values(names: Mapping[str, Any], others: Collection[str], most: int) -> dict[str, Any]:
    """Return the names that hold texts, numbers, and lists and dicts of them, as far as they fit.

    Args:
        names: The names of the program.
        others: Names that are not the program's own.
        most: Bytes of JSON that all of them may take.
    """
    kept: dict[str, Any] = {}
    for name, value in list(names.items()):
        if name.startswith("_") or name in others or not _is_plain(value, most):
            continue
        try:
            size = len(json.dumps({name: value}))
        except (ValueError, RecursionError, MemoryError):
            continue
        if size <= most:
            most -= size
            kept[name] = value
    return kept


def _is_plain(value: Any, most: int) -> bool:
    """Return whether JSON gives the same value back, looking at no more parts than there is room for."""
    parts: list[Any] = [value]
    while parts:
        part = parts.pop()
        if type(part) in _LEAVES:
            continue
        if type(part) is dict:
            table = cast("dict[Any, Any]", part)
            inside = [*table, *table.values()] if len(table) < most and {*map(type, table)} <= {str} else None
        else:
            inside = cast("list[Any]", part) if type(part) is list and len(cast("list[Any]", part)) < most else None
        if inside is None:
            return False
        most -= len(inside) + 1
        parts.extend(inside)
    return True
