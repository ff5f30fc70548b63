"""Streamed replies of Gemini, and calls whose arguments it streams one by one, each with the path to its place."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from toolcrib.formats._growing_object import GrowingObject, JsonPath, PlacedValue
from toolcrib.formats._json_reading import is_object, object_or_empty, objects_in, text_or_empty
from toolcrib.formats._stop_kinds import StreamEnd, error_in
from toolcrib.formats._wire import Item

__all__ = ["PartialCall", "ReplyStream", "first_candidate", "gathered_reply", "placed_values", "taken_back"]

_PATH_STEP = re.compile(r"\.(?P<name>[^.\[\]]+)|\[(?P<index>\d+)\]|\['(?P<single>[^']*)'\]|\[\"(?P<double>[^\"]*)\"\]")
_MOST_STEPS = 100
_VALUES = ("stringValue", "numberValue", "boolValue", "nullValue")


class PartialCall:
    """A call whose arguments are streamed one by one, each with the path to its place.

    Attributes:
        part: The part as it is taken back, with its call when it is closed.
        open: Whether more of it has to come.
    """

    def __init__(self, part: Mapping[str, Any]) -> None:
        self.part: Item = {**part, "functionCall": {}}
        self._rest: Item = {}
        self.open, self._broken, self._came = True, False, False
        self._arguments = GrowingObject()
        self.add(part)

    @staticmethod
    def begins(part: Mapping[str, Any]) -> bool:
        """Return whether the arguments of a part's call come later, or in pieces."""
        call = object_or_empty(part.get("functionCall"))
        return bool(call.get("willContinue") or call.get("partialArgs"))

    @property
    def is_whole(self) -> bool:
        """Whether it came to its end, each text in it too, and every path led to a place."""
        return not (self.open or self._broken or self._arguments.open)

    @property
    def name(self) -> str:
        """The tool's name."""
        return text_or_empty(self._rest.get("name"))

    def add(self, part: Mapping[str, Any]) -> None:
        """Take up the next part of it."""
        call = object_or_empty(part.get("functionCall"))
        self.part |= {key: value for key, value in part.items() if key != "functionCall"}
        values, pieces = placed_values(call)
        taken = [self._arguments.merge(values)]
        taken += [piece is not None and self._arguments.put(piece) for piece in pieces]
        self._broken = self._broken or not all(taken)
        self._came = self._came or bool(pieces) or is_object(call.get("args"))
        self._rest |= {key: value for key, value in call.items() if key not in ("args", "partialArgs", "willContinue")}
        self.open = bool(call.get("willContinue"))

    def close(self) -> Item:
        """Write what came of the call into its part, and return that."""
        self.part["functionCall"] = {**self._rest, "args": self._arguments.read()} if self._came else self._rest
        return self.part


def placed_values(call: Mapping[str, Any]) -> tuple[Mapping[str, Any], list[PlacedValue | None]]:
    """Return the arguments in a part's call: under their names, and those with a path; None for one without a place."""
    return object_or_empty(call.get("args")), [_placed(piece) for piece in objects_in(call.get("partialArgs"))]


def _placed(piece: Mapping[str, Any]) -> PlacedValue | None:
    path = _steps(text_or_empty(piece.get("jsonPath")))
    kind = next((key for key in _VALUES if key in piece), None)
    if path is None or kind is None:
        return None
    return PlacedValue(path, _value(piece, kind), bool(piece.get("willContinue")))


def _steps(path: str) -> JsonPath | None:
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
    return tuple(steps) if path.startswith("$") and 0 < len(steps) < _MOST_STEPS and isinstance(steps[0], str) else None


def _value(piece: Mapping[str, Any], kind: str) -> Any:
    value = piece[kind]
    if kind == "nullValue":
        return None
    return int(value) if isinstance(value, float) and value.is_integer() else value


# --- whole streams


@dataclass(slots=True)
class ReplyStream(StreamEnd):
    """What chunks come to: the reply, and the places of parts whose call was cut."""

    reply: Item = field(default_factory=Item)
    cut: set[int] = field(default_factory=set[int])


def gathered_reply(chunks: Iterable[Mapping[str, Any]]) -> ReplyStream:
    """Return what the chunks of a stream come to."""
    made = ReplyStream()
    candidate: Item = {}
    parts: list[Item] = []
    begun: list[PartialCall] = []
    for chunk in chunks:
        made.errors += filter(None, [error_in(chunk)])
        if chunk.get("promptFeedback"):
            made.reply["promptFeedback"] = chunk["promptFeedback"]
        piece = first_candidate(chunk)
        if piece is None:
            continue
        made.words.append(piece.get("finishReason"))
        candidate |= {key: value for key, value in piece.items() if key != "content" and value is not None}
        for part in objects_in(object_or_empty(piece.get("content")).get("parts")):
            _append_part(parts, taken_back(part), begun)
    for call in begun:
        call.close()
    unfinished = [call for call in begun if not call.is_whole]
    made.problems = [f"the arguments of a call of `{call.name}` were cut" for call in unfinished]
    cut = {id(call.part) for call in unfinished}
    made.cut = {place for place, part in enumerate(parts) if id(part) in cut}
    if candidate or parts:
        made.reply["candidates"] = [{**candidate, "content": {"role": "model", "parts": parts}}]
    return made


def first_candidate(reply: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the candidate of a reply or chunk that is read: the first of several."""
    return next((one for one in objects_in(reply.get("candidates")) if not one.get("index")), None)


def taken_back(part: Mapping[str, Any]) -> Item:
    """Return a part as it is taken back, without what is null; nothing of a text that is empty or none."""
    kept = {key: value for key, value in part.items() if value is not None}
    if isinstance(kept.get("functionCall"), Mapping):
        call = {key: value for key, value in kept["functionCall"].items() if value is not None}
        kept["functionCall"] = call if isinstance(call.get("id", ""), str) else {**call, "id": ""}
    return {} if kept == {"text": ""} or not isinstance(kept.get("text", ""), str) else kept


def _append_part(parts: list[Item], part: Item, begun: list[PartialCall]) -> None:
    """Append a part, unless it goes on with the one before.

    Text goes on where text of the same kind stopped, unless one of them is signed; a call whose arguments come in
    pieces goes on with parts that name no tool.
    """
    if "functionCall" in part:
        going_on = (
            bool(begun) and begun[-1].open and not text_or_empty(object_or_empty(part["functionCall"]).get("name"))
        )
        if going_on:
            begun[-1].add(part)
            return
        if PartialCall.begins(part):
            begun.append(PartialCall(part))
            parts.append(begun[-1].part)
            return
    last = parts[-1] if parts else {}
    joins = set(part) <= {"text", "thought"} and set(last) <= {"text", "thought"} and "text" in last and "text" in part
    if joins and bool(part.get("thought")) == bool(last.get("thought")):
        last["text"] = text_or_empty(last["text"]) + text_or_empty(part["text"])
    elif part:
        parts.append(dict(part))
