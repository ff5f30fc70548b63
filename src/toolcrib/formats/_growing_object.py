"""GrowingObject: a JSON object whose values come one by one, each with the path to its place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

JsonPath: TypeAlias = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class PlacedValue:
    """A value and its place in an object.

    Attributes:
        path: The keys and indices that lead there.
        value: The value; the next piece of it, for a text that goes on.
        goes_on: Whether another piece of the text has to come.
    """

    path: JsonPath
    value: Any
    goes_on: bool = False


class GrowingObject:
    """A JSON object whose values come one by one; the pieces of a text are joined when they are asked for.

    Attributes:
        open: The path of a text that goes on; None where none does.
    """

    def __init__(self) -> None:
        self.open: JsonPath | None = None
        self._value: dict[str, Any] = {}
        self._path: JsonPath = ()
        self._texts: list[str] = []  # the pieces of the text at `_path` that are not joined yet

    def merge(self, values: Mapping[str, Any]) -> bool:
        """Merge values that came under their own names; return whether none of them came into a text that goes on."""
        if values:
            self.read()
            self._value |= values
            self._texts = []
        return not (values and self.open)

    def put(self, piece: PlacedValue) -> bool:
        """Put a value in its place, or after the text that is there; return whether there is such a place."""
        if self.open not in (None, piece.path):  # a text goes on, and another place comes
            return False
        if self.open is not None and self._texts and isinstance(piece.value, str):
            self._texts.append(piece.value)
        else:
            self.read()
            if not _put(self._value, piece.path, piece.value):
                return False
            self._path, self._texts = piece.path, [piece.value] if isinstance(piece.value, str) else []
        self.open = piece.path if piece.goes_on else None
        return True

    def read(self) -> dict[str, Any]:
        """Return the object so far, which continues to grow."""
        if len(self._texts) > 1:
            self._texts = ["".join(self._texts)]
            _put(self._value, self._path, self._texts[0])
        return self._value


def _fits(place: Any, step: str | int) -> bool:
    """Return whether there is such a place: an object's, or one of a list up to the end of it."""
    if isinstance(step, str):
        return isinstance(place, dict)
    return isinstance(place, list) and step <= len(cast("list[Any]", place))


def _put(place: Any, path: JsonPath, value: Any) -> bool:
    """Put a value where the path says; return whether there is such a place."""
    step, rest = path[0], path[1:]
    if not _fits(place, step):
        return False
    known = step < len(place) if isinstance(step, int) else step in place
    inner = value
    if rest:
        inner = place[step] if known else list[Any]() if isinstance(rest[0], int) else dict[str, Any]()
        if not _put(inner, rest, value):
            return False
    if known or not isinstance(step, int):
        place[step] = inner
    else:
        place.append(inner)
    return True
