"""Amazon Bedrock, Converse: a tool specification, content blocks of one key each, and results in the next message.

Messages of the user and the assistant take turns, beginning with the user's. Every `toolUse` of an assistant message is
answered in the message right after it, by one `toolResult` each. Images and files are bytes, as boto3 takes them.
Source: https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html, and the model of botocore.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from toolcrib.calls import Media, carried
from toolcrib.formats._anthropic import ANTHROPIC_NAMES, ANTHROPIC_STRICT
from toolcrib.formats._canonical_json import arguments_object, raw_arguments
from toolcrib.formats._format import Declaration, ProviderFormat
from toolcrib.formats._json_reading import (
    fields_of,
    json_shape,
    number_at,
    object_at,
    object_in,
    object_or_empty,
    objects_at,
    objects_in,
    text_or_empty,
)
from toolcrib.formats._message_blocks import OTHER, Block, MessageBlocks, is_blank
from toolcrib.formats._reply_types import ConverseReply
from toolcrib.formats._result_pairing import Layout
from toolcrib.formats._stop_kinds import StopKind, StreamEnd, error_in
from toolcrib.formats._strict_schema import check_root, strict_schema
from toolcrib.formats._transcript_rules import CallKey, Speaker
from toolcrib.formats._usage import UsageKeys
from toolcrib.formats._wire import CallPiece, Choice, Item, Turn, WireCall, WireReply, WireResult

_IMAGES = {"image/png": "png", "image/jpeg": "jpeg", "image/gif": "gif", "image/webp": "webp"}
_FILES = {
    "application/pdf": "pdf", "text/csv": "csv", "text/html": "html", "text/plain": "txt", "text/markdown": "md",
    "application/msword": "doc", "application/vnd.ms-excel": "xls",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx",
}  # fmt: skip
_CACHE_POINT = {"cachePoint": {"type": "default"}}
_CARRIED = (  # types of items that are sent back unchanged, and wait for no answer of the client's
    "text", "image", "document", "video", "audio", "toolResult", "guardContent", "cachePoint", "reasoningContent",
    "citationsContent", "searchResult", "toolAddition", "toolRemoval",
)  # fmt: skip
_EVENTS = frozenset({"messageStart", "contentBlockStart", "contentBlockDelta", "contentBlockStop", "messageStop"})
_KINDS = {**dict.fromkeys(_CARRIED, Mapping), "text": str}
_PIECES = frozenset({"text", "toolUse", "toolResult", "reasoningContent", "citation", "image"})  # of a stream
_SAID = frozenset({"text", "citationsContent"})  # which one block may have
_GROWN = {"toolUse": "input", "toolResult": "content", "reasoningContent": "", "citationsContent": ""}  # piece by piece


class _Bedrock(MessageBlocks, ProviderFormat):
    title = "bedrock"
    reply_type = ConverseReply
    provider = "aws.bedrock"
    prices = "aws"
    parameter_names = ANTHROPIC_NAMES  # of whose models it is the way
    id_key = "toolUseId"
    takes_one_call = False
    layout = Layout("next")  # refused in one message: "The toolUse blocks at messages.2.content contain duplicate Ids"
    stops = MappingProxyType[str, StopKind](
        {
            "end_turn": "finished",
            "stop_sequence": "finished",
            "tool_use": "tool_calls",
            "max_tokens": "length",
            "model_context_window_exceeded": "length",
            "guardrail_intervened": "content_filter",
            "content_filtered": "content_filter",
            "malformed_model_output": "malformed",
            "malformed_tool_use": "malformed",
        }
    )
    text_stops = frozenset({"stop_sequence"})
    asks = frozenset({"toolUse"})
    carried = frozenset(_CARRIED)
    usage = UsageKeys(
        places=(("usage",), ("metadata", "usage")),
        input=(("inputTokens",), ("cacheReadInputTokens",), ("cacheWriteInputTokens",)),
        output=(("outputTokens",),),
        cached=(("cacheReadInputTokens",),),
        cache_written=(("cacheWriteInputTokens",),),
    )

    def define(self, tool: Declaration) -> Item:
        self.callers_of(tool)
        check_root(tool.name, self.title, tool.parameters)
        definition: Item = {"name": tool.name, "inputSchema": {"json": {"type": "object", **tool.parameters}}}
        if tool.description:
            definition["description"] = tool.description
        if tool.strict:
            schema = strict_schema(tool.name, self.title, tool.parameters, ANTHROPIC_STRICT)
            definition |= {"inputSchema": {"json": schema}, "strict": True}
        return {"toolSpec": definition}

    # --- replies

    def read_turn(self, reply: ConverseReply) -> Turn | None:
        blocks: list[Any] = reply["output"]["message"]["content"]
        uses = [block["toolUse"] for block in blocks if "toolUse" in block]
        calls = [WireCall(use["toolUseId"], use["name"], use["input"]) for use in uses]
        texts = [block["text"] for block in blocks if "text" in block]
        if any(len(block) != 1 for block in blocks) or any(map(is_blank, texts)):
            return None
        item: Item = {"role": "assistant", "content": blocks}
        return Turn([item], "".join(texts), calls, reply["stopReason"], [use["input"] for use in uses])

    def errors_in(self, reply: Mapping[str, Any]) -> list[str]:
        return _errors_in(reply)

    def read_fields(self, reply: Mapping[str, Any], taken: Collection[str] = ()) -> WireReply:
        misread = list[str]()
        message = object_at(object_at(reply, "output", misread), "message", misread)
        draft = self.ended([reply.get("stopReason")], self.errors_in(reply), streamed=False)
        return self._read(objects_at(message, "content", misread), (), draft.with_misread(misread), taken)

    def gather(self, chunks: Iterable[object], taken: Collection[str] = ()) -> WireReply:
        stream = _Stream()
        for chunk in chunks:
            stream.add(json_shape(chunk))
        cut = stream.close()
        return self._read(stream.blocks, cut, self.ended_stream(stream), taken)

    def recognises(self, shape: Mapping[str, Any]) -> bool:
        return ("stopReason" in shape and "output" in shape) or not _EVENTS.isdisjoint(shape)

    def text_delta(self, chunk: Mapping[str, Any]) -> str:
        return text_or_empty(object_or_empty(_inner(chunk, "contentBlockDelta").get("delta")).get("text"))

    def call_pieces(self, chunk: Mapping[str, Any]) -> Iterable[CallPiece]:
        for key, event in ((key, object_or_empty(value)) for key, value in chunk.items()):
            place = number_at(event, "contentBlockIndex", [])
            if key == "contentBlockStart":
                use = self.call_in(_inner(event, "start")) or {}
                yield CallPiece(_id(use), text_or_empty(use.get("name")), place=place, begins=True)
            elif key == "contentBlockDelta":
                text = text_or_empty(_inner(_inner(event, "delta"), "toolUse").get("input"))
                yield CallPiece(place=place, text=text)
            elif key == "contentBlockStop":
                yield CallPiece(place=place, ends=True)

    def _read(
        self, sent: Iterable[Mapping[str, Any]], cut: Collection[int], draft: WireReply, taken: Collection[str]
    ) -> WireReply:
        """Return the reply; `cut` has the places of blocks whose input never came to its end."""
        problems, misread, blocks, broken = list(draft.problems), list[str](), list[Item](), dict[int, str]()
        calls = 0
        for place, block in enumerate(sent):
            fields = _cited(fields_of(block, _KINDS, misread))
            use = self.call_in(fields)
            if use is not None and not text_or_empty(use.get("name")):
                misread.append("one of its calls named no tool and was left out")
                continue
            if use is not None:
                fields = {"toolUse": {**use, "name": self.called(str(use["name"]), problems)}}
                broken |= {calls: "its arguments were cut"} if place in cut else {}
                calls += 1
            if fields:
                blocks.append(fields)
        text = "".join(
            text_or_empty(part.get("text"))
            for block in blocks
            for part in (block, *objects_in(_inner(block, "citationsContent").get("content")))
        )
        blocks = self.taken_back(blocks, bool(calls) or draft.stop_kind == "paused", problems)
        items = ({"role": "assistant", "content": blocks},) if blocks else ()
        read = replace(draft, items=items, text=text, problems=tuple(problems))
        return self.with_calls(read.with_misread(misread), taken, broken)

    def parts_of(self, item: Mapping[str, Any]) -> Iterable[tuple[object, Mapping[str, Any]]]:
        return ((key, block) for block in objects_in(item.get("content")) for key in block)

    # --- transcripts

    def call_in(self, part: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Return the call in a block; a call of a tool of the provider's own waits for no client."""
        use = _inner(part, "toolUse")
        return use if "toolUse" in part and use.get("type") != "server_tool_use" else None

    def with_call(self, part: Mapping[str, Any], call: Item) -> Item:
        return {"toolUse": call}

    def is_result(self, part: Mapping[str, Any]) -> bool:
        return "toolResult" in part

    def results_in(self, item: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        """Return the blocks that are results of the client's; those in an assistant's message are the provider's."""
        return super().results_in(item) if item.get("role") == "user" else []

    def result_key(self, part: Mapping[str, Any]) -> CallKey:
        return _id(_inner(part, "toolResult"))

    def calls_of(self, item: Mapping[str, Any]) -> tuple[WireCall, ...]:
        return tuple(
            WireCall(_id(use), text_or_empty(use.get("name")), raw_arguments(use.get("input")))
            for use in self.calls_in(item)
        )

    def results_of(self, item: Mapping[str, Any]) -> tuple[WireResult, ...]:
        results = [block["toolResult"] for block in self.results_in(item)]
        return tuple(
            WireResult(WireCall(_id(result), "", ""), _shown(result.get("content")), result.get("status") == "error")
            for result in map(object_or_empty, results)
        )

    def call_keys(self, item: Mapping[str, Any]) -> list[CallKey]:
        return [_id(use) for use in self.calls_in(item)]

    def answer(self, results: Sequence[WireResult]) -> list[Item]:
        return self.pack([{"toolResult": _tool_result(result)} for result in results])

    def with_result_id(self, raw: Item, id: str) -> Item:
        return {"toolResult": {**object_or_empty(raw["toolResult"]), "toolUseId": id}}

    def block_of(self, block: Mapping[str, Any], role: str) -> Block:
        is_models, use, result = role == "assistant", _inner(block, "toolUse"), _inner(block, "toolResult")
        if "text" in block:
            return Block("blank") if is_blank(block["text"]) else OTHER
        if "toolResult" in block:
            return Block("answers", _id(result)) if is_models else Block("result", inner=result.get("content"))
        if is_models and use.get("type") == "server_tool_use":
            return Block("asks", _id(use), text_or_empty(use.get("name")))
        return Block("thought") if is_models and "reasoningContent" in block else OTHER

    def without_inner(self, block: Mapping[str, Any], places: Collection[int]) -> Item:
        result = block["toolResult"]
        return {
            "toolResult": {**result, "content": [part for at, part in enumerate(result["content"]) if at not in places]}
        }

    def missing_turns(self, before: Mapping[str, Any] | None, item: Mapping[str, Any]) -> Sequence[Speaker]:
        # Refused: "A conversation must start with a user message", "A conversation must alternate between user and
        # assistant roles". Some models were recorded to take both: Claude Sonnet 4.5 the one, Titan the other.
        role, last = item.get("role"), "assistant" if before is None else before.get("role")
        if role != last or role not in ("user", "assistant"):
            return ()
        return ("assistant",) if role == "user" else ("user",)

    def joined(self, before: Mapping[str, Any], item: Mapping[str, Any]) -> Item | None:
        if before.get("role") != "user" or item.get("role") != "user":
            return None
        return {**before, "content": [*objects_in(before.get("content")), *objects_in(item.get("content"))]}

    def make_id(self, seed: str) -> str:
        return super().make_id(seed).replace("call_", "tooluse_")

    # --- requests

    def tool_choice(self, kind: Choice, name: str | None = None, among: Sequence[str] = ()) -> Any:
        self.refuse_among(among)
        if kind == "none":
            raise ValueError(f"{self.title} has no choice of no tool; say in words that none is to be called")
        if kind == "specific":
            return {"tool": {"name": name}}
        return {"any": {}} if kind == "at_least_one" else {"auto": {}}

    def choice_parameters(self, choice: Any) -> Item:
        return {"toolChoice": choice}

    def cached_system(self, text: str) -> Any:
        return [{"text": text}, _CACHE_POINT] if text else []

    def cached_tools(self, tools: tuple[Item, ...]) -> tuple[Item, ...]:
        return (*tools, _CACHE_POINT) if tools and _CACHE_POINT not in tools else tools

    def cached_item(self, item: Item) -> Item:
        blocks = [*objects_in(item.get("content"))]
        return {**item, "content": [*blocks, _CACHE_POINT]} if blocks and "cachePoint" not in blocks[-1] else item

    def user(self, text: str) -> list[Item]:
        return [{"role": "user", "content": [{"text": text}]}]

    def takes_media(self, media: Media) -> bool:
        return media.data is not None and media.mime_type in {*_IMAGES, *_FILES}

    def user_message(self, parts: Sequence[str | Media]) -> list[Item]:
        return [{"role": "user", "content": [_file(part, at) for at, part in enumerate(parts)]}]

    def assistant(self, text: str) -> list[Item]:
        return [{"role": "assistant", "content": [{"text": text}]}]

    def asking(self, text: str, calls: Sequence[WireCall]) -> list[Item]:
        uses = [(call.id, call.name, arguments_object(call.arguments)) for call in calls]
        blocks: list[Item] = [{"toolUse": {"toolUseId": id, "name": name, "input": sent}} for id, name, sent in uses]
        return [{"role": "assistant", "content": [*([{"text": text}] if text else ()), *blocks]}]


def _errors_in(event: Mapping[str, Any]) -> list[str]:
    """Return the errors in an event of a stream, or in a reply: the provider's name for each and its words."""
    failed = {key: object_or_empty(event[key]) for key in event if key.endswith("Exception")}
    named = [error_in({"error": {"type": key, **error}}) for key, error in failed.items()]
    return [*named, *filter(None, [error_in(event)])]


def _inner(event: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    return object_or_empty(event.get(key))


def _cited(block: Item) -> Item:
    """Return a block of a stream with its text in the place that text with citations has."""
    if "citationsContent" not in block or "text" not in block:
        return block
    return {"citationsContent": {"content": [{"text": block["text"]}], **block["citationsContent"]}}


def _id(use: Mapping[str, Any]) -> str:
    return text_or_empty(use.get("toolUseId"))


def _shown(content: object) -> str:
    parts = [part.get("text", part.get("json")) for part in objects_in(content)]
    texts = (part if isinstance(part, str) else json.dumps(part, default=str) for part in parts if part is not None)
    return "".join(texts)


def _tool_result(result: WireResult) -> Item:
    parts = carried(result.parts, BEDROCK.takes_media)
    parts = [part for part in parts if isinstance(part, Media) or not is_blank(part)]
    content: list[Item] = [] if is_blank(result.content) else [{"text": result.content}]
    if any(isinstance(part, Media) for part in parts):
        content = [_file(part, at) for at, part in enumerate(parts)]
    shape: Item = {"toolUseId": result.call.id, "content": content}
    return {**shape, "status": "error"} if result.is_error else shape


def _file(media: str | Media, place: int) -> Item:
    if isinstance(media, str):
        return {"text": media}
    source = {"bytes": media.data}
    if media.mime_type in _IMAGES:
        return {"image": {"format": _IMAGES[media.mime_type], "source": source}}
    name = " ".join(re.sub(r"[^A-Za-z0-9\s()\[\]-]", "-", media.name or "").split())[:190]
    return {"document": {"format": _FILES[media.mime_type], "name": name or f"file {place}", "source": source}}


# --- streams


class _Stream(StreamEnd):
    """A reply as its events come.

    Attributes:
        blocks: The blocks that came so far; the input of a call is a list of its pieces until `close`.
    """

    def __init__(self) -> None:
        super().__init__()
        self.blocks: list[Item] = []
        self._open: dict[int, Item] = {}
        self._ended: set[int] = set()
        self._broken: set[int] = set()  # blocks of which a piece of the input was not a text

    def add(self, event: Mapping[str, Any]) -> None:
        """Add the next event."""
        self.errors += _errors_in(event)
        for key in _EVENTS & event.keys():  # the others are the usage, and errors
            fields = object_at(event, key, self.misread)
            place = number_at(fields, "contentBlockIndex", self.misread)
            match key:
                case "contentBlockStart":
                    self._begin(place, object_at(fields, "start", self.misread))
                case "contentBlockDelta":
                    self._grow(place, object_at(fields, "delta", self.misread))
                case "contentBlockStop":
                    self._ended.add(id(self._open.pop(place, None)))
                case "messageStop":
                    self.words.append(fields.get("stopReason"))
                case _:  # who speaks
                    pass

    def close(self) -> set[int]:
        """Write out the inputs of calls, and return the places of those that never came to their end."""
        cut, blocks = set[int](), list[Item]()
        for block in self.blocks:
            kind = next(iter(block), "")
            is_open = id(block) not in self._ended or id(block) in self._broken
            if kind == "toolUse":
                use = block["toolUse"]
                sent = "".join(use["input"])
                read = object_in(sent)
                waits = use.get("type") != "server_tool_use"
                block = {"toolUse": {**use, "input": read if read is not None else sent if waits else {}}}
                if is_open:
                    cut.add(len(blocks))
                    self.problems.append(f"the input of a call of `{text_or_empty(use.get('name'))}` was cut")
            elif is_open and kind not in ("text", ""):
                self.problems.append(f"a block of type `{kind}` was cut and left out")
                continue
            blocks.append(block)
        self.blocks = blocks
        return cut

    def _begin(self, place: int, start: Mapping[str, Any]) -> Item:
        block: Item = {kind: dict(object_at(start, kind, self.misread)) for kind in start}
        for kind, grown in _GROWN.items():
            if kind in block:
                block[kind] = {**block[kind], grown: list[Any]()} if grown else Item()
        self._open[place] = block
        self.blocks.append(block)
        return block

    def _grow(self, place: int, delta: Mapping[str, Any]) -> None:
        for kind, piece in delta.items():
            if piece is None:
                continue
            block = self._open.get(place, {})
            if ("toolUse" in block) is not (kind == "toolUse"):
                fault = "a piece of a call came where no call is open"
                self.misread.append(fault if kind == "toolUse" else f"a piece of a call has the type `{kind}`")
                continue
            if not block and kind not in _PIECES:
                self.misread.append(f"a piece of the type `{kind}` came where no block is open")
                continue
            key = "citationsContent" if kind == "citation" else kind
            if block and key not in block and not _SAID.issuperset({key, *block}):
                self.problems.append(f"a piece of type `{kind}` came in a block of another and was left out")
                continue
            block = self._open[place] if place in self._open else self._begin(place, {})
            if kind == "text":
                block["text"] = text_or_empty(block.get("text")) + text_or_empty(piece)
            elif kind == "toolUse":
                text = object_or_empty(piece).get("input")
                if not isinstance(text, str):
                    self._broken.add(id(block))
                block["toolUse"]["input"].append(text_or_empty(text))
            elif kind == "citation":
                block.setdefault(key, Item()).setdefault("citations", []).append(dict(object_or_empty(piece)))
            elif kind == "toolResult":
                block.setdefault(kind, Item()).setdefault("content", []).extend(map(dict, objects_in(piece)))
            elif kind == "reasoningContent":
                _think(block.setdefault(kind, Item()), object_or_empty(piece))
            else:
                block.setdefault(kind, Item()).update(object_or_empty(piece))


def _think(block: Item, piece: Mapping[str, Any]) -> None:
    if isinstance(piece.get("redactedContent"), bytes):
        block["redactedContent"] = block.get("redactedContent", b"") + piece["redactedContent"]
    for key in ("text", "signature"):
        if isinstance(piece.get(key), str):
            text = block.setdefault("reasoningText", Item(text=""))
            text[key] = text.get(key, "") + piece[key]


BEDROCK = _Bedrock()
