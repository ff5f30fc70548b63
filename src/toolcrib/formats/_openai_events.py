"""A response of OpenAI from the events in which it is streamed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from toolcrib.formats._wire import Item, entries, table, word

__all__ = ["gather_response"]

_ENDED = ("response.completed", "response.incomplete", "response.failed")


def gather_response(events: Iterable[Mapping[str, Any]]) -> tuple[Item, list[str]]:
    """Return the response, and what was wrong with the stream."""
    begun: dict[int, Item] = {}
    done: dict[int, Item] = {}
    problems: list[str] = []
    for event in events:
        kind = word(event.get("type"))
        index = event.get("output_index")
        place = index if isinstance(index, int) else 0
        if kind in _ENDED:
            response = dict(table(event.get("response")))
            if not response.get("output"):  # some servers leave it out of the last event
                response["output"] = [done[at] for at in sorted(done)]
            return response, problems
        if kind == "response.output_item.added":
            begun[place] = dict(table(event.get("item")))
        elif kind == "response.output_item.done":
            done[place] = dict(table(event.get("item")))
        elif kind == "error":
            problems.append(f"the stream ended in an error: {word(event.get('message'))}")
        elif place in begun:
            _grow(begun[place], kind, word(event.get("delta")))
    problems.append("the stream was cut: the response never ended")
    output: list[Item] = []
    for place in sorted({*begun, *done}):
        item = done.get(place)
        if item is None:
            item = _cut(begun[place], problems)
        if item is not None:
            output.append(item)
    return {"output": output}, problems


def _grow(item: Item, kind: str, delta: str) -> None:
    if kind == "response.function_call_arguments.delta":
        item["arguments"] = word(item.get("arguments")) + delta
    elif kind == "response.custom_tool_call_input.delta":
        item["input"] = word(item.get("input")) + delta
    elif kind == "response.output_text.delta":
        parts = [dict(part) for part in entries(item.get("content"))]
        if not parts:
            parts.append({"type": "output_text", "text": "", "annotations": []})
        parts[-1]["text"] = word(parts[-1].get("text")) + delta
        item["content"] = parts


def _cut(item: Item, problems: list[str]) -> Item | None:
    """Return an item that was begun and never done, as far as it came; None for one that would not be taken back."""
    kind = word(item.get("type"))
    if kind in ("function_call", "custom_tool_call"):
        problems.append(f"the arguments of a call of `{word(item.get('name'))}` were cut")
        return {**item, "status": "incomplete"}
    if kind == "message" and item.get("content"):
        return {**item, "status": "incomplete"}
    problems.append(f"an item of type `{kind}` was cut and left out")
    return None
