"""Replies in the wire format of each provider, for a scripted model."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from toolcrib.calls import RawArguments, ToolCall
from toolcrib.errors import explain_options
from toolcrib.rounds import WireFormat


@explain_options()
def wire_reply(format: WireFormat, calls: Iterable[ToolCall] = (), text: str = "") -> dict[str, Any]:
    """Return a model's reply in a provider's wire format.

    Args:
        format: The provider.
        calls: The calls that the model asks for; arguments that are JSON text may be malformed.
        text: Its words.
    """
    wanted = list(calls)
    return {
        "openai": _chat,
        "mistral": _mistral,
        "openai_responses": _responses,
        "anthropic": _anthropic,
        "gemini": _gemini,
        "bedrock": _bedrock,
        "ollama": _ollama,
        "cohere": _cohere,
        "gemini_interactions": _interaction,
    }[format](wanted, text)


def _text_of(raw: RawArguments) -> str:
    if isinstance(raw, bytes):
        return raw.decode("utf-8", "replace")
    return raw if isinstance(raw, str) else json.dumps(raw)


def _object_of(raw: RawArguments) -> Any:
    """Return arguments as the value that a provider sends which parses them itself."""
    if not isinstance(raw, str | bytes):
        return dict(raw)
    try:
        return json.loads(raw)
    except ValueError:
        return {}


def _chat(calls: list[ToolCall], text: str) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": text or None}
    if calls:
        message["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": _text_of(call.arguments)}}
            for call in calls
        ]
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}
    return {"id": "chatcmpl-1", "object": "chat.completion", "created": 0, "model": "scripted", "choices": [choice]}


def _mistral(calls: list[ToolCall], text: str) -> dict[str, Any]:
    return {**_chat(calls, text), "model": "mistral-scripted"}


def _responses(calls: list[ToolCall], text: str) -> dict[str, Any]:
    output: list[dict[str, Any]] = []
    if text:
        part = {"type": "output_text", "text": text, "annotations": list[Any]()}
        output.append({"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [part]})
    for number, call in enumerate(calls):
        item = {"type": "function_call", "id": f"fc_{number}", "call_id": call.id, "status": "completed"}
        output.append({**item, "name": call.name, "arguments": _text_of(call.arguments)})
    return {"id": "resp_1", "object": "response", "model": "scripted", "status": "completed", "output": output}


def _anthropic(calls: list[ToolCall], text: str) -> dict[str, Any]:
    content: list[dict[str, Any]] = [{"type": "text", "text": text}] if text else []
    content += [
        {"type": "tool_use", "id": call.id, "name": call.name, "input": _object_of(call.arguments)} for call in calls
    ]
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "scripted", "content": content}
    usage = {"input_tokens": 0, "output_tokens": 0}
    return {**message, "stop_reason": "tool_use" if calls else "end_turn", "stop_sequence": None, "usage": usage}


def _gemini(calls: list[ToolCall], text: str) -> dict[str, Any]:
    parts: list[dict[str, Any]] = [{"text": text}] if text else []
    parts += [
        {"functionCall": {"id": call.id, "name": call.name, "args": _object_of(call.arguments)}} for call in calls
    ]
    return {"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}]}


def _bedrock(calls: list[ToolCall], text: str) -> dict[str, Any]:
    content: list[dict[str, Any]] = [{"text": text}] if text else []
    content += [
        {"toolUse": {"toolUseId": call.id, "name": call.name, "input": _object_of(call.arguments)}} for call in calls
    ]
    usage = {"inputTokens": 0, "outputTokens": 0, "totalTokens": 0}
    reply = {"output": {"message": {"role": "assistant", "content": content}}, "usage": usage}
    return {**reply, "stopReason": "tool_use" if calls else "end_turn", "metrics": {"latencyMs": 0}}


def _ollama(calls: list[ToolCall], text: str) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": text}
    if calls:
        message["tool_calls"] = [
            {"id": call.id, "function": {"name": call.name, "arguments": _object_of(call.arguments)}} for call in calls
        ]
    reply = {"model": "scripted", "created_at": "2026-01-01T00:00:00Z", "message": message}
    return {**reply, "done": True, "done_reason": "stop"}


def _cohere(calls: list[ToolCall], text: str) -> dict[str, Any]:
    [choice] = _chat(calls, text)["choices"]
    message: dict[str, Any] = {"role": "assistant", **({"content": [{"type": "text", "text": text}]} if text else {})}
    if calls:
        message["tool_calls"] = choice["message"]["tool_calls"]
    usage = {"billed_units": {"input_tokens": 0, "output_tokens": 0}, "tokens": {"input_tokens": 0, "output_tokens": 0}}
    return {"id": "r", "message": message, "finish_reason": "TOOL_CALL" if calls else "COMPLETE", "usage": usage}


def _interaction(calls: list[ToolCall], text: str) -> dict[str, Any]:
    steps: list[dict[str, Any]] = []
    if text:
        steps.append({"type": "model_output", "content": [{"type": "text", "text": text}]})
    for call in calls:
        step = {"type": "function_call", "id": call.id, "name": call.name, "arguments": _object_of(call.arguments)}
        steps.append(step)
    usage = {"total_input_tokens": 0, "total_output_tokens": 0, "total_tokens": 0}
    reply = {"id": "r", "object": "interaction", "model": "scripted", "usage": usage, "steps": steps}
    times = {"created": "2026-01-01T00:00:00Z", "updated": "2026-01-01T00:00:00Z"}
    return {**reply, **times, "status": "requires_action" if calls else "completed"}
