"""Parts of nested arguments, which a person names by paths: `order.amount`, and `items[*].price` for each item."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, Final, TypeAlias, cast

from toolcrib.calls._bounds import Bound, is_same
from toolcrib.calls._diff import label

EACH: Final = "[*]"
"""The step of a path to each item of a list."""
ROOT: Final = "$."
"""The beginning of a path where an argument has the whole path as its name: `$.order.amount`."""
_PATH: Final = re.compile(r"[^.\[\]]+(\.[^.\[\]]+|\[\*\])+")
_STEP: Final = re.compile(r"\[\*\]|[^.\[\]]+")
_MOST_STEPS: Final = 10
_MOST_PARTS: Final = 40

Parts: TypeAlias = Sequence[tuple[Sequence[str], Bound]]
"""Bounds with the steps that lead to their parts."""


def parts_of(arguments: Mapping[str, Any], names: Collection[str] = ()) -> dict[str, dict[str, Any]]:
    """Return the innermost parts of each nested argument by their paths, with their values: in a list, of all items.

    Parts that no path can name are left out, as those whose field has a dot in its name; of more than 40, all are.

    Args:
        arguments: The arguments of a call.
        names: The names of all that the tool takes; a path that is one of them begins with `$.`.
    """
    known = {*arguments, *names}
    parts: dict[str, dict[str, Any]] = {}
    for name, value in arguments.items():
        found = dict(islice(_parts((name,), [value]), _MOST_PARTS + 1))
        rooted = {f"{ROOT}{path}" if path in known else path: values for path, values in found.items() if path != name}
        parts[name] = {path: values for path, values in rooted.items() if path not in known}
    return parts if sum(map(len, parts.values())) <= _MOST_PARTS else {}


def _parts(steps: Sequence[str], values: Sequence[Any]) -> Iterator[tuple[str, Any]]:
    """Yield the innermost parts of the values at a place, each with its path."""
    if len(steps) > _MOST_STEPS or not _STEP.fullmatch(steps[-1]):
        return
    if any(values) and all(isinstance(value, Mapping) for value in values):
        for name, nested in _fields(values).items():
            if name != EACH:
                yield from _parts((*steps, name), nested)
    elif any(values) and all(isinstance(value, list) for value in values):
        yield from _parts((*steps, EACH), [item for value in values for item in value])
    else:
        path = "".join(step if step == EACH or at == 0 else f".{step}" for at, step in enumerate(steps))
        yield path, values if EACH in steps else values[0]


def _fields(values: Iterable[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Return the fields of objects, each with its values."""
    fields: dict[str, list[Any]] = {}
    for name, value in (field for item in values for field in item.items()):
        fields.setdefault(name, []).append(value)
    return fields


def steps_to(path: str, known: Collection[str]) -> list[str]:
    """Return the steps to a part of an argument, the argument first; one that is known by the whole name is meant."""
    plain = path.removeprefix(ROOT)
    return [path] if path in known or not _PATH.fullmatch(plain) else _STEP.findall(plain)


def amounts_at(path: str, arguments: Mapping[str, Any], known: Collection[str]) -> list[Any]:
    """Return the values at a path of a call: in a list, of all items; None for one that is not there."""
    name, *steps = steps_to(path, known)
    values: list[Any] = [arguments.get(name)]
    for step in steps:
        if step == EACH:
            lists = [cast("list[Any]", value) if isinstance(value, list) else [None] for value in values]
            values = [item for items in lists for item in items]
        else:
            values = [cast("Any", value).get(step) if isinstance(value, Mapping) else None for value in values]
    return values


def path_text(path: str) -> str:
    """Return a path in words: that of a part as it is, and the name of an argument quoted where it looks like one."""
    return path.removeprefix(ROOT) if path.startswith(ROOT) else label(path)


def bound_with_parts(path: str, values: Sequence[Any], parts: Parts) -> Bound:
    """Return the bound of a place of a call from the bounds of its parts.

    A part without a bound stays as it is in the call; one of an item of a list, as it is in one of the items. A part
    that some items have, and others have not, may be left out.

    Args:
        path: The path to the place.
        values: The values that the call has there: several where it is in a list.
        parts: The bounds of its parts.

    Raises:
        ValueError: A path leads nowhere, or a bound is given of a part and of what has it.
    """
    if not parts:
        return _as_before(values)
    if any(not steps for steps, _ in parts):
        if len(parts) > 1:
            raise ValueError(f"`{path}` has a bound, and a part of it has one, too: give one of the two")
        return parts[0][1]
    inner: dict[str, list[tuple[Sequence[str], Bound]]] = {}
    for (step, *steps), bound in parts:
        inner.setdefault(step, []).append((steps, bound))
    if EACH in inner:
        if len(inner) > 1 or not all(isinstance(value, list) for value in values):
            raise ValueError(f"`{path}` is not a list")
        return Bound("each", bound_with_parts(path + EACH, [item for value in values for item in value], inner[EACH]))
    if not all(isinstance(value, Mapping) for value in values):
        raise ValueError(f"`{path}` is not an object")
    fields = _fields(values)
    if unknown := sorted(inner.keys() - fields.keys()):
        raise ValueError(f"`{path}.{unknown[0]}` is not in this call; there are {', '.join(fields) or 'no fields'}")
    bounds = {name: bound_with_parts(f"{path}.{name}", part, inner.get(name, ())) for name, part in fields.items()}
    return Bound(
        "fields", {name: replace(bound, optional=len(fields[name]) < len(values)) for name, bound in bounds.items()}
    )


def _as_before(values: Iterable[Any]) -> Bound:
    """Return the bound of a part that stays as it is: as one of its values."""
    distinct: list[Any] = []
    for value in values:
        if not any(is_same(value, other) for other in distinct):
            distinct.append(value)
    return Bound.exactly(distinct[0]) if len(distinct) == 1 else Bound.one_of(distinct)
