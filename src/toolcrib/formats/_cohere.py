"""Cohere's chat, second version: a function tool, a message with tool calls and a plan, a message for each result.

A stream is events, each with a piece of the message, which are read here as chunks of a chat. Strict mode is a
parameter of the whole request, `strict_tools=True`: a definition has no place for it.
Source: https://docs.cohere.com/reference/chat, https://docs.cohere.com/docs/tool-use-usage-patterns and, for strict
mode, https://docs.cohere.com/docs/structured-outputs.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from toolcrib.calls import Media
from toolcrib.errors import FormatError
from toolcrib.formats._canonical_json import typed
from toolcrib.formats._chat import ChatFormat
from toolcrib.formats._format import Declaration
from toolcrib.formats._json_reading import (
    fields_of,
    is_object,
    number_at,
    object_at,
    objects_at,
    objects_in,
    text_or_empty,
)
from toolcrib.formats._neutral_parts import document_text
from toolcrib.formats._provider_client import ProviderClient
from toolcrib.formats._reply_types import CohereReply
from toolcrib.formats._result_pairing import Layout
from toolcrib.formats._stop_kinds import StopKind, error_in
from toolcrib.formats._strict_schema import STRUCTURE, StrictRules, check_root, strict_schema
from toolcrib.formats._usage import UsageKeys
from toolcrib.formats._wire import CallPiece, Choice, Item, Turn, WireCall, WireReply, WireResult
from toolcrib.jsonschema import kinds_of, subschemas

# Its patterns know no anchors and have to match all of a text, so that one of JSON Schema is said in words.
_STRICT = StrictRules(
    STRUCTURE | {"format"}, formats=frozenset({"date-time", "uuid", "date", "time"}), all_required=True
)
_MOST_FIELDS = 200  # of all strict tools of a request
_EVENTS = frozenset(
    {"message-start", "content-start", "content-delta", "content-end", "tool-plan-delta", "tool-call-start"}
    | {"tool-call-delta", "tool-call-end", "citation-start", "citation-end", "message-end", "debug"}
)
_OF_CALLS = frozenset({"tool-call-start", "tool-call-delta"})
_PARTS = {"text": "text", "thinking": "thinking"}
_LISTS = ("tool_calls", "citations", "content")  # of which an event has one thing, and no list


class _Cohere(ChatFormat):
    title = "cohere"
    reply_type = CohereReply
    sdk = "cohere"
    result_roles = ("tool",)
    takes_one_call = False
    layout = Layout("run")  # refused, by Command A, in the words of OpenAI's chat
    stops = MappingProxyType[str, StopKind](
        {
            "COMPLETE": "finished",
            "STOP_SEQUENCE": "finished",
            "TOOL_CALL": "tool_calls",
            "MAX_TOKENS": "length",
            "ERROR": "error",
            "TIMEOUT": "error",
        }
    )
    text_stops = frozenset({"STOP_SEQUENCE"})
    asks = frozenset({"function"})
    carried = frozenset({"text", "thinking"})
    client = ProviderClient(
        "cohere",
        "AsyncClientV2",
        ("v2", "chat"),
        streaming={},
        stream_endpoint=("v2", "chat_stream"),
        options={"tools": "provider_tools=", "tool_choice": "require=", "messages": "transcript="},
    )
    provider = "cohere"
    prices = "cohere"
    usage = UsageKeys(
        places=(("usage",), ("delta", "usage")),
        input=(("tokens", "input_tokens"),),
        output=(("tokens", "output_tokens"),),
        cached=(("cached_tokens",),),
        reasoning=(("tokens", "reasoning_tokens"),),
    )

    def define(self, tool: Declaration) -> Item:
        self.callers_of(tool)
        check_root(tool.name, self.title, tool.parameters)
        parameters: Item = dict(tool.parameters)
        if tool.strict:
            parameters = strict_schema(tool.name, self.title, tool.parameters, _STRICT)
            # strict mode refuses an object without a required property
            if any("object" in kinds_of(part) and not part.get("required") for part in subschemas(parameters)):
                problem = "strict mode wants a required property in each object; give it one, or leave `strict` out"
                raise FormatError(tool.name, COHERE.title, problem)
        described = {"description": tool.description} if tool.description else {}
        return {"type": "function", "function": {"name": tool.name, **described, "parameters": parameters}}

    def check_strict(self, before: list[Item], definition: Item) -> None:
        fields = sum(
            len(part.get("properties", ()))
            for tool in (*before, definition)
            for part in subschemas(tool["function"]["parameters"])
        )
        if fields > _MOST_FIELDS:
            problem = f"strict mode takes {_MOST_FIELDS} properties in all tools of a request; offer fewer tools"
            raise FormatError(definition["function"]["name"], self.title, problem)

    # --- replies

    def read_turn(self, reply: Any) -> Turn | None:
        turn = self.turn_of(reply["message"], reply["finish_reason"])
        return turn and turn._replace(text="".join(part.get("text", "") for part in turn.items[0].get("content", ())))

    def read_fields(self, reply: Mapping[str, Any], taken: Collection[str] = ()) -> WireReply:
        misread = list[str]()
        message = object_at(reply, "message", misread)
        draft = self.ended([reply.get("finish_reason")], self.errors_in(reply), streamed=False)
        return self._read(message, draft.with_misread(misread), taken)

    def errors_in(self, reply: Mapping[str, Any]) -> list[str]:
        if isinstance(reply.get("message"), str):  # an error has its words where a reply has its message
            return [error_in({"error": {"type": reply.get("error_type"), "message": reply["message"]}})]
        return super().errors_in(reply)

    def recognises(self, shape: Mapping[str, Any]) -> bool:
        return text_or_empty(shape.get("type")) in _EVENTS or ("finish_reason" in shape and "message" in shape)

    def chunk_of(self, event: Mapping[str, Any], misread: list[str]) -> Mapping[str, Any]:
        """Return an event as the chunk of a chat; a piece of a call, or of a text, is one of several there."""
        errors = self.errors_in(event)
        event_delta = object_at(event, "delta", misread)
        message = object_at(event_delta, "message", misread)
        kind = event.get("type", "")
        if not isinstance(kind, str) or (kind in _OF_CALLS and "tool_calls" not in message):
            misread.append("an event has no type, or has the one of a call and no part of it")
        delta = {key: _listed(key, value, event) for key, value in message.items()}
        choice = {"delta": delta, "finish_reason": event_delta.get("finish_reason"), "error": event_delta.get("error")}
        return {"choices": [choice], **({"error": errors[0]} if errors else {})}

    def call_pieces(self, chunk: Mapping[str, Any]) -> Sequence[CallPiece]:
        if chunk.get("type") == "tool-call-end":
            return [CallPiece(place=number_at(chunk, "index", []), ends=True)]
        return [*super().call_pieces(chunk)]

    def message_fields(self, message: Mapping[str, Any], misread: list[str]) -> Item:
        item = super().message_fields(message, misread)
        if isinstance(item.get("content"), list):
            sent = [fields_of(part, {"thinking": str}, misread) for part in item["content"]]
            item["content"] = [part for part in sent if _says(part)]
        if plan := text_or_empty(message.get("tool_plan")):
            item["tool_plan"] = plan
        if citations := [dict(citation) for citation in objects_at(message, "citations", misread)]:
            item["citations"] = citations
        return {key: value for key, value in item.items() if value}

    def read_call(self, call: Mapping[str, Any]) -> WireCall:
        read = super().read_call(call)
        return replace(read, arguments="") if read.arguments == "null" else read  # it has none

    # --- transcripts and requests

    def results_of(self, item: Mapping[str, Any]) -> tuple[WireResult, ...]:
        documents = [document_text(part) for part in objects_in(item.get("content"))]
        results = super().results_of(item)
        return tuple(
            replace(result, content="\n".join(filter(None, [result.content, *documents]))) for result in results
        )

    def answer(self, results: Sequence[WireResult]) -> list[Item]:
        return [
            {"role": "tool", "tool_call_id": result.call.id, **(result.fields or {"content": result.content})}
            for result in results
        ]

    def takes_media(self, media: Media) -> bool:
        return media.is_image and media.is_sendable

    def user_message(self, parts: Sequence[str | Media]) -> list[Item]:
        return [{"role": "user", "content": list(map(_part, parts))}]

    def request(self, messages: Sequence[Item], system: str, output: Mapping[str, Any] | None) -> Item:
        if output is not None:
            raise FormatError("answer", self.title, "it takes no schema of the answer beside tools; say it in words")
        return {"messages": [*(self.system(system) if system else ()), *messages]}

    def tool_choice(self, kind: Choice, name: str | None = None, among: Sequence[str] = ()) -> Any:
        self.refuse_among(among)
        if kind == "specific":
            mend = f"define only `{name}`, and let at least one be called"
            raise ValueError(f"{self.title} has no choice of one of the tools that are defined; {mend}")
        return {"at_least_one": "REQUIRED", "none": "NONE"}.get(kind)

    def choice_parameters(self, choice: Any) -> Item:
        return {} if choice is None else {"tool_choice": choice}


def _listed(key: str, value: Any, event: Mapping[str, Any]) -> Any:
    """Return a field of an event's message as a chunk of a chat has it; what is added to a text has no type."""
    if key not in _LISTS or not is_object(value):
        return value
    if key == "tool_calls":
        return [{"index": event.get("index"), **value}]
    return typed([value], _PARTS) if key == "content" else [value]


def _says(part: Mapping[str, Any]) -> bool:
    """Return whether a part of a message has anything in it."""
    return part["type"] not in _PARTS or bool(text_or_empty(part.get(part["type"])))


def _part(part: str | Media) -> Item:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    return {"type": "image_url", "image_url": {"url": part.link}}


COHERE = _Cohere()
