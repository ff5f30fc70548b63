"""The text in the chunks of a stream."""

from typing import Any

import pytest

from tests.formats.replies import NAMES, Asked, pieces, sdk_chunk
from toolcrib.formats import WireFormat, text_delta

each_provider = pytest.mark.parametrize("provider", NAMES)
CALLS = [Asked("abcdefgh1")]


@each_provider
def test_the_deltas_come_to_the_text(provider: WireFormat) -> None:
    chunks = pieces(provider, "Let me look.", CALLS)

    assert "".join(text_delta(chunk, provider) for chunk in chunks) == "Let me look."


@each_provider
def test_the_format_of_an_sdks_chunk_is_detected(provider: WireFormat) -> None:
    chunks = [sdk_chunk(provider, chunk) for chunk in pieces(provider, "Let me look.", CALLS)]

    assert "".join(map(text_delta, chunks)) == "Let me look."


@pytest.mark.parametrize(
    ("chunk", "text"),
    [
        ({}, ""),
        ({"choices": []}, ""),
        ({"choices": [{"delta": {"content": [{"type": "text", "text": "a"}, {"type": "thinking"}]}}]}, "a"),
        ({"candidates": [{"index": 1, "content": {"parts": [{"text": "b"}]}}]}, ""),
        ({"candidates": [{"content": {"parts": [{"text": "b", "thought": True}, {"text": "c"}]}}]}, "c"),
        ({"type": "response.output_text.delta", "delta": "d"}, "d"),
    ],
)
def test_what_is_no_text_of_the_answer_is_left_out(chunk: dict[str, Any], text: str) -> None:
    assert text_delta(chunk) == text
