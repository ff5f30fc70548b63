"""Chat messages as OpenAI and Mistral have them: tool calls on a message, then a message for each result."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from toolcrib.formats._chat_stream import gather_chat
from toolcrib.formats._format import ProviderFormat
from toolcrib.formats._ids import settle_ids
from toolcrib.formats._pairing import Layout
from toolcrib.formats._waiting import CallKey
from toolcrib.formats._wire import (
    Item,
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

__all__ = ["ChatFormat", "text_of"]


class ChatFormat(ProviderFormat):
    """What the two have in common."""

    layout = Layout("run")

    def kept(self, message: Mapping[str, Any]) -> Item:
        """Return what the provider takes back of a message, beside its calls."""
        return {"content": message["content"]} if message.get("content") else {}

    # --- replies

    def parse(self, reply: object, taken: Collection[str] = ()) -> WireReply:
        choice = next(entries(plain(reply).get("choices")), None)
        if choice is None:
            return WireReply((), "", (), problems=("the reply has no choices",))
        return self._read(table(choice.get("message")), word(choice.get("finish_reason")) or None, taken, ())

    def gather(self, chunks: Iterable[object], taken: Collection[str] = ()) -> WireReply:
        message, stop, problems = gather_chat(plain(chunk) for chunk in chunks)
        return self._read(message, stop, taken, problems)

    def _read(
        self, message: Mapping[str, Any], stop: str | None, taken: Collection[str], before: Sequence[str]
    ) -> WireReply:
        problems = list(before)
        if stop in ("length", "model_length"):
            problems.append("the reply was cut at the limit of tokens")
        elif stop in ("content_filter", "error"):
            problems.append(f"the reply ended early: {stop}")
        item: Item = {"role": "assistant", **self.kept(message)}
        sent = list(entries(message.get("tool_calls")))
        asked = list(map(self.read_call, sent))
        if not all(read.name for read in asked):
            named = [(call, read) for call, read in zip(sent, asked, strict=True) if read.name]
            problems.append(f"{len(asked) - len(named)} of its calls named no tool and were left out")
            sent, asked = [call for call, _ in named], [read for _, read in named]
        for at, read in enumerate(asked):
            name = read.name
            if not self.takes_name(name):
                name = self.called(name, problems)
                sent[at] = {**sent[at], read.kind: {**table(sent[at].get(read.kind)), "name": name}}
                asked[at] = self.read_call(sent[at])
        if asked:
            item["tool_calls"] = list(map(_taken_back, sent))
        calls = tuple(asked)
        ids, changed = settle_ids(calls, self.make_id, taken)
        if changed:
            item = self.with_call_ids(item, ids)
            calls = self.calls_of(item)
        empty = len(item) == 1
        if empty:
            problems.append("the reply is empty")
        return WireReply(() if empty else (item,), text_of(item.get("content")), calls, stop, (*problems, *changed))

    def read_call(self, call: Mapping[str, Any]) -> WireCall:
        """Return one of a message's calls."""
        kind = call.get("type")
        if kind != "function":  # as it nearly always is
            kind = word(kind) or "function"
        said = table(call.get(kind))
        sent: object = said.get("input" if kind == "custom" else "arguments")
        arguments = sent if isinstance(sent, str) or is_table(sent) else ""
        return wire_call(word(call.get("id")), word(said.get("name")), arguments, kind)

    # --- transcripts

    def call_keys(self, item: Mapping[str, Any]) -> list[CallKey]:
        if item.get("role") != "assistant":
            return []
        return [word(call.get("id")) for call in entries(item.get("tool_calls"))]

    def result_keys(self, item: Mapping[str, Any]) -> list[CallKey] | None:
        return [word(item.get("tool_call_id"))] if item.get("role") == "tool" else []

    def calls_of(self, item: Mapping[str, Any]) -> tuple[WireCall, ...]:
        if item.get("role") != "assistant":
            return ()
        return tuple(map(self.read_call, entries(item.get("tool_calls"))))

    def results_of(self, item: Mapping[str, Any]) -> tuple[WireResult, ...]:
        if item.get("role") != "tool":
            return ()
        call = WireCall(word(item.get("tool_call_id")), word(item.get("name")), "")
        return (WireResult(call, text_of(item.get("content"))),)

    def raw_results(self, item: Mapping[str, Any]) -> list[Item]:
        return [dict(item)] if item.get("role") == "tool" else []

    def leading(self, item: Mapping[str, Any]) -> int:
        return int(item.get("role") == "tool")

    def rest_of(self, item: Mapping[str, Any]) -> Item | None:
        return None if item.get("role") == "tool" else dict(item)

    def pack(self, raw: Sequence[Item], rest: Item | None = None) -> list[Item]:
        return [*raw] if rest is None else [*raw, rest]

    def with_call_ids(self, item: Mapping[str, Any], ids: Sequence[str]) -> Item:
        calls = [{**call, "id": id} for call, id in zip(entries(item.get("tool_calls")), ids, strict=True)]
        return {**item, "tool_calls": calls}

    def with_result_id(self, raw: Item, id: str) -> Item:
        return {**raw, "tool_call_id": id}

    def user(self, text: str) -> list[Item]:
        return [{"role": "user", "content": text}]

    def system(self, text: str) -> list[Item]:
        return [{"role": "system", "content": text}]

    def assistant(self, text: str) -> list[Item]:
        return [{"role": "assistant", "content": text}]


def _taken_back(call: Mapping[str, Any]) -> Item:
    """Return a call as a request takes it: its place among the pieces of a stream is of no use there."""
    if "index" not in call and None not in call.values():
        return {**call}
    return {key: value for key, value in call.items() if value is not None and key != "index"}


def text_of(content: object) -> str:
    """Return the text of a message, from its parts when it has some; thoughts are none of it."""
    if isinstance(content, str):
        return content
    return "".join(word(part.get("text")) for part in entries(content) if part.get("type") == "text")
