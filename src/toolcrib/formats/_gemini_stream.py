"""Streamed replies of Gemini, and calls whose arguments it streams one by one, each with the path to its place."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from toolcrib.formats._growing_object import GrowingObject, JsonPath, PlacedValue
from toolcrib.formats._json_reading import (
    fields_of,
    is_object,
    number_at,
    object_at,
    object_or_empty,
    objects_at,
    text_or_empty,
)
from toolcrib.formats._stop_kinds import StreamEnd, error_in
from toolcrib.formats._wire import Item

_PATH_STEP = re.compile(
    r"""\.(?P<name>[^.\[\]]+)|\[(?P<index>\d+)\]|\[(?P<quoted>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")\]""", re.DOTALL
)
_ESCAPE = re.compile(r'\\.|"', re.DOTALL)
_MOST_STEPS = 100
_VALUES: dict[str, tuple[type, ...]] = {"stringValue": (str,), "numberValue": (int, float), "boolValue": (bool,)}
_MORE = frozenset({"partialArgs", "willContinue"})
_GROWTH = _MORE | {"args"}
_OBJECTS = ("inlineData", "fileData", "executableCode", "codeExecutionResult", "toolCall", "toolResponse")
_KINDS = {"text": str, "thought": bool, "thoughtSignature": str, **dict.fromkeys(_OBJECTS, Mapping)}
_ABOUT = frozenset({"thought", "thoughtSignature", "videoMetadata", "mediaResolution", "partMetadata"})  # no content


class PartialCall:
    """A call whose arguments are streamed one by one, each with the path to its place.

    Attributes:
        part: The part as it is taken back, with its call when it is closed.
        open: Whether more of it has to come.
    """

    def __init__(self, part: Mapping[str, Any], misread: list[str]) -> None:
        self.part: Item = {**part, "functionCall": {}}
        self._rest: Item = {}
        self.open, self._broken, self._has_arguments = True, False, False
        self._arguments = GrowingObject()
        self.add(part, misread)

    @staticmethod
    def begins(part: Mapping[str, Any]) -> bool:
        """Return whether the arguments of a part's call come later, or in pieces."""
        call = object_or_empty(part.get("functionCall"))
        return bool(call.get("willContinue") or call.get("partialArgs"))

    @property
    def is_whole(self) -> bool:
        """True if the stream and each text in it came to an end, and every path led to a place."""
        return not (self.open or self._broken or self._arguments.open)

    @property
    def name(self) -> str:
        """The tool's name."""
        return text_or_empty(self._rest.get("name"))

    def add(self, part: Mapping[str, Any], misread: list[str]) -> None:
        """Add the next part of it; `misread` as for `object_at`."""
        call = object_or_empty(part.get("functionCall"))
        self.part |= {key: value for key, value in part.items() if key != "functionCall"}
        if call.keys() - {"id"} and call.keys().isdisjoint(_GROWTH):
            misread.append(f"a piece of a call has nothing that is known: `{next(iter(call.keys() - {'id'}))}`")
        values, pieces = placed_values(call, misread)
        are_merged = [self._arguments.merge(values)]
        are_merged += [piece is not None and self._arguments.put(piece) for piece in pieces]
        self._broken = self._broken or not all(are_merged)
        self._has_arguments = self._has_arguments or bool(pieces) or is_object(call.get("args"))
        self._rest |= {key: value for key, value in call.items() if key not in _GROWTH}
        self.open = bool(call.get("willContinue"))

    def close(self) -> Item:
        """Write the call into its part, and return the part; arguments that never arrived are an empty text."""
        self.part["functionCall"] = {**self._rest, "args": self._arguments.read() if self._has_arguments else ""}
        return self.part


def placed_values(call: Mapping[str, Any], misread: list[str]) -> tuple[Mapping[str, Any], list[PlacedValue | None]]:
    """Return the arguments in a part's call: under their names, and those with a path; None for one without a place."""
    return object_at(call, "args", misread), [_placed(piece) for piece in objects_at(call, "partialArgs", misread)]


def _placed(piece: Mapping[str, Any]) -> PlacedValue | None:
    path = _steps(text_or_empty(piece.get("jsonPath")))
    kind = next((key for key in _VALUES if piece.get(key) is not None), "nullValue")
    value: Any = piece.get(kind)
    if path is None or (kind not in piece if kind == "nullValue" else type(value) not in _VALUES[kind]):
        return None
    if kind == "nullValue":
        value = None
    elif isinstance(value, float) and value.is_integer():
        value = int(value)
    return PlacedValue(path, value, bool(piece.get("willContinue")))


def _steps(path: str) -> JsonPath | None:
    """Return the steps of a path, `$.a.b[0]`; None for one that says nothing, or more than this."""
    steps: list[str | int] = []
    at = 1
    while at < len(path):
        found = _PATH_STEP.match(path, at)
        if found is None:
            return None
        step = found["name"] or (_unquoted(found["quoted"]) if found["quoted"] else int(found["index"]))
        if step is None:
            return None
        steps.append(step)
        at = found.end()
    return tuple(steps) if path.startswith("$") and 0 < len(steps) < _MOST_STEPS and isinstance(steps[0], str) else None


def _unquoted(quoted: str) -> str | None:
    """Return a key that a path has in quotes, None where an escape in it means nothing. Source: RFC 9535, 2.3.1."""
    as_json = {"\\'": "'", '"': '\\"'}
    inner = _ESCAPE.sub(lambda found: as_json.get(found[0], found[0]), quoted[1:-1])
    try:
        return str(json.loads(f'"{inner}"', strict=False))
    except ValueError:
        return None


# --- whole streams


@dataclass(slots=True)
class ReplyStream(StreamEnd):
    """The reply that chunks make up, and the places of parts whose call was cut."""

    reply: Item = field(default_factory=Item)
    cut: set[int] = field(default_factory=set[int])


def gathered_reply(chunks: Iterable[Mapping[str, Any]]) -> ReplyStream:
    """Return the reply of a stream's chunks."""
    stream = ReplyStream()
    candidate: Item = {}
    parts: list[Item] = []
    calls = _PartialCalls()
    for chunk in chunks:
        stream.errors += filter(None, [error_in(chunk)])
        if chunk.get("promptFeedback"):
            stream.reply["promptFeedback"] = chunk["promptFeedback"]
        piece = first_candidate(chunk, stream.misread)
        if piece is None:
            continue
        stream.words.append(piece.get("finishReason"))
        candidate |= {key: value for key, value in piece.items() if key != "content" and value is not None}
        for sent in objects_at(object_at(piece, "content", stream.misread), "parts", stream.misread):
            part = taken_back(sent, stream.misread)
            new = calls.add(part, stream.misread) if "functionCall" in part else part
            if new:
                # text goes on where text of the same kind stopped, unless one of them is signed
                last = parts[-1] if parts else {}
                joins = all({"text"} <= set(part) <= {"text", "thought"} for part in (last, new))
                if joins and bool(new.get("thought")) == bool(last.get("thought")):
                    last["text"] = text_or_empty(last["text"]) + text_or_empty(new["text"])
                else:
                    parts.append(new)
    for call in calls.begun:
        call.close()
    unfinished = [call for call in calls.begun if not call.is_whole]
    stream.problems = [f"the arguments of a call of `{call.name}` were cut" for call in unfinished]
    cut = {id(call.part) for call in unfinished}
    stream.cut = {place for place, part in enumerate(parts) if id(part) in cut}
    if candidate or parts:
        stream.reply["candidates"] = [{**candidate, "content": {"role": "model", "parts": parts}}]
    return stream


def first_candidate(reply: Mapping[str, Any], misread: list[str]) -> Mapping[str, Any] | None:
    """Return the candidate of a reply or chunk that is read, the first of several; `misread` as for `object_at`."""
    candidates = objects_at(reply, "candidates", misread)
    return next((candidate for candidate in candidates if not number_at(candidate, "index", misread)), None)


def taken_back(part: Mapping[str, Any], misread: list[str]) -> Item:
    """Return a part as it is taken back, without what is null or of another kind; nothing of one that holds nothing."""
    fields = fields_of(part, _KINDS, misread)
    if is_object(fields.get("functionCall")):
        sent = fields["functionCall"].items()
        call = {key: value for key, value in sent if value is not None and (value or key not in _MORE)}
        fields["functionCall"] = call if isinstance(call.get("id", ""), str) else {**call, "id": ""}
    if _ABOUT.issuperset(fields):  # a signature may come by itself, and is then taken back with an empty text
        return {"text": "", **fields} if "thoughtSignature" in fields else {}
    return {} if fields == {"text": ""} else fields


class _PartialCalls:
    """The calls of a stream whose arguments come in pieces.

    Attributes:
        begun: All of them, in their order.
    """

    def __init__(self) -> None:
        self.begun: list[PartialCall] = []
        self._open: dict[object, PartialCall] = {}  # by id; those without one by a number

    def add(self, part: Item, misread: list[str]) -> Item | None:
        """Add a part with a call, and return it as it stands in the content; None where it goes on with a call.

        It goes on with the open call of its id, or with the only open one where it has none; a name begins a call.
        """
        call = object_at(part, "functionCall", misread)
        id, name = text_or_empty(call.get("id")), text_or_empty(call.get("name"))
        key: object = next(iter(self._open)) if not id and len(self._open) == 1 else id
        if not name and key in self._open:
            self._open[key].add(part, misread)
            if not self._open[key].open:
                del self._open[key]
            return None
        if not PartialCall.begins(part):
            return part
        partial = PartialCall(part, misread)
        self.begun.append(partial)
        if partial.open:
            self._open[id or len(self.begun)] = partial
        return partial.part
