"""Anthropic, Messages: a client tool, content blocks, and the results as the first blocks of the next user message.

Every `tool_use` of an assistant message is answered in the message right after it, by one `tool_result` each, before
any other block; ids are never used twice.
Source: https://docs.anthropic.com/en/api/messages, and the guides to tool use.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, cast

from toolcrib.formats._anthropic_schema import check_request, input_schema
from toolcrib.formats._anthropic_stream import gather_messages
from toolcrib.formats._format import ProviderFormat
from toolcrib.formats._ids import settle_ids
from toolcrib.formats._pairing import Layout
from toolcrib.formats._waiting import CallKey
from toolcrib.formats._wire import (
    Choice,
    Item,
    Media,
    WireCall,
    WireReply,
    WireResult,
    entries,
    is_table,
    plain,
    table,
    wire_call,
    word,
)

__all__ = ["ANTHROPIC"]

_OUTPUT_ONLY = frozenset({"parsed_output"})
_THOUGHTS = frozenset({"thinking", "redacted_thinking"})
_IMAGES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})


class _Anthropic(ProviderFormat):
    title = "anthropic"
    layout = Layout("next", unique=True)

    def define(
        self,
        name: str,
        description: str,
        parameters: Mapping[str, Any],
        strict: bool,
        returns: Mapping[str, Any] | None,
    ) -> Item:
        made: Item = {"name": name}
        if description:
            made["description"] = description
        made["input_schema"] = input_schema(name, parameters, strict)
        if strict:
            made["strict"] = True
        return made

    def check_strict(self, definitions: list[Item]) -> None:
        check_request(definitions)

    # --- replies

    def parse(self, reply: object, taken: Collection[str] = ()) -> WireReply:
        return self._read(plain(reply), {}, (), taken)

    def gather(self, chunks: Iterable[object], taken: Collection[str] = ()) -> WireReply:
        message, raw, problems = gather_messages(plain(chunk) for chunk in chunks)
        return self._read(message, raw, problems, taken)

    def _read(
        self, message: Mapping[str, Any], raw: Mapping[int, str], before: Sequence[str], taken: Collection[str]
    ) -> WireReply:
        """Return the reply; `raw` has the input of calls whose JSON was cut, by the place of their block."""
        problems = list(before)
        stop = word(message.get("stop_reason")) or None
        if stop == "max_tokens":
            problems.append("the reply was cut at the limit of tokens")
        blocks: list[Item] = []
        cut: list[str | None] = []
        for place, block in enumerate(entries(message.get("content"))):
            kept = {**block}
            if None in kept.values() or not _OUTPUT_ONLY.isdisjoint(kept):
                kept = {key: value for key, value in kept.items() if value is not None and key not in _OUTPUT_ONLY}
            kind = kept.get("type")
            if kind == "tool_use" and not word(kept.get("name")):
                problems.append("one of its calls named no tool and was left out")
            elif kind != "text" or kept.get("text"):  # an empty text is not taken back
                if kind == "tool_use":
                    kept["name"] = self.called(kept["name"], problems)
                    given = kept.get("input", {})
                    cut.append(raw.get(place) if is_table(given) else json.dumps(given, default=str))
                    kept["input"] = given if is_table(given) else {}  # which is all that is taken back
                blocks.append(kept)
        while blocks and word(blocks[-1].get("type")) in _THOUGHTS:  # a message that ends in one is not taken back
            blocks.pop()
            problems.append("its last thought led to nothing and was left out")
        item: Item = {"role": "assistant", "content": blocks}
        calls = self.calls_of(item)
        ids, changed = settle_ids(calls, self.make_id, taken)
        if changed:
            item = self.with_call_ids(item, ids)
            calls = self.calls_of(item)
        if any(text is not None for text in cut):
            calls = tuple(
                call if text is None else WireCall(call.id, call.name, text)
                for call, text in zip(calls, cut, strict=True)
            )
        if not blocks:
            problems.append("the reply is empty")
        return WireReply((item,) if blocks else (), _text_of(blocks), calls, stop, (*problems, *changed))

    # --- transcripts

    def calls_of(self, item: Mapping[str, Any]) -> tuple[WireCall, ...]:
        if item.get("role") != "assistant":
            return ()
        used = _blocks(item, "tool_use")
        return tuple(wire_call(word(b.get("id")), word(b.get("name")), table(b.get("input"))) for b in used)

    def results_of(self, item: Mapping[str, Any]) -> tuple[WireResult, ...]:
        return tuple(
            WireResult(
                WireCall(word(block.get("tool_use_id")), "", ""),
                _text_of(block.get("content")),
                bool(block.get("is_error")),
            )
            for block in _blocks(item, "tool_result")
        )

    def call_keys(self, item: Mapping[str, Any]) -> list[CallKey]:
        if item.get("role") != "assistant":
            return []
        return [word(b.get("id")) for b in entries(item.get("content")) if b.get("type") == "tool_use"]

    def result_keys(self, item: Mapping[str, Any]) -> list[CallKey] | None:
        blocks = entries(item.get("content"))
        keys: list[CallKey] = [word(b.get("tool_use_id")) for b in blocks if b.get("type") == "tool_result"]
        return None if keys and self.leading(item) < len(keys) else keys

    def answer(self, results: Sequence[WireResult]) -> list[Item]:
        return self.pack([_tool_result(result) for result in results])

    def raw_results(self, item: Mapping[str, Any]) -> list[Item]:
        return [dict(block) for block in _blocks(item, "tool_result")]

    def leading(self, item: Mapping[str, Any]) -> int:
        if item.get("role") != "user":
            return 0
        kinds = [block.get("type") for block in entries(item.get("content"))]
        return next((place for place, kind in enumerate(kinds) if kind != "tool_result"), len(kinds))

    def rest_of(self, item: Mapping[str, Any]) -> Item | None:
        content = item.get("content")
        if not isinstance(content, list | tuple):
            return dict(item)
        rest = [block for block in entries(cast("object", content)) if block.get("type") != "tool_result"]
        return {**item, "content": rest} if rest else None

    def pack(self, raw: Sequence[Item], rest: Item | None = None) -> list[Item]:
        if not raw:
            return [] if rest is None else [rest]
        if rest is None:
            return [{"role": "user", "content": [*raw]}]
        return [{**rest, "content": [*raw, *rest["content"]]}]

    def with_call_ids(self, item: Mapping[str, Any], ids: Sequence[str]) -> Item:
        new = iter(ids)
        blocks = entries(item.get("content"))
        return {**item, "content": [{**b, "id": next(new)} if b.get("type") == "tool_use" else b for b in blocks]}

    def with_result_id(self, raw: Item, id: str) -> Item:
        return {**raw, "tool_use_id": id}

    def make_id(self, seed: str) -> str:
        return super().make_id(seed).replace("call_", "toolu_")

    # --- requests

    def tool_choice(self, kind: Choice, name: str | None = None) -> Any:
        if kind == "specific":
            return {"type": "tool", "name": name}
        return {"type": "any" if kind == "at_least_one" else "auto"}

    def user(self, text: str) -> list[Item]:
        return [{"role": "user", "content": text}]

    def system(self, text: str) -> list[Item]:
        return []

    def assistant(self, text: str) -> list[Item]:
        return [{"role": "assistant", "content": text}]


def _blocks(item: Mapping[str, Any], kind: str) -> list[Mapping[str, Any]]:
    return [block for block in entries(item.get("content")) if block.get("type") == kind]


def _text_of(content: object) -> str:
    if isinstance(content, str):
        return content
    return "".join(word(block.get("text")) for block in entries(content) if block.get("type") == "text")


def _tool_result(result: WireResult) -> Item:
    sent: list[tuple[Media, Item]] = []
    text = result.content
    if result.media:
        sent = [(one, source) for one in result.media if (source := _source(one)) is not None]
        text = result.text(tuple(one for one in result.media if _source(one) is None))
    made: Item = {"type": "tool_result", "tool_use_id": result.call.id}
    if sent:
        said: list[Item] = [{"type": "text", "text": text}] if text else []
        made["content"] = said + [
            {"type": "image" if one.is_image else "document", "source": source} for one, source in sent
        ]
    elif text:
        made["content"] = text
    if result.is_error:
        made["is_error"] = True
    return made


def _source(media: Media) -> Item | None:
    """Return where Anthropic reads an image or a document from; None for what it does not take."""
    if media.type not in _IMAGES and media.type != "application/pdf":
        return None
    if media.url is not None:
        return {"type": "url", "url": media.url}
    return {"type": "base64", "media_type": media.type, "data": media.base64}


ANTHROPIC = _Anthropic()
