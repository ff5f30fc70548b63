"""Values as the page shows them: text, cut where it is long, with the place of the rest."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

MAX_CHARS = 6_000  # of one value that are sent at first
_MAX_ROWS = 40


def full_text(value: Any) -> str:
    """Return a value as text: a text as it is, anything else as JSON over several lines."""
    return value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)


def value_view(label: str, value: Any, **at: Any) -> dict[str, Any]:
    """Return a value for the page: its text, cut, and the place of the whole; of a short object its rows, too.

    The page shows the text as it is: a browser's own numbers would lose digits.
    """
    text = full_text(value)
    rows = _rows(cast("Mapping[str, Any]", value)) if isinstance(value, Mapping) and len(text) <= MAX_CHARS else None
    return {
        "label": label,
        "text": text[:MAX_CHARS],
        "length": len(text),
        "cut": len(text) > MAX_CHARS,
        "rows": rows,
        "at": at,
    }


def _rows(value: Mapping[str, Any]) -> list[tuple[str, str, str]] | None:
    """Return name, text and kind of each part of an object; None where a table would be too long."""
    if len(value) > _MAX_ROWS:
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


def at_path(value: Any, path: Sequence[str]) -> Any:
    """Return the value at a path inside JSON objects; raises KeyError without one."""
    for name in path:
        if not isinstance(value, Mapping):
            raise KeyError(name)
        value = cast("Mapping[str, Any]", value)[name]
    return value
