"""Texts that are too long: their head and tail, with the cut said between them."""

from __future__ import annotations

from typing import Any


def cut(text: str, limit: int | None) -> str:
    """Return `text`, or its head and tail with the cut said between them, in about `limit` characters."""
    if limit is None or len(text) <= limit:
        return text
    tail = limit // 3
    head = limit - tail
    end = text[-tail:] if tail else ""
    return f"{text[:head]}{cut_note(text, limit)}{end}"


def cut_note(text: str, limit: int) -> str:
    """Return the note in place of the middle of a text that is cut."""
    return f"\n[... {len(text) - limit} of {len(text)} characters cut ...]\n"


def cut_shapes(shapes: Any, limit: int | None = None) -> Any:
    """Return JSON shapes, cut where they are a text."""
    return cut(shapes, limit) if type(shapes) is str else shapes
