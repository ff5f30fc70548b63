"""Ollama, its own chat: a function tool, a message with tool calls whose arguments are objects, a message per result.

A stream is lines of JSON, each with a piece of the message; a call comes whole in one of them. Older servers, and the
Python package, have no ids: results then stand in the order of the calls, each with the tool's name.
Source: https://docs.ollama.com/api/chat and https://docs.ollama.com/capabilities/tool-calling.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, cast

from toolcrib.calls import Media, carried
from toolcrib.formats._call_ids import is_sent
from toolcrib.formats._canonical_json import arguments_object
from toolcrib.formats._chat import ChatFormat
from toolcrib.formats._format import Declaration
from toolcrib.formats._gemini_schema import openapi_schema
from toolcrib.formats._json_reading import json_shape, object_at, object_or_empty, objects_at, objects_in, text_or_empty
from toolcrib.formats._optional_ids import OptionalIds
from toolcrib.formats._reply_types import OllamaReply
from toolcrib.formats._result_pairing import Layout
from toolcrib.formats._stop_kinds import StopKind, error_in
from toolcrib.formats._strict_schema import check_root
from toolcrib.formats._transcript_rules import CallKey
from toolcrib.formats._usage import UsageKeys
from toolcrib.formats._wire import CallPiece, Choice, Item, Turn, WireCall, WireReply, WireResult
from toolcrib.jsonschema import describe_shape, described, in_prose, rewrite

_KEYWORDS = frozenset({"type", "description", "enum", "items", "properties", "required", "anyOf"})
_PLAIN = frozenset({"type", "description", "enum", "items"})  # what the Python package knows of a parameter
_IMAGES = frozenset({"image/png", "image/jpeg", "image/webp"})


class _Ollama(OptionalIds, ChatFormat):
    title = "ollama"
    reply_type = OllamaReply
    sdk = "ollama"
    strict = False
    takes_one_call = False
    result_roles = ("tool",)
    layout = Layout("run", needs_ids=False)  # its guide has a message for each call, in order, with `tool_name`
    needs_names = False  # which Llama 3.1 was recorded to do without
    stops = MappingProxyType[str, StopKind]({"stop": "finished", "length": "length", "load": "cut", "unload": "cut"})
    asks = frozenset({"function"})
    provider = "ollama"
    usage = UsageKeys(places=((),), input=(("prompt_eval_count",),), output=(("eval_count",),))

    def define(self, tool: Declaration) -> Item:
        self.callers_of(tool)
        check_root(tool.name, self.title, tool.parameters)
        # what the server would drop without a word is said in words
        schema = openapi_schema(tool.name, tool.parameters) or {"type": "object", "properties": Item()}
        parameters, declared = cast("Item", _trimmed(schema)), tool.parameters
        for name, part in parameters["properties"].items():
            if part.keys() - _PLAIN and isinstance(declared["properties"][name], Mapping):
                shape = {"$defs": declared.get("$defs", {}), **declared["properties"][name]}
                parameters["properties"][name] = described(part, describe_shape(shape, tool.name))
        described_as = {"description": tool.description} if tool.description else {}
        return {"type": "function", "function": {"name": tool.name, **described_as, "parameters": parameters}}

    # --- replies

    def read_turn(self, reply: Any) -> Turn | None:
        return self.turn_of(reply["message"], reply["done_reason"])

    def read_fields(self, reply: Mapping[str, Any], taken: Collection[str] = ()) -> WireReply:
        misread = list[str]()
        message = object_at(reply, "message", misread)
        draft = self.ended(*_ends([reply]), streamed=False)
        return self._read(message, draft.with_misread(misread), taken)

    def gather(self, chunks: Iterable[object], taken: Collection[str] = ()) -> WireReply:
        shapes = list(map(json_shape, chunks))
        message, calls, misread = Item(role="assistant"), list[Item](), list[str]()
        texts: dict[str, list[str]] = {"content": [], "thinking": []}
        for piece in (object_at(shape, "message", misread) for shape in shapes):
            for key, found in texts.items():
                found.append(text_or_empty(piece.get(key)))
            calls += map(dict, objects_at(piece, "tool_calls", misread))
        message |= {key: "".join(found) for key, found in texts.items()} | {"tool_calls": calls}
        return self._read(message, self.ended(*_ends(shapes), streamed=True).with_misread(misread), taken)

    def recognises(self, shape: Mapping[str, Any]) -> bool:
        return "message" in shape and "done" in shape

    def text_delta(self, chunk: Mapping[str, Any]) -> str:
        return text_or_empty(object_or_empty(chunk.get("message")).get("content"))

    def call_pieces(self, chunk: Mapping[str, Any]) -> Iterable[CallPiece]:
        sent = self.sent_calls({**object_or_empty(chunk.get("message")), "role": "assistant"})
        return [
            CallPiece(id, name, values=arguments_object(values), begins=True, ends=True) for id, name, values in sent
        ]

    def message_fields(self, message: Mapping[str, Any], misread: list[str]) -> Item:
        texts = {key: message[key] for key in ("content", "thinking") if isinstance(message.get(key), str)}
        return {key: text for key, text in texts.items() if text and (key == "content" or _says(message))}

    def read_call(self, call: Mapping[str, Any]) -> WireCall:
        return super().read_call({key: call.get(key) for key in ("id", "function")})  # a call has no type

    def canonical_item(self, item: Item, broken: Collection[int]) -> Item:
        return {**item, "tool_calls": list(map(_canonical_call, item["tool_calls"]))}

    # --- transcripts

    def sent_calls(self, item: Mapping[str, Any]) -> list[tuple[str, str, object]]:
        if item.get("role") != "assistant":
            return []
        calls = objects_in(item.get("tool_calls"))
        sent = [(text_or_empty(call.get("id")), object_or_empty(call.get("function"))) for call in calls]
        return [(id, text_or_empty(function.get("name")), function.get("arguments")) for id, function in sent]

    def result_keys(self, item: Mapping[str, Any]) -> list[CallKey] | None:
        return [(text_or_empty(item.get("tool_call_id")), _name_of(item))] if item.get("role") == "tool" else []

    def results_of(self, item: Mapping[str, Any]) -> tuple[WireResult, ...]:
        if item.get("role") != "tool":
            return ()
        call = WireCall(text_or_empty(item.get("tool_call_id")), _name_of(item), "")
        return (WireResult(call, text_or_empty(item.get("content"))),)

    def with_call_ids(self, item: Mapping[str, Any], ids: Sequence[str]) -> Item:
        calls = zip(objects_in(item.get("tool_calls")), ids, strict=True)
        return {**item, "tool_calls": [{**call, "id": id} if is_sent(id) else dict(call) for call, id in calls]}

    def answer(self, results: Sequence[WireResult]) -> list[Item]:
        return list(map(_answer, results))

    def takes_media(self, media: Media) -> bool:
        return media.mime_type in _IMAGES and media.data is not None

    def user_message(self, parts: Sequence[str | Media]) -> list[Item]:
        text = "\n".join(part for part in parts if isinstance(part, str))
        return [{"role": "user", "content": text, "images": [p.base64 for p in parts if isinstance(p, Media)]}]

    def asking(self, text: str, calls: Sequence[WireCall]) -> list[Item]:
        asked = [{"function": {"name": call.name, "arguments": arguments_object(call.arguments)}} for call in calls]
        item: Item = {"role": "assistant", "content": text, "tool_calls": asked}
        return [self.with_call_ids(item, [call.id for call in calls])]

    # --- requests

    def tool_choice(self, kind: Choice, name: str | None = None, among: Sequence[str] = ()) -> Any:
        self.refuse_among(among)
        if kind in ("optional", "validated"):
            return None
        mend = "offer no tools" if kind == "none" else "offer the tools that may be called, and ask in words"
        raise ValueError(f"{self.title} has no choice of tools; {mend}")

    def choice_parameters(self, choice: Any) -> Item:
        return {}


def _ends(shapes: Sequence[Mapping[str, Any]]) -> tuple[Sequence[object], list[str]]:
    """Return the words in a reply for why it ended, and the errors."""
    words = [shape.get("done_reason") for shape in shapes if shape.get("done")]
    return words, [*filter(None, map(error_in, shapes))]


def _says(message: Mapping[str, Any]) -> bool:
    """Return whether a message is more than a thought, which alone does not make a turn."""
    return bool(message.get("content") or message.get("tool_calls"))


def _name_of(result: Mapping[str, Any]) -> str:
    return text_or_empty(result.get("tool_name")) or text_or_empty(result.get("name"))


def _canonical_call(call: Item) -> Item:
    if not isinstance(call.get("id", ""), str):
        call = {key: value for key, value in call.items() if key != "id"}
    function = object_or_empty(call.get("function"))
    sent = arguments_object(function.get("arguments"))
    return call if sent is function.get("arguments") else {**call, "function": {**function, "arguments": sent}}


def _answer(result: WireResult) -> Item:
    parts = carried(result.parts, OLLAMA.takes_media)
    images = [part.base64 for part in parts if isinstance(part, Media)]
    text = "\n".join(part for part in parts if isinstance(part, str)) if images else result.content
    message: Item = {"role": "tool", "tool_name": result.call.name, "content": text}
    message |= {"tool_call_id": result.call.id} if is_sent(result.call.id) else {}
    return {**message, "images": images} if images else message


# --- schemas


def _trimmed(schema: Any) -> Any:
    if not isinstance(schema, Mapping):
        return schema
    source = rewrite(cast("Mapping[str, Any]", schema), _trimmed)
    nullable = "or null" if source.pop("nullable", False) else ""
    return described(source, ", ".join(filter(None, (nullable, in_prose(source, _KEYWORDS)))))


OLLAMA = _Ollama()
