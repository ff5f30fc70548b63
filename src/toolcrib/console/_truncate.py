"""How values get to the page: as text, cut where they are long, with where the rest is."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

__all__ = ["SHORT", "part", "shown", "whole"]

SHORT = 6_000  # characters of one value that are sent unasked
_MOST_ROWS = 40


def whole(value: Any) -> str:
    """Return a value as text: a text as it is, anything else as JSON over several lines."""
    return value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)


def shown(label: str, value: Any, **at: Any) -> dict[str, Any]:
    """Return a value for the page: its text, cut, and where the whole of it is found; of a short object its rows, too.

    The page shows what is written here as it is: a browser's own numbers would lose digits.
    """
    text = whole(value)
    rows = _rows(cast("Mapping[str, Any]", value)) if isinstance(value, Mapping) and len(text) <= SHORT else None
    return {"label": label, "text": text[:SHORT], "length": len(text), "cut": len(text) > SHORT, "rows": rows, "at": at}


def _rows(value: Mapping[str, Any]) -> list[tuple[str, str, str]] | None:
    """Return name, text and kind of each part of an object; None where a table would be too long."""
    if len(value) > _MOST_ROWS:
        return None
    return [
        (name, held if _is_long(held) else json.dumps(held, indent=2, ensure_ascii=False), _kind(held))
        for name, held in value.items()
    ]


def _is_long(value: Any) -> bool:
    return isinstance(value, str) and "\n" in value


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    return "number" if isinstance(value, int | float) else "text" if isinstance(value, str) else "deep"


def part(value: Any, path: Sequence[str]) -> Any:
    """Return what is at a path inside JSON objects; raises KeyError when there is nothing."""
    for name in path:
        if not isinstance(value, Mapping):
            raise KeyError(name)
        value = cast("Mapping[str, Any]", value)[name]
    return value
