"""Chat messages as OpenAI, Mistral and Ollama have them: tool calls on a message, then a message for each result."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, ClassVar

from toolcrib.formats._canonical_json import arguments_text, raw_arguments, typed
from toolcrib.formats._chat_stream import (
    KINDS,
    TEXTS,
    calls_in,
    first_choice,
    gathered_chat,
    id_of,
    kind_of,
    legacy_call,
)
from toolcrib.formats._format import ProviderFormat
from toolcrib.formats._json_reading import (
    fields_of,
    json_shape,
    object_at,
    object_or_empty,
    objects_at,
    objects_in,
    text_or_empty,
)
from toolcrib.formats._result_pairing import Layout
from toolcrib.formats._stop_kinds import FINISHED, StopKind, error_in
from toolcrib.formats._transcript_rules import CallKey
from toolcrib.formats._usage import UsageKeys
from toolcrib.formats._wire import CallPiece, Item, Turn, WireCall, WireReply, WireResult

_LEGACY = "function_call"
_SAYING = frozenset({"content", "refusal", "tool_calls", "audio"})  # a message without any of them says nothing


class ChatFormat(ProviderFormat):
    """The part that the chat formats share.

    Attributes:
        result_roles: The roles of the messages that are results.
    """

    result_roles: ClassVar[tuple[str, ...]] = ("tool", "function")
    usage = UsageKeys(
        places=(("usage",), ("x_groq", "usage")),  # Groq's last chunk has it in a part of its own
        input=(("prompt_tokens",),),
        output=(("completion_tokens",),),
        cached=(("prompt_tokens_details", "cached_tokens"),),
        cache_written=(("prompt_tokens_details", "cache_write_tokens"),),  # of services that have OpenAI's format
        reasoning=(("completion_tokens_details", "reasoning_tokens"),),
    )
    # Refused: "An assistant message with 'tool_calls' must be followed by tool messages responding to each
    # 'tool_call_id'", "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'", and two
    # results of one id: "Duplicate value for 'tool_call_id'".
    layout = Layout("run")
    stops = MappingProxyType[str, StopKind](
        {
            "stop": "finished",
            "tool_calls": "tool_calls",
            "function_call": "tool_calls",
            "length": "length",
            "content_filter": "content_filter",
            "error": "error",
            "model_length": "length",  # Mistral
            "insufficient_system_resource": "error",  # DeepSeek
        }
    )

    def message_fields(self, message: Mapping[str, Any], misread: list[str]) -> Item:
        """Return the part of a message that the provider takes back, beside its calls; `misread` as for `object_at`."""
        content: object = message.get("content")
        if not isinstance(content, str):
            sent = [fields_of(part, {"text": str}, misread) for part in objects_at(message, "content", misread)]
            parts = typed(sent, {"text": "text", "thinking": "thinking"})
            content = [part for part in parts if part["type"] != "text" or "text" in part]
        return {"content": content} if content else {}

    # --- replies

    def read_turn(self, reply: Any) -> Turn | None:
        [choice] = reply["choices"]
        return self.turn_of(choice["message"], choice["finish_reason"])

    def turn_of(self, message: Mapping[str, Any], stop: str) -> Turn | None:
        """Return the turn in a well-formed message, which is a copy: its calls are removed from it."""
        sent: list[Any] = message.get("tool_calls") or []
        calls: list[WireCall] = []
        for call in sent:
            call.pop("index", None)  # its place among the pieces of a stream
            function = call["function"]
            calls.append(WireCall(call["id"], function["name"], function["arguments"]))
        item: Item = {"role": "assistant", **self.message_fields(message, [])}
        if sent:
            item["tool_calls"] = sent
        is_whole = len(item) > 1 and all(call.id != "null" for call in calls)  # as `id_of` reads it
        values = [call.arguments for call in calls if not isinstance(call.arguments, str)]
        return Turn([item], item.get("content", ""), calls, stop, values) if is_whole else None

    def read_fields(self, reply: Mapping[str, Any], taken: Collection[str] = ()) -> WireReply:
        misread = list[str]()
        choice = first_choice(reply, misread)
        errors = filter(None, (error_in(reply), error_in(choice or {})))
        draft = self.ended([(choice or {}).get("finish_reason")], errors, streamed=False)
        if choice is None:
            return self.with_calls(replace(draft.with_misread(misread), problems=("the reply has no choices",)), taken)
        return self._read(object_at(choice, "message", misread), draft.with_misread(misread), taken)

    def gather(self, chunks: Iterable[object], taken: Collection[str] = ()) -> WireReply:
        misread = list[str]()
        stream = gathered_chat(self.chunk_of(json_shape(chunk), misread) for chunk in chunks)
        return self._read(stream.message, self.ended_stream(stream).with_misread(misread), taken, stream.faults)

    def recognises(self, shape: Mapping[str, Any]) -> bool:
        return "choices" in shape

    def text_delta(self, chunk: Mapping[str, Any]) -> str:
        choice = first_choice(self.chunk_of(chunk, []), [])
        return "" if choice is None else _text_of(object_or_empty(choice.get("delta")).get("content"))

    def call_pieces(self, chunk: Mapping[str, Any]) -> Iterable[CallPiece]:
        delta = object_or_empty((first_choice(self.chunk_of(chunk, []), []) or {}).get("delta"))
        return [_piece(call, at) for at, call in enumerate(calls_in(delta, []))]

    def chunk_of(self, event: Mapping[str, Any], misread: list[str]) -> Mapping[str, Any]:
        """Return the chunk in an event of the provider's stream; `misread` as for `object_at`."""
        return event

    def _read(
        self,
        message: Mapping[str, Any],
        draft: WireReply,
        taken: Collection[str],
        faults: Mapping[int, str] = MappingProxyType({}),
    ) -> WireReply:
        """Return the reply; `draft` says how it ended, and `faults` why calls of it may not run, by their place."""
        problems, misread = list[str](), list[str]()
        item: Item = {"role": "assistant", **self.message_fields(message, misread)}
        sent = calls_in(message, misread)
        calls, call_items, broken = list[WireCall](), list[Item](), dict[int, str]()
        for place, call in enumerate(map(_taken_back, sent)):
            read = self.read_call(call)
            if not read.name:
                continue
            if (called := self.called(read.name, problems)) != read.name:
                call[read.kind] = {**object_or_empty(call.get(read.kind)), "name": called}
                read = self.read_call(call)
            if place in faults:
                broken[len(calls)] = faults[place]
            calls.append(read)
            call_items.append(call)
        if len(calls) < len(sent):
            misread.append(f"{len(sent) - len(calls)} of its calls named no tool and were left out")
        if calls:
            item["tool_calls"] = call_items
        if message.get("refusal") and draft.stop_kind in FINISHED:
            draft = replace(draft, stop_kind="refusal")
        items = () if item.keys().isdisjoint(_SAYING) else (item,)
        text = _text_of(item.get("content"))
        draft = replace(draft, items=items, text=text, calls=tuple(calls), problems=tuple(problems))
        return self.with_calls(draft.with_misread(misread), taken, broken)

    def read_call(self, call: Mapping[str, Any]) -> WireCall:
        """Return one of a message's calls."""
        kind = kind_of(call)
        body, id = object_or_empty(call.get(kind)), id_of(call)
        name = text_or_empty(body.get("name"))
        if kind == "function":
            return WireCall(id, name, raw_arguments(body.get("arguments")))
        sent: object = body.get(TEXTS.get(kind, "arguments"))
        if kind not in KINDS:  # of a type that is not known, and answered as the others are
            name = name or kind
        fault = "its text did not come" if kind in self.free_texts and not isinstance(sent, str) else ""
        return WireCall(id, name, raw_arguments(sent), kind, fault, sent=call)

    def parts_of(self, item: Mapping[str, Any]) -> Iterable[tuple[object, Mapping[str, Any]]]:
        return ((part.get("type"), part) for part in objects_in(item.get("content")))

    def canonical_item(self, item: Item, broken: Collection[int]) -> Item:
        return {**item, "tool_calls": list(map(_canonical_call, item["tool_calls"]))}

    # --- transcripts

    def call_keys(self, item: Mapping[str, Any]) -> list[CallKey]:
        if item.get("role") != "assistant":
            return []
        keys: list[CallKey] = [*map(id_of, objects_in(item.get("tool_calls")))]
        legacy = legacy_call(item, [])
        return [*keys, _legacy_id(legacy)] if legacy else keys

    def result_keys(self, item: Mapping[str, Any]) -> list[CallKey] | None:
        if item.get("role") not in self.result_roles:
            return []
        return [_legacy_id(item) if item["role"] == "function" else text_or_empty(item.get("tool_call_id"))]

    def calls_of(self, item: Mapping[str, Any]) -> tuple[WireCall, ...]:
        if item.get("role") != "assistant":
            return ()
        calls = tuple(map(self.read_call, objects_in(item.get("tool_calls"))))
        legacy = legacy_call(item, [])
        if not legacy:
            return calls
        name, sent = text_or_empty(legacy.get("name")), raw_arguments(legacy.get("arguments"))
        return (*calls, WireCall(_legacy_id(legacy), name, sent, _LEGACY, sent=legacy))

    def results_of(self, item: Mapping[str, Any]) -> tuple[WireResult, ...]:
        if item.get("role") not in self.result_roles:
            return ()
        [id] = self.result_keys(item) or [""]
        call = WireCall(str(id), text_or_empty(item.get("name")), "")
        return (WireResult(call, _text_of(item.get("content"))),)

    def with_call_ids(self, item: Mapping[str, Any], ids: Sequence[str]) -> Item:
        calls = [{**call, "id": id} for call, id in zip(objects_in(item.get("tool_calls")), ids, strict=True)]
        return {**item, "tool_calls": calls}

    def with_result_id(self, raw: Item, id: str) -> Item:
        return {**raw, "tool_call_id": id}

    def system(self, text: str) -> list[Item]:
        return [{"role": "system", "content": text}]

    def asking(self, text: str, calls: Sequence[WireCall]) -> list[Item]:
        message: Item = {"role": "assistant", **({"content": text} if text else {})}
        named = [(call.id, {"name": call.name, "arguments": arguments_text(call.arguments)}) for call in calls]
        return [
            {**message, "tool_calls": [{"id": id, "type": "function", "function": function} for id, function in named]}
        ]


def _piece(call: Mapping[str, Any], position: int) -> CallPiece:
    kind = next((key for key in TEXTS if key in call), kind_of(call))
    body, place = object_or_empty(call.get(kind)), call.get("index", position)
    sent: object = body.get(TEXTS.get(kind, "arguments"))
    return CallPiece(
        id_of(call),
        text_or_empty(body.get("name")),
        kind,
        place if isinstance(place, int) else position,
        text_or_empty(sent),
        object_or_empty(sent),
    )


def _legacy_id(function: object) -> str:
    """Return the id that pairs a call of the older form with its result: the name alone."""
    return f"{_LEGACY}:{text_or_empty(object_or_empty(function).get('name'))}"


def _canonical_call(call: Item) -> Item:
    """Return a call as strict servers want it: with its type, and a text: of a function that of a JSON object."""
    kind = kind_of(call)
    body, key = object_or_empty(call.get(kind)), TEXTS.get(kind, "arguments")
    if kind != "function" and kind not in TEXTS:
        return call
    text = arguments_text(body.get(key)) if kind == "function" else text_or_empty(body.get(key))
    if text is body.get(key) and call.get("type") == kind:
        return call
    return {**call, "type": kind, kind: {**body, key: text}}


def _taken_back(call: Mapping[str, Any]) -> Item:
    """Return a call as a request takes it: its place among the pieces of a stream is of no use there."""
    if "index" not in call and None not in call.values():
        return {**call}
    return {key: value for key, value in call.items() if value is not None and key != "index"}


def _text_of(content: object) -> str:
    """Return the text of a message, from its parts when it has some; thoughts are left out."""
    if isinstance(content, str):
        return content
    return "".join(text_or_empty(part.get("text")) for part in objects_in(content) if part.get("type") == "text")
