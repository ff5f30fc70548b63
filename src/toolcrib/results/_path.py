"""JSONPath: the part of it that selects by name, number, slice and `*`; what it costs grows with the value alone.

A model writes the path. Of `python-jsonpath` (2.2.2), which reads all of JSONPath, `$..*..*..*..*..*..*` took 10 s of a
value that is nested 30 deep, in which nothing else of the process runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias, cast

from toolcrib.errors import ModelRetry, closest

Step: TypeAlias = str | int | slice
"""A member's name, an item's number, or a slice of a list; `*` is the slice of everything."""

_MOST_CHARS, _MOST_STEPS = 500, 20
_LOOKED_AT = 1_000  # objects whose members an error names
_STEP = re.compile(
    r"""\.(?P<name>[^\W\d][\w-]*) | (?P<all>\.\*|\[\*\]) | \[(?P<number>-?[0-9]{1,15})\]
    | \[(?P<start>-?[0-9]{0,15}):(?P<stop>-?[0-9]{0,15})\] | \['(?P<single>[^']*)'\] | \["(?P<double>[^"]*)"\]""",
    re.VERBOSE,
)
_FORMS = "a path is like $.orders[0].items[*].price, $[10:20] or $['a name']"


def parse_path(path: str) -> tuple[Step, ...]:
    """Return the steps of a path.

    Raises:
        ModelRetry: It cannot be read.
    """
    if len(path) > _MOST_CHARS:
        raise ModelRetry(f"the path has {len(path)} characters, and may have {_MOST_CHARS}")
    text = path.strip().removeprefix("$")
    if text and text[0] not in ".[":
        text = f".{text}"
    steps, at = list[Step](), 0
    while at < len(text):
        found = _STEP.match(text, at)
        if found is None or len(steps) == _MOST_STEPS:
            raise ModelRetry(f"the path `{path}` cannot be read from `{text[at : at + 40]}` on: {_FORMS}")
        steps.append(_step(found))
        at = found.end()
    return tuple(steps)


def _step(found: re.Match[str]) -> Step:
    match found.lastgroup:
        case "name" | "single" | "double":
            return found[found.lastgroup]
        case "number":
            return int(found["number"])
        case "all":
            return slice(None)
        case _:
            try:
                return slice(*(int(text) if text else None for text in (found["start"], found["stop"])))
            except ValueError:  # a minus by itself
                raise ModelRetry(f"`{found[0]}` is not a slice: {_FORMS}") from None


def selects_several(steps: Sequence[Step]) -> bool:
    """Return whether steps may select more than one value."""
    return any(isinstance(step, slice) for step in steps)


def require_selected(values: list[Any], steps: Sequence[Step]) -> None:
    """Refuse steps that select nothing because no value has such a member; where they select several, one may be empty.

    Raises:
        ModelRetry: It names the step, and the members that there are.
    """
    for step in steps:
        found = [part for value in values for part in select(value, (step,))]
        if not found and (not selects_several(steps) or any(value not in ([], {}) for value in values)):
            raise ModelRetry(f"the path selects nothing: {_absence(values, step)}")
        values = found


def _absence(values: list[Any], step: Step) -> str:
    objects = [cast("dict[str, Any]", value) for value in values if isinstance(value, dict)]
    if isinstance(step, str):
        names = dict.fromkeys(name for members in objects[:_LOOKED_AT] for name in members)
        return f"there is no member `{step}`. {closest(step, names)}"
    if isinstance(step, slice):
        return "no value there is a list or an object, or its slice is past the end"
    most = max((len(cast("list[Any]", value)) for value in values if isinstance(value, list)), default=None)
    return "there is no list there" if most is None else f"there is no item {step}: a list there has {most}"


def select(value: Any, steps: Sequence[Step]) -> Iterator[Any]:
    """Yield the members of a value that steps select."""
    if not steps:
        yield value
        return
    step, rest = steps[0], steps[1:]
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        found: list[Any] = [members[step]] if isinstance(step, str) and step in members else []
        if step == slice(None):
            found = [*members.values()]
    elif isinstance(value, list) and not isinstance(step, str):
        items = cast("list[Any]", value)
        found = items[step] if isinstance(step, slice) else items[step : step + 1 or None]
    else:
        return
    for part in found:
        yield from select(part, rest)
