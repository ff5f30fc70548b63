"""Arguments as a provider's definition has them, which come back as the tool has them."""

from __future__ import annotations

from typing import Any

import pytest

from toolcrib.formats import PROVIDERS, ProviderOptions, WireFormat
from toolcrib.rounds import ToolRound, Transcript, decode
from toolcrib.schema import ToolSpec
from toolcrib.tools import Tool, ToolOptions, ez_tool
from toolcrib.toolsets import Toolset

ODD: dict[str, Any] = {
    "type": "object",
    "properties": {"größe": {"type": "integer"}, "note": {"type": "string"}},
    "required": ["größe"],
    "additionalProperties": False,
}


async def give(**arguments: Any) -> Any:
    return arguments


@ez_tool(provider=ProviderOptions(free_text=True))
def run_sql(sql: str, limit: int = 9) -> str:
    """Run a query."""
    return f"{sql} limit {limit}"


TOOLS = Toolset([Tool(ToolSpec.from_schema(give, ODD, name="look"), ToolOptions()), run_sql])


def reply_of(provider: WireFormat, arguments: dict[str, Any]) -> dict[str, Any]:
    if provider == "anthropic":
        call = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": arguments}
        return {"type": "message", "role": "assistant", "stop_reason": "tool_use", "content": [call]}
    part = {"functionCall": {"name": "look", "args": arguments}}
    return {"candidates": [{"finishReason": "STOP", "content": {"role": "model", "parts": [part]}}]}


@pytest.mark.parametrize("provider", ["anthropic", "gemini"])
async def test_a_name_that_was_sent_in_the_place_of_another_is_read_back(provider: WireFormat) -> None:
    sent = PROVIDERS[provider].sent_names(ODD)["größe"]

    round = decode(TOOLS, reply_of(provider, {sent: 180, "note": "x"}), format=provider)
    again = await ToolRound.from_json(TOOLS, round.to_json())
    results = await (await again.apply_hooks()).run_pending()

    assert [result.output for result in results] == [{"größe": 180, "note": "x"}]


CHAT_CALL = {"id": "c1", "type": "custom", "custom": {"name": "run_sql", "input": "SELECT 1"}}
FREE_TEXTS: dict[WireFormat, dict[str, Any]] = {
    "openai": {
        "choices": [
            {
                "index": 0,
                "finish_reason": "tool_calls",
                "message": {"role": "assistant", "content": None, "tool_calls": [CHAT_CALL]},
            }
        ]
    },
    "openai_responses": {
        "object": "response",
        "status": "completed",
        "output": [{"type": "custom_tool_call", "id": "x", "call_id": "c1", "name": "run_sql", "input": "SELECT 1"}],
    },
}


@pytest.mark.parametrize("provider", FREE_TEXTS)
async def test_a_free_text_is_the_tools_one_argument(provider: WireFormat) -> None:
    transcript = Transcript([], provider)

    plan = await decode(TOOLS, FREE_TEXTS[provider], format=provider).apply_hooks()
    await plan.commit(transcript, await plan.run_pending())

    assert "SELECT 1 limit 9" in str(transcript[-1])
    assert transcript.check() == []
