"""An Anthropic message from the events in which it is streamed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, cast

from toolcrib.formats._wire import Item, entries, table, word

__all__ = ["gather_messages"]

_GROWING = {  # what a delta adds, and to what
    "text_delta": ("text", "text"),
    "thinking_delta": ("thinking", "thinking"),
    "signature_delta": ("signature", "signature"),
}


def gather_messages(events: Iterable[Mapping[str, Any]]) -> tuple[Item, dict[int, str], list[str]]:
    """Return the message, the input of calls that was cut by their block's place, and what was wrong."""
    message: Item = {}
    blocks: dict[int, Item] = {}
    inputs: dict[int, str] = {}
    problems: list[str] = []
    open_blocks: set[int] = set()
    ended = False
    for event in events:
        index = event.get("index")
        place = index if isinstance(index, int) else 0
        match event.get("type"):
            case "message_start":
                message = dict(table(event.get("message")))
                blocks |= {at: dict(block) for at, block in enumerate(entries(message.get("content")))}
            case "content_block_start":
                blocks[place] = dict(table(event.get("content_block")))
                open_blocks.add(place)
            case "content_block_delta":
                _add(blocks.setdefault(place, {}), inputs, place, table(event.get("delta")))
            case "content_block_stop":
                open_blocks.discard(place)
            case "message_delta":
                message |= {key: value for key, value in table(event.get("delta")).items() if value is not None}
            case "message_stop":
                ended = True
            case "error":
                problems.append(f"the stream ended in an error: {word(table(event.get('error')).get('message'))}")
            case _:  # pings, and what the SDK derives from the others
                pass
    if not ended:
        problems.append("the stream was cut: it never came to its end")
    content, cut = _settle(blocks, inputs, open_blocks, problems)
    return {**message, "content": content}, cut, problems


def _add(block: Item, inputs: dict[int, str], place: int, delta: Mapping[str, Any]) -> None:
    kind = word(delta.get("type"))
    if kind == "input_json_delta":
        inputs[place] = inputs.get(place, "") + word(delta.get("partial_json"))
    elif kind == "citations_delta":
        block["citations"] = [*entries(block.get("citations")), dict(table(delta.get("citation")))]
    elif kind in _GROWING:
        key, source = _GROWING[kind]
        block[key] = word(block.get(key)) + word(delta.get(source))


def _settle(
    blocks: dict[int, Item], inputs: Mapping[int, str], open_blocks: set[int], problems: list[str]
) -> tuple[list[Item], dict[int, str]]:
    """Return the blocks in order, without those that cannot be sent back, and the inputs that are no JSON object."""
    content: list[Item] = []
    cut: dict[int, str] = {}
    for place in sorted(blocks):
        block = blocks[place]
        kind = word(block.get("type"))
        if place in open_blocks and kind not in ("text", "tool_use"):
            problems.append(f"a block of type `{kind}` was cut and left out")
            continue
        if place in inputs:
            read = _object(inputs[place])
            block["input"] = {} if read is None else read
            if read is None:
                cut[len(content)] = inputs[place]
                problems.append(f"the input of a call of `{word(block.get('name'))}` was cut: it is no JSON object")
        elif kind == "tool_use" and place in open_blocks:
            cut[len(content)] = ""
            problems.append(f"the input of a call of `{word(block.get('name'))}` never came")
        content.append(block)
    return content, cut


def _object(text: str) -> dict[str, Any] | None:
    try:
        value: object = json.loads(text or "{}")
    except ValueError:
        return None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None
