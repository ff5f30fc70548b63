"""Dialects of OpenAI's chat that local servers speak, all of them in one reply: it is answered, and taken back."""

from __future__ import annotations

from typing import Any

import pytest

from tests.rounds.provider_rules import refused
from toolcrib.rounds import Transcript, decode
from toolcrib.tools import ez_tool

CALLS: list[Any] = [
    {"function": {"name": "look", "arguments": {"city": "Oslo"}}},  # no id, no type, and an object
    {"id": "", "type": "function", "function": {"name": "look", "arguments": '{"city":"Rome"}'}},
    {"id": None, "type": "function", "index": 2, "function": {"name": "look", "arguments": {"city": "Bern"}}},
]


def whole(content: Any, calls: list[Any]) -> Any:
    message = {"role": "assistant", "content": content, "reasoning_content": "Hm.", "tool_calls": calls}
    return {"choices": [{"index": 0, "finish_reason": "tool_calls", "message": message}]}


def streamed(content: Any, calls: list[Any]) -> Any:
    deltas: list[Any] = [
        {"role": "assistant", "content": None},
        {"reasoning_content": "H"},
        {"reasoning_content": "m."},
    ]
    deltas += [{"content": content}, *({"tool_calls": [{**call, "index": at}]} for at, call in enumerate(calls))]
    chunks = [{"choices": [{"index": 0, "finish_reason": None, "delta": delta}]} for delta in deltas]
    return [*chunks, {"choices": [{"index": 0, "finish_reason": "tool_calls", "delta": {}}]}]


@pytest.mark.parametrize("content", [None, "", "Let me look."])
@pytest.mark.parametrize("made", [whole, streamed])
async def test_a_reply_of_a_local_server_is_answered_and_taken_back(made: Any, content: Any) -> None:
    ran: list[str] = []

    @ez_tool
    def look(city: str) -> str:
        """Look."""
        ran.append(city)
        return f"rain in {city}"

    transcript = Transcript([{"role": "user", "content": "Is it wet?"}])
    plan = await decode([look], made(content, CALLS), format="openai", transcript=transcript).apply_hooks()
    await plan.commit(transcript, await plan.run_pending())

    assistant, *results = transcript[1:]
    assert ran == ["Oslo", "Rome", "Bern"]
    assert [result["content"] for result in results] == [f"rain in {city}" for city in ran]
    assert assistant["reasoning_content"] == "Hm."
    assert len({call["id"] for call in assistant["tool_calls"]} - {""}) == 3
    assert refused("openai", transcript) == []
