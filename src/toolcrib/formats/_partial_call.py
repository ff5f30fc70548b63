"""Calls whose arguments Gemini streams one by one, each with the path to its place."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast

from toolcrib.formats._json_reading import object_or_empty, objects_in, text_or_empty
from toolcrib.formats._wire import Item

__all__ = ["PartialCall"]

_PATH_STEP = re.compile(r"\.(?P<name>[^.\[\]]+)|\[(?P<index>\d+)\]|\['(?P<single>[^']*)'\]|\[\"(?P<double>[^\"]*)\"\]")
_MOST_STEPS = 100
_VALUES = ("stringValue", "numberValue", "boolValue", "nullValue")


class PartialCall:
    """A call whose arguments are streamed one by one, each with the path to its place.

    Attributes:
        part: The part as it is taken back, with what is there of the arguments.
        open: Whether more of it has to come.
        broken: Whether a path leads nowhere, so that the arguments are not the model's.
    """

    def __init__(self, part: Mapping[str, Any]) -> None:
        self.part: Item = {**part, "functionCall": {}}
        self.open, self.broken = True, False
        self._arguments: Item = {}
        self._growing: object = None  # the path of a text that goes on
        self.add(part)

    @staticmethod
    def begins(part: Mapping[str, Any]) -> bool:
        """Return whether the arguments of a part's call come later, or in pieces."""
        call = object_or_empty(part.get("functionCall"))
        return bool(call.get("willContinue") or call.get("partialArgs"))

    @property
    def name(self) -> str:
        """The tool's name."""
        return text_or_empty(self.part["functionCall"].get("name"))

    def add(self, part: Mapping[str, Any]) -> None:
        """Take up the next part of it."""
        call = object_or_empty(part.get("functionCall"))
        self.part |= {key: value for key, value in part.items() if key != "functionCall"}
        self._arguments |= object_or_empty(call.get("args"))
        for piece in objects_in(call.get("partialArgs")):
            self._put(piece)
        kept = {key: value for key, value in call.items() if key not in ("args", "partialArgs", "willContinue")}
        self.part["functionCall"] |= {**kept, "args": self._arguments}
        self.open = bool(call.get("willContinue"))

    def _put(self, piece: Mapping[str, Any]) -> None:
        path = _steps(text_or_empty(piece.get("jsonPath")))
        kind = next((key for key in _VALUES if key in piece), None)
        if path is None or kind is None or not _put(self._arguments, path, _value(piece, kind), self._growing == path):
            self.broken = True
            return
        self._growing = path if piece.get("willContinue") else None


def _steps(path: str) -> list[str | int] | None:
    """Return the steps of a path, `$.a.b[0]`; None for one that says nothing, or more than this."""
    steps: list[str | int] = []
    at = 1
    while at < len(path):
        found = _PATH_STEP.match(path, at)
        if found is None:
            return None
        index = found["index"]
        names = (found[key] for key in ("name", "single", "double"))
        steps.append(next((name for name in names if name is not None), "") if index is None else int(index))
        at = found.end()
    return steps if path.startswith("$") and 0 < len(steps) < _MOST_STEPS and isinstance(steps[0], str) else None


def _value(piece: Mapping[str, Any], kind: str) -> Any:
    value = piece[kind]
    if kind == "nullValue":
        return None
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _fits(place: Any, step: str | int) -> bool:
    """Return whether there is such a place: an object's, or one of a list up to the end of it."""
    if isinstance(step, str):
        return isinstance(place, dict)
    return isinstance(place, list) and step <= len(cast("list[Any]", place))


def _put(place: Any, path: list[str | int], value: Any, goes_on: bool) -> bool:
    """Put a value where the path says, or after the text that is there; return whether there is such a place."""
    step, rest = path[0], path[1:]
    if not _fits(place, step):
        return False
    known = step < len(place) if isinstance(step, int) else step in place
    held = place[step] if known else None
    if rest:
        made = held if known else list[Any]() if isinstance(rest[0], int) else Item()
        if not _put(made, rest, value, goes_on):
            return False
    else:
        made = held + value if goes_on and isinstance(held, str) and isinstance(value, str) else value
    if known or not isinstance(step, int):
        place[step] = made
    else:
        place.append(made)
    return True
