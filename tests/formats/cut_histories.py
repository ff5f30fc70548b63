"""Conversations as each provider writes them, and what a context window leaves of them; the same for the same seed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from toolcrib.formats import WireFormat

Item = dict[str, Any]
NAMES = ("look", "book", "read_file")
_WITH_OWN_CALLS = ("anthropic", "bedrock")


@dataclass(frozen=True)
class Call:
    """A call of a conversation; its arguments and its result say which one it is."""

    number: int
    name: str
    id: str

    @property
    def arguments(self) -> Item:
        return {"n": self.number}

    @property
    def result(self) -> str:
        return f"result {self.number}"


@dataclass(frozen=True)
class Step:
    """What the model puts out at once: thoughts, text and calls, of which one at least is there.

    Attributes:
        asks: The id of a call of a tool of the provider's own; empty for none.
        found: The ids of those whose results come here, that of `asks` last.
    """

    number: int
    thinks: bool
    text: str
    calls: tuple[Call, ...]
    asks: str = ""
    found: tuple[str, ...] = ()


Said = str | Step


def conversation(provider: WireFormat, seed: int) -> list[Item]:
    """Return a whole conversation that the provider takes."""
    random = Random(f"{provider} {seed}")
    with_ids = provider not in ("gemini", "ollama") or random.random() < 0.7
    made = _SYSTEM[provider]() if random.random() < 0.5 else []
    for said in _story(random, provider, with_ids):
        made += _USER[provider](said) if isinstance(said, str) else _STEP[provider](said)
    return made


def _story(random: Random, provider: WireFormat, with_ids: bool) -> Iterator[Said]:
    calls = steps = 0
    waiting: tuple[str, ...] = ()
    for turn in range(random.randint(1, 5)):
        yield f"question {turn}"
        for last in [False] * random.choice((0, 1, 1, 2, 4)) + [True]:
            wanted = 0 if last else random.choice((1, 1, 1, 2, 3))
            asked = tuple(
                Call(n, random.choice(NAMES), _id(provider, n) if with_ids else "")
                for n in range(calls, calls + wanted)
            )
            calls, steps = calls + wanted, steps + 1
            text = f"text {steps}" if last or random.random() < 0.3 else ""
            thinks, asks = random.random() < 0.5, ""
            if provider in _WITH_OWN_CALLS and random.random() < 0.5:
                asks = f"srvtoolu_{steps:02}"
            waits = asks and not last and random.random() < 0.5  # while the client answers
            yield Step(steps, thinks, text, asked, asks, (*waiting, asks) if asks and not waits else waiting)
            waiting = (asks,) if waits else ()


def _id(provider: WireFormat, number: int) -> str:
    return {"anthropic": f"toolu_{number:02}", "mistral": f"call{number:05}"}.get(provider, f"call_{number}")


# --- as each provider writes it


def _chat_user(text: str) -> list[Item]:
    return [{"role": "user", "content": text}]


def _chat_system() -> list[Item]:
    return [{"role": "system", "content": "Be brief."}]


def _chat_step(step: Step, content: Any, **result: Any) -> list[Item]:
    asked = [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": json.dumps(call.arguments)}}
        for call in step.calls
    ]
    message = {"role": "assistant", "content": content, **({"tool_calls": asked} if asked else {})}
    return [message, *({"role": "tool", "tool_call_id": call.id, "content": call.result} for call in step.calls)]


def _openai_step(step: Step) -> list[Item]:
    message, *results = _chat_step(step, step.text or None)
    return [{**message, "reasoning_content": "Hm."} if step.thinks else message, *results]


def _mistral_step(step: Step) -> list[Item]:
    thought = {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}
    content = [thought, {"type": "text", "text": step.text or "Well."}] if step.thinks else step.text or None
    message, *results = _chat_step(step, content)
    return [message, *({**one, "name": call.name} for one, call in zip(results, step.calls, strict=True))]


def _responses_step(step: Step) -> list[Item]:
    made: list[Item] = []
    if step.thinks:
        made.append({"type": "reasoning", "id": f"rs_{step.number}", "summary": [], "encrypted_content": "c2Vj"})
    if step.text:
        part = {"type": "output_text", "text": step.text, "annotations": []}
        made.append({"type": "message", "id": f"msg_{step.number}", "role": "assistant", "content": [part]})
    for call in step.calls:
        arguments = json.dumps(call.arguments)
        made.append({"type": "function_call", "call_id": call.id, "name": call.name, "arguments": arguments})
    return made + [{"type": "function_call_output", "call_id": call.id, "output": call.result} for call in step.calls]


def _anthropic_step(step: Step) -> list[Item]:
    use = {"type": "server_tool_use", "name": "web_search", "input": {}}
    found: list[Item] = [{"type": "web_search_tool_result", "tool_use_id": id, "content": []} for id in step.found]
    blocks = [one for one in found if one["tool_use_id"] != step.asks]
    blocks += [{"type": "thinking", "thinking": f"Hm {step.number}.", "signature": "c2ln"}] if step.thinks else []
    blocks += [{**use, "id": step.asks}] if step.asks else []
    blocks += [one for one in found if one["tool_use_id"] == step.asks]
    blocks += [{"type": "text", "text": step.text}] if step.text else []
    blocks += [{"type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments} for call in step.calls]
    results = [{"type": "tool_result", "tool_use_id": call.id, "content": call.result} for call in step.calls]
    answered = [{"role": "user", "content": results}] if results else []
    return [{"role": "assistant", "content": blocks}, *answered]


def _gemini_step(step: Step) -> list[Item]:
    parts: list[Item] = [{"text": "Hm.", "thought": True}] if step.thinks else []
    parts += [{"text": step.text}] if step.text else []
    for call in step.calls:
        id = {"id": call.id} if call.id else {}
        signed = {"thoughtSignature": "c2ln"} if step.thinks else {}
        parts.append({"functionCall": {**id, "name": call.name, "args": call.arguments}, **signed})
    results = [
        {
            "functionResponse": {
                **({"id": call.id} if call.id else {}),
                "name": call.name,
                "response": {"output": call.result},
            }
        }
        for call in step.calls
    ]
    answered = [{"role": "user", "parts": results}] if results else []
    return [{"role": "model", "parts": parts}, *answered]


def _converse_step(step: Step) -> list[Item]:
    thought = {"reasoningContent": {"reasoningText": {"text": f"Hm {step.number}.", "signature": "c2ln"}}}
    use = {"toolUseId": step.asks, "type": "server_tool_use", "name": "nova_grounding", "input": {}}
    found = [{"toolUseId": id, "type": "nova_grounding_result", "content": []} for id in step.found]
    blocks: list[Item] = [{"toolResult": one} for one in found if one["toolUseId"] != step.asks]
    blocks += [thought] if step.thinks else []
    blocks += [{"toolUse": use}] if step.asks else []
    blocks += [{"toolResult": one} for one in found if one["toolUseId"] == step.asks]
    blocks += [{"text": step.text}] if step.text else []
    blocks += [{"toolUse": {"toolUseId": call.id, "name": call.name, "input": call.arguments}} for call in step.calls]
    results = [{"toolResult": {"toolUseId": call.id, "content": [{"text": call.result}]}} for call in step.calls]
    answered = [{"role": "user", "content": results}] if results else []
    return [{"role": "assistant", "content": blocks}, *answered]


def _ollama_step(step: Step) -> list[Item]:
    ids = [{"id": call.id} if call.id else {} for call in step.calls]
    calls = [
        {**id, "function": {"name": call.name, "arguments": call.arguments}}
        for id, call in zip(ids, step.calls, strict=True)
    ]
    message = {"role": "assistant", "content": step.text, **({"thinking": "Hm."} if step.thinks else {})}
    results = [
        {
            "role": "tool",
            "tool_name": call.name,
            "content": call.result,
            **({"tool_call_id": call.id} if call.id else {}),
        }
        for call in step.calls
    ]
    return [{**message, "tool_calls": calls} if calls else message, *results]


def _cohere_step(step: Step) -> list[Item]:
    content: list[Item] = [{"type": "thinking", "thinking": "Hm."}] if step.thinks else []
    content += [{"type": "text", "text": step.text}] if step.text else []
    message, *results = _chat_step(step, content)
    plan = {"tool_plan": f"I will do {step.number}."} if step.calls else {}
    return [{**message, **plan} if content else {**message, **plan, "content": None}, *results]


def _interactions_step(step: Step) -> list[Item]:
    made: list[Item] = [{"type": "thought", "signature": "c2ln"}] if step.thinks else []
    made += [{"type": "model_output", "content": [{"type": "text", "text": step.text}]}] if step.text else []
    made += [{"type": "function_call", "id": c.id, "name": c.name, "arguments": c.arguments} for c in step.calls]
    return made + [
        {"type": "function_result", "call_id": call.id, "name": call.name, "result": call.result} for call in step.calls
    ]


_USER: dict[WireFormat, Callable[[str], list[Item]]] = {
    "openai": _chat_user,
    "openai_responses": _chat_user,
    "anthropic": _chat_user,
    "gemini": lambda text: [{"role": "user", "parts": [{"text": text}]}],
    "mistral": _chat_user,
    "bedrock": lambda text: [{"role": "user", "content": [{"text": text}]}],
    "ollama": _chat_user,
    "cohere": _chat_user,
    "gemini_interactions": lambda text: [{"type": "user_input", "content": [{"type": "text", "text": text}]}],
}
_SYSTEM: dict[WireFormat, Callable[[], list[Item]]] = {
    "openai": _chat_system,
    "openai_responses": _chat_system,
    "anthropic": list,
    "gemini": list,
    "mistral": _chat_system,
    "bedrock": list,
    "ollama": _chat_system,
    "cohere": _chat_system,
    "gemini_interactions": list,
}
_STEP: dict[WireFormat, Callable[[Step], list[Item]]] = {
    "openai": _openai_step,
    "openai_responses": _responses_step,
    "anthropic": _anthropic_step,
    "gemini": _gemini_step,
    "mistral": _mistral_step,
    "bedrock": _converse_step,
    "ollama": _ollama_step,
    "cohere": _cohere_step,
    "gemini_interactions": _interactions_step,
}

# --- cutting it


def cut(whole: Sequence[Item], seed: int) -> list[Item]:
    """Return what is left of a conversation: the end of it, both ends, some of its items, or results without a few.

    Or some of its texts are blank, or some of the calls and results of the provider's own tools are gone.
    """
    random = Random(seed)
    left = list(whole)
    for way in random.sample(("front", "middle", "items", "results", "texts", "own"), random.choice((1, 1, 2))):
        match way:
            case "front":
                del left[: random.randint(1, max(1, len(left) - 1))]
            case "middle":
                begin = random.randrange(max(1, len(left)))
                del left[begin : random.randint(begin + 1, max(begin + 1, len(left)))]
            case "items":
                left = [item for item in left if random.random() < 0.8]
            case "texts":
                left = [_with_blanks(item, random) for item in left]
            case "own":
                left = list(filter(None, (_without_some(item, random, _is_own) for item in left)))
            case _:
                left = list(filter(None, (_without_some(item, random, _is_result) for item in left)))
    return left


def _with_blanks(item: Item, random: Random) -> Item:
    """Return an item in which some of the texts are of white space alone, in what the user and the model said."""
    key = "parts" if "parts" in item else "content"
    inner = item.get(key)
    if isinstance(inner, str) and inner and item.get("role") in ("user", "assistant") and random.random() < 0.3:
        return {**item, key: " \n"}
    if not isinstance(inner, list):
        return item
    return {
        **item,
        key: [{**part, "text": "\t"} if "text" in part and random.random() < 0.3 else part for part in inner],
    }


def _without_some(item: Item, random: Random, is_cut: Callable[[Item], bool]) -> Item:
    """Return an item without some of the parts that may be cut; nothing where none are left."""
    key = "parts" if "parts" in item else "content"
    inner = item.get(key)
    if not isinstance(inner, list) or not any(map(is_cut, inner)):
        return item
    kept = [part for part in inner if not is_cut(part) or random.random() < 0.7]
    return {**item, key: kept} if kept else {}


def _is_result(part: Item) -> bool:
    return part.get("type") == "tool_result" or "functionResponse" in part or "toolResult" in part


def _is_own(part: Item) -> bool:
    use: Item = part.get("toolUse", part)
    result: Item = part.get("toolResult", part)
    return use.get("type") == "server_tool_use" or str(result.get("type")).endswith(
        ("_tool_result", "_grounding_result")
    )
