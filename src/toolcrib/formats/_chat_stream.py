"""Streamed Chat Completions: the message that their chunks come to, with what is wrong with its calls."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from toolcrib.formats._json_reading import (
    is_object,
    number_at,
    object_at,
    object_or_empty,
    objects_at,
    objects_in,
    text_or_empty,
)
from toolcrib.formats._stop_kinds import StreamEnd, error_in
from toolcrib.formats._wire import Item

_KNOWN = frozenset({"role", "content", "refusal", "tool_calls", "function_call"})
TEXTS = {"custom": "input"}  # where a call of this kind has its text; the others have it in `arguments`
KINDS = ("function", *TEXTS)


@dataclass(slots=True)
class ChatStream(StreamEnd):
    """The message of a stream's chunks.

    Attributes:
        message: The message.
        faults: Why calls of the message may not run, by their place.
    """

    message: Item = field(default_factory=lambda: Item(role="assistant"))
    faults: dict[int, str] = field(default_factory=dict[int, str])


def gathered_chat(chunks: Iterable[Mapping[str, Any]]) -> ChatStream:
    """Return the message of a stream's chunks."""
    stream = ChatStream()
    calls: list[_StreamedCall] = []
    current: dict[int, _StreamedCall] = {}
    for chunk in chunks:
        choice = first_choice(chunk, stream.misread) or {}  # the last one has the usage alone
        stream.errors += filter(None, (error_in(chunk), error_in(choice)))
        stream.words.append(choice.get("finish_reason"))
        delta = object_at(choice, "delta", stream.misread)
        if not delta:  # some servers end with the whole message, once more
            delta = object_at(choice, "message", stream.misread)
            stream.message |= {key: None for key, value in delta.items() if value and key not in ("role", "tool_calls")}
        for key in ("content", "refusal"):
            _add_content(stream.message, key, delta.get(key))
        for position, piece in enumerate(calls_in(delta, stream.misread)):
            _add_call(calls, current, piece, number_at(piece, "index", stream.misread, position), stream.misread)
        _add_rest(stream.message, delta)
    if calls:
        stream.message["tool_calls"] = [call.item() for call in calls]
    stream.faults = {place: call.fault for place, call in enumerate(calls) if call.fault}
    return stream


def first_choice(chunk: Mapping[str, Any], misread: list[str]) -> Mapping[str, Any] | None:
    """Return the choice of a reply or chunk that is read, the first of several; `misread` as for `object_at`."""
    choices = objects_at(chunk, "choices", misread)
    return next((choice for choice in choices if not number_at(choice, "index", misread)), None)


def kind_of(call: Mapping[str, Any]) -> str:
    """Return the kind of a call: its type, unless it is a function all the same."""
    kind = text_or_empty(call.get("type"))
    return kind if kind and (kind in call or "function" not in call) else "function"


def id_of(call: Mapping[str, Any]) -> str:
    """Return the id of a call, or of a piece of one; empty where it has none, for which Mistral's SDK writes `null`."""
    id = text_or_empty(call.get("id"))
    return "" if id == "null" else id


def calls_in(message: Mapping[str, Any], misread: list[str]) -> list[Mapping[str, Any]]:
    """Return the calls in a message or a piece of one; `misread` as for `object_at`.

    The call of a server that writes it as the API did before there were tools comes as it is written now.
    """
    calls, legacy = objects_at(message, "tool_calls", misread), legacy_call(message, misread)
    return calls or ([{"type": "function", "function": legacy}] if legacy else [])


def legacy_call(message: Mapping[str, Any], misread: list[str]) -> Mapping[str, Any]:
    """Return the call that a message has as the API wrote one before there were tools; empty where it has none.

    Some servers write an empty one into each message.
    """
    legacy = object_at(message, "function_call", misread)
    return legacy if any(legacy.values()) else {}


def _add_rest(message: Item, delta: Mapping[str, Any]) -> None:
    """Add the fields without a rule here: a server that thinks wants its thoughts back with the calls they led to."""
    for key, piece in delta.items():
        if key in _KNOWN or piece is None:
            continue
        before: Any = message.get(key)
        if isinstance(piece, str):
            message[key] = text_or_empty(before) + piece
        elif isinstance(piece, list):
            message[key] = [*(cast("list[Any]", before) if isinstance(before, list) else ()), *cast("list[Any]", piece)]
        elif is_object(piece):
            message[key] = {**object_or_empty(before), **piece}
        else:
            message[key] = piece


def _add_content(message: Item, key: str, piece: object) -> None:
    """Append text to text; parts (Mistral's thoughts) stay parts, and neighbours of one kind become one."""
    if not piece:
        return
    before: object = message.get(key)
    if isinstance(piece, str) and (before is None or isinstance(before, str)):
        message[key] = text_or_empty(before) + piece
        return
    parts = _parts(before)
    for part in _parts(piece):
        last: Item = parts[-1] if parts else {}
        if part.get("type") == last.get("type") == "text":
            last["text"] = text_or_empty(last.get("text")) + text_or_empty(part.get("text"))
        elif part.get("type") == last.get("type") == "thinking":
            last["thinking"] = _joined(last.get("thinking"), part.get("thinking"))
        else:
            parts.append(part)
    message[key] = parts


def _joined(thought: object, more: object) -> Any:
    """Return a thought that goes on: a text (Cohere's), or a list of parts (Mistral's)."""
    if isinstance(thought, str) and isinstance(more, str):
        return thought + more
    return [*objects_in(thought), *objects_in(more)]


def _parts(content: object) -> list[Item]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [dict(part) for part in objects_in(content)]


def _add_call(
    calls: list[_StreamedCall],
    current: dict[int, _StreamedCall],
    piece: Mapping[str, Any],
    index: int,
    misread: list[str],
) -> None:
    """Add a piece to the call that it belongs to: the one of its index, unless it begins another.

    A piece that says nothing, as some servers send at the end, begins none.
    """
    call = current.get(index)
    if call is None and _is_empty(piece):
        return
    if call is None or call.ends_before(piece):
        call = current[index] = _StreamedCall(piece)
        calls.append(call)
    call.add(piece, misread)


def _is_empty(piece: Mapping[str, Any]) -> bool:
    """Return whether a piece of a call has neither an id nor anything in the part of its kind."""
    kind = kind_of(piece)
    return kind in piece and not id_of(piece) and not any(object_or_empty(piece[kind]).values())


class _StreamedCall:
    """A call that comes in pieces: its id and name, and its arguments as a text bit by bit, or as an object at once.

    Attributes:
        fault: Why it may not run: its name changed, or its arguments came twice and are not the same.
    """

    def __init__(self, piece: Mapping[str, Any]) -> None:
        self.kind = kind_of(piece)
        self.fault = ""
        self._key = TEXTS.get(self.kind, "arguments")
        self._id, self._name = "", ""
        self._texts: list[str] = []
        self._length = 0
        self._value: Any = None  # arguments that are no text
        self._inner: Item = {}
        self._rest: Item = {}

    def ends_before(self, piece: Mapping[str, Any]) -> bool:
        """Return whether a piece with its index begins another call: some servers say index 0 for each."""
        id, name = id_of(piece), text_or_empty(object_or_empty(piece.get(self.kind)).get("name"))
        if id and self._id:
            return id != self._id
        return bool(name and self._name and name != self._name) and self._is_whole()

    def add(self, piece: Mapping[str, Any], misread: list[str]) -> None:
        """Add a piece; `misread` as for `object_at`."""
        self._id = self._id or id_of(piece)
        strange = next((kind for kind in (*KINDS, kind_of(piece)) if kind != self.kind and piece.get(kind)), "")
        if strange:
            self.fault = self.fault or f"a piece of it has the kind `{strange}`"
        for key, value in object_at(piece, self.kind, misread).items():
            if key == "name":
                self._add_name(value)
            elif key != self._key:
                self._inner |= {} if value is None or value == "" else {key: value}
            elif isinstance(value, str):
                self._add_text(value)
            elif value is not None:
                if (self._length or self._value) and not self.fault and not self._came_before(value):
                    self.fault = "its arguments came twice, and are not the same"
                if not self._length:
                    self._value = value
        known = ("index", "id", "type", self.kind, *KINDS)
        self._rest |= {key: value for key, value in piece.items() if key not in known and value is not None}

    def item(self) -> Item:
        """Return the call as it stands in a message."""
        inner = {"name": self._name, **self._inner} if self._name else self._inner
        value = "".join(self._texts) if self._texts and (self._length or self._value is None) else self._value
        inner = inner if value is None else {**inner, self._key: value}
        return {"id": self._id, "type": self.kind, self.kind: inner, **self._rest}

    def _add_name(self, name: object) -> None:
        if name and self._name and name != self._name:
            self.fault = self.fault or f"its name changed from `{self._name}` to `{name}`"
        self._name = self._name or text_or_empty(name)

    def _add_text(self, text: str) -> None:
        if text and self._value and not self.fault and not self._came_before(text):
            self.fault = "its arguments came twice, and are not the same"
        if not self._repeats(text):
            self._texts.append(text)
            self._length += len(text)

    def _repeats(self, text: str) -> bool:
        """Return whether a piece is the whole of what came, once more: some servers' last one."""
        if not text or len(text) != self._length or self._key != "arguments":
            return False
        return text == "".join(self._texts) and self._is_whole()

    def _came_before(self, arguments: Any) -> bool:
        """Return whether arguments are those that came before."""
        earlier, other = _read("".join(self._texts)) if self._length else self._value, arguments
        return bool(earlier == (_read(other) if isinstance(other, str) else other))

    def _is_whole(self) -> bool:
        """Return whether the received part of the arguments is one JSON object."""
        return is_object(_read("".join(self._texts)) if self._length else self._value)


def _read(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
