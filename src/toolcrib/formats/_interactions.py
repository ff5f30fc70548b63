"""Google's Interactions API: a flat function tool, and steps for what each side says, thinks, calls and answers.

The transcript is a list of steps and goes out whole with each request, which asks for nothing to be stored: thoughts go
back with their signatures. A result is a step after its call, tied by `call_id`, and takes text, images and files.
Source: https://ai.google.dev/api/interactions-api and the types of the package `google-genai`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, cast

from toolcrib.calls import Media, carried
from toolcrib.errors import FormatError
from toolcrib.formats._canonical_json import arguments_object, raw_arguments, typed
from toolcrib.formats._format import Declaration, ProviderFormat
from toolcrib.formats._gemini_schema import json_schema
from toolcrib.formats._json_reading import (
    fields_of,
    is_object,
    json_shape,
    number_at,
    object_at,
    object_in,
    object_or_empty,
    objects_at,
    objects_in,
    text_or_empty,
)
from toolcrib.formats._provider_client import ProviderClient
from toolcrib.formats._reply_types import InteractionReply
from toolcrib.formats._result_pairing import Layout
from toolcrib.formats._stop_kinds import StopKind, StreamEnd, error_in
from toolcrib.formats._strict_schema import check_root
from toolcrib.formats._transcript_rules import CallKey
from toolcrib.formats._usage import UsageKeys
from toolcrib.formats._user_words import UserWords, user_words
from toolcrib.formats._wire import CallPiece, Choice, Item, Turn, WireCall, WireReply, WireResult

_ANSWERS = {"function_call": "function_result", "tool_search_call": "tool_search_result"}
_RESULTS = frozenset(_ANSWERS.values())
_HOSTS = frozenset({"user_input", "function_result"})  # steps that no model makes
_CARRIED = (  # types of items that are sent back unchanged, and wait for no answer of the client's
    "model_output", "thought", "tool_search_result", "code_execution_call", "code_execution_result", "file_search_call",
    "file_search_result", "google_maps_call", "google_maps_result", "google_search_call", "google_search_result",
    "mcp_server_tool_call", "mcp_server_tool_result", "processing_call", "processing_result", "retrieval_call",
    "retrieval_result", "url_context_call", "url_context_result", *_HOSTS,
)  # fmt: skip
_KINDS = {"type": str, "id": str, "name": str, "call_id": str, "signature": str, "text": str, "content": list}
_LISTS = {"summary": list, "annotations": list}
_GROWING = {"thought_signature": "thought", "thought_summary": "thought", "arguments_delta": "function_call"}
_MEDIA = frozenset({"image", "audio", "document", "video"})
_BEGINNING = frozenset({"text", "text_annotation_delta", *_GROWING}) | _MEDIA  # pieces that need no event before them
_DOCUMENTS = frozenset({"application/pdf", "text/csv"})
_MODES = {"optional": "auto", "validated": "validated", "at_least_one": "any", "specific": "any", "none": "none"}


class _Interactions(ProviderFormat):
    title = "gemini_interactions"
    reply_type = InteractionReply
    sdk = "google.genai._gaos"
    provider = "gcp.gemini"
    prices = "google"
    names = r"[A-Za-z_][A-Za-z0-9_.:-]{0,127}"
    names_rule = "up to 128 letters, digits, `_`, `.`, `:` and `-`, beginning with a letter or `_`"
    parameter_names = r"[A-Za-z_][A-Za-z0-9_]{0,63}"
    strict = False
    takes_one_call = False
    layout = Layout("later", unique=True)  # a result has the id of its call alone, wherever it stands: `call_id`
    stops = MappingProxyType[str, StopKind](
        {  # the status of an interaction
            "completed": "finished",
            "requires_action": "tool_calls",
            "incomplete": "length",
            "budget_exceeded": "length",
            "requires_continuation": "length",
            "failed": "error",
            "cancelled": "cut",
            "in_progress": "cut",
            "queued": "cut",
            "idle": "cut",
        }
    )
    asks = frozenset(_ANSWERS)
    carried = frozenset(_CARRIED)
    client = ProviderClient(
        "google",
        "Client",
        ("interactions", "create"),
        module="google.genai",
        inner=("aio",),
        settings={"store": False},
        options={
            "tools": "provider_tools=",
            "generation_config": "require=",
            "tool_choice": "require=",
            "input": "transcript=",
            "system_instruction": "system=",
        },
    )
    usage = UsageKeys(
        places=(("usage",), ("interaction", "usage")),
        input=(("total_input_tokens",), ("total_tool_use_tokens",)),
        output=(("total_output_tokens",), ("total_thought_tokens",)),
        cached=(("total_cached_tokens",),),
        reasoning=(("total_thought_tokens",),),
    )

    def define(self, tool: Declaration) -> Item:
        check_root(tool.name, self.title, tool.parameters)
        self.callers_of(tool)
        definition: Item = {"type": "function", "name": tool.name}
        if tool.description:
            definition["description"] = tool.description
        if tool.parameters.get("properties"):
            definition["parameters"] = json_schema({"type": "object", **tool.parameters})
        deferred = tool.options.defer_loading
        return definition if deferred is None else {**definition, "defer_loading": deferred}

    def wrap(self, definitions: list[Item]) -> list[Item]:
        deferred = any(tool.get("defer_loading") for tool in definitions)
        return [*definitions, {"type": "tool_search"}] if deferred else definitions

    # --- replies

    def read_turn(self, reply: Any) -> Turn | None:
        steps: list[Any] = reply["steps"]
        sent = [step for step in steps if step["type"] == "function_call"]
        calls = [WireCall(step["id"], step["name"], step["arguments"]) for step in sent]
        text = "".join(map(_text_of, steps))
        return Turn(steps, text, calls, reply["status"], [step["arguments"] for step in sent])

    def read_fields(self, reply: Mapping[str, Any], taken: Collection[str] = ()) -> WireReply:
        return self._read(reply, self.ended([reply.get("status")], self.errors_in(reply), streamed=False), taken)

    def errors_in(self, reply: Mapping[str, Any]) -> list[str]:
        failed = [step for step in objects_in(reply.get("steps")) if step.get("error")]
        shape = {"error": "error", **reply} if reply.get("event_type") == "error" else reply
        return [*filter(None, map(error_in, (shape, *failed)))]

    def gather(self, chunks: Iterable[object], taken: Collection[str] = ()) -> WireReply:
        stream = _Stream()
        for chunk in chunks:
            event = json_shape(chunk)
            stream.errors += self.errors_in(event)
            stream.add(event)
        return self._read({"steps": stream.closed_steps()}, self.ended_stream(stream), taken, stream.open)

    def recognises(self, shape: Mapping[str, Any]) -> bool:
        return shape.get("object") == "interaction" or "event_type" in shape or {"steps", "status"} <= shape.keys()

    def text_delta(self, chunk: Mapping[str, Any]) -> str:
        delta = object_or_empty(chunk.get("delta"))
        return text_or_empty(delta.get("text")) if delta.get("type") == "text" else ""

    def call_pieces(self, chunk: Mapping[str, Any]) -> Iterable[CallPiece]:
        place, kind = number_at(chunk, "index", []), chunk.get("event_type")
        if kind == "step.start":
            [call] = self.calls_of(object_or_empty(chunk.get("step"))) or [WireCall("", "", "")]
            values = object_or_empty(call.arguments)
            return (CallPiece(call.id, call.name, call.kind, place, values=values, begins=True),)
        if kind == "step.delta":
            delta = object_or_empty(chunk.get("delta"))
            text = text_or_empty(delta.get("arguments")) if delta.get("type") == "arguments_delta" else ""
            return (CallPiece(place=place, text=text),)
        return (CallPiece(place=place, ends=True),) if kind == "step.stop" else ()

    def _read(
        self,
        reply: Mapping[str, Any],
        draft: WireReply,
        taken: Collection[str],
        open: Collection[int] = (),
    ) -> WireReply:
        """Return the reply; `draft` says how it ended, and `open` has the places of steps that never did."""
        problems, misread = list(draft.problems), list[str]()
        items, broken, calls = list[Item](), dict[int, str](), 0
        for place, sent in enumerate(objects_at(reply, "steps", misread)):
            item = _taken_back(sent, misread)
            is_call = item.get("type") in _ANSWERS
            if not item or item["type"] in _HOSTS:
                misread.append(f"a step of the type `{item.get('type', '')}` was left out")
            elif is_call and item["type"] == "function_call" and not text_or_empty(item.get("name")):
                misread.append("one of its calls named no tool and was left out")
            elif not (item["type"] == "model_output" and not item.get("content")):
                if "name" in item and item["type"] == "function_call":
                    item["name"] = self.called(item["name"], problems)
                broken |= {calls: "its arguments were cut"} if is_call and place in open else {}
                calls += is_call
                items.append(item)
        text = "".join(map(_text_of, items))
        read = replace(draft, items=tuple(items), text=text, problems=tuple(problems))
        return self.with_calls(read.with_misread(misread), taken, broken)

    def canonical_item(self, item: Item, broken: Collection[int]) -> Item:
        sent = arguments_object(item.get("arguments"))
        return item if sent is item.get("arguments") else {**item, "arguments": sent}

    def parts_of(self, item: Mapping[str, Any]) -> Iterable[tuple[object, Mapping[str, Any]]]:
        return ((item.get("type"), item),)

    def needs(self, kind: str) -> tuple[str, ...]:
        return ("result",) if kind == "tool_search_call" else ()

    # --- transcripts

    def calls_of(self, item: Mapping[str, Any]) -> tuple[WireCall, ...]:
        kind = text_or_empty(item.get("type"))
        if not _is_call(item):
            return ()
        id, sent = text_or_empty(item.get("id")), raw_arguments(item.get("arguments", ""))
        if kind == "function_call":
            return (WireCall(id, text_or_empty(item.get("name")), sent),)
        return (WireCall(id, kind, sent, kind, sent=item),)

    def call_keys(self, item: Mapping[str, Any]) -> list[CallKey]:
        return [text_or_empty(item.get("id"))] if _is_call(item) else []

    def result_keys(self, item: Mapping[str, Any]) -> list[CallKey] | None:
        return [text_or_empty(item.get("call_id"))] if text_or_empty(item.get("type")) in _RESULTS else []

    def results_of(self, item: Mapping[str, Any]) -> tuple[WireResult, ...]:
        if text_or_empty(item.get("type")) not in _RESULTS:
            return ()
        call = WireCall(text_or_empty(item.get("call_id")), text_or_empty(item.get("name")), "")
        body: object = item.get("result")
        text = body if isinstance(body, str) else "".join(text_or_empty(part.get("text")) for part in objects_in(body))
        return (WireResult(call, text, bool(item.get("is_error"))),)

    def answer(self, results: Sequence[WireResult]) -> list[Item]:
        return list(map(_answer, results))

    def with_call_ids(self, item: Mapping[str, Any], ids: Sequence[str]) -> Item:
        return {**item, "id": ids[0]}

    def with_result_id(self, raw: Item, id: str) -> Item:
        return {**raw, "call_id": id}

    def words_of(self, item: Mapping[str, Any]) -> UserWords:
        return user_words(item) if item.get("type") == "user_input" else UserWords()

    # --- requests

    def request(self, messages: Sequence[Item], system: str, output: Mapping[str, Any] | None) -> Item:
        if output is not None:
            raise FormatError("answer", self.title, "not all models take a schema of the answer beside tools")
        return {"input": [*messages], **({"system_instruction": system} if system else {})}

    def tool_choice(self, kind: Choice, name: str | None = None, among: Sequence[str] = ()) -> Any:
        mode = "validated" if among and kind == "optional" else _MODES[kind]  # `auto` takes no names
        tools = [name] if kind == "specific" else [*among]
        return {"allowed_tools": {"mode": mode, "tools": tools}} if tools else mode

    def choice_parameters(self, choice: Any) -> Item:
        return {"generation_config": {"tool_choice": choice}}

    def user(self, text: str) -> list[Item]:
        return self.user_message([text])

    def assistant(self, text: str) -> list[Item]:
        return [{"type": "model_output", "content": [_part(text)]}]

    def takes_media(self, media: Media) -> bool:
        is_known = media.mime_type.startswith(("image/", "audio/", "video/")) or media.mime_type in _DOCUMENTS
        return is_known and media.data is not None

    def user_message(self, parts: Sequence[str | Media]) -> list[Item]:
        return [{"type": "user_input", "content": list(map(_part, parts))}]

    def asking(self, text: str, calls: Sequence[WireCall]) -> list[Item]:
        named = [(call.id, call.name, arguments_object(call.arguments)) for call in calls]
        steps = [{"type": "function_call", "id": id, "name": name, "arguments": sent} for id, name, sent in named]
        return [*(self.assistant(text) if text else ()), *steps]


def _is_call(item: Mapping[str, Any]) -> bool:
    """Return whether a step is a call; one with a `call_id` or an `execution` is an item of OpenAI's Responses."""
    return text_or_empty(item.get("type")) in _ANSWERS and item.keys().isdisjoint(("call_id", "execution"))


def _answer(result: WireResult) -> Item:
    step: Item = {"type": _ANSWERS["function_call"], "name": result.call.name, "call_id": result.call.id}
    if result.call.kind != "function":
        step = {"type": _ANSWERS[result.call.kind], "call_id": result.call.id}
        return {**step, **(result.fields or {"result": list[Any]()})}
    parts = carried(result.parts, INTERACTIONS.takes_media)
    shown = any(isinstance(part, Media) for part in parts)
    step["result"] = list(map(_part, parts)) if shown else result.content
    return {**step, "is_error": True} if result.is_error else step


def _part(part: str | Media) -> Item:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    kind = part.mime_type.partition("/")[0]
    return {"type": kind if kind in _MEDIA else "document", "data": part.base64, "mime_type": part.mime_type}


def _taken_back(sent: Mapping[str, Any], misread: list[str]) -> Item:
    """Return a step as a request takes it, without what is null or of another kind; nothing of one without type."""
    item = {key: value for key, value in fields_of(sent, _KINDS | _LISTS, misread).items() if key != "error"}
    if not item.get("type"):
        return {}
    if not item.get("signature", "…"):
        del item["signature"]
    if item["type"] in _ANSWERS:
        item = {key: value for key, value in item.items() if key not in ("call_id", "execution")}
    if "content" in item:
        parts = [fields_of(part, _KINDS | _LISTS, misread) for part in objects_at(item, "content", misread)]
        item["content"] = [
            part for part in typed(parts, {"text": "text"}) if part["type"] != "text" or part.get("text")
        ]
    return item


def _text_of(step: Mapping[str, Any]) -> str:
    if step.get("type") != "model_output":
        return ""
    return "".join(text_or_empty(part.get("text")) for part in objects_in(step.get("content")))


# --- streams


@dataclass(slots=True)
class _Stream(StreamEnd):
    """The steps that events make up, in the order in which they began.

    Attributes:
        steps: The steps.
        final: The steps of the last event, which may have all of them.
        places: Which of the steps is growing, by its number.
        open: The places of steps that have not ended.
    """

    steps: list[Item] = field(default_factory=list[Item])
    final: list[Item] = field(default_factory=list[Item])
    places: dict[int, int] = field(default_factory=dict[int, int])
    open: set[int] = field(default_factory=set[int])

    def add(self, event: Mapping[str, Any]) -> None:
        """Add an event."""
        index = number_at(event, "index", self.misread)
        match text_or_empty(event.get("event_type")):
            case "step.start":
                self._begin(index, object_at(event, "step", self.misread))
            case "step.delta":
                self._grow(index, object_at(event, "delta", self.misread))
            case "step.stop":
                self.open.discard(self.places.get(index, -1))
            case "interaction.completed":
                interaction = object_at(event, "interaction", self.misread)
                self.words.append(interaction.get("status"))
                self.final = [dict(step) for step in objects_at(interaction, "steps", self.misread)]
            case "interaction.status_update" if event.get("status") not in ("in_progress", "queued"):
                self.words.append(None if event.get("status") in ("completed", "requires_action") else event["status"])
            case kind:
                step = self.steps[self.places[index]] if index in self.places else {}
                delta = object_or_empty(event.get("delta"))
                if delta and "function_call" in (step.get("type"), _GROWING.get(text_or_empty(delta.get("type")))):
                    self.misread.append(f"an event of the type `{kind}` came for a call")

    def closed_steps(self) -> list[Item]:
        """Return the steps, with arguments that came whole as an object; those that were cut are said to be."""
        if self.final and not self.steps:
            return self.final
        for place, step in enumerate(self.steps):
            is_call, sent = step.get("type") == "function_call", step.get("arguments")
            if is_call and place in self.open:
                self.problems.append(f"the arguments of a call of `{text_or_empty(step.get('name'))}` were cut")
            elif is_call and isinstance(sent, str) and (read := object_in(sent)) is not None:
                step["arguments"] = read
        return self.steps

    def _begin(self, index: int, step: Mapping[str, Any]) -> None:
        self.places[index] = len(self.steps)
        self.open.add(len(self.steps))
        self.steps.append(dict(step))

    def _grow(self, index: int, delta: Mapping[str, Any]) -> None:
        kind = text_or_empty(delta.get("type"))
        if index not in self.places:
            if kind == "arguments_delta" or (delta and kind not in _BEGINNING):
                self.misread.append(f"a piece of the type `{kind}` came where no step of it is open")
                return
            self._begin(index, {"type": _GROWING.get(kind, "model_output")})
        step = self.steps[self.places[index]]
        is_call = step.get("type") == "function_call"
        if is_call != (kind == "arguments_delta") and delta:
            self.misread.append(f"a piece of type `{kind}` came in a step of another")
        elif kind == "arguments_delta":
            self._add_arguments(step, delta)
        elif kind == "text":
            _add_text(step, "content", delta)
        elif kind == "thought_summary":
            _add_text(step, "summary", object_at(delta, "content", self.misread))
        elif kind == "text_annotation_delta":
            parts = [dict(part) for part in objects_in(step.get("content"))] or [{"type": "text", "text": ""}]
            notes = objects_at(delta, "annotations", self.misread)
            parts[-1]["annotations"] = [*objects_in(parts[-1].get("annotations")), *notes]
            step["content"] = parts
        elif kind in _MEDIA:
            step["content"] = [*objects_in(step.get("content")), dict(delta)]
        else:
            _merge(step, delta)

    def _add_arguments(self, step: Item, delta: Mapping[str, Any]) -> None:
        """Add a piece of a call's arguments; a call begins with none of them, or with an empty object."""
        piece, before = delta.get("arguments"), step.get("arguments")
        if piece is None or piece == before:
            return
        if is_object(piece) and not before:
            step["arguments"] = piece
        elif not isinstance(piece, str) or (is_object(before) and before):
            self.misread.append("a piece of a call's arguments is not text, or came after all of them")
        else:
            step["arguments"] = text_or_empty(before) + piece


def _add_text(step: Item, key: str, piece: Mapping[str, Any]) -> None:
    """Append a text to the last one of a step's parts; any other part is one more."""
    parts = [dict(part) for part in objects_in(step.get(key))]
    if parts and piece.get("type") == parts[-1].get("type") == "text":
        parts[-1]["text"] = text_or_empty(parts[-1].get("text")) + text_or_empty(piece.get("text"))
    elif piece:
        parts.append(dict(piece))
    step[key] = parts


def _merge(step: Item, delta: Mapping[str, Any]) -> None:
    """Add the fields of a piece of a thought, or of a step of a provider's own tool."""
    for key, value in delta.items():
        before: Any = step.get(key)
        if key == "type" or value is None:
            continue
        if is_object(before) and is_object(value):
            step[key] = {**before, **value}
        elif isinstance(before, str) and isinstance(value, str):
            step[key] = before + value
        elif isinstance(before, list) and isinstance(value, list):
            step[key] = [*cast("list[Any]", before), *cast("list[Any]", value)]
        else:
            step[key] = value


INTERACTIONS = _Interactions()
