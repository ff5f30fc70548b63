"""Values and objects as plain structures that two runs can be compared by."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from numbers import Real
from typing import Any, cast

__all__ = ["Mismatch", "mismatch", "snapshot"]

_CLOCK = {"_last_modified"}  # the wall clock, different in any two runs
_PLAIN = (str, int, float, bool, type(None))
_MISSING = "(missing)"


@dataclass(frozen=True, slots=True)
class Mismatch:
    """The first place where two snapshots differ, as a path, and what is there."""

    path: str
    first: Any
    second: Any


def snapshot(value: Any) -> Any:
    """Return `value` as it is now, in dicts, lists and plain values, sharing nothing with it.

    Private attributes of objects count, the wall clock does not; a random generator is its state; a number of another
    library is a float; an object that contains itself is named where it comes again.
    """
    return _snapshot(value, ())


def _snapshot(value: Any, above: tuple[object, ...]) -> Any:
    if isinstance(value, _PLAIN):
        return value
    if isinstance(value, Real):
        return float(value)
    if any(value is one for one in above):
        return f"<the {type(value).__name__} above>"
    within = (*above, value)
    if isinstance(value, Mapping):
        items = cast("Mapping[Any, Any]", value)
        return {key: _snapshot(item, within) for key, item in items.items()}
    if isinstance(value, list | tuple):
        return [_snapshot(item, within) for item in cast("Sequence[Any]", value)]
    if isinstance(value, set | frozenset):
        return {"<set>": sorted((_snapshot(item, within) for item in cast("set[Any]", value)), key=repr)}
    if isinstance(value, random.Random):
        return {"<random>": hash(value.getstate())}
    return _snapshot_object(value, within)


def _snapshot_object(value: object, within: tuple[object, ...]) -> Any:
    try:
        attributes = vars(value)
    except TypeError:  # it has slots or is written in C: a date, an Ellipsis
        return copy.deepcopy(value)
    state = {name: _snapshot(item, within) for name, item in attributes.items() if name not in _CLOCK}
    return {"<class>": type(value).__name__, **state}


def mismatch(first: Any, second: Any, path: str = "") -> Mismatch | None:
    """Return the first place where two snapshots differ, or None; 5 and 5.0 are the same, 1 and True are not."""
    if isinstance(first, dict) and isinstance(second, dict):
        pairs = _by_key(cast("dict[Any, Any]", first), cast("dict[Any, Any]", second))
    elif isinstance(first, list) and isinstance(second, list):
        pairs = _by_index(cast("list[Any]", first), cast("list[Any]", second))
    elif first == second and isinstance(first, bool) == isinstance(second, bool):
        return None
    else:
        return Mismatch(path, first, second)
    found = (mismatch(one, other, path + step) for step, one, other in pairs)
    return next((place for place in found if place is not None), None)


def _by_key(first: dict[Any, Any], second: dict[Any, Any]) -> Iterator[tuple[str, Any, Any]]:
    for key in [*first, *(key for key in second if key not in first)]:
        yield f"[{key!r}]", first.get(key, _MISSING), second.get(key, _MISSING)


def _by_index(first: list[Any], second: list[Any]) -> Iterator[tuple[str, Any, Any]]:
    for index, (one, other) in enumerate(zip_longest(first, second, fillvalue=_MISSING)):
        yield f"[{index}]", one, other
