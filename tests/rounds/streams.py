"""One reply in the pieces in which each provider streams it; whoever wants a cut stream leaves off where they like."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from copy import deepcopy
from itertools import zip_longest
from typing import Any

from toolcrib.calls import ToolCall
from toolcrib.rounds import WireFormat
from toolcrib.testing import wire_reply

Item = dict[str, Any]
THOUGHT = "Hm."


def whole(format: WireFormat, calls: Sequence[ToolCall], text: str, thinks: bool) -> Item:
    """Return a reply in one piece; one that thinks does so before it speaks or calls."""
    made = wire_reply(format, calls, text)
    if thinks:
        _PLACES[format](made)
    return made


def pieces(format: WireFormat, calls: Sequence[ToolCall], text: str, thinks: bool, size: int) -> list[Item]:
    """Return the chunks of a stream, with at most `size` characters of text or arguments in each."""
    return list(_PIECES[format](whole(format, calls, text, thinks), calls, size))


def failure(format: WireFormat) -> Item:
    """Return what a provider sends when it fails in the middle of a stream."""
    if format == "bedrock":
        return {"throttlingException": {"message": "busy"}}
    return {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}, "message": "busy"}


# --- thoughts in a whole reply


def _think_in_chat(made: Item) -> None:
    """OpenAI keeps thoughts to itself."""


def _think_in_mistral(made: Item) -> None:
    message = made["choices"][0]["message"]
    said = [{"type": "text", "text": message["content"]}] if message["content"] else []
    message["content"] = [{"type": "thinking", "thinking": [{"type": "text", "text": THOUGHT}]}, *said]


def _think_in_response(made: Item) -> None:
    for number, place in enumerate(range(0, len(made["output"]) + 1, 2)):
        item = {"type": "reasoning", "id": f"rs_{number}", "summary": list[Any](), "encrypted_content": "c2Vj"}
        made["output"].insert(place, item)


def _think_in_message(made: Item) -> None:
    made["content"].insert(0, {"type": "thinking", "thinking": THOUGHT, "signature": "c2lnbmVk"})


def _think_in_contents(made: Item) -> None:
    made["candidates"][0]["content"]["parts"].insert(0, {"text": THOUGHT, "thought": True})


def _think_in_converse(made: Item) -> None:
    thought = {"reasoningContent": {"reasoningText": {"text": THOUGHT, "signature": "c2lnbmVk"}}}
    made["output"]["message"]["content"].insert(0, thought)


def _think_in_ollama(made: Item) -> None:
    made["message"]["thinking"] = THOUGHT


def _think_in_cohere(made: Item) -> None:
    made["message"]["content"] = [{"type": "thinking", "thinking": THOUGHT}, *made["message"].get("content", ())]


def _think_in_steps(made: Item) -> None:
    made["steps"].insert(0, {"type": "thought", "signature": "c2lnbmVk"})


_PLACES = {
    "openai": _think_in_chat,
    "openai_responses": _think_in_response,
    "anthropic": _think_in_message,
    "gemini": _think_in_contents,
    "mistral": _think_in_mistral,
    "bedrock": _think_in_converse,
    "ollama": _think_in_ollama,
    "cohere": _think_in_cohere,
    "gemini_interactions": _think_in_steps,
}

# --- chunks


def _cut(text: str, size: int) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)]


def _chunk(delta: Item, stop: str | None = None) -> Item:
    choice = {"index": 0, "delta": delta, "finish_reason": stop}
    return {"id": "c", "object": "chat.completion.chunk", "created": 0, "model": "scripted", "choices": [choice]}


def _chat(made: Item, calls: Sequence[ToolCall], size: int) -> Iterator[Item]:
    [choice] = made["choices"]
    yield _chunk({"role": "assistant", "content": ""})
    for part in _cut(choice["message"]["content"] or "", size):
        yield _chunk({"content": part})
    for index, call in enumerate(choice["message"].get("tool_calls", ())):
        yield _chunk({"tool_calls": [{**call, "index": index, "function": {**call["function"], "arguments": ""}}]})
        for part in _cut(call["function"]["arguments"], size):
            yield _chunk({"tool_calls": [{"index": index, "function": {"arguments": part}}]})
    yield _chunk({}, choice["finish_reason"])
    yield {**_chunk({}), "choices": list[Any]()}


def _mistral(made: Item, calls: Sequence[ToolCall], size: int) -> Iterator[Item]:
    """Mistral sends each call in one piece."""
    [choice] = made["choices"]
    said = choice["message"]["content"] or ""
    yield {"data": _chunk({"role": "assistant", "content": ""})}
    for part in _cut(said, size) if isinstance(said, str) else [[part] for part in said]:
        yield {"data": _chunk({"content": part})}
    for index, call in enumerate(choice["message"].get("tool_calls", ())):
        yield {"data": _chunk({"content": "", "tool_calls": [{**call, "index": index}]})}
    yield {"data": _chunk({"content": ""}, choice["finish_reason"])}


def _response(made: Item, calls: Sequence[ToolCall], size: int) -> Iterator[Item]:
    yield {"type": "response.created", "response": {**made, "status": "in_progress", "output": list[Any]()}}
    for index, item in enumerate(made["output"]):
        at = {"output_index": index, "item_id": item["id"]}
        empty = {"function_call": {"arguments": ""}, "message": {"content": list[Any]()}}.get(item["type"], {})
        yield {"type": "response.output_item.added", "item": {**item, **empty, "status": "in_progress"}, **at}
        if item["type"] == "function_call":
            for part in _cut(item["arguments"], size):
                yield {"type": "response.function_call_arguments.delta", "delta": part, **at}
        elif item["type"] == "message":
            for part in _cut(item["content"][0]["text"], size):
                yield {"type": "response.output_text.delta", "content_index": 0, "delta": part, **at}
        yield {"type": "response.output_item.done", "item": item, **at}
    yield {"type": "response.completed", "response": made}


def _message(made: Item, calls: Sequence[ToolCall], size: int) -> Iterator[Item]:
    yield {"type": "message_start", "message": {**made, "content": list[Any](), "stop_reason": None}}
    texts = iter([call.arguments if isinstance(call.arguments, str) else "" for call in calls])
    for index, block in enumerate(made["content"]):
        begun, deltas = _block(block, next(texts) if block["type"] == "tool_use" else "", size)
        yield {"type": "content_block_start", "index": index, "content_block": begun}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    stop = {"stop_reason": made["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": stop, "usage": {"output_tokens": 1}}
    yield {"type": "message_stop"}


def _block(block: Item, arguments: str, size: int) -> tuple[Item, list[Item]]:
    """Return a block as it begins, and what is added to it."""
    match block["type"]:
        case "tool_use":
            added = [{"type": "input_json_delta", "partial_json": part} for part in _cut(arguments, size)]
            return {**block, "input": Item()}, added
        case "text":
            return {**block, "text": ""}, [{"type": "text_delta", "text": part} for part in _cut(block["text"], size)]
        case _:
            added = [{"type": "thinking_delta", "thinking": part} for part in _cut(block["thinking"], size)]
            added.append({"type": "signature_delta", "signature": block["signature"]})
            return {**block, "thinking": "", "signature": ""}, added


def _contents(made: Item, calls: Sequence[ToolCall], size: int) -> Iterator[Item]:
    """Gemini sends each call in one piece."""
    [candidate] = made["candidates"]
    for part in candidate["content"]["parts"]:
        for sent in [{**part, "text": text} for text in _cut(part["text"], size)] if "text" in part else [part]:
            yield {"candidates": [{"index": 0, "content": {"role": "model", "parts": [json.loads(json.dumps(sent))]}}]}
    last = {"index": 0, "finishReason": candidate["finishReason"], "content": {"role": "model", "parts": list[Any]()}}
    yield {"candidates": [last]}


def _converse(made: Item, calls: Sequence[ToolCall], size: int) -> Iterator[Item]:
    yield {"messageStart": {"role": "assistant"}}
    texts = iter([call.arguments if isinstance(call.arguments, str) else "" for call in calls])
    for index, block in enumerate(made["output"]["message"]["content"]):
        at = {"contentBlockIndex": index}
        deltas: list[Item] = []
        if "toolUse" in block:
            use = {key: value for key, value in block["toolUse"].items() if key != "input"}
            yield {"contentBlockStart": {"start": {"toolUse": use}, **at}}
            deltas = [{"toolUse": {"input": part}} for part in _cut(next(texts), size)]
        elif "text" in block:
            deltas = [{"text": part} for part in _cut(block["text"], size)]
        else:
            thought = block["reasoningContent"]["reasoningText"]
            deltas = [{"reasoningContent": {"text": part}} for part in _cut(thought["text"], size)]
            deltas.append({"reasoningContent": {"signature": thought["signature"]}})
        yield from ({"contentBlockDelta": {"delta": delta, **at}} for delta in deltas)
        yield {"contentBlockStop": at}
    yield {"messageStop": {"stopReason": made["stopReason"]}}


def _ollama(made: Item, calls: Sequence[ToolCall], size: int) -> Iterator[Item]:
    """Ollama sends each call in one piece."""
    message = made["message"]
    pieces = [{"content": "", "thinking": part} for part in _cut(message.get("thinking", ""), size)]
    pieces += [{"content": part} for part in _cut(message["content"], size)]
    pieces += [{"content": "", "tool_calls": [call]} for call in message.get("tool_calls", ())]
    for piece in pieces:
        yield {"model": "scripted", "message": {"role": "assistant", **piece}, "done": False}
    yield {**made, "message": {"role": "assistant", "content": ""}}


def _cohere(made: Item, calls: Sequence[ToolCall], size: int) -> Iterator[Item]:
    message = made["message"]
    yield {"type": "message-start", "id": "r", "delta": {"message": {"role": "assistant", "content": list[Any]()}}}
    for index, part in enumerate(message.get("content", ())):
        key, at = part["type"], {"index": index}
        yield {"type": "content-start", **at, "delta": {"message": {"content": {"type": key, key: ""}}}}
        for piece in _cut(part[key], size):
            yield {"type": "content-delta", **at, "delta": {"message": {"content": {key: piece}}}}
        yield {"type": "content-end", **at}
    for piece in _cut(message.get("tool_plan", ""), size):
        yield {"type": "tool-plan-delta", "delta": {"message": {"tool_plan": piece}}}
    for index, call in enumerate(message.get("tool_calls", ())):
        at, begun = {"index": index}, {**call, "function": {**call["function"], "arguments": ""}}
        yield {"type": "tool-call-start", **at, "delta": {"message": {"tool_calls": begun}}}
        for piece in _cut(call["function"]["arguments"], size):
            more = {"tool_calls": {"function": {"arguments": piece}}}
            yield {"type": "tool-call-delta", **at, "delta": {"message": more}}
        yield {"type": "tool-call-end", **at}
    yield {"type": "message-end", "delta": {"finish_reason": made["finish_reason"], "usage": made["usage"]}}


def _interaction(made: Item, calls: Sequence[ToolCall], size: int) -> Iterator[Item]:
    about = {key: value for key, value in made.items() if key != "steps"}
    yield {"event_type": "interaction.created", "interaction": {**about, "status": "in_progress"}}
    texts = iter([call.arguments if isinstance(call.arguments, str) else "" for call in calls])
    for index, step in enumerate(made["steps"]):
        at, begun, deltas = {"index": index}, {"type": step["type"]}, list[Item]()
        match step["type"]:
            case "function_call":
                begun = {**step, "arguments": Item()}
                deltas = [{"type": "arguments_delta", "arguments": part} for part in _cut(next(texts), size)]
            case "thought":
                deltas = [{"type": "thought_signature", "signature": step["signature"]}]
            case _:
                deltas = [{"type": "text", "text": part} for part in _cut(step["content"][0]["text"], size)]
        yield {"event_type": "step.start", "step": begun, **at}
        yield from ({"event_type": "step.delta", "delta": delta, **at} for delta in deltas)
        yield {"event_type": "step.stop", **at}
    yield {"event_type": "interaction.completed", "interaction": about}


_PIECES = {
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


# --- calls of which pieces come by turns


def partial(calls: Sequence[ToolCall]) -> list[Item]:
    """Return a stream of Gemini's in which each call's arguments come one by one, each with the path to its place."""
    made = [_parts({"name": call.name, "id": call.id, "willContinue": True}) for call in calls]
    arguments = [json.loads(call.arguments) if isinstance(call.arguments, str) else {} for call in calls]
    for row in zip_longest(*(list(one.items()) for one in arguments)):  # one of each call by turns
        for call, named in zip(calls, row, strict=True):
            if named is not None:
                kind = {str: "stringValue", bool: "boolValue"}.get(type(named[1]), "numberValue")
                placed = {"jsonPath": f"$.{named[0]}", kind: named[1]}
                made.append(_parts({"id": call.id, "partialArgs": [placed], "willContinue": True}))
    made += [_parts({"id": call.id}) for call in calls]
    return [*made, {"candidates": [{"index": 0, "finishReason": "STOP", "content": {"role": "model", "parts": []}}]}]


def _parts(call: Item) -> Item:
    return {"candidates": [{"index": 0, "content": {"role": "model", "parts": [{"functionCall": call}]}}]}


def by_turns(stream: Sequence[Item]) -> list[Item]:
    """Return a stream in which all calls are begun, then grow by turns, and then are ended."""
    places = [_place_in(chunk) for chunk in stream]
    numbers = [None if found is None else found[0][found[1]] for found in places]
    held = sorted({number for number in numbers if number is not None})
    groups = [[chunk for chunk, number in zip(stream, numbers, strict=True) if number == one] for one in held]
    began = next((at for at, number in enumerate(numbers) if number is not None), len(stream))
    mixed = [chunk for row in zip_longest(*groups) for chunk in row if chunk is not None]
    rest = [chunk for chunk, number in zip(stream[began:], numbers[began:], strict=True) if number is None]
    return [*stream[:began], *mixed, *rest]


def moved(chunk: Item) -> Item:
    """Return a chunk at a place that no call has."""
    made = deepcopy(chunk)
    found = _place_in(made)
    if found is not None:
        found[0][found[1]] = 7
    return made


def of_unknown_type(chunk: Item) -> Item:
    """Return a chunk whose delta has a type that no provider has, where a delta has one."""
    made = deepcopy(chunk)
    holder = made.get("contentBlockDelta", made)
    delta = holder.get("delta")
    if isinstance(delta, dict):
        holder["delta"] = {**delta, "type": "news"} if "type" in delta else {"news": delta}
    return made


def _place_in(value: Any) -> tuple[Item, str] | None:
    """Return where a chunk says to which call it belongs: the object, and the key in it."""
    if isinstance(value, dict):
        key = next((key for key in ("output_index", "contentBlockIndex", "index") if key in value), "")
        if key and "finish_reason" not in value and "content" not in value:
            return value, key
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return next((found for part in inner if (found := _place_in(part)) is not None), None)
