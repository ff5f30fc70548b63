"""Bedrock's Converse: what is its own in definitions, replies, streams and results."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.formats.converse import BLOCKS, STOPS
from tests.formats.replies import Asked, pieces, sdk_accepts, whole
from toolcrib.calls import Media, render_value
from toolcrib.formats import PROVIDERS, Item, WireCall, WireResult, definition, detected
from toolcrib.rounds import Session
from toolcrib.testing import ScriptedModel

BEDROCK = PROVIDERS["bedrock"]
CITY: Item = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
# The reply of the guide's example "Call a tool with the Converse API".
TOP_SONG: Item = {
    "ResponseMetadata": {"HTTPStatusCode": 200},
    "output": {
        "message": {
            "role": "assistant",
            "content": [
                {"text": "I will look up the song."},
                {"toolUse": {"toolUseId": "tooluse_kZJMlvQmRJ6", "name": "top_song", "input": {"sign": "WZPZ"}}},
            ],
        }
    },
    "stopReason": "tool_use",
    "usage": {"inputTokens": 10, "outputTokens": 5, "totalTokens": 15},
    "metrics": {"latencyMs": 1},
}  # fmt: skip


def delta(piece: Item, index: int = 0) -> Item:
    return {"contentBlockDelta": {"delta": piece, "contentBlockIndex": index}}


def starts(block: Item, index: int = 0) -> Item:
    return {"contentBlockStart": {"start": block, "contentBlockIndex": index}}


def stops(index: int = 0) -> Item:
    return {"contentBlockStop": {"contentBlockIndex": index}}


ENDS: Item = {"messageStop": {"stopReason": "tool_use"}}


def test_every_block_and_stop_of_the_protocol_is_in_a_list() -> None:
    assert BEDROCK.asks | BEDROCK.carried == BLOCKS
    assert set(BEDROCK.stops) == STOPS


def test_the_reply_of_the_guide_is_read() -> None:
    made = BEDROCK.parse(TOP_SONG)

    assert detected(TOP_SONG) == "bedrock"
    assert made.items == (TOP_SONG["output"]["message"],)
    assert made.calls == (WireCall("tooluse_kZJMlvQmRJ6", "top_song", {"sign": "WZPZ"}),)
    assert (made.text, made.stop, made.stop_kind) == ("I will look up the song.", "tool_use", "tool_calls")


def test_a_stop_sequence_ends_a_text_and_cuts_a_call() -> None:
    text = {"output": {"message": {"content": [{"text": "So."}]}}}

    made = [BEDROCK.parse({**reply, "stopReason": "stop_sequence"}).stop_kind for reply in (TOP_SONG, text)]

    assert made == ["cut", "finished"]


def test_a_definition_without_a_description_has_none() -> None:
    assert definition("look", "", CITY, "bedrock") == {"toolSpec": {"name": "look", "inputSchema": {"json": CITY}}}


def test_a_strict_definition_says_so() -> None:
    made = definition("look", "Look.", {**CITY, "additionalProperties": False}, "bedrock", strict=True)

    assert made["toolSpec"]["strict"] is True
    assert made["toolSpec"]["inputSchema"]["json"]["additionalProperties"] is False


def test_a_tool_of_the_providers_own_waits_for_nobody_here() -> None:
    use = {"toolUseId": "t1", "name": "search", "input": {}, "type": "server_tool_use"}
    content = [{"toolUse": use}, {"toolResult": {"toolUseId": "t1", "content": []}}, {"text": "Found."}]
    reply = {"output": {"message": {"role": "assistant", "content": content}}, "stopReason": "end_turn"}

    made = BEDROCK.parse(reply)

    assert (made.calls, made.unknown, made.items[0]["content"]) == ((), (), content)
    assert BEDROCK.check([*BEDROCK.user("Hi."), *made.items]) == []


def test_the_input_of_a_call_comes_in_pieces() -> None:
    begun = starts({"toolUse": {"toolUseId": "t1", "name": "look"}})
    parts = [delta({"toolUse": {"input": piece}}) for piece in ('{"ci', 'ty": "Oslo"}')]

    [call] = BEDROCK.gather([begun, *parts, stops(), ENDS]).calls

    assert call == WireCall("t1", "look", {"city": "Oslo"})


def test_an_index_that_comes_again_begins_another_call() -> None:
    events: list[Item] = []
    for id in ("t1", "t2"):
        events += [starts({"toolUse": {"toolUseId": id, "name": "look"}}), delta({"toolUse": {"input": "{}"}}), stops()]

    made = BEDROCK.gather([*events, ENDS])

    assert [(call.id, call.arguments) for call in made.calls] == [("t1", {}), ("t2", {})]


def test_a_call_that_was_cut_is_not_whole() -> None:
    begun = [starts({"toolUse": {"toolUseId": "t1", "name": "look"}}), delta({"toolUse": {"input": '{"city": "Os'}})]

    made = BEDROCK.gather([*begun, ENDS])

    assert [(call.fault, call.arguments) for call in made.calls] == [("its arguments were cut", '{"city": "Os')]
    assert made.items[0]["content"][0]["toolUse"]["input"] == {}
    assert made.problems == ("the input of a call of `look` was cut",)


def test_thoughts_are_put_together_and_an_unfinished_one_is_left_out() -> None:
    parts = [{"text": "H"}, {"text": "m."}, {"signature": "c2"}, {"signature": "ln"}]
    thought = [delta({"reasoningContent": part}) for part in parts]
    hidden = [delta({"reasoningContent": {"redactedContent": piece}}, 1) for piece in (b"\x00", b"\xff")]
    said = [delta({"text": "Hi."}, 2), stops(2)]
    cut = [delta({"reasoningContent": {"text": "And"}}, 3)]

    made = BEDROCK.gather(
        [*thought, stops(), *hidden, stops(1), *said, *cut, {"messageStop": {"stopReason": "end_turn"}}]
    )

    assert made.items[0]["content"] == [
        {"reasoningContent": {"reasoningText": {"text": "Hm.", "signature": "c2ln"}}},
        {"reasoningContent": {"redactedContent": b"\x00\xff"}},
        {"text": "Hi."},
    ]
    assert made.problems == ("a block of type `reasoningContent` was cut and left out",)


def test_a_text_with_citations_keeps_them() -> None:
    cited = [delta({"text": "Oslo."}), delta({"citation": {"title": "Atlas"}}), stops()]

    made = BEDROCK.gather([*cited, {"messageStop": {"stopReason": "end_turn"}}])

    assert made.text == "Oslo."
    assert made.items[0]["content"] == [
        {"citationsContent": {"content": [{"text": "Oslo."}], "citations": [{"title": "Atlas"}]}}
    ]


def test_an_error_in_a_stream_runs_nothing() -> None:
    chunks = pieces("bedrock", "", (Asked("t1"),))

    made = BEDROCK.gather([*chunks, {"modelStreamErrorException": {"message": "try again"}}])

    assert (made.stop_kind, made.problems) == (
        "error",
        ("the reply ended in an error (modelStreamErrorException: try again)",),
    )


def test_results_take_images_and_files_as_bytes() -> None:
    media = [Media("image/png", b"\x89PNG"), Media("application/pdf", b"%PDF", name="the  map_1.pdf")]
    shown = render_value(["fine", *media])

    [made] = BEDROCK.answer([WireResult(WireCall("t1", "look", "{}"), shown.text, True, shown.parts)])

    result = made["content"][0]["toolResult"]
    assert (result["status"], result["content"]) == (
        "error",
        [
            {"text": "fine"},
            {"image": {"format": "png", "source": {"bytes": b"\x89PNG"}}},
            {"document": {"format": "pdf", "name": "the map-1-pdf", "source": {"bytes": b"%PDF"}}},
        ],
    )
    sdk_accepts("bedrock", [made])


async def test_a_session_with_bytes_is_kept_as_json() -> None:
    hidden = {"reasoningContent": {"redactedContent": b"\x00\xff"}}
    reply = whole("bedrock", "Hi.", ())
    reply["output"]["message"]["content"].insert(0, hidden)
    session = Session(ScriptedModel(reply), format="bedrock").say("Go.")
    await session.run()

    text = session.to_json()

    restored = await Session.from_json(ScriptedModel(), text)
    assert json.loads(text)["format"] == "bedrock"
    assert restored.transcript == session.transcript
    assert restored.transcript[1]["content"][0] == hidden


def test_turns_alternate() -> None:
    twice = [*BEDROCK.user("Hi."), *BEDROCK.user("Well?")]

    mended, done = BEDROCK.repair(twice)

    assert [item["role"] for item in mended] == ["user", "assistant", "user"]
    assert done == ["added a turn of the assistant's before item 1, which says what is missing"]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("optional", {"auto": {}}), ("at_least_one", {"any": {}}), ("specific", {"tool": {"name": "x"}})],
)
def test_a_choice_is_a_union(kind: Any, expected: Item) -> None:
    assert BEDROCK.choice_parameters(BEDROCK.tool_choice(kind, "x")) == {"toolChoice": expected}
