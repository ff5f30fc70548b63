"""Streamed messages of Anthropic: the content blocks that their events come to, and how the message ended."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from toolcrib.formats._canonical_json import typed
from toolcrib.formats._json_reading import (
    number_at,
    object_at,
    object_in,
    object_or_empty,
    objects_at,
    objects_in,
    text_or_empty,
)
from toolcrib.formats._stop_kinds import StreamEnd, error_in
from toolcrib.formats._wire import Item

KEYS = {"text": "text", "thinking": "thinking"}  # what a block is that came without its type, by a key of it
UNTYPED = "what came without a type was left out"

_GROWING = {  # what a delta adds, and to what
    "text_delta": ("text", "text"),
    "thinking_delta": ("thinking", "thinking"),
    "signature_delta": ("signature", "signature"),
}


@dataclass(slots=True)
class _Block:
    """A content block of a stream, with the text of its input, and whether it came to its end."""

    item: Item
    input: list[str] = field(default_factory=list[str])
    is_open: bool = False
    is_broken: bool = False  # a piece of its input was no text

    @property
    def is_call(self) -> bool:
        """True if the block is a call of a tool of the host."""
        return self.item.get("type") == "tool_use"

    @property
    def takes_input(self) -> bool:
        """True if the block takes pieces of an input: it is an open call, or neither text nor thought."""
        kind = text_or_empty(self.item.get("type"))
        return self.is_open if self.is_call else bool(kind) and kind not in KEYS


@dataclass(slots=True)
class MessageStream(StreamEnd):
    """The message of a stream's events.

    Attributes:
        content: The blocks in their order, without those that cannot be sent back.
        cut: The places of calls whose input never came to its end.
        container: As for `WireReply`.
    """

    content: list[Item] = field(default_factory=list[Item])
    cut: set[int] = field(default_factory=set[int])
    container: str = ""


def gathered_message(events: Iterable[Mapping[str, Any]]) -> MessageStream:
    """Return the message of a stream's events."""
    stream = MessageStream()
    blocks: list[_Block] = []
    current: dict[int, _Block] = {}
    begun = ended = False
    for event in events:
        place = number_at(event, "index", stream.misread)
        stream.errors += filter(None, [error_in(event)])
        match event.get("type"):
            case "message_start":
                message = object_at(event, "message", stream.misread)
                blocks += [_Block(dict(block)) for block in objects_at(message, "content", stream.misread)]
                stream.words.append(message.get("stop_reason"))
                stream.container = container_of(message)
                if begun:
                    stream.errors.append("a second message began in its stream")
                begun, current = True, dict(enumerate(blocks))
            case "content_block_start":  # a block that has the index of one before is another
                blocks.append(_Block(dict(object_at(event, "content_block", stream.misread)), is_open=True))
                current[place] = blocks[-1]
            case "content_block_delta":
                delta = object_at(event, "delta", stream.misread)
                if place not in current and delta.get("type") in _GROWING:
                    blocks.append(_Block({}, is_open=True))
                    current[place] = blocks[-1]
                _add(current.get(place), delta, stream.misread)
            case "content_block_stop" if place in current:
                current[place].is_open = False
            case "message_delta":
                delta = object_at(event, "delta", stream.misread)
                stream.words.append(delta.get("stop_reason"))
                stream.container = container_of(delta) or stream.container
            case "message_stop":
                ended = True
            case kind:  # pings, and what the SDK derives from the others
                delta = object_or_empty(event.get("delta"))
                of_call = delta.get("type") == "input_json_delta" or (place in current and current[place].is_call)
                if delta and of_call:
                    stream.misread.append(f"an event of the type `{kind}` came for a call")
    if not ended and any(stream.words):
        stream.problems.append("the stream was cut: it never came to its end")
    for block in blocks:
        _add_block(stream, block)
    return stream


def container_of(message: Mapping[str, Any]) -> str:
    """Return the id of the container that a message, or the last part of its stream, was made with."""
    return text_or_empty(object_or_empty(message.get("container")).get("id"))


def _add(block: _Block | None, delta: Mapping[str, Any], misread: list[str]) -> None:
    kind = text_or_empty(delta.get("type"))
    item = {} if block is None else block.item
    if kind == "input_json_delta":
        piece: object = delta.get("partial_json")
        if block is None or not block.takes_input:
            misread += ["a piece of a call came where no call is open"] if piece else []
            return
        block.is_broken = block.is_broken or not isinstance(piece, str)
        block.input.append(text_or_empty(piece))
    elif block is not None and block.is_call:
        misread += [f"a piece of a call has the type `{kind}`"] if delta else []
    elif kind == "compaction_delta":
        item |= {key: value for key, value in delta.items() if key != "type" and value is not None}
    elif kind == "citations_delta":
        item["citations"] = [*objects_in(item.get("citations")), dict(object_or_empty(delta.get("citation")))]
    elif kind in _GROWING:
        key, source = _GROWING[kind]
        item[key] = text_or_empty(item.get(key)) + text_or_empty(delta.get(source))
    elif block is None and delta:
        misread.append(f"a piece of the type `{kind}` came where no block is open")


def _add_block(stream: MessageStream, block: _Block) -> None:
    """Add a block to the content, unless it cannot be sent back.

    A call without parameters comes as an empty input that is closed, with an empty text of JSON or none.
    """
    [item] = typed([block.item], KEYS) or [Item()]
    kind, text = text_or_empty(item.get("type")), "".join(block.input)
    if not kind:
        stream.misread.append(UNTYPED)
        return
    if block.is_open and kind not in ("text", "tool_use"):
        stream.problems.append(f"a block of type `{kind}` was cut and left out")
        return
    unfinished = kind == "tool_use" and (block.is_open or block.is_broken)
    if text or unfinished:
        read = object_in(text)
        item["input"] = read if read is not None else text if kind == "tool_use" else {}
    if unfinished:
        stream.cut.add(len(stream.content))
        stream.problems.append(f"the input of a call of `{text_or_empty(item.get('name'))}` was cut")
    stream.content.append(item)
