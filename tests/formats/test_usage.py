"""Tokens of a reply, whole and streamed: where each provider says them, and which of several counts is the one."""

from __future__ import annotations

from typing import Any

import pytest
from openai.types.chat import ChatCompletionChunk

from tests.formats.replies import NAMES
from toolcrib.formats import Tokens, WireFormat, tokens_in

CHAT = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": list[Any]()}


def chat(input: int, output: int, cached: int = 0) -> dict[str, Any]:
    details = {"prompt_tokens_details": {"cached_tokens": cached}}
    return {"prompt_tokens": input, "completion_tokens": output, "total_tokens": 0, **details}


def anthropic(input: int, output: int) -> dict[str, Any]:
    return {"type": "message_delta", "delta": {}, "usage": {"input_tokens": input, "output_tokens": output}}


def gemini(input: int, output: int) -> dict[str, Any]:
    return {"usageMetadata": {"promptTokenCount": input, "candidatesTokenCount": output}, "modelVersion": "m"}


def responses(input: int, output: int) -> dict[str, Any]:
    return {"type": "x", "response": {"model": "m", "usage": {"input_tokens": input, "output_tokens": output}}}


SAID: dict[WireFormat, Any] = {  # a chunk that says these counts
    "openai": lambda input, output: {**CHAT, "usage": chat(input, output)},
    "openai_responses": responses,
    "anthropic": anthropic,
    "gemini": gemini,
    "mistral": lambda input, output: {**CHAT, "usage": chat(input, output)},
    "bedrock": lambda input, output: {"metadata": {"usage": {"inputTokens": input, "outputTokens": output}}},
    "cohere": lambda input, output: {"delta": {"usage": {"tokens": {"input_tokens": input, "output_tokens": output}}}},
    "gemini_interactions": lambda input, output: {
        "interaction": {"usage": {"total_input_tokens": input, "total_output_tokens": output}}
    },
    "ollama": lambda input, output: {"prompt_eval_count": input, "eval_count": output},
}
each_format = pytest.mark.parametrize("format", NAMES)


def counted(format: WireFormat, *chunks: object) -> tuple[int, int]:
    tokens: Tokens | None = None
    for chunk in chunks:
        tokens = tokens_in(chunk, format, tokens) or tokens
    assert tokens is not None
    return tokens.input, tokens.output


@each_format
def test_a_later_chunk_corrects_what_an_earlier_one_said(format: WireFormat) -> None:
    said = SAID[format]

    assert counted(format, said(169, 3), said(79, 12)) == (79, 12)
    assert counted(format, said(79, 3), said(169, 2)) == (169, 2)


@each_format
def test_a_chunk_that_leaves_a_count_out_or_says_none_leaves_it_as_it_was(format: WireFormat) -> None:
    said = SAID[format]

    assert counted(format, said(79, 3), said(0, 12)) == (79, 12)
    assert counted(format, said(79, 12), {}) == (79, 12)


@each_format
@pytest.mark.parametrize("count", [-1, 1.5, float("inf"), "many", True, [1]])
def test_a_count_that_is_no_whole_number_makes_the_usage_unclear_in_later_chunks_too(
    format: WireFormat, count: Any
) -> None:
    said = SAID[format]
    for chunk in [said(count, 3), said(3, count)]:
        first = tokens_in(chunk, format)
        assert first is not None
        assert first.is_unclear
        assert (first.input, first.output) in [(0, 3), (3, 0)]
        later = tokens_in(said(5, 5), format, first)
        assert later is not None
        assert later.is_unclear


@each_format
@pytest.mark.parametrize("count", ["79", 79.0])
def test_a_count_may_be_a_numeral_or_a_whole_float(format: WireFormat, count: Any) -> None:
    assert tokens_in(SAID[format](79, count), format) == tokens_in(SAID[format](79, 79), format)


def test_parts_of_a_count_that_come_apart_are_added_up() -> None:
    usage = {"input_tokens": 5, "cache_read_input_tokens": 7}
    begun = {"type": "message_start", "message": {"model": "m", "usage": usage}}

    assert counted("anthropic", begun, anthropic(6, 9)) == (13, 9)


@pytest.mark.parametrize("read", [dict, ChatCompletionChunk.model_validate])
def test_groq_says_its_tokens_in_a_part_of_its_own(read: Any) -> None:
    begun = {**CHAT, "x_groq": {"id": "r"}}
    ended = {**CHAT, "x_groq": {"id": "r", "usage": chat(18, 73, cached=2)}}

    assert tokens_in(read(begun), "openai") is None
    assert tokens_in(read(ended), "openai") == Tokens(18, 73, cached=2, model="m")
