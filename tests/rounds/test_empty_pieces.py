"""Empty pieces of a stream, which change nothing of the call that came before them."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from tests.formats.replies import NAMES, Asked, pieces
from tests.rounds.endings import begins
from toolcrib.formats import WireFormat
from toolcrib.rounds import Transcript, decode
from toolcrib.tools import ez_tool

Item = dict[str, Any]
TEXTS = ("arguments", "partial_json", "input", "delta")  # where a piece has its text, by the formats' words
WHOLE: dict[WireFormat, Item] = {  # what comes after a call where each call comes whole
    "gemini": {"candidates": [{"index": 0, "content": {"role": "model", "parts": [{"text": ""}]}}]},
    "ollama": {"model": "m", "message": {"role": "assistant", "content": ""}, "done": False},
}


def objects(value: Any) -> list[Item]:
    """Return the objects in JSON, from the outside in."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [*([value] if isinstance(value, dict) else []), *(one for part in inner for one in objects(part))]


def texts(chunk: Item) -> list[tuple[Item, str]]:
    """Return where a chunk has a piece of a call's arguments."""
    if chunk.get("type", "").startswith("response.") and not chunk["type"].endswith("arguments.delta"):
        return []
    return [(one, key) for one in objects(chunk) for key in TEXTS if isinstance(one.get(key), str) and one[key]]


def with_empty(format: WireFormat, chunks: list[Item], id: str | None) -> list[Item]:
    """Return a stream with an empty piece after the last one of its call; one with an id where it is given."""
    if format in WHOLE:
        return [*chunks[:-1], WHOLE[format], chunks[-1]]
    at = max(place for place, chunk in enumerate(chunks) if texts(chunk))
    empty = deepcopy(chunks[at])
    for one, key in texts(empty):
        one[key] = ""
    for call in (call for one in objects(empty) for call in one.get("tool_calls", ()) if isinstance(call, dict)):
        call.pop("id", None)
        call["function"].pop("name", None)
        call |= {"id": id} if id is not None else {}
    return [*chunks[: at + 1], empty, *chunks[at + 1 :]]


@pytest.mark.parametrize("id", [None, "", "null"])
@pytest.mark.parametrize("format", NAMES)
async def test_an_empty_piece_after_a_call_changes_nothing_of_it(format: WireFormat, id: str | None) -> None:
    ran: list[str] = []

    @ez_tool
    def look(city: str) -> str:
        """Look at a city."""
        ran.append(city)
        return "sun"

    chunks, transcript = pieces(format, "", [Asked("abcdefgh1")]), begins(format)
    stream = with_empty(format, chunks, id)

    await decode([look], stream, format=format).run(transcript)

    assert len(stream) == len(chunks) + 1
    assert (ran, Transcript(transcript, format).check()) == (["Oslo"], [])


@pytest.mark.parametrize("format", ["openai", "mistral"])
async def test_pieces_with_the_id_null_are_of_the_call_before_them(format: WireFormat) -> None:
    ran: list[str] = []

    @ez_tool
    def look(city: str) -> str:
        """Look at a city."""
        ran.append(city)
        return "sun"

    def piece(id: str, name: str, text: str, stop: str | None = None) -> Item:
        call = {"id": id, "index": 0, "type": "function", "function": {"name": name, "arguments": text}}
        return {"model": "m", "choices": [{"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": stop}]}

    stream = [
        piece("abcdefgh1", "look", ""),
        piece("null", "", '{"city": '),
        piece("null", "", '"Oslo"}', "tool_calls"),
    ]
    round = decode([look], stream, format=format)
    await round.run(begins(format))

    assert ([call.id for call in round.tool_calls], ran) == (["abcdefgh1"], ["Oslo"])
