"""A chat message from the pieces in which it is streamed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

from toolcrib.formats._wire import Item, entries, is_table, table, word

__all__ = ["gather_chat"]

_KNOWN = frozenset({"role", "content", "refusal", "tool_calls", "function_call"})
_OWN = ("index", "id", "type")


def gather_chat(chunks: Iterable[Mapping[str, Any]]) -> tuple[Item, str | None, list[str]]:
    """Return the message, why it ended, and what was wrong with the stream."""
    message: Item = {"role": "assistant"}
    calls: list[Item] = []
    current: dict[object, Item] = {}
    stop: str | None = None
    for chunk in chunks:
        inner = table(chunk.get("data"))  # Mistral's SDK puts each chunk into an event
        choice = next((c for c in entries((inner or chunk).get("choices")) if not c.get("index")), None)
        if choice is None:  # the last one, with the usage alone
            continue
        stop = word(choice.get("finish_reason")) or stop
        delta = table(choice.get("delta"))
        for key in ("content", "refusal"):
            _add_content(message, key, delta.get(key))
        for position, piece in enumerate(entries(delta.get("tool_calls"))):
            _add_call(calls, current, piece, position)
        _add_rest(message, delta)
    if calls:
        message["tool_calls"] = calls
    return message, stop, [] if stop else ["the stream was cut: it never said why it ended"]


def _add_rest(message: Item, delta: Mapping[str, Any]) -> None:
    """Keep what is nobody's here: a server that thinks wants its thoughts back with the calls that they led to."""
    for key, piece in delta.items():
        if key in _KNOWN or piece is None:
            continue
        before: Any = message.get(key)
        if isinstance(piece, str):
            message[key] = word(before) + piece
        elif isinstance(piece, list):
            message[key] = [*(cast("list[Any]", before) if isinstance(before, list) else ()), *cast("list[Any]", piece)]
        elif is_table(piece):
            message[key] = {**table(before), **piece}
        else:
            message[key] = piece


def _add_content(message: Item, key: str, piece: object) -> None:
    """Append text to text; parts (Mistral's thoughts) stay parts, and neighbours of one kind become one."""
    if not piece:
        return
    before: object = message.get(key)
    if isinstance(piece, str) and (before is None or isinstance(before, str)):
        message[key] = word(before) + piece
        return
    parts = _parts(before)
    for part in _parts(piece):
        last: Item = parts[-1] if parts else {}
        if part.get("type") == last.get("type") == "text":
            last["text"] = word(last.get("text")) + word(part.get("text"))
        elif part.get("type") == last.get("type") == "thinking":
            last["thinking"] = [*entries(last.get("thinking")), *entries(part.get("thinking"))]
        else:
            parts.append(part)
    message[key] = parts


def _parts(content: object) -> list[Item]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [dict(part) for part in entries(content)]


def _add_call(calls: list[Item], current: dict[object, Item], piece: Mapping[str, Any], position: int) -> None:
    """Add a piece to the call that it belongs to: the one of its index, unless it begins another."""
    index = piece.get("index", position)
    index = index if isinstance(index, int) else position
    id = word(piece.get("id"))
    call = current.get(index)
    if call is None or (id and call["id"] and id != call["id"]):  # some servers say index 0 for each
        kind = word(piece.get("type")) or "function"
        call = Item(id="", type=kind)
        call[kind] = Item()
        current[index] = call
        calls.append(call)
    call["id"] = call["id"] or id
    inner: Item = call[call["type"]]
    for key, value in table(piece.get(call["type"])).items():
        if isinstance(value, str) and key in ("arguments", "input"):
            inner[key] = word(inner.get(key)) + value
        elif value is not None and value != "":
            inner[key] = value
    call |= {key: value for key, value in piece.items() if key not in (*_OWN, call["type"]) and value is not None}
