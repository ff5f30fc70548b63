"""Rules of Pydantic AI's message history, on messages as their own JSON.

A response's calls are answered by the parts of the request after it, before anything else in it; Pydantic AI puts
requests that follow each other into one. A result names its call by id.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, cast

from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter, ModelResponse, ToolCallPart
from pydantic_core import to_jsonable_python

from toolcrib._short_repr import kind_of
from toolcrib.adapters.pydantic_ai._media import content_of
from toolcrib.calls import Media
from toolcrib.formats import (
    Choice,
    Declaration,
    Item,
    Layout,
    ProviderFormat,
    StopKind,
    UserWords,
    WireCall,
    WireReply,
    WireResult,
    arguments_object,
    arguments_text,
    raw_arguments,
    user_words,
)

_RESULTS = ("tool-return", "retry-prompt")
_NO_PROVIDER = (None, "", "test", "function")
_AGENTS = ("tool-search", "capability-load")  # kinds of calls that their agents answer themselves
_FAILED = ("failed", "denied", "interrupted", "retried")


def shape_of_message(message: ModelMessage) -> Item:
    """Return a message as JSON shapes."""
    return cast("Item", ModelMessagesTypeAdapter.dump_python([message], mode="json")[0])


def message_of(shape: Mapping[str, Any]) -> ModelMessage:
    """Return the message that JSON shapes describe."""
    return ModelMessagesTypeAdapter.validate_python([shape])[0]


def stop_of(finish_reason: str | None, state: str | None, provider: str | None) -> str | None:
    """Return the word for why a response ended; None for one of a provider that does not say.

    A response of no provider was made by the host's own code or by one of their models for tests: it is whole.
    """
    if state and state != "complete":
        return state
    return finish_reason or ("stop" if provider in _NO_PROVIDER else None)


def asked_in(messages: Sequence[ModelMessage], call_id: str | None) -> tuple[ModelResponse, ToolCallPart] | None:
    """Return the last response that makes a call of this id, and the call; None when the history does not have it."""
    for message in reversed(messages):
        if isinstance(message, ModelResponse):
            for part in message.parts:
                if isinstance(part, ToolCallPart) and part.tool_call_id == call_id:
                    return message, part
    return None


def fault_of_call(messages: Sequence[ModelMessage], call_id: str | None) -> str:
    """Return why a call that an agent is about to run may not; empty for one that may.

    An agent runs the calls of any response. One that says nothing of its end is taken as the agent takes it: as whole.
    """
    found = asked_in(messages, call_id)
    if found is None:
        return ""
    response, part = found
    word = response.finish_reason or (response.provider_details or {}).get("finish_reason") or "stop"
    ended = MESSAGES.ended([stop_of(word, response.state, None)], streamed=False)
    return ended.fault_of(WireCall(part.tool_call_id, part.tool_name, raw_arguments(part.args)))


class _Messages(ProviderFormat):
    title = "pydantic_ai"
    layout = Layout("run")
    stops = MappingProxyType[str, StopKind](
        {
            "stop": "finished",
            "tool_call": "tool_calls",
            "length": "length",
            "content_filter": "content_filter",
            "error": "error",
            "suspended": "paused",
            "interrupted": "cut",
            "incomplete": "cut",
        }
    )
    asks = frozenset({"tool-call"})
    carried = frozenset(
        {"text", "thinking", "builtin-tool-call", "builtin-tool-return", "compaction", "file", "speech"}
    )

    def define(self, tool: Declaration) -> Item:
        definition: Item = {"name": tool.name, "description": tool.description}
        definition["parameters_json_schema"] = dict(tool.parameters)
        return {**definition, "strict": True} if tool.strict else definition

    # --- replies

    def parse(self, reply: object, taken: Collection[str] = ()) -> WireReply:
        if isinstance(reply, ModelResponse):
            item = shape_of_message(reply)
        elif isinstance(reply, Mapping):
            item = dict(cast("Mapping[str, Any]", reply))
        else:
            raise TypeError(f"a reply is a ModelResponse, and this is {kind_of(reply)}")
        text = "".join(str(part.get("content") or "") for part in _parts(item) if part.get("part_kind") == "text")
        stop = stop_of(_word(item, "finish_reason"), _word(item, "state"), _word(item, "provider_name"))
        draft = self.ended([stop], streamed=False)
        return self.with_calls(replace(draft, items=(item,) if item.get("parts") else (), text=text), taken)

    def parts_of(self, item: Mapping[str, Any]) -> Iterable[tuple[object, Mapping[str, Any]]]:
        return ((part.get("part_kind"), part) for part in _parts(item))

    def canonical_item(self, item: Item, broken: Collection[int]) -> Item:
        return {**item, "parts": list(map(_canonical_part, _parts(item)))}

    def gather(self, chunks: Iterable[object], taken: Collection[str] = ()) -> WireReply:
        """Return the reply in a stream's last response: each response is the whole so far."""
        responses = [chunk for chunk in chunks if isinstance(chunk, ModelResponse)]
        if not responses:
            raise TypeError("a stream is read from its responses: `[response async for response in stream.stream...]`")
        return self.parse(responses[-1], taken)

    # --- transcripts

    def calls_of(self, item: Mapping[str, Any]) -> tuple[WireCall, ...]:
        return tuple(map(_read_call, _call_parts(item)))

    def results_of(self, item: Mapping[str, Any]) -> tuple[WireResult, ...]:
        return tuple(
            WireResult(
                WireCall(_word(part, "tool_call_id"), _word(part, "tool_name"), ""),
                content
                if isinstance(content := part.get("content"), str)
                else json.dumps(content, ensure_ascii=False, default=str),
                part.get("outcome") in _FAILED or part.get("part_kind") == "retry-prompt",
            )
            for part in _answered(item)
        )

    def call_keys(self, item: Mapping[str, Any]) -> list[Any]:
        return [_word(part, "tool_call_id") for part in _call_parts(item)]

    def result_keys(self, item: Mapping[str, Any]) -> list[Any] | None:
        found = _answered(item)
        return [_word(part, "tool_call_id") for part in found] if len(found) == self.leading(item) else None

    def answer(self, results: Sequence[WireResult]) -> list[Item]:
        return self.pack([_tool_return(result) for result in results])

    def raw_results(self, item: Mapping[str, Any]) -> list[Item]:
        return [dict(part) for part in _answered(item)]

    def leading(self, item: Mapping[str, Any]) -> int:
        are_results = [_is_result(item, part) for part in _parts(item)]
        return next((place for place, is_result in enumerate(are_results) if not is_result), len(are_results))

    def rest_of(self, item: Mapping[str, Any]) -> Item | None:
        rest = [part for part in _parts(item) if not _is_result(item, part)]
        return {**item, "parts": rest} if rest else None

    def pack(self, raw: Sequence[Item], rest: Item | None = None) -> list[Item]:
        if not raw:
            return [] if rest is None else [rest]
        if rest is None:
            return [{"kind": "request", "parts": [*raw]}]
        return [{**rest, "parts": [*raw, *_parts(rest)]}]

    def with_call_ids(self, item: Mapping[str, Any], ids: Sequence[str]) -> Item:
        new = iter(ids)
        asked = _call_parts(item)
        parts = [{**part, "tool_call_id": next(new)} if part in asked else part for part in _parts(item)]
        return {**item, "parts": parts}

    def with_result_id(self, raw: Item, id: str) -> Item:
        return {**raw, "tool_call_id": id}

    def words_of(self, item: Mapping[str, Any]) -> UserWords:
        prompts = [part for part in _parts(item) if part.get("part_kind") == "user-prompt"]
        found = [user_words({"content": [*_prompts(part)]}) for part in prompts]
        return UserWords(
            tuple(t for words in found for t in words.texts), tuple(t for words in found for t in words.attached)
        )

    # --- requests

    def tool_choice(self, kind: Choice, name: str | None = None, among: Sequence[str] = ()) -> Any:
        if kind == "specific" or (among and kind == "at_least_one"):
            return [*among] if among else [name]
        self.refuse_among(among)
        return {"at_least_one": "required", "none": "none"}.get(kind, "auto")

    def user(self, text: str) -> list[Item]:
        return [{"kind": "request", "parts": [{"part_kind": "user-prompt", "content": text}]}]

    def system(self, text: str) -> list[Item]:
        return [{"kind": "request", "parts": [{"part_kind": "system-prompt", "content": text}]}]

    def assistant(self, text: str) -> list[Item]:
        return [{"kind": "response", "parts": [{"part_kind": "text", "content": text}]}]


def _parts(item: Mapping[str, Any]) -> list[Item]:
    return cast("list[Item]", item.get("parts") or [])


def _read_call(part: Item) -> WireCall:
    id, name, sent = _word(part, "tool_call_id"), _word(part, "tool_name"), raw_arguments(part.get("args"))
    kind = _word(part, "tool_kind")
    return WireCall(id, name, sent, kind, sent=part) if kind in _AGENTS else WireCall(id, name, sent)


def _canonical_part(part: Item) -> Item:
    """Return a part as providers want it: arguments are an object, or the text of one."""
    sent = part.get("args")
    if part.get("part_kind") != "tool-call" or not sent:  # which their models send as an empty object
        return part
    arguments = arguments_text(sent) if isinstance(sent, str) else arguments_object(sent)
    return part if arguments is sent else {**part, "args": arguments}


def _call_parts(item: Mapping[str, Any]) -> list[Item]:
    """Return the parts that are calls of the host's own tools; what a provider runs itself is answered beside it."""
    return [part for part in _parts(item) if item.get("kind") == "response" and part.get("part_kind") == "tool-call"]


def _answered(item: Mapping[str, Any]) -> list[Item]:
    return [part for part in _parts(item) if _is_result(item, part)]


def _is_result(item: Mapping[str, Any], part: Item) -> bool:
    return item.get("kind") == "request" and part.get("part_kind") in _RESULTS and bool(part.get("tool_name"))


def _prompts(part: Item) -> list[Any]:
    """Return the parts of a user's prompt; a text may be an object of a kind of its own."""
    content = part.get("content")
    found = [content] if isinstance(content, str) else cast("list[str | Item]", content or [])
    return [part["content"] if not isinstance(part, str) and part.get("kind") == "text" else part for part in found]


def _word(part: Mapping[str, Any], key: str) -> str:
    value = part.get(key)
    return value if isinstance(value, str) else ""


def _tool_return(result: WireResult) -> Item:
    parts = [content_of(part) if isinstance(part, Media) else part for part in result.parts]
    content: Any = to_jsonable_python(parts) if parts else result.content
    call = result.call
    item: Item = {"part_kind": "tool-return", "tool_name": call.name, "tool_call_id": call.id, "content": content}
    if call.sent:
        item |= {"tool_kind": call.kind, **(result.fields or {})}
    return {**item, "outcome": "failed"} if result.is_error else item


MESSAGES = _Messages()
"""The format of Pydantic AI's messages, for `decode(..., format=MESSAGES)`; `decode_response` is the short way."""
