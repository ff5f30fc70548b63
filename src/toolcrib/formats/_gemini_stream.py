"""A reply of Gemini from the replies in which it is streamed, each of them with some of the parts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from toolcrib.formats._gemini_partial import PartialCall
from toolcrib.formats._wire import Item, entries, is_table, table, word

__all__ = ["gather_contents", "settled_part"]


def gather_contents(chunks: Iterable[Mapping[str, Any]]) -> tuple[Item, list[str]]:
    """Return the whole reply, and what was wrong with the stream."""
    whole: Item = {}
    candidate: Item = {}
    parts: list[Item] = []
    begun: list[PartialCall] = []
    for chunk in chunks:
        if chunk.get("promptFeedback"):
            whole["promptFeedback"] = chunk["promptFeedback"]
        for piece in entries(chunk.get("candidates")):
            if piece.get("index"):
                continue
            candidate |= {key: value for key, value in piece.items() if key != "content" and value is not None}
            for part in entries(table(piece.get("content")).get("parts")):
                _add(parts, settled_part(part), begun)
    cut = [call for call in begun if call.open or call.broken]  # arguments that are not all there must not be acted on
    parts = [part for part in parts if not any(part is call.part for call in cut)]
    if candidate or parts:
        whole["candidates"] = [{**candidate, "content": {"role": "model", "parts": parts}}]
    ended = bool(candidate.get("finishReason") or whole.get("promptFeedback"))
    problems = [] if ended else ["the stream was cut: it never said why it ended"]
    problems += [f"the arguments of a call of `{call.name}` were cut, and it was left out" for call in cut]
    return whole, problems


def settled_part(part: Mapping[str, Any]) -> Item:
    """Return a part as it is taken back, without what is null; an empty text alone is nothing."""
    kept = {key: value for key, value in part.items() if value is not None}
    if isinstance(kept.get("functionCall"), Mapping):
        said = {key: value for key, value in kept["functionCall"].items() if value is not None}
        if not is_table(said.get("args", {})):
            del said["args"]  # only an object is taken back
        kept["functionCall"] = said
    return {} if kept == {"text": ""} else kept


def _add(parts: list[Item], part: Item, begun: list[PartialCall]) -> None:
    """Append a part, unless it goes on with the one before.

    Text goes on where text of the same kind stopped, unless one of them is signed; a call whose arguments come in
    pieces goes on with parts that name no tool.
    """
    if "functionCall" in part:
        going_on = bool(begun) and begun[-1].open and not word(table(part["functionCall"]).get("name"))
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
        last["text"] = word(last["text"]) + word(part["text"])
    elif part:
        parts.append(dict(part))
