"""One reply, written as each provider sends it: whole, in pieces, and as the objects of the provider's own SDK."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import cohere
import ollama
from anthropic.types import Message, MessageParam, RawMessageStreamEvent, ToolChoiceParam, ToolParam
from cohere.v2 import V2ChatResponse, V2ChatStreamResponse
from google.genai import interactions
from google.genai import types as gemini
from mistralai.client import models as mistral
from openai.types.chat import (
    ChatCompletion,
    ChatCompletionChunk,
    ChatCompletionCustomToolParam,
    ChatCompletionFunctionToolParam,
    ChatCompletionMessageParam,
    ChatCompletionToolChoiceOptionParam,
)
from openai.types.responses import (
    CustomToolParam,
    FunctionToolParam,
    Response,
    ResponseInputItemParam,
    ResponseStreamEvent,
    ToolSearchToolParam,
)
from openai.types.responses.response_create_params import ToolChoice as ResponsesToolChoice
from pydantic import BaseModel, TypeAdapter

from tests.formats import converse
from toolcrib.formats import PROVIDERS, WireFormat

NAMES: tuple[WireFormat, ...] = tuple(PROVIDERS)


@dataclass(frozen=True)
class Asked:
    """A call that a reply asks for."""

    id: str | None
    name: str = "look"
    arguments: Any = None

    @property
    def given(self) -> dict[str, Any]:
        return {"city": "Oslo"} if self.arguments is None else self.arguments


def whole(provider: WireFormat, text: str, calls: Sequence[Asked]) -> dict[str, Any]:
    return _WHOLE[provider](text, calls)


def pieces(provider: WireFormat, text: str, calls: Sequence[Asked]) -> list[dict[str, Any]]:
    return _PIECES[provider](text, calls)


# --- whole replies


def _chat(text: str, calls: Sequence[Asked]) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": text or None, "refusal": None}
    if calls:
        message["tool_calls"] = [
            {
                **({"id": call.id} if call.id is not None else {}),
                "type": "function",
                "function": {"name": call.name, "arguments": json.dumps(call.given)},
            }
            for call in calls
        ]
    stop = "tool_calls" if calls else "stop"
    choice = {"index": 0, "finish_reason": stop, "logprobs": None, "message": message}
    return {"id": "r", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}


def _mistral(text: str, calls: Sequence[Asked]) -> dict[str, Any]:
    made = _chat(text, calls)
    del made["choices"][0]["logprobs"], made["choices"][0]["message"]["refusal"]
    for call in made["choices"][0]["message"].get("tool_calls", ()):
        call["index"] = 0
    return {**made, "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}}


def _response(text: str, calls: Sequence[Asked]) -> dict[str, Any]:
    output: list[dict[str, Any]] = [{"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": None}]
    if text:
        said = {"type": "output_text", "text": text, "annotations": [], "logprobs": None}
        output.append({"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": [said]})
    for place, call in enumerate(calls):
        item = {"type": "function_call", "id": f"fc_{place}", "name": call.name, "status": "completed"}
        item["arguments"] = json.dumps(call.given)
        output.append(item if call.id is None else {**item, "call_id": call.id})
    base = {"id": "r", "object": "response", "created_at": 1, "model": "m", "tools": [], "tool_choice": "auto"}
    return {**base, "parallel_tool_calls": True, "status": "completed", "error": None, "output": output}


def _message(text: str, calls: Sequence[Asked]) -> dict[str, Any]:
    content: list[dict[str, Any]] = [{"type": "text", "text": text, "citations": None}] if text else []
    for call in calls:
        block = {"type": "tool_use", "name": call.name, "input": call.given}
        content.append(block if call.id is None else {**block, "id": call.id})
    usage = {"input_tokens": 1, "output_tokens": 1}
    stop = {"stop_reason": "tool_use" if calls else "end_turn", "stop_sequence": None}
    return {"id": "r", "type": "message", "role": "assistant", "model": "m", "content": content, "usage": usage, **stop}


def _contents(text: str, calls: Sequence[Asked]) -> dict[str, Any]:
    parts: list[dict[str, Any]] = [{"text": "Hm.", "thought": True}]
    parts += [{"text": text}] if text else []
    for call in calls:
        asked = {"name": call.name, "args": call.given}
        parts.append({"functionCall": asked if call.id is None else {"id": call.id, **asked}})
    parts[-1]["thoughtSignature"] = "c2lnbmVk"
    return {"candidates": [{"index": 0, "finishReason": "STOP", "content": {"role": "model", "parts": parts}}]}


def _converse(text: str, calls: Sequence[Asked]) -> dict[str, Any]:
    thought = {"reasoningText": {"text": "Hm.", "signature": "c2ln"}}
    content: list[dict[str, Any]] = [{"reasoningContent": thought}] if text or calls else []
    content += [{"text": text}] if text else []
    for call in calls:
        use = {"name": call.name, "input": call.given}
        content.append({"toolUse": use if call.id is None else {"toolUseId": call.id, **use}})
    usage = {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2}
    made = {"output": {"message": {"role": "assistant", "content": content}}, "usage": usage}
    return {**made, "stopReason": "tool_use" if calls else "end_turn", "metrics": {"latencyMs": 1}}


def _ollama(text: str, calls: Sequence[Asked]) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": text, "thinking": "Hm."}
    if calls:
        message["tool_calls"] = [
            {
                **({"id": call.id} if call.id is not None else {}),
                "function": {"name": call.name, "arguments": call.given},
            }
            for call in calls
        ]
    made = {"model": "m", "created_at": "2026-01-01T00:00:00Z", "message": message}
    return {**made, "done": True, "done_reason": "stop", "eval_count": 1}


def _cohere(text: str, calls: Sequence[Asked]) -> dict[str, Any]:
    content = [{"type": "thinking", "thinking": "Hm."}, *([{"type": "text", "text": text}] if text else [])]
    message: dict[str, Any] = {"role": "assistant", "content": content}
    if calls:
        message |= {"tool_plan": "I will look.", "tool_calls": _chat("", calls)["choices"][0]["message"]["tool_calls"]}
    usage = {"billed_units": {"input_tokens": 1, "output_tokens": 1}, "tokens": {"input_tokens": 1, "output_tokens": 1}}
    stop = "TOOL_CALL" if calls else "COMPLETE"
    return {"id": "r", "message": message, "finish_reason": stop, "usage": {**usage, "cached_tokens": 0}}


def _interaction(text: str, calls: Sequence[Asked]) -> dict[str, Any]:
    steps: list[dict[str, Any]] = [{"type": "thought", "signature": "c2ln"}]
    steps += [{"type": "model_output", "content": [{"type": "text", "text": text}]}] if text else []
    for call in calls:
        step = {"type": "function_call", "name": call.name, "arguments": call.given}
        steps.append(step if call.id is None else {"id": call.id, **step})
    usage = {"total_input_tokens": 1, "total_output_tokens": 1, "total_tokens": 2}
    times = {"created": "2026-01-01T00:00:00Z", "updated": "2026-01-01T00:00:00Z"}
    made = {"id": "r", "object": "interaction", "model": "m", "usage": usage, "steps": steps, **times}
    return {**made, "status": "requires_action" if calls else "completed"}


_WHOLE = {
    "openai": _chat,
    "openai_responses": _response,
    "anthropic": _message,
    "gemini": _contents,
    "mistral": _mistral,
    "bedrock": _converse,
    "ollama": _ollama,
    "cohere": _cohere,
    "gemini_interactions": _interaction,
}

# --- the same in pieces


def _cut(text: str) -> list[str]:
    middle = len(text) // 2
    return [part for part in (text[:middle], text[middle:]) if part]


def _chat_chunk(delta: dict[str, Any], stop: str | None = None) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": stop}
    return {"id": "r", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}


def _chat_pieces(text: str, calls: Sequence[Asked]) -> list[dict[str, Any]]:
    made = [_chat_chunk({"role": "assistant", "content": "" if text else None})]
    made += [_chat_chunk({"content": part}) for part in _cut(text)]
    for index, call in enumerate(calls):
        begun = {"index": index, "id": call.id, "type": "function", "function": {"name": call.name, "arguments": ""}}
        made.append(_chat_chunk({"tool_calls": [begun]}))
        for part in _cut(json.dumps(call.given)):
            made.append(_chat_chunk({"tool_calls": [{"index": index, "function": {"arguments": part}}]}))
    made.append(_chat_chunk({}, "tool_calls" if calls else "stop"))
    return [*made, {**_chat_chunk({}), "choices": []}]


def _mistral_pieces(text: str, calls: Sequence[Asked]) -> list[dict[str, Any]]:
    made = [_chat_chunk({"role": "assistant", "content": ""})]
    made += [_chat_chunk({"content": part}) for part in _cut(text)]
    asked = [
        {"id": call.id, "index": 0, "function": {"name": call.name, "arguments": json.dumps(call.given)}}
        for call in calls
    ]
    made.append(_chat_chunk({"content": "", "tool_calls": asked} if asked else {}, "tool_calls" if calls else "stop"))
    return [{"data": chunk} for chunk in made]


def _response_pieces(text: str, calls: Sequence[Asked]) -> list[dict[str, Any]]:
    response = _response(text, calls)
    made: list[dict[str, Any]] = [{"type": "response.created", "response": {**response, "output": []}}]
    for index, item in enumerate(response["output"]):
        at = {"output_index": index, "item_id": item["id"]}
        empty = {"function_call": {"arguments": ""}, "message": {"content": []}}.get(item["type"], {})
        made.append({"type": "response.output_item.added", "item": {**item, **empty}, **at})
        if item["type"] == "function_call":
            kind = "response.function_call_arguments.delta"
            made += [{"type": kind, "delta": part, **at} for part in _cut(item["arguments"])]
        if item["type"] == "message":
            more = {"content_index": 0, "logprobs": [], **at}
            made += [{"type": "response.output_text.delta", "delta": part, **more} for part in _cut(text)]
        made.append({"type": "response.output_item.done", "item": item, **at})
    made.append({"type": "response.completed", "response": response})
    return [{**event, "sequence_number": number} for number, event in enumerate(made)]


def _message_pieces(text: str, calls: Sequence[Asked]) -> list[dict[str, Any]]:
    message = _message(text, calls)
    stop = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    made: list[dict[str, Any]] = [{"type": "message_start", "message": {**message, "content": [], "stop_reason": None}}]
    for index, block in enumerate(message["content"]):
        said = block["type"] == "text"
        empty = {"text": ""} if said else {"input": {}}
        made.append({"type": "content_block_start", "index": index, "content_block": {**block, **empty}})
        for part in _cut(text if said else json.dumps(block["input"])):
            delta = {"type": "text_delta", "text": part} if said else {"type": "input_json_delta", "partial_json": part}
            made.append({"type": "content_block_delta", "index": index, "delta": delta})
        made.append({"type": "content_block_stop", "index": index})
    return [*made, {"type": "message_delta", "delta": stop, "usage": {"output_tokens": 1}}, {"type": "message_stop"}]


def _contents_pieces(text: str, calls: Sequence[Asked]) -> list[dict[str, Any]]:
    [candidate] = _contents(text, calls)["candidates"]
    parts: list[dict[str, Any]] = []
    for part in candidate["content"]["parts"]:
        if set(part) <= {"text", "thought"}:
            parts += [{**part, "text": piece} for piece in _cut(part["text"])]
        else:
            parts.append(part)
    made = [{"candidates": [{"index": 0, "content": {"role": "model", "parts": [part]}}]} for part in parts]
    return [*made, {"candidates": [{"index": 0, "finishReason": "STOP", "content": {"role": "model", "parts": []}}]}]


def _converse_pieces(text: str, calls: Sequence[Asked]) -> list[dict[str, Any]]:
    reply = _converse(text, calls)
    made: list[dict[str, Any]] = [{"messageStart": {"role": "assistant"}}]
    for index, block in enumerate(reply["output"]["message"]["content"]):
        at = {"contentBlockIndex": index}
        deltas: list[dict[str, Any]] = []
        if "toolUse" in block:
            start = {key: value for key, value in block["toolUse"].items() if key != "input"}
            made.append({"contentBlockStart": {"start": {"toolUse": start}, **at}})
            deltas = [{"toolUse": {"input": part}} for part in _cut(json.dumps(block["toolUse"]["input"]))]
        elif "text" in block:
            deltas = [{"text": part} for part in _cut(block["text"])]
        else:
            thought = block["reasoningContent"]["reasoningText"]
            deltas = [{"reasoningContent": {key: thought[key]}} for key in ("text", "signature")]
        made += [{"contentBlockDelta": {"delta": delta, **at}} for delta in deltas]
        made.append({"contentBlockStop": at})
    made.append({"messageStop": {"stopReason": reply["stopReason"]}})
    return [*made, {"metadata": {"usage": reply["usage"], "metrics": {"latencyMs": 1}}}]


def _ollama_pieces(text: str, calls: Sequence[Asked]) -> list[dict[str, Any]]:
    reply = _ollama(text, calls)
    pieces: list[dict[str, Any]] = [{"content": "", "thinking": part} for part in _cut("Hm.")]
    pieces += [{"content": part} for part in _cut(text)]
    pieces += [{"content": "", "tool_calls": [call]} for call in reply["message"].get("tool_calls", ())]
    going_on = {"model": "m", "created_at": "2026-01-01T00:00:00Z", "done": False}
    made = [{**going_on, "message": {"role": "assistant", **piece}} for piece in pieces]
    return [*made, {**reply, "message": {"role": "assistant", "content": ""}}]


def _cohere_pieces(text: str, calls: Sequence[Asked]) -> list[dict[str, Any]]:
    reply = _cohere(text, calls)
    empty = {"role": "assistant", "content": [], "tool_plan": "", "tool_calls": [], "citations": []}
    made: list[dict[str, Any]] = [{"type": "message-start", "id": "r", "delta": {"message": empty}}]
    for index, part in enumerate(reply["message"]["content"]):
        key, at = part["type"], {"index": index}
        made.append({"type": "content-start", "delta": {"message": {"content": {"type": key, key: ""}}}, **at})
        said = _cut(part[key])
        made += [{"type": "content-delta", "delta": {"message": {"content": {key: one}}}, **at} for one in said]
        made.append({"type": "content-end", **at})
    plan = _cut(reply["message"].get("tool_plan", ""))
    made += [{"type": "tool-plan-delta", "delta": {"message": {"tool_plan": part}}} for part in plan]
    for index, call in enumerate(reply["message"].get("tool_calls", ())):
        at, said = {"index": index}, call["function"]
        begun = {**call, "function": {"name": said["name"], "arguments": ""}}
        made.append({"type": "tool-call-start", "delta": {"message": {"tool_calls": begun}}, **at})
        for part in _cut(said["arguments"]):
            more = {"message": {"tool_calls": {"function": {"arguments": part}}}}
            made.append({"type": "tool-call-delta", "delta": more, **at})
        made.append({"type": "tool-call-end", **at})
    return [*made, {"type": "message-end", "delta": {key: reply[key] for key in ("finish_reason", "usage")}}]


def _interaction_pieces(text: str, calls: Sequence[Asked]) -> list[dict[str, Any]]:
    reply = _interaction(text, calls)
    about = {key: value for key, value in reply.items() if key != "steps"}
    made: list[dict[str, Any]] = [{"event_type": "interaction.created", "interaction": {**about, "status": "queued"}}]
    for index, step in enumerate(reply["steps"]):
        at, deltas = {"index": index}, list[dict[str, Any]]()
        match step["type"]:
            case "function_call":
                begun = {**step, "arguments": {}}
                deltas = [{"type": "arguments_delta", "arguments": one} for one in _cut(json.dumps(step["arguments"]))]
            case "thought":
                begun = {"type": "thought"}
                deltas = [{"type": "thought_signature", "signature": step["signature"]}]
            case _:
                begun = {"type": "model_output"}
                deltas = [{"type": "text", "text": part} for part in _cut(text)]
        made.append({"event_type": "step.start", "step": begun, **at})
        made += [{"event_type": "step.delta", "delta": delta, **at} for delta in deltas]
        made.append({"event_type": "step.stop", **at})
    return [*made, {"event_type": "interaction.completed", "interaction": about}]


_PIECES = {
    "openai": _chat_pieces,
    "openai_responses": _response_pieces,
    "anthropic": _message_pieces,
    "gemini": _contents_pieces,
    "mistral": _mistral_pieces,
    "bedrock": _converse_pieces,
    "ollama": _ollama_pieces,
    "cohere": _cohere_pieces,
    "gemini_interactions": _interaction_pieces,
}

# --- the SDKs' types


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


class OllamaCall(ollama.Message.ToolCall):
    """A call with the id that newer servers give, and the Python package does not know."""

    id: str | None = None


class OllamaMessage(ollama.Message):
    """A message with what newer servers take."""

    tool_call_id: str | None = None
    tool_calls: Sequence[OllamaCall] | None = None
    images: Sequence[str] | None = None  # which the package reads as a file or as base64


_REPLY: dict[WireFormat, Any] = {
    "openai": ChatCompletion,
    "openai_responses": Response,
    "anthropic": Message,
    "gemini": gemini.GenerateContentResponse,
    "mistral": mistral.ChatCompletionResponse,
    "bedrock": converse.Reply,
    "ollama": ollama.ChatResponse,
    "cohere": V2ChatResponse,
    "gemini_interactions": interactions.Interaction,
}
_CHUNK: dict[WireFormat, Any] = {
    "openai": ChatCompletionChunk,
    "openai_responses": ResponseStreamEvent,
    "anthropic": RawMessageStreamEvent,
    "gemini": gemini.GenerateContentResponse,
    "mistral": mistral.CompletionEvent,
    "bedrock": converse.Event,
    "ollama": ollama.ChatResponse,
    "cohere": V2ChatStreamResponse,
    "gemini_interactions": interactions.InteractionSSEEvent,
}
_ITEM: dict[WireFormat, Any] = {
    "openai": ChatCompletionMessageParam,
    "openai_responses": ResponseInputItemParam,
    "anthropic": MessageParam,
    "gemini": gemini.Content,
    "mistral": mistral.ChatCompletionRequestMessage,
    "bedrock": converse.Message,
    "ollama": OllamaMessage,
    "cohere": cohere.ChatMessageV2,
    "gemini_interactions": interactions.Step,
}
_TOOL: dict[WireFormat, Any] = {
    "openai": ChatCompletionFunctionToolParam | ChatCompletionCustomToolParam,
    "openai_responses": FunctionToolParam | CustomToolParam | ToolSearchToolParam,
    "anthropic": ToolParam,
    "gemini": gemini.Tool,
    "mistral": mistral.Tool,
    "bedrock": converse.Tool,
    "ollama": ollama.Tool,
    "cohere": cohere.ToolV2,
    "gemini_interactions": interactions.FunctionParam | interactions.ToolSearchParam,
}
_CHOICE: dict[WireFormat, Any] = {
    "openai": ChatCompletionToolChoiceOptionParam,
    "openai_responses": ResponsesToolChoice,
    "anthropic": ToolChoiceParam,
    "gemini": gemini.ToolConfig,
    "mistral": mistral.ChatCompletionRequestToolChoice,
    "bedrock": converse.ToolChoice,
    "ollama": None,
    "cohere": Literal["REQUIRED", "NONE"] | None,
    "gemini_interactions": Literal["auto", "any", "none", "validated"] | interactions.ToolChoiceConfigParam,
}


def known_to_sdk(provider: WireFormat, calls: Sequence[Asked]) -> list[Asked]:
    """Return calls without what the SDK leaves out of a reply: Ollama's package knows no ids."""
    return [Asked(None, call.name, call.arguments) if provider == "ollama" else call for call in calls]


def declarations(provider: WireFormat, tools: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return name, description and schemas of each tool in what the provider takes for tools."""
    if provider == "gemini":
        return tools[0]["functionDeclarations"]
    if provider == "bedrock":
        specs = [tool["toolSpec"] for tool in tools]
        return [{**spec, "parameters": spec["inputSchema"]["json"]} for spec in specs]
    return [tool.get("function", tool) for tool in tools]


def sdk_reply(provider: WireFormat, reply: dict[str, Any]) -> Any:
    return _adapter(_REPLY[provider]).validate_python(reply)


def sdk_chunk(provider: WireFormat, chunk: dict[str, Any]) -> Any:
    return _adapter(_CHUNK[provider]).validate_python(chunk)


def sdk_accepts(provider: WireFormat, items: Sequence[dict[str, Any]]) -> None:
    """Raise ValidationError where the SDK's type of an item does not fit, or knows no such key."""
    for item in items:
        _spend(_adapter(_ITEM[provider]).validate_python(item, extra="forbid"))


def sdk_accepts_tools(provider: WireFormat, tools: Sequence[dict[str, Any]]) -> None:
    extra: Any = "ignore" if provider == "ollama" else "forbid"  # the package knows less of a schema than the server
    for tool in tools:
        _spend(_adapter(_TOOL[provider]).validate_python(tool, extra=extra))


def sdk_accepts_choice(provider: WireFormat, choice: Any) -> None:
    _adapter(_CHOICE[provider]).validate_python(choice, extra="forbid")


def _spend(value: Any) -> None:
    """Read what pydantic validates only when it is read: the Iterables in the SDKs' TypedDicts."""
    if isinstance(value, dict):
        for part in value.values():
            _spend(part)
    elif not isinstance(value, str | bytes | BaseModel) and hasattr(value, "__iter__"):
        for part in value:
            _spend(part)
