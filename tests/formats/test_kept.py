"""What a format knows nothing of goes back with the turn that it came in."""

from __future__ import annotations

from typing import Any

import pytest

from tests.formats.replies import Asked, pieces, sdk_chunk, sdk_reply, whole
from toolcrib.formats import PROVIDERS, WireFormat

ONE = (Asked("abcdefgh1"),)


def test_a_servers_thoughts_go_back_with_the_calls_they_led_to() -> None:
    reply = whole("openai", "Well.", ONE)
    thoughts = {"reasoning_content": "Hm.", "reasoning_details": [{"text": "Hm."}]}
    reply["choices"][0]["message"] |= {**thoughts, "audio": None}
    reply["choices"][0]["message"]["tool_calls"][0]["extra_content"] = {"google": {"thought_signature": "c2ln"}}

    [item] = PROVIDERS["openai"].parse(sdk_reply("openai", reply)).items

    assert {key: item[key] for key in thoughts} == thoughts
    assert item["tool_calls"][0]["extra_content"] == {"google": {"thought_signature": "c2ln"}}


def test_thoughts_alone_are_no_turn() -> None:
    reply = whole("openai", "", ())
    reply["choices"][0]["message"]["reasoning_content"] = "Hm."

    made = PROVIDERS["openai"].parse(reply)

    assert (made.items, made.problems) == ((), ("the reply is empty",))


def test_a_servers_streamed_thoughts_come_to_the_whole() -> None:
    chunks = pieces("openai", "Well.", ONE)
    for place, delta in enumerate(
        ({"reasoning_content": "H"}, {"reasoning_content": "m.", "x": {"a": 1}}, {"x": {"b": 2}})
    ):
        chunks[place]["choices"][0]["delta"] |= {**delta, "reasoning_details": [place]}
    begun = next(chunk for chunk in chunks if chunk["choices"][0]["delta"].get("tool_calls"))
    begun["choices"][0]["delta"]["tool_calls"][0]["extra_content"] = {"google": {"thought_signature": "c2ln"}}

    [item] = PROVIDERS["openai"].gather(sdk_chunk("openai", chunk) for chunk in chunks).items

    assert (item["reasoning_content"], item["reasoning_details"], item["x"]) == ("Hm.", [0, 1, 2], {"a": 1, "b": 2})
    [call] = item["tool_calls"]
    assert call["extra_content"] == {"google": {"thought_signature": "c2ln"}}
    assert call["function"] == {"name": "look", "arguments": '{"city": "Oslo"}'}


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(
    ("provider", "extra"),
    [
        ("anthropic", {"caller": {"type": "code_execution_20250825", "tool_id": "srvtoolu_1"}}),
        ("openai_responses", {"namespace": "crm", "caller": {"type": "program", "caller_id": "p"}}),
        ("gemini", {"thoughtSignature": "c2ln", "toolType": "X"}),
    ],
)
def test_a_call_keeps_what_came_with_it(provider: WireFormat, extra: dict[str, Any], streamed: bool) -> None:
    reply = whole(provider, "", ONE)
    inner: dict[str, Any] = {
        "anthropic": lambda: reply["content"],
        "openai_responses": lambda: reply["output"],
        "gemini": lambda: reply["candidates"][0]["content"]["parts"],
    }[provider]()[-1]
    inner |= extra

    made = PROVIDERS[provider].gather(_events(provider, reply)) if streamed else PROVIDERS[provider].parse(reply)

    last = made.items[-1]
    found = (last.get("content") or last.get("parts") or [last])[-1]
    assert {key: found[key] for key in extra} == extra


def _events(provider: WireFormat, reply: dict[str, Any]) -> list[dict[str, Any]]:
    """Return a stream that says what the reply says."""
    if provider == "gemini":
        return [reply]
    if provider == "openai_responses":
        items = enumerate(reply["output"])
        return [{"type": "response.output_item.done", "output_index": at, "item": item} for at, item in items]
    [block] = reply["content"]
    begun = {"type": "content_block_start", "index": 0, "content_block": {**block, "input": {}}}
    said = {"type": "input_json_delta", "partial_json": '{"city": "Oslo"}'}
    return [
        begun,
        {"type": "content_block_delta", "index": 0, "delta": said},
        {"type": "content_block_stop", "index": 0},
    ]
