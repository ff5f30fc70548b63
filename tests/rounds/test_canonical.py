"""What is committed is in the provider's canonical form, whatever the model, a server or a tool wrote."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.formats.replies import NAMES
from tests.rounds.endings import ALL, MODES, RULES, begins, reply
from tests.rounds.provider_rules import refused
from toolcrib.formats import PROVIDERS
from toolcrib.rounds import WireFormat, decode
from toolcrib.tools import Tool, ez_tool

HALF = "\ud83d"
ODD: list[Any] = [
    '{"text": "a',
    "",
    "[1]",
    '{"text": "a", "weight": NaN}',
    '{"text": "a", "weight": -Infinity}',
    f'{{"text": "a{HALF}"}}',
    '{"text": "a\\ud83d"}',
    '{"text": "a"} {"text": "b"}',
    '{"text": "a", "x": ' + "[" * 300 + "]" * 300 + "}",
    {"text": f"a{HALF}"},
    {f"te{HALF}xt": "a"},
    {"text": "a", "weight": float("nan")},
    {"text": "a", "weight": [float("inf")]},
]
each_format = pytest.mark.parametrize("format", ALL)
each_mode = pytest.mark.parametrize("mode", MODES)


def echoing() -> Tool[..., Any]:
    @ez_tool
    def echo(text: str, weight: float = 0) -> str:
        """Say it again."""
        return text + HALF

    return echo


async def committed(format: str, sent: Any) -> list[Any]:
    transcript = begins(format)
    plan = await decode([echoing()], sent, format=RULES[format]).apply_hooks()
    await plan.commit(transcript, await plan.run_pending())
    return transcript


@each_mode
@each_format
@pytest.mark.parametrize("arguments", ODD, ids=range(len(ODD)))
async def test_a_strict_server_takes_what_is_committed(format: str, mode: str, arguments: Any) -> None:
    transcript = await committed(format, reply(format, mode, "echo", arguments))

    written = json.dumps(transcript, allow_nan=False, ensure_ascii=False).encode()
    assert json.loads(written) == transcript
    assert RULES[format].check(transcript) == []
    if format in NAMES:
        assert [
            problem for problem in refused(format, transcript, {"abcdefgh1"}) if "not in the provider's" not in problem
        ] == []


@each_mode
@each_format
@pytest.mark.parametrize("arguments", ['{"text":  "a"}', '{ "weight":1e3, "text":"é" }'])
async def test_arguments_that_are_an_object_are_committed_as_they_came(format: str, mode: str, arguments: str) -> None:
    transcript = await committed(format, reply(format, mode, "echo", arguments))

    [call] = RULES[format].calls_of(transcript[1])
    given = call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments)
    assert json.loads(given) == json.loads(arguments)
    if isinstance(call.arguments, str):
        assert call.arguments == arguments


@pytest.mark.parametrize("format", ["openai", "mistral"])
@each_mode
async def test_a_call_of_a_careless_server_is_committed_as_the_api_has_it(format: WireFormat, mode: str) -> None:
    call = {"function": {"name": "echo", "arguments": {"text": "a"}}}  # no id, no type, and an object
    whole: Any = {"choices": [{"finish_reason": "stop", "message": {"role": "assistant", "tool_calls": [call]}}]}
    streamed: Any = [{"choices": [{"index": 0, "finish_reason": "stop", "delta": {"tool_calls": [call]}}]}]

    transcript = await committed(format, whole if mode == "whole" else streamed)

    [made] = transcript[1]["tool_calls"]
    assert made == {"id": made["id"], "type": "function", "function": {"name": "echo", "arguments": '{"text": "a"}'}}
    assert made["id"]
    assert refused(format, transcript) == []


@pytest.mark.parametrize("format", NAMES)
async def test_two_halves_of_a_character_in_two_pieces_are_one(format: WireFormat) -> None:
    rules = PROVIDERS[format]
    chunks = {
        "openai": [chat("a\ud83d"), chat("\ude00", "stop")],
        "mistral": [chat("a\ud83d"), chat("\ude00", "stop")],
        "openai_responses": [
            {"type": "response.output_item.added", "output_index": 0, "item": {"type": "message", "role": "assistant"}},
            {"type": "response.output_text.delta", "output_index": 0, "delta": "a\ud83d"},
            {"type": "response.output_text.delta", "output_index": 0, "delta": "\ude00"},
        ],
        "anthropic": [
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "a\ud83d"}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "\ude00"}},
        ],
        "gemini": [said("a\ud83d"), said("\ude00")],
        "bedrock": [
            {"contentBlockDelta": {"delta": {"text": half}, "contentBlockIndex": 0}} for half in ("a\ud83d", "\ude00")
        ],
        "cohere": [
            {"type": "content-delta", "index": 0, "delta": {"message": {"content": {"text": half}}}}
            for half in ("a\ud83d", "\ude00")
        ],
        "gemini_interactions": [
            {"event_type": "step.delta", "index": 0, "delta": {"type": "text", "text": half}}
            for half in ("a\ud83d", "\ude00")
        ],
        "ollama": [{"message": {"content": half}, "done": half != "a\ud83d"} for half in ("a\ud83d", "\ude00")],
    }[format]

    made = rules.gather(chunks)

    assert made.text == "a\U0001f600"
    assert json.loads(json.dumps(made.items, ensure_ascii=False).encode()) == list(made.items)


def chat(text: str, stop: str | None = None) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": stop}]}


def said(text: str) -> dict[str, Any]:
    return {"candidates": [{"content": {"role": "model", "parts": [{"text": text}]}}]}
