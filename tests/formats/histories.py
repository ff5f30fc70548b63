"""Transcripts in each provider's form: well made ones by hand, and any that Hypothesis thinks of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from hypothesis import strategies as st

from toolcrib.formats import PROVIDERS, WireCall, WireFormat

Item = dict[str, Any]
Ids = Sequence[str]


def says(provider: WireFormat, role: str, text: str = "…") -> Item:
    made = PROVIDERS[provider].user(text) if role == "user" else PROVIDERS[provider].assistant(text)
    return made[0]


def asks(provider: WireFormat, *ids: str) -> list[Item]:
    """Return the items of a reply that calls `look` once for each id; an empty id is one that is not there."""
    return _ASKS[provider](ids)


def answers(provider: WireFormat, *ids: str, before: str = "", after: str = "") -> list[Item]:
    """Return the items with one result for each id, with text around them where they share an item."""
    return _ANSWERS[provider](ids, before, after)


# --- calls


def _some(**values: Any) -> Item:
    return {key: value for key, value in values.items() if value != ""}


def _chat_asks(ids: Ids) -> list[Item]:
    calls = [_some(id=id, type="function", function={"name": "look", "arguments": "{}"}) for id in ids]
    return [{"role": "assistant", "content": None, "tool_calls": calls}]


def _responses_asks(ids: Ids) -> list[Item]:
    return [_some(type="function_call", call_id=id, name="look", arguments="{}") for id in ids]


def _anthropic_asks(ids: Ids) -> list[Item]:
    return [{"role": "assistant", "content": [_some(type="tool_use", id=id, name="look", input={}) for id in ids]}]


def _gemini_asks(ids: Ids) -> list[Item]:
    return [{"role": "model", "parts": [{"functionCall": _some(id=id, name="look", args={})} for id in ids]}]


def _converse_asks(ids: Ids) -> list[Item]:
    uses = [{"toolUse": _some(toolUseId=id, name="look", input={})} for id in ids]
    return [{"role": "assistant", "content": uses}]


def _ollama_asks(ids: Ids) -> list[Item]:
    calls = [_some(id=id, function={"name": "look", "arguments": {}}) for id in ids]
    return [{"role": "assistant", "content": "", "tool_calls": calls}]


def _interactions_asks(ids: Ids) -> list[Item]:
    return [_some(type="function_call", id=id, name="look", arguments={}) for id in ids]


_ASKS: dict[WireFormat, Callable[[Ids], list[Item]]] = {
    "openai": _chat_asks,
    "openai_responses": _responses_asks,
    "anthropic": _anthropic_asks,
    "gemini": _gemini_asks,
    "mistral": _chat_asks,
    "bedrock": _converse_asks,
    "ollama": _ollama_asks,
    "cohere": _chat_asks,
    "gemini_interactions": _interactions_asks,
}

# --- results


def _texts(text: str, **more: Any) -> list[Item]:
    return [{**more, "text": text}] if text else []


def _openai_answers(ids: Ids, before: str, after: str) -> list[Item]:
    return [_some(role="tool", tool_call_id=id, content="fine") for id in ids]


def _mistral_answers(ids: Ids, before: str, after: str) -> list[Item]:
    return [_some(role="tool", tool_call_id=id, name="look", content="fine") for id in ids]


def _responses_answers(ids: Ids, before: str, after: str) -> list[Item]:
    return [_some(type="function_call_output", call_id=id, output="fine") for id in ids]


def _anthropic_answers(ids: Ids, before: str, after: str) -> list[Item]:
    results = [_some(type="tool_result", tool_use_id=id, content="fine") for id in ids]
    return [{"role": "user", "content": [*_texts(before, type="text"), *results, *_texts(after, type="text")]}]


def _gemini_answers(ids: Ids, before: str, after: str) -> list[Item]:
    results = [{"functionResponse": _some(id=id, name="look", response={"output": "fine"})} for id in ids]
    return [{"role": "user", "parts": [*_texts(before), *results, *_texts(after)]}]


def _converse_answers(ids: Ids, before: str, after: str) -> list[Item]:
    results = [{"toolResult": _some(toolUseId=id, content=[{"text": "fine"}])} for id in ids]
    return [{"role": "user", "content": [*_texts(before), *results, *_texts(after)]}]


def _ollama_answers(ids: Ids, before: str, after: str) -> list[Item]:
    return [_some(role="tool", tool_name="look", content="fine", tool_call_id=id) for id in ids]


def _interactions_answers(ids: Ids, before: str, after: str) -> list[Item]:
    return [_some(type="function_result", call_id=id, name="look", result="fine") for id in ids]


_ANSWERS: dict[WireFormat, Callable[[Ids, str, str], list[Item]]] = {
    "openai": _openai_answers,
    "openai_responses": _responses_answers,
    "anthropic": _anthropic_answers,
    "gemini": _gemini_answers,
    "mistral": _mistral_answers,
    "bedrock": _converse_answers,
    "ollama": _ollama_answers,
    "cohere": _openai_answers,
    "gemini_interactions": _interactions_answers,
}

# --- anything

_IDS = ("aaaaaaaa1", "aaaaaaaa2", "")
_SOME_IDS = [(a,) for a in _IDS] + [(a, b) for a in _IDS for b in _IDS]
_JUNK: list[Item] = [
    {}, {"role": "user"}, {"role": "assistant", "content": None}, {"role": "model", "parts": None},
    {"role": "assistant", "tool_calls": [None, "x", {}]}, {"role": "tool"}, {"type": "function_call"},
    {"type": "function_call_output"}, {"role": "user", "content": [None, {"type": "tool_result"}, "x"]},
    {"role": "assistant", "content": [{"type": "tool_result", "tool_use_id": "aaaaaaaa1"}, {"type": "tool_use"}]},
    {"role": "user", "parts": [{"functionCall": None}, {"functionResponse": None}, {"text": "…"}]},
    {"role": "model", "parts": [{"functionCall": {"name": "see"}}, {"functionResponse": {"name": "see"}}]},
    {"role": "function", "parts": [{"functionResponse": {"name": "see"}}]}, {"type": "reasoning", "summary": []},
    {"role": [], "type": {}}, {"role": "user", "content": [{"type": []}], "parts": [{"text": {}}]},
]  # fmt: skip


@cache
def _groups(provider: WireFormat) -> list[list[Item]]:
    """Return what a transcript is put together from. To choose from it is quicker than to make each item up."""
    found = [[says(provider, "user")], [says(provider, "assistant")], *([item] for item in _JUNK)]
    for ids in _SOME_IDS:
        found += [asks(provider, *ids), [*asks(provider, *ids), *answers(provider, *ids)]]
        found += [answers(provider, *ids, before=a, after=b) for a, b in (("", ""), ("Well.", ""), ("", "Well."))]
    return found


def histories(provider: WireFormat) -> st.SearchStrategy[list[Item]]:
    """Any transcript: calls with and without ids, results anywhere, text between, and what nobody should send."""
    groups = st.lists(st.sampled_from(_groups(provider)), max_size=8)
    return groups.map(lambda chosen: [item for group in chosen for item in group])


def calls_in(provider: WireFormat, transcript: Sequence[Item]) -> list[WireCall]:
    return [call for item in transcript for call in PROVIDERS[provider].calls_of(item)]
