"""A reply with one call, in each format, whole and streamed, with any arguments and any end."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

from pydantic_ai.messages import ModelResponse, ModelResponseState, ToolCallPart

from tests.rounds.replies import FORMATS
from tests.rounds.streams import pieces
from toolcrib.adapters.pydantic_ai import MESSAGES
from toolcrib.calls import ToolCall
from toolcrib.formats import PROVIDERS, Item, ProviderFormat, StopKind
from toolcrib.testing import wire_reply

MODES = ("whole", "streamed")
RULES: dict[str, ProviderFormat] = {**PROVIDERS, "pydantic_ai": MESSAGES}
ALL = (*FORMATS, "pydantic_ai")
ID = "abcdefgh1"

_KEYS = ("finish_reason", "stop_reason", "finishReason", "stopReason", "done_reason")
_PLACES = {
    "openai": ("choices", 0, "message", "tool_calls", 0, "function", "arguments"),
    "mistral": ("choices", 0, "message", "tool_calls", 0, "function", "arguments"),
    "openai_responses": ("output", 0, "arguments"),
    "anthropic": ("content", 0, "input"),
    "bedrock": ("output", "message", "content", 0, "toolUse", "input"),
    "ollama": ("message", "tool_calls", 0, "function", "arguments"),
    "gemini_interactions": ("steps", 0, "arguments"),
    "cohere": ("message", "tool_calls", 0, "function", "arguments"),
    "gemini": ("candidates", 0, "content", "parts", 0, "functionCall", "args"),
}


def words_of(format: str, *kinds: StopKind) -> list[str]:
    """Return the format's words for replies with calls that ended so."""
    rules = RULES[format]
    return [word for word, kind in rules.stops.items() if kind in kinds and word not in rules.text_stops]


def begins(format: str) -> list[Any]:
    """Return a transcript in which the user has spoken."""
    return RULES[format].user("Go.")


def reply(format: str, mode: str, name: str, arguments: Any, stop: str | None = "") -> Any:
    """Return a reply that calls a tool.

    Args:
        format: The provider.
        mode: `whole` or `streamed`.
        name: The tool.
        arguments: As they stand in the reply, of any JSON type.
        stop: The provider's word for why it ended; None for none, empty for the one that goes with a call.
    """
    if format == "pydantic_ai":
        return _messages(mode, name, arguments, "tool_call" if stop == "" else stop)
    text = json.dumps(arguments) if format in ("bedrock", "gemini_interactions") else ""  # which stream text alone
    call = ToolCall(name, arguments if isinstance(arguments, str) else text, ID)
    if mode == "whole":
        made = wire_reply(format, [call])  # type: ignore[arg-type]
        place = made
        for key in _PLACES[format][:-1]:
            place = place[key]  # type: ignore[index]
        place[_PLACES[format][-1]] = arguments  # type: ignore[index]
    else:
        made = pieces(format, [call], "", False, 5)  # type: ignore[arg-type]
        made = [_given(format, chunk, arguments) for chunk in made]
    return made if stop == "" else stopped(format, made, stop)


def _given(format: str, chunk: Item, arguments: Any) -> Item:
    """Put arguments that are no text into a chunk where the provider has room for any JSON."""
    if isinstance(arguments, str) and format not in ("gemini", "ollama"):
        return chunk
    made = deepcopy(chunk)
    for part in _objects(made):
        if format == "gemini" and "functionCall" in part:
            part["functionCall"]["args"] = arguments
        elif format == "anthropic" and part.get("type") == "tool_use":
            part["input"] = arguments
        elif "arguments" in part:
            part["arguments"] = arguments
    return made


def _objects(value: Any) -> list[Item]:
    found: list[Item] = [value] if isinstance(value, dict) else []
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return found + [one for part in inner for one in _objects(part)]


def stopped(format: str, made: Any, stop: str | None) -> Any:
    """Return a reply, or its chunks, with another word for why it ended."""
    made = deepcopy(made)
    for part in _objects(made):
        for key in _KEYS:
            if part.get(key):
                part[key] = stop
        if part.get("object") == "interaction" and part["status"] in ("completed", "requires_action"):
            part["status"] = stop
        if part.get("object") == "response" and part["status"] == "completed":
            part["status"] = stop
    return made


def _messages(mode: str, name: str, arguments: Any, stop: str | None) -> Any:
    state: ModelResponseState = "complete"
    if stop in ("suspended", "interrupted", "incomplete"):
        state, stop = stop, None
    reason: Any = stop
    part = ToolCallPart(name, arguments, ID)
    whole = ModelResponse([part], finish_reason=reason, state=state, provider_name="openai")
    begun = ModelResponse([ToolCallPart(name, None, ID)], state="incomplete", provider_name="openai")
    return whole if mode == "whole" else [begun, whole]
