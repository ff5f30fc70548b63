"""Gemini: function declarations, contents of parts, and a `functionResponse` in the next content for each call.

A content with calls is answered by the next one, with as many responses as it has calls and before any other part. A
call may come without an id; it then gets one here that never goes out, and its response is known by name and order.
Source: https://ai.google.dev/gemini-api/docs/function-calling and https://ai.google.dev/api/caching#Content.
"""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from enum import Enum
from types import MappingProxyType
from typing import Any, cast

from pydantic.alias_generators import to_camel

from toolcrib.calls import Media, carried
from toolcrib.formats._call_ids import is_sent
from toolcrib.formats._canonical_json import arguments_object
from toolcrib.formats._format import Declaration
from toolcrib.formats._gemini_schema import json_schema, openapi_schema, takes_json_schema
from toolcrib.formats._gemini_stream import PartialCall, first_candidate, gathered_reply, placed_values, taken_back
from toolcrib.formats._json_reading import (
    is_object,
    json_shape,
    object_at,
    object_or_empty,
    objects_at,
    objects_in,
    text_or_empty,
)
from toolcrib.formats._message_blocks import MessageParts
from toolcrib.formats._optional_ids import OptionalIds
from toolcrib.formats._reply_types import GeminiReply
from toolcrib.formats._result_pairing import Layout
from toolcrib.formats._stop_kinds import StopKind, error_in
from toolcrib.formats._strict_schema import check_root
from toolcrib.formats._transcript_rules import CallKey, Speaker
from toolcrib.formats._usage import UsageKeys
from toolcrib.formats._user_words import UserWords
from toolcrib.formats._wire import CallPiece, Choice, Item, Turn, WireCall, WireReply, WireResult

_FILTERS = (
    "SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "ESCALATION", "MODEL_ARMOR",
    "PUP_LIMITED_DISABLED", "IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION",
)  # fmt: skip
_ERRORS = ("OTHER", "IMAGE_OTHER", "NO_IMAGE", "TOO_MANY_TOOL_CALLS", "MISSING_THOUGHT_SIGNATURE")
_TAKEN = frozenset({"image/png", "image/jpeg", "image/webp", "application/pdf", "text/plain"})
_CARRIED = (  # types of items that are sent back unchanged, and wait for no answer of the client's
    "text", "inlineData", "fileData", "executableCode", "codeExecutionResult", "toolCall", "toolResponse",
    "functionResponse", "thought", "thoughtSignature", "videoMetadata", "mediaResolution", "partMetadata",
    "audioTranscription", "mediaProcessing", "speechMetadata", "documentMetadata", "spreadsheetMetadata",
    "audioMetadata",
)  # fmt: skip
_TELLING = frozenset(  # keys of a dump that has to be read: where a call is, and how a reply ended
    {"finish_reason", "prompt_feedback", "function_call", "thought_signature", "function_response", "inline_data"}
    | {"executable_code", "code_execution_result", "file_data"}
)
_UNSIGNED = "skip_thought_signature_validator"  # what the guide to signatures says of calls that another model made
_OPEN = frozenset({"args", "response", "part_metadata", "partMetadata"})  # whose keys are a tool's or a host's own


# As the API writes them, and as `model_dump()` of its Python package does: one of the two is there.
_INPUT_COUNTS = ("promptTokenCount", "toolUsePromptTokenCount", "prompt_token_count", "tool_use_prompt_token_count")
_OUTPUT_COUNTS = ("candidatesTokenCount", "thoughtsTokenCount", "candidates_token_count", "thoughts_token_count")


class _Gemini(MessageParts, OptionalIds):
    title = "gemini"
    reply_type = GeminiReply
    provider = "gcp.gemini"
    prices = "google"
    sdk = "google.genai.types"
    names = r"[A-Za-z_][A-Za-z0-9_.:-]{0,127}"
    names_rule = "up to 128 letters, digits, `_`, `.`, `:` and `-`, beginning with a letter or `_`"
    parameter_names = r"[A-Za-z_][A-Za-z0-9_]{0,63}"
    strict = False
    takes_one_call = False
    parts_key, model_role, input_key, needs_input = "parts", "model", "args", False
    returns = True
    # Refused: "Please ensure that the number of function response parts is equal to the number of function call parts
    # of the function call turn". Several turns with calls in a row were recorded to be taken.
    layout = Layout("next", needs_ids=False, joins=True)
    stops = MappingProxyType[str, StopKind](
        {
            "STOP": "finished",
            "MAX_TOKENS": "length",
            "CONTINUATION": "length",
            "MALFORMED_FUNCTION_CALL": "malformed",
            "UNEXPECTED_TOOL_CALL": "malformed",
            "MALFORMED_RESPONSE": "malformed",
            "FINISH_REASON_UNSPECIFIED": "unknown",
            **dict.fromkeys(_FILTERS, "content_filter"),
            **dict.fromkeys(_ERRORS, "error"),
        }
    )

    asks = frozenset({"functionCall"})
    carried = frozenset(_CARRIED)
    usage = UsageKeys(
        places=(("usageMetadata",), ("usage_metadata",)),
        input=tuple((key,) for key in _INPUT_COUNTS),
        output=tuple((key,) for key in _OUTPUT_COUNTS),
        cached=(("cachedContentTokenCount",), ("cached_content_token_count",)),
        reasoning=(("thoughtsTokenCount",), ("thoughts_token_count",)),
    )

    def define(self, tool: Declaration) -> Item:
        check_root(tool.name, self.title, tool.parameters)
        self.callers_of(tool)
        definition: Item = {"name": tool.name, "description": tool.description or tool.name}
        subset = not takes_json_schema() if tool.options.openapi_schema is None else tool.options.openapi_schema
        if subset:
            parts = {"parameters": {"type": "object", **tool.parameters}, "response": tool.returns}
            schemas = {key: openapi_schema(tool.name, part) for key, part in parts.items() if part is not None}
        else:
            parameters = {"type": "object", **tool.parameters} if tool.parameters.get("properties") else None
            schemas = {"parametersJsonSchema": json_schema(parameters), "responseJsonSchema": json_schema(tool.returns)}
        return {**definition, **{key: schema for key, schema in schemas.items() if schema is not None}}

    def wrap(self, definitions: list[Item]) -> list[Item]:
        return [{"functionDeclarations": definitions}] if definitions else []

    # --- replies

    def read_turn(self, reply: GeminiReply) -> Turn | None:
        [candidate] = reply["candidates"]
        parts: list[Any] = candidate["content"]["parts"]
        sent = [part["functionCall"] for part in parts if "functionCall" in part]
        calls = [WireCall(call["id"], call["name"], call["args"]) for call in sent]
        if not all("functionCall" in part or part.get("text") for part in parts):
            return None
        text = "" if len(sent) == len(parts) else _text_of(parts)
        item: Item = {"role": "model", "parts": parts}
        return Turn([item], text, calls, candidate["finishReason"], [call["args"] for call in sent])

    def read_fields(self, reply: Mapping[str, Any], taken: Collection[str] = ()) -> WireReply:
        shape = _api_shape(reply)
        candidate = first_candidate(shape, [])
        words = [] if candidate is None else [candidate.get("finishReason")]
        return self._read(shape, self.ended(words, filter(None, [error_in(shape)]), streamed=False), taken)

    def gather(self, chunks: Iterable[object], taken: Collection[str] = ()) -> WireReply:
        stream = gathered_reply(map(_api_shape, chunks))
        return self._read(stream.reply, self.ended_stream(stream), taken, stream.cut)

    def recognises(self, shape: Mapping[str, Any]) -> bool:
        return "candidates" in shape

    def text_delta(self, chunk: Mapping[str, Any]) -> str:
        candidate = first_candidate(chunk, [])
        return "" if candidate is None else _text_of(object_or_empty(candidate.get("content")).get("parts"))

    def call_pieces(self, chunk: Mapping[str, Any]) -> Iterable[CallPiece]:
        content = object_or_empty((first_candidate(_api_shape(chunk), []) or {}).get("content"))
        sent = [part.get("functionCall") for part in objects_in(content.get("parts"))]
        return [_piece(call) for call in sent if is_object(call)]

    def _read(
        self, reply: Mapping[str, Any], draft: WireReply, taken: Collection[str], cut: Collection[int] = ()
    ) -> WireReply:
        """Return the reply; `draft` says how it ended, and `cut` has the places of parts whose call never did."""
        problems, misread = list(draft.problems), list[str]()
        candidate = first_candidate(reply, misread)
        blocked = text_or_empty(object_or_empty(reply.get("promptFeedback")).get("blockReason"))
        if blocked and draft.stop_kind != "error":
            draft = replace(draft, stop=blocked, stop_kind="content_filter")
        if candidate is None:
            problems.append("the prompt was blocked" if blocked else "the reply has no candidates")
            return self.with_calls(replace(draft, problems=tuple(problems)).with_misread(misread), taken)
        parts: list[Item] = []
        broken: dict[int, str] = {}
        calls = 0
        for place, sent in enumerate(objects_at(object_at(candidate, "content", misread), "parts", misread)):
            part, is_cut = taken_back(sent, misread), place in cut
            if PartialCall.begins(part):
                partial = PartialCall(part, misread)
                part, is_cut = partial.close(), not partial.is_whole
            if "functionCall" in part and not text_or_empty(object_or_empty(part["functionCall"]).get("name")):
                misread.append("one of its calls named no tool and was left out")
            elif part:
                if "functionCall" in part:
                    part["functionCall"]["name"] = self.called(part["functionCall"]["name"], problems)
                    broken |= {calls: "its arguments were cut"} if is_cut else {}
                    calls += 1
                parts.append(part)
        items: tuple[Item, ...] = ({"role": "model", "parts": parts},) if parts else ()
        note = text_or_empty(candidate.get("finishMessage")) if draft.stop_kind != "error" else ""
        finished = replace(draft, items=items, text=_text_of(parts), stop=note or draft.stop, problems=tuple(problems))
        read = self.with_calls(finished.with_misread(misread), taken, broken)
        return replace(read, stop=draft.with_misread(misread).stop)

    def parts_of(self, item: Mapping[str, Any]) -> Iterable[tuple[object, Mapping[str, Any]]]:
        return ((key, part) for part in objects_in(item.get("parts")) for key in part)

    # --- transcripts

    def call_in(self, part: Mapping[str, Any]) -> Mapping[str, Any] | None:
        return object_or_empty(part["functionCall"]) if "functionCall" in part else None

    def with_call(self, part: Mapping[str, Any], call: Item) -> Item:
        return {**part, "functionCall": call}

    def is_result(self, part: Mapping[str, Any]) -> bool:
        return "functionResponse" in part

    def result_key(self, part: Mapping[str, Any]) -> CallKey:
        response = object_or_empty(part["functionResponse"])
        return (text_or_empty(response.get("id")), text_or_empty(response.get("name")))

    def sent_calls(self, item: Mapping[str, Any]) -> list[tuple[str, str, object]]:
        sent = self.calls_in(item)  # the API leaves `args` out where they are empty
        return [(text_or_empty(call.get("id")), text_or_empty(call.get("name")), call.get("args", {})) for call in sent]

    def results_of(self, item: Mapping[str, Any]) -> tuple[WireResult, ...]:
        return tuple(map(_read_result, self.results_in(item)))

    def answer(self, results: Sequence[WireResult]) -> list[Item]:
        return self.pack([_function_response(result) for result in results])

    def words_of(self, item: Mapping[str, Any]) -> UserWords:
        return super().words_of({"role": "user", **item})  # the provider takes an item without a role as the user's

    def missing_turns(self, before: Mapping[str, Any] | None, item: Mapping[str, Any]) -> Sequence[Speaker]:
        if item.get("role") != "model":
            return ()
        # Refused: "Please ensure that function call turn comes immediately after a user turn or after a function
        # response turn".
        if before is None or (before.get("role") == "model" and self.call_keys(item) and not self.call_keys(before)):
            return ("user",)
        return ()

    def with_result_id(self, raw: Item, id: str) -> Item:
        return {**raw, "functionResponse": {**object_or_empty(raw["functionResponse"]), "id": id}}

    # --- requests

    def tool_choice(self, kind: Choice, name: str | None = None, among: Sequence[str] = ()) -> Any:
        optional = "VALIDATED" if among else "AUTO"  # which takes no names
        modes = {"optional": optional, "validated": "VALIDATED", "none": "NONE"}
        config: Item = {"mode": modes.get(kind, "ANY")}
        if kind == "specific" or among:
            config["allowedFunctionNames"] = [name] if kind == "specific" else [*among]
        return {"functionCallingConfig": config}

    def choice_parameters(self, choice: Any) -> Item:
        return {"tool_config": choice}

    def user(self, text: str) -> list[Item]:
        return [{"role": "user", "parts": [{"text": text}]}]

    def takes_media(self, media: Media) -> bool:
        return media.data is not None

    def user_message(self, parts: Sequence[str | Media]) -> list[Item]:
        return [
            {
                "role": "user",
                "parts": [{"text": p} if isinstance(p, str) else {"inlineData": _inline(p)} for p in parts],
            }
        ]

    def assistant(self, text: str) -> list[Item]:
        return [{"role": "model", "parts": [{"text": text}]}]

    def asking(self, text: str, calls: Sequence[WireCall]) -> list[Item]:
        named = [(call, arguments_object(call.arguments)) for call in calls]
        parts: list[Item] = [{"functionCall": {"id": call.id, "name": call.name, "args": sent}} for call, sent in named]
        parts[0]["thoughtSignature"] = _UNSIGNED
        return [{"role": "model", "parts": [*([{"text": text}] if text else ()), *parts]}]


def _api_shape(reply: object) -> Mapping[str, Any]:
    """Return a reply or chunk as the API writes it: the SDK's `model_dump()` has snake case, enums and bytes."""
    shape = json_shape(reply)
    return cast("Mapping[str, Any]", _written(shape)) if _is_dump(shape) else shape


def _is_dump(shape: Mapping[str, Any]) -> bool:
    candidates = list(objects_in(shape.get("candidates")))
    contents = [object_or_empty(candidate.get("content")) for candidate in candidates]
    parts = [part for content in contents for part in objects_in(content.get("parts"))]
    # a blob, and what a program did
    inner_objects = [inner for part in parts for inner in part.values() if is_object(inner)]
    return any(
        not _TELLING.isdisjoint(fields) or any(isinstance(value, bytes | Enum) for value in fields.values())
        for fields in (shape, *candidates, *parts, *inner_objects)
    )


def _written(value: object) -> Any:
    if is_object(value):
        named = ((str(key), part) for key, part in value.items() if part is not None)
        return {to_camel(key): part if key in _OPEN else _written(part) for key, part in named}
    if isinstance(value, list | tuple):
        return [_written(part) for part in cast("list[object]", value)]
    if isinstance(value, bytes):
        return urlsafe_b64encode(value).decode()
    return value.value if isinstance(value, Enum) else value


def _text_of(parts: object) -> str:
    return "".join(text_or_empty(part.get("text")) for part in objects_in(parts) if not part.get("thought"))


def _read_result(part: Mapping[str, Any]) -> WireResult:
    result = object_or_empty(part["functionResponse"])
    response = object_or_empty(result.get("response"))
    is_error = "error" in response and "output" not in response
    output = response.get("error" if is_error else "output", response)  # without either, all of it is the output
    text = output if isinstance(output, str) else json.dumps(output, ensure_ascii=False, default=str)
    return WireResult(WireCall(text_or_empty(result.get("id")), text_or_empty(result.get("name")), ""), text, is_error)


def _piece(call: Mapping[str, Any]) -> CallPiece:
    name, (values, placed) = text_or_empty(call.get("name")), placed_values(call, [])
    return CallPiece(
        text_or_empty(call.get("id")),
        name,
        values=values,
        placed=[piece for piece in placed if piece is not None],
        begins=bool(name),
        ends=not call.get("willContinue"),
    )


def _function_response(result: WireResult) -> Item:
    parts = carried(result.parts, lambda media: media.mime_type in _TAKEN and media.data is not None)
    sent = [part for part in parts if isinstance(part, Media)]
    text = "\n".join(part for part in parts if isinstance(part, str)) if sent else result.content
    response: Item = {"id": result.call.id} if is_sent(result.call.id) else {}
    response |= {"name": result.call.name, "response": {"error" if result.is_error else "output": text}}
    if sent:
        response["parts"] = [{"inlineData": _inline(image)} for image in sent]
    return {"functionResponse": response}


def _inline(media: Media) -> Item:
    name = {"displayName": media.name} if media.name else {}
    return {"mimeType": media.mime_type, "data": media.base64, **name}


GEMINI = _Gemini()
