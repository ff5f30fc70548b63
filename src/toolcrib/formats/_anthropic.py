"""Anthropic, Messages: a client tool, content blocks, and the results as the first blocks of the next user message.

Every `tool_use` of an assistant message is answered in the message right after it, by one `tool_result` each, before
any other block; ids are never used twice.
Source: https://docs.anthropic.com/en/api/messages, and the guides to tool use.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from toolcrib.calls import Media, carried
from toolcrib.errors import FormatError
from toolcrib.formats._anthropic_stream import KEYS, UNTYPED, container_of, gathered_message
from toolcrib.formats._canonical_json import arguments_object, raw_arguments, typed
from toolcrib.formats._format import Declaration, ProviderFormat
from toolcrib.formats._json_reading import (
    fields_of,
    json_shape,
    object_at,
    object_or_empty,
    objects_at,
    objects_in,
    text_or_empty,
)
from toolcrib.formats._message_blocks import OTHER, Block, MessageBlocks, is_blank
from toolcrib.formats._provider_client import ProviderClient
from toolcrib.formats._reply_types import MessagesReply
from toolcrib.formats._result_pairing import Layout
from toolcrib.formats._stop_kinds import StopKind, error_in
from toolcrib.formats._strict_schema import STRUCTURE, TEXT_FORMATS, StrictRules, check_root, strict_schema
from toolcrib.formats._transcript_rules import CallKey, RefusedPart
from toolcrib.formats._usage import UsageKeys
from toolcrib.formats._wire import CallPiece, Choice, Item, Turn, WireCall, WireReply, WireResult
from toolcrib.jsonschema import subschemas

# Source: https://docs.anthropic.com/en/docs/build-with-claude/structured-outputs, JSON schema limitations, and the
# limits of complexity for the strict tools of one request.
ANTHROPIC_STRICT = StrictRules(
    STRUCTURE | {"default", "pattern", "format", "minItems"},
    formats=TEXT_FORMATS | {"uri"},
    recursive=False,
    small_arrays=True,
    plain_patterns=True,
)
ANTHROPIC_NAMES = r"[a-zA-Z0-9_.-]{1,64}"
_CACHE_MARK = {"cache_control": {"type": "ephemeral"}}
_TOOLS, _OPTIONAL, _UNIONS = 20, 24, 16
_KINDS = {"text": str, "thinking": str, "signature": str, "data": str, "citations": list, "caller": Mapping}
_THOUGHTS = frozenset({"thinking", "redacted_thinking"})
_OWN_CALLS = frozenset({"server_tool_use", "mcp_tool_use"})
_TAKEN = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp", "application/pdf"})
_CARRIED = (  # types of items that are sent back unchanged, and wait for no answer of the client's
    "text", "thinking", "redacted_thinking", "server_tool_use", "mcp_tool_use", "mcp_tool_result",
    "web_search_tool_result", "web_fetch_tool_result", "code_execution_tool_result",
    "bash_code_execution_tool_result", "text_editor_code_execution_tool_result", "tool_search_tool_result",
    "advisor_tool_result", "container_upload", "compaction", "fallback", "mcp_tool_listing",
)  # fmt: skip


class _Anthropic(MessageBlocks, ProviderFormat):
    title = "anthropic"
    reply_type = MessagesReply
    sdk = "anthropic"
    names = r"[a-zA-Z0-9_-]{1,128}"
    names_rule = "up to 128 letters, digits, `_` and `-`"
    parameter_names = ANTHROPIC_NAMES
    callers = frozenset({"direct", "code_execution_20250825", "code_execution_20260120", "code_execution_20260521"})
    # Refused: "`tool_use` ids were found without `tool_result` blocks immediately after", and an id twice in one turn:
    # "`tool_use` ids must be unique". Claude Sonnet 4.5 was recorded to take the id of an earlier turn again, and a
    # first turn of the assistant's. "Consecutive turns are combined", says the API reference.
    layout = Layout("next", joins=True)
    stops = MappingProxyType[str, StopKind](
        {
            "end_turn": "finished",
            "stop_sequence": "finished",
            "tool_use": "tool_calls",
            "max_tokens": "length",
            "model_context_window_exceeded": "length",
            "pause_turn": "paused",
            "compaction": "paused",
            "refusal": "refusal",
        }
    )

    text_stops = frozenset({"stop_sequence"})
    asks = frozenset({"tool_use"})
    carried = frozenset(_CARRIED)
    client = ProviderClient(  # its API wants to know how long an answer may be
        "anthropic",
        "AsyncAnthropic",
        ("messages", "create"),
        settings={"max_tokens": 8192},
        options={
            "messages": "transcript=",
            "system": "system=",
            "tools": "provider_tools=",
            "tool_choice": "require=",
            "output_config": "output=",
        },
    )
    provider = "anthropic"
    prices = "anthropic"
    usage = UsageKeys(
        places=(("usage",), ("message", "usage")),
        input=(("input_tokens",), ("cache_read_input_tokens",), ("cache_creation_input_tokens",)),
        output=(("output_tokens",),),
        cached=(("cache_read_input_tokens",),),
        cache_written=(("cache_creation_input_tokens",),),
        reasoning=(("output_tokens_details", "thinking_tokens"),),
    )

    def define(self, tool: Declaration) -> Item:
        definition: Item = {"name": tool.name}
        if tool.description:
            definition["description"] = tool.description
        check_root(tool.name, self.title, tool.parameters)
        definition["input_schema"] = {"type": "object", **tool.parameters}
        if tool.strict:
            definition["input_schema"] = strict_schema(tool.name, self.title, tool.parameters, ANTHROPIC_STRICT)
            definition["strict"] = True
        options = tool.options
        sent = {
            "defer_loading": options.defer_loading,
            "allowed_callers": self.callers_of(tool),
            "input_examples": None if options.input_examples is None else [*options.input_examples],
            "cache_control": options.cache_control and {"type": "ephemeral", "ttl": options.cache_control},
            "eager_input_streaming": options.eager_input_streaming,
        }
        return {**definition, **{key: value for key, value in sent.items() if value is not None}}

    def check_strict(self, before: list[Item], definition: Item) -> None:
        # the tool with which strict definitions become too many
        optional = unions = 0
        for number, tool in enumerate([*before, definition], 1):
            objects = list(subschemas(tool["input_schema"]))
            optional += sum(len(part.get("properties", ())) - len(part.get("required", ())) for part in objects)
            unions += sum("anyOf" in part or isinstance(part.get("type"), list) for part in objects)
            counted: tuple[tuple[int, int, str], ...] = (
                (number, _TOOLS, "strict tools"),
                (optional, _OPTIONAL, "optional parameters"),
                (unions, _UNIONS, "parameters of several types"),
            )
            for count, most, noun in counted:
                if count > most:
                    problem = f"a request takes {most} {noun} in strict mode, and with this tool there are {count}"
                    raise FormatError(tool["name"], "anthropic", f"{problem}; offer fewer tools, or leave `strict` out")

    # --- replies

    def read_turn(self, reply: MessagesReply) -> Turn | None:
        blocks: list[Any] = reply["content"]
        uses = [block for block in blocks if block["type"] == "tool_use"]
        calls = [WireCall(block["id"], block["name"], block["input"]) for block in uses]
        texts = [] if len(uses) == len(blocks) else [block["text"] for block in blocks if block["type"] == "text"]
        if blocks[-1]["type"] in _THOUGHTS or any(map(is_blank, texts)):
            return None
        item: Item = {"role": "assistant", "content": blocks}
        return Turn([item], "".join(texts), calls, reply["stop_reason"], [block["input"] for block in uses])

    def read_fields(self, reply: Mapping[str, Any], taken: Collection[str] = ()) -> WireReply:
        errors = filter(None, [error_in(reply)])
        draft = self.ended([reply.get("stop_reason")], errors, streamed=False)
        misread = list[str]()
        sent = objects_at(reply, "content", misread)
        blocks = typed(sent, KEYS)
        misread += [UNTYPED] if len(blocks) < len(sent) else []
        draft = replace(draft.with_misread(misread), container=container_of(reply))
        return self._read(blocks, (), draft, taken)

    def gather(self, chunks: Iterable[object], taken: Collection[str] = ()) -> WireReply:
        stream = gathered_message(json_shape(chunk) for chunk in chunks)
        return self._read(
            stream.content, stream.cut, replace(self.ended_stream(stream), container=stream.container), taken
        )

    def recognises(self, shape: Mapping[str, Any]) -> bool:
        kind = str(shape.get("type", ""))
        if kind == "message":
            return shape.get("role") == "assistant" and "output" not in shape
        return kind.startswith(("message_", "content_block_")) or kind == "ping"

    def text_delta(self, chunk: Mapping[str, Any]) -> str:
        delta = object_or_empty(chunk.get("delta"))
        return text_or_empty(delta.get("text")) if delta.get("type") == "text_delta" else ""

    def call_pieces(self, chunk: Mapping[str, Any]) -> Iterable[CallPiece]:
        index, kind = chunk.get("index", 0), chunk.get("type")
        place = index if isinstance(index, int) else 0
        if kind == "content_block_start":
            block = object_or_empty(chunk.get("content_block"))
            call = _read_call(block if block.get("type") == "tool_use" else {})
            values = object_or_empty(call.arguments)
            return (CallPiece(call.id, call.name, call.kind, place, values=values, begins=True),)
        if kind == "content_block_delta":
            text = text_or_empty(object_or_empty(chunk.get("delta")).get("partial_json"))
            return (CallPiece(place=place, text=text),)
        return (CallPiece(place=place, ends=True),) if kind == "content_block_stop" else ()

    def _read(
        self, content: Iterable[Mapping[str, Any]], cut: Collection[int], draft: WireReply, taken: Collection[str]
    ) -> WireReply:
        """Return the reply; `cut` has the places of blocks whose input never came to its end."""
        problems, misread = list(draft.problems), list[str]()
        blocks: list[Item] = []
        broken: dict[int, str] = {}
        calls = 0
        for place, block in enumerate(content):
            fields = fields_of(block, _KINDS, misread)
            fields.pop("parsed_output", None)  # which is only put out
            kind = fields.get("type")
            if kind == "tool_use" and not text_or_empty(fields.get("name")):
                misread.append("one of its calls named no tool and was left out")
            elif kind in _OWN_CALLS and not text_or_empty(fields.get("id")):
                misread.append("a call of the provider's own came without an id and was left out")
            elif kind == "thinking" and not (fields.get("signature") and "thinking" in fields):
                problems.append("a thought without its signature was left out")
            else:
                if kind in _OWN_CALLS:
                    fields["input"] = object_at(fields, "input", misread)
                if kind == "tool_use":
                    fields["name"] = self.called(fields["name"], problems)
                    broken |= {calls: "its arguments were cut"} if place in cut else {}
                    calls += 1
                blocks.append(fields)
        text, waits = _text_of(blocks), bool(calls) or draft.stop_kind == "paused"
        blocks = self.taken_back(blocks, waits, problems)
        items = ({"role": "assistant", "content": blocks},) if blocks else ()
        reply = replace(draft, items=items, text=text, problems=tuple(problems))
        return self.with_calls(reply.with_misread(misread), taken, broken)

    def parts_of(self, item: Mapping[str, Any]) -> Iterable[tuple[object, Mapping[str, Any]]]:
        return ((block.get("type"), block) for block in objects_in(item.get("content")))

    # --- transcripts

    def call_in(self, part: Mapping[str, Any]) -> Mapping[str, Any] | None:
        return part if part.get("type") == "tool_use" else None

    def with_call(self, part: Mapping[str, Any], call: Item) -> Item:
        return call

    def is_result(self, part: Mapping[str, Any]) -> bool:
        return part.get("type") == "tool_result"

    def result_key(self, part: Mapping[str, Any]) -> CallKey:
        return text_or_empty(part.get("tool_use_id"))

    def calls_of(self, item: Mapping[str, Any]) -> tuple[WireCall, ...]:
        return tuple(map(_read_call, self.calls_in(item)))

    def results_of(self, item: Mapping[str, Any]) -> tuple[WireResult, ...]:
        return tuple(
            WireResult(
                WireCall(text_or_empty(block.get("tool_use_id")), "", ""),
                _text_of(block.get("content")),
                bool(block.get("is_error")),
            )
            for block in self.results_in(item)
        )

    def call_keys(self, item: Mapping[str, Any]) -> list[CallKey]:
        return [text_or_empty(call.get("id")) for call in self.calls_in(item)]

    def answer(self, results: Sequence[WireResult]) -> list[Item]:
        return self.pack([_tool_result(result) for result in results])

    def with_result_id(self, raw: Item, id: str) -> Item:
        return {**raw, "tool_use_id": id}

    def block_of(self, block: Mapping[str, Any], role: str) -> Block:
        kind, is_models = text_or_empty(block.get("type")), role == "assistant"
        if kind == "text":
            return Block("blank") if is_blank(block.get("text")) else OTHER
        if kind == "tool_result":
            return Block("result", inner=block.get("content"))
        if is_models and kind == "tool_use":
            return Block("other", caller=text_or_empty(object_or_empty(block.get("caller")).get("tool_id")))
        if is_models and kind in _OWN_CALLS:
            return Block("asks", text_or_empty(block.get("id")), text_or_empty(block.get("name")))
        if is_models and kind.endswith("_tool_result"):
            return Block("answers", text_or_empty(block.get("tool_use_id")))
        return Block("thought") if is_models and kind in _THOUGHTS else OTHER

    def refused_parts(self, items: Sequence[Mapping[str, Any]], goes_on: bool = False) -> list[RefusedPart]:
        found = super().refused_parts(items, goes_on)
        return [part for part in found if not _is_beside_words(part, items[part.index])]

    def without_inner(self, block: Mapping[str, Any], places: Collection[int]) -> Item:
        return {**block, "content": [part for at, part in enumerate(block["content"]) if at not in places]}

    def make_id(self, seed: str) -> str:
        return super().make_id(seed).replace("call_", "toolu_")

    # --- requests

    def cached_system(self, text: str) -> Any:
        return [{"type": "text", "text": text, **_CACHE_MARK}] if text else text

    def cached_tools(self, tools: tuple[Item, ...]) -> tuple[Item, ...]:
        if any("cache_control" in tool for tool in tools):
            return tools
        cached = [*tools]
        for at in range(len(cached) - 1, -1, -1):
            if not cached[at].get("defer_loading"):  # what is not in the prompt takes no mark
                cached[at] = {**cached[at], **_CACHE_MARK}
                break
        return tuple(cached)

    def cached_item(self, item: Item) -> Item:
        content: object = item.get("content")
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else [*objects_in(content)]
        if not blocks or is_blank(blocks[-1].get("text", "-")):
            return item
        return {**item, "content": [*blocks[:-1], {**_CACHE_MARK, **blocks[-1]}]}

    def request(self, messages: Sequence[Item], system: Any, output: Mapping[str, Any] | None) -> Item:
        body: Item = {"messages": [*messages], **({"system": system} if system else {})}
        if output is None:
            return body
        schema = strict_schema("answer", self.title, output, ANTHROPIC_STRICT)
        return {**body, "output_config": {"format": {"type": "json_schema", "schema": schema}}}

    def tool_choice(self, kind: Choice, name: str | None = None, among: Sequence[str] = ()) -> Any:
        self.refuse_among(among)
        if kind == "specific":
            return {"type": "tool", "name": name}
        return {"type": {"at_least_one": "any", "none": "none"}.get(kind, "auto")}

    def one_call(self, choice: Any) -> Item:
        return {"tool_choice": {**choice, "disable_parallel_tool_use": True}}

    def takes_media(self, media: Media) -> bool:
        return media.mime_type in _TAKEN and media.is_sendable

    def user_message(self, parts: Sequence[str | Media]) -> list[Item]:
        return [{"role": "user", "content": list(map(_file, parts))}]

    def asking(self, text: str, calls: Sequence[WireCall]) -> list[Item]:
        blocks = [{"type": "text", "text": text}] if text else list[Item]()
        named = [(call.id, call.name, arguments_object(call.arguments)) for call in calls]
        blocks += [{"type": "tool_use", "id": id, "name": name, "input": sent} for id, name, sent in named]
        return [{"role": "assistant", "content": blocks}]


def _text_of(content: object) -> str:
    if isinstance(content, str):
        return content
    return "".join(text_or_empty(block.get("text")) for block in objects_in(content) if block.get("type") == "text")


def _read_call(block: Mapping[str, Any]) -> WireCall:
    id, name, sent = text_or_empty(block.get("id")), text_or_empty(block.get("name")), raw_arguments(block.get("input"))
    if block.get("toolset_name"):  # a tool of a toolset of the provider's, that the client plays
        return WireCall(id, name, sent, "tool_use", sent=block)
    caller = text_or_empty(object_or_empty(block.get("caller")).get("type")) or "direct"
    return WireCall(id, name, sent, caller=caller)


def _tool_result(result: WireResult) -> Item:
    block: Item = {"type": "tool_result", "tool_use_id": result.call.id}
    if result.call.sent:
        block["toolset_name"] = result.call.sent.get("toolset_name")
    if result.fields:
        return {**block, **result.fields}
    parts = list[str | Media]()
    if result.parts:
        parts = carried(result.parts, ANTHROPIC.takes_media)
        parts = [part for part in parts if isinstance(part, Media) or not is_blank(part)]
    if any(isinstance(part, Media) for part in parts):
        block["content"] = list(map(_file, parts))
    elif not is_blank(result.content):
        block["content"] = result.content
    if result.is_error:
        block["is_error"] = True
    return block


def _file(media: str | Media) -> Item:
    if isinstance(media, str):
        return {"type": "text", "text": media}
    source: Item = {"type": "url", "url": media.url}
    if media.data is not None:
        source = {"type": "base64", "media_type": media.mime_type, "data": media.base64}
    return {"type": "image" if media.is_image else "document", "source": source}


# --- schemas


def _is_beside_words(part: RefusedPart, message: Mapping[str, Any]) -> bool:
    """Return whether a part is white space in a message with words, which Claude Haiku 4.5 was recorded to take."""
    if part.kind != "blank" or len(part.place) != 1:
        return False
    content = message["content"]
    texts = [] if isinstance(content, str) else [text_or_empty(object_or_empty(item).get("text")) for item in content]
    return not all(map(is_blank, texts)) and texts[part.place[0]] != ""


ANTHROPIC = _Anthropic()
