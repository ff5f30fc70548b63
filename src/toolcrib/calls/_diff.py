"""Differences between two versions of a call's arguments, in lines for a person; text made safe to show."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, cast

_MISSING: Any = object()
_LONG = 60  # characters of a text that are shown whole
_AROUND = 16  # characters kept on each side of where two long texts differ


def printable(text: str) -> str:
    """Return `text` on one line, with escapes for what would not show as itself, or would rearrange the line."""
    return text if text.isprintable() else "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in text)


def shown(value: Any) -> str:
    """Return a value as JSON text on one line."""
    return "(not given)" if value is _MISSING else printable(json.dumps(value, ensure_ascii=False, default=str))


def label(name: str) -> str:
    """Return the name of an argument; quoted when it could pass for something else."""
    return name if name.isidentifier() else shown(name)


def differences(before: Any, after: Any, path: str = "") -> Iterator[str]:
    """Yield a line for each place where two JSON values differ: `stops[0].city: "Oslo" -> "Bergen"`.

    Texts of several lines are compared line by line, and of two long texts only the part that differs is shown.
    """
    if shown(before) == shown(after):
        return
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        yield from _in_objects(cast("Mapping[str, Any]", before), cast("Mapping[str, Any]", after), path)
    elif isinstance(before, list) and isinstance(after, list):
        items = cast("list[Any]", before), cast("list[Any]", after)
        yield from _in_sequences(*items, lambda number: f"{path}[{number}]")
    elif isinstance(before, str) and isinstance(after, str):
        if "\n" in before or "\n" in after:
            lines = before.split("\n"), after.split("\n")
            yield from _in_sequences(*lines, lambda number: f"{path} line {number + 1}")
        else:
            old, new = _without_the_alike(before, after)
            yield f"{path}: {shown(old)} -> {shown(new)}"
    else:
        yield f"{path}: {shown(before)} -> {shown(after)}"


def _in_objects(before: Mapping[str, Any], after: Mapping[str, Any], path: str) -> Iterator[str]:
    for name in [*before, *(n for n in after if n not in before)]:
        inner = f"{path}.{label(name)}" if path else label(name)
        yield from differences(before.get(name, _MISSING), after.get(name, _MISSING), inner)


def _in_sequences(before: Sequence[Any], after: Sequence[Any], path: Callable[[int], str]) -> Iterator[str]:
    """Yield the differences between the common beginning and the common end of two sequences."""
    head, tail = _common_ends(before, after)
    old, new = before[head : len(before) - tail], after[head : len(after) - tail]
    for number in range(max(len(old), len(new))):
        was = old[number] if number < len(old) else _MISSING
        now = new[number] if number < len(new) else _MISSING
        yield from differences(was, now, path(head + number))


def _differ(before: Any, after: Any) -> bool:
    """Return whether two values differ as JSON: in Python, `true` is 1."""
    return before != after or (not isinstance(before, str) and shown(before) != shown(after))


def _common_ends(before: Sequence[Any], after: Sequence[Any]) -> tuple[int, int]:
    """Return how many items are the same at the beginning, and at the end."""
    shorter = min(len(before), len(after))
    head = next((n for n in range(shorter) if _differ(before[n], after[n])), shorter)
    tail = next((n for n in range(shorter - head) if _differ(before[-1 - n], after[-1 - n])), shorter - head)
    return head, tail


def _without_the_alike(before: str, after: str) -> tuple[str, str]:
    """Return two long texts without most of what they have in common at both ends; short ones as they are."""
    if max(len(before), len(after)) <= _LONG:
        return before, after
    head, tail = _common_ends(before, after)
    start, end = max(0, head - _AROUND), max(0, tail - _AROUND)

    def middle(text: str) -> str:
        return ("…" if start else "") + text[start : len(text) - end] + ("…" if end else "")

    return middle(before), middle(after)
