"""A streamed reply is the same as a whole one, and one that was cut anywhere still makes a transcript that holds."""

from __future__ import annotations

from typing import Any

import pytest

from tests.formats.replies import NAMES, Asked, known_to_sdk, pieces, sdk_accepts, sdk_chunk, whole
from toolcrib.formats import PROVIDERS, WireFormat, WireResult

each_provider = pytest.mark.parametrize("provider", NAMES)
TWO = (Asked("abcdefgh1"), Asked("abcdefgh2", "see", {"at": None, "how": "slowly"}))


@each_provider
@pytest.mark.parametrize("calls", [(), TWO])
def test_the_pieces_come_to_the_whole(provider: WireFormat, calls: tuple[Asked, ...]) -> None:
    made = PROVIDERS[provider].gather(pieces(provider, "Let me look.", calls))

    assert made == PROVIDERS[provider].parse(whole(provider, "Let me look.", calls))


@each_provider
def test_the_sdks_pieces_come_to_the_whole(provider: WireFormat) -> None:
    calls = known_to_sdk(provider, TWO)
    chunks = [sdk_chunk(provider, piece) for piece in pieces(provider, "Let me look.", calls)]

    made = PROVIDERS[provider].gather(chunks)

    assert made == PROVIDERS[provider].parse(whole(provider, "Let me look.", calls))


@each_provider
def test_a_stream_that_was_cut_says_so_and_its_calls_can_be_answered(provider: WireFormat) -> None:
    made = PROVIDERS[provider]
    chunks = pieces(provider, "Let me look.", TWO)
    last = {"openai": 2, "bedrock": 2}.get(provider, 1)  # after their replies have ended, the usage comes

    for length in range(len(chunks) - last + 1):
        reply = made.gather(chunks[:length])
        transcript = [*made.user("Hi."), *reply.items]
        transcript += made.answer([WireResult(call, "fine") for call in reply.calls])

        assert reply.problems
        assert made.check(transcript) == []
        sdk_accepts(provider, transcript)


def test_a_cut_input_of_anthropic_is_an_empty_object_on_the_wire_and_text_in_the_call() -> None:
    chunks = pieces("anthropic", "", (Asked("a"),))[:3]

    made = PROVIDERS["anthropic"].gather(chunks)

    assert made.items[0]["content"] == [{"type": "tool_use", "name": "look", "input": {}, "id": "a"}]
    assert made.calls[0].arguments == '{"city":'
    assert "`look` was cut" in made.problems[1]


def test_a_thought_of_anthropic_is_signed_or_left_out() -> None:
    start = {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}}
    thought = {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "Hm."}}
    sign = {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "c2ln"}}
    stop = {"type": "content_block_stop", "index": 0}
    said = {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": "Well."}}

    whole_one = PROVIDERS["anthropic"].gather([start, thought, sign, stop, said, {"type": "message_stop"}])
    cut = PROVIDERS["anthropic"].gather([start, thought])

    assert whole_one.items[0]["content"][0] == {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}
    assert cut.items == ()


def test_citations_of_anthropic_are_gathered() -> None:
    cited = {"type": "char_location", "cited_text": "x", "document_index": 0}
    events: list[dict[str, Any]] = [
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "", "citations": None}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Well."}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "citations_delta", "citation": cited}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_stop"},
    ]

    made = PROVIDERS["anthropic"].gather(events)

    assert made.items[0]["content"] == [{"type": "text", "text": "Well.", "citations": [cited]}]


@pytest.mark.parametrize(
    ("provider", "event"),
    [
        ("anthropic", {"type": "error", "error": {"type": "busy", "message": "Busy."}}),
        ("openai_responses", {"type": "error", "code": "busy", "message": "Busy."}),
        ("openai", {"object": "error", "type": "busy", "code": 503, "message": "Busy."}),
        ("mistral", {"error": {"type": "busy", "message": "Busy."}}),
        ("gemini", {"error": {"status": "busy", "code": 503, "message": "Busy."}}),
    ],
)
def test_an_error_in_a_stream_is_a_problem(provider: WireFormat, event: dict[str, Any]) -> None:
    made = PROVIDERS[provider].gather([event])

    assert (made.stop_kind, made.problems[0]) == ("error", "the reply ended in an error (busy: Busy.)")


@pytest.mark.parametrize("provider", ["openai", "mistral"])
def test_calls_with_one_index_are_told_apart_by_their_ids(provider: WireFormat) -> None:
    def piece(id: str) -> dict[str, Any]:
        call = {"index": 0, "id": id, "type": "function", "function": {"name": "look", "arguments": "{}"}}
        return {"choices": [{"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": "tool_calls"}]}

    made = PROVIDERS[provider].gather([piece("abcdefgh1"), piece("abcdefgh2")])

    assert [(call.id, call.arguments) for call in made.calls] == [("abcdefgh1", "{}"), ("abcdefgh2", "{}")]


def test_mistrals_streamed_thoughts_are_parts() -> None:
    def piece(content: Any, stop: str | None = None) -> dict[str, Any]:
        return {"data": {"choices": [{"index": 0, "delta": {"content": content}, "finish_reason": stop}]}}

    def thought(text: str) -> list[dict[str, Any]]:
        return [{"type": "thinking", "thinking": [{"type": "text", "text": text}]}]

    made = PROVIDERS["mistral"].gather([piece(thought("Hm")), piece(thought(".")), piece("We"), piece("ll.", "stop")])

    thoughts = [{"type": "text", "text": "Hm"}, {"type": "text", "text": "."}]
    assert made.items[0]["content"] == [{"type": "thinking", "thinking": thoughts}, {"type": "text", "text": "Well."}]
    assert made.text == "Well."
