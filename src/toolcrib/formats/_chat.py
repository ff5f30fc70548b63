"""Chat Completions as OpenAI and Mistral have them: tool calls on a message, then a message for each result."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, cast

from toolcrib.formats._canonical_json import arguments_text, raw_arguments
from toolcrib.formats._format import ProviderFormat
from toolcrib.formats._json_reading import is_object, json_shape, object_or_empty, objects_in, text_or_empty
from toolcrib.formats._result_pairing import Layout
from toolcrib.formats._stop_kinds import StopKind
from toolcrib.formats._transcript_rules import CallKey
from toolcrib.formats._wire import Item, WireCall, WireReply, WireResult

__all__ = ["ChatFormat"]


_LEGACY = "function_call"
_RESULTS = ("tool", "function")


class ChatFormat(ProviderFormat):
    """What the two formats share."""

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
            "eos": "finished",  # Together
            "eos_token": "finished",  # TGI, as the next one
            "stop_sequence": "finished",
            "insufficient_system_resource": "error",  # DeepSeek
            "abort": "error",  # vLLM and SGLang
        }
    )

    def kept(self, message: Mapping[str, Any]) -> Item:
        """Return what the provider takes back of a message, beside its calls."""
        return {"content": message["content"]} if message.get("content") else {}

    # --- replies

    def parse(self, reply: object, taken: Collection[str] = ()) -> WireReply:
        choice = next(objects_in(json_shape(reply).get("choices")), None)
        if choice is None:
            return WireReply((), "", (), problems=("the reply has no choices",))
        stop = text_or_empty(choice.get("finish_reason")) or None
        return self._read(object_or_empty(choice.get("message")), stop, self.stop_kind(stop, streamed=False), taken)

    def gather(self, chunks: Iterable[object], taken: Collection[str] = ()) -> WireReply:
        message, stop, failure = _gathered(self.chunk_of(json_shape(chunk)) for chunk in chunks)
        if failure is not None:
            return self._read(message, stop, "error", taken, [f"the stream ended in an error: {failure}"])
        return self._read(message, stop, self.stop_kind(stop, streamed=True), taken)

    def recognises(self, shape: Mapping[str, Any]) -> bool:
        return "choices" in shape

    def text_delta(self, chunk: Mapping[str, Any]) -> str:
        choice = _first_choice(self.chunk_of(chunk))
        return "" if choice is None else _text_of(object_or_empty(choice.get("delta")).get("content"))

    def chunk_of(self, event: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the chunk in an event of the provider's stream."""
        return event

    def _read(
        self,
        message: Mapping[str, Any],
        stop: str | None,
        kind: StopKind,
        taken: Collection[str],
        before: Sequence[str] = (),
    ) -> WireReply:
        problems = list(before)
        item: Item = {"role": "assistant", **self.kept(message)}
        sent = list(objects_in(message.get("tool_calls"))) or _legacy(message.get("function_call"))
        asked = list(map(self.read_call, sent))
        if not all(read.name for read in asked):
            named = [(call, read) for call, read in zip(sent, asked, strict=True) if read.name]
            problems.append(f"{len(asked) - len(named)} of its calls named no tool and were left out")
            sent, asked = [call for call, _ in named], [read for _, read in named]
        for at, read in enumerate(asked):
            if not self.takes_name(read.name):
                name = self.called(read.name, problems)
                sent[at] = {**sent[at], read.kind: {**object_or_empty(sent[at].get(read.kind)), "name": name}}
        if sent:
            item["tool_calls"] = list(map(_taken_back, sent))
        if message.get("refusal") and kind == "finished":
            kind = "refusal"
        items = () if len(item) == 1 else (item,)
        return self.with_calls(WireReply(items, _text_of(item.get("content")), (), stop, tuple(problems), kind), taken)

    def read_call(self, call: Mapping[str, Any]) -> WireCall:
        """Return one of a message's calls."""
        kind = call.get("type")
        if kind != "function":  # as it nearly always is
            kind = text_or_empty(kind) or "function"
        said = object_or_empty(call.get(kind))
        sent: object = said.get("input" if kind == "custom" else "arguments")
        name, id = text_or_empty(said.get("name")), text_or_empty(call.get("id"))
        if kind == "function":
            return WireCall(id, name, raw_arguments(sent))
        return WireCall(id, name, raw_arguments(sent), kind, sent=call)

    def parts_of(self, item: Mapping[str, Any]) -> Iterable[tuple[object, Mapping[str, Any]]]:
        return ((part.get("type"), part) for part in objects_in(item.get("content")))

    def canonical_item(self, item: Item, broken: Collection[int]) -> Item:
        return {**item, "tool_calls": list(map(_canonical_call, item["tool_calls"]))}

    # --- transcripts

    def call_keys(self, item: Mapping[str, Any]) -> list[CallKey]:
        if item.get("role") != "assistant":
            return []
        keys: list[CallKey] = [text_or_empty(call.get("id")) for call in objects_in(item.get("tool_calls"))]
        legacy = item.get("function_call")
        return [*keys, _legacy_id(legacy)] if legacy else keys

    def result_keys(self, item: Mapping[str, Any]) -> list[CallKey] | None:
        if item.get("role") == "function":
            return [_legacy_id(item)]
        return [text_or_empty(item.get("tool_call_id"))] if item.get("role") == "tool" else []

    def calls_of(self, item: Mapping[str, Any]) -> tuple[WireCall, ...]:
        if item.get("role") != "assistant":
            return ()
        calls = tuple(map(self.read_call, objects_in(item.get("tool_calls"))))
        legacy = item.get("function_call")
        if not legacy:
            return calls
        said = object_or_empty(legacy)
        name, sent = text_or_empty(said.get("name")), raw_arguments(said.get("arguments"))
        return (*calls, WireCall(_legacy_id(legacy), name, sent, _LEGACY, sent=said))

    def results_of(self, item: Mapping[str, Any]) -> tuple[WireResult, ...]:
        if item.get("role") not in _RESULTS:
            return ()
        [id] = self.result_keys(item) or [""]
        call = WireCall(str(id), text_or_empty(item.get("name")), "")
        return (WireResult(call, _text_of(item.get("content"))),)

    def raw_results(self, item: Mapping[str, Any]) -> list[Item]:
        return [dict(item)] if item.get("role") in _RESULTS else []

    def leading(self, item: Mapping[str, Any]) -> int:
        return int(item.get("role") in _RESULTS)

    def rest_of(self, item: Mapping[str, Any]) -> Item | None:
        return None if item.get("role") in _RESULTS else dict(item)

    def pack(self, raw: Sequence[Item], rest: Item | None = None) -> list[Item]:
        return [*raw] if rest is None else [*raw, rest]

    def with_call_ids(self, item: Mapping[str, Any], ids: Sequence[str]) -> Item:
        calls = [{**call, "id": id} for call, id in zip(objects_in(item.get("tool_calls")), ids, strict=True)]
        return {**item, "tool_calls": calls}

    def with_result_id(self, raw: Item, id: str) -> Item:
        return {**raw, "tool_call_id": id}

    def user(self, text: str) -> list[Item]:
        return [{"role": "user", "content": text}]

    def system(self, text: str) -> list[Item]:
        return [{"role": "system", "content": text}]

    def assistant(self, text: str) -> list[Item]:
        return [{"role": "assistant", "content": text}]


def _legacy_id(said: object) -> str:
    """Return what ties a call from before there were tools to its result: the name alone."""
    return f"{_LEGACY}:{text_or_empty(object_or_empty(said).get('name'))}"


def _legacy(call: object) -> list[Mapping[str, Any]]:
    """Return the call of a server that writes it as the API did before there were tools, as it is written now."""
    return [{"type": "function", "function": call}] if is_object(call) else []


def _canonical_call(call: Item) -> Item:
    """Return a call as strict servers want it: with its type, and with the text of a JSON object as arguments."""
    kind = text_or_empty(call.get("type")) or "function"
    said = object_or_empty(call.get(kind))
    if kind != "function":
        return call
    text = arguments_text(said.get("arguments"))
    if text is said.get("arguments") and call.get("type"):
        return call
    return {**call, "type": kind, kind: {**said, "arguments": text}}


def _taken_back(call: Mapping[str, Any]) -> Item:
    """Return a call as a request takes it: its place among the pieces of a stream is of no use there."""
    if "index" not in call and None not in call.values():
        return {**call}
    return {key: value for key, value in call.items() if value is not None and key != "index"}


def _text_of(content: object) -> str:
    """Return the text of a message, from its parts when it has some; thoughts are none of it."""
    if isinstance(content, str):
        return content
    return "".join(text_or_empty(part.get("text")) for part in objects_in(content) if part.get("type") == "text")


# --- streams

_KNOWN = frozenset({"role", "content", "refusal", "tool_calls", "function_call"})
_OWN = ("index", "id", "type")


def _gathered(chunks: Iterable[Mapping[str, Any]]) -> tuple[Item, str | None, str | None]:
    """Return the message, why it ended, and what the server says that went wrong."""
    message: Item = {"role": "assistant"}
    calls: list[Item] = []
    current: dict[object, Item] = {}
    stop: str | None = None
    failure: str | None = None
    for chunk in chunks:
        choice = _first_choice(chunk)
        error = chunk.get("error")
        if error:
            failure = text_or_empty(object_or_empty(error).get("message")) or str(error)
        if choice is None:  # the last one, with the usage alone
            continue
        stop = text_or_empty(choice.get("finish_reason")) or stop
        delta = object_or_empty(choice.get("delta"))
        for key in ("content", "refusal"):
            _add_content(message, key, delta.get(key))
        pieces = list(objects_in(delta.get("tool_calls"))) or _legacy(delta.get("function_call"))
        for position, piece in enumerate(pieces):
            _add_call(calls, current, piece, position)
        _add_rest(message, delta)
    if calls:
        message["tool_calls"] = calls
    return message, stop, failure


def _first_choice(chunk: Mapping[str, Any]) -> Mapping[str, Any] | None:
    return next((choice for choice in objects_in(chunk.get("choices")) if not choice.get("index")), None)


def _add_rest(message: Item, delta: Mapping[str, Any]) -> None:
    """Keep what has no rule here: a server that thinks wants its thoughts back with the calls that they led to."""
    for key, piece in delta.items():
        if key in _KNOWN or piece is None:
            continue
        before: Any = message.get(key)
        if isinstance(piece, str):
            message[key] = text_or_empty(before) + piece
        elif isinstance(piece, list):
            message[key] = [*(cast("list[Any]", before) if isinstance(before, list) else ()), *cast("list[Any]", piece)]
        elif is_object(piece):
            message[key] = {**object_or_empty(before), **piece}
        else:
            message[key] = piece


def _add_content(message: Item, key: str, piece: object) -> None:
    """Append text to text; parts (Mistral's thoughts) stay parts, and neighbours of one kind become one."""
    if not piece:
        return
    before: object = message.get(key)
    if isinstance(piece, str) and (before is None or isinstance(before, str)):
        message[key] = text_or_empty(before) + piece
        return
    parts = _parts(before)
    for part in _parts(piece):
        last: Item = parts[-1] if parts else {}
        if part.get("type") == last.get("type") == "text":
            last["text"] = text_or_empty(last.get("text")) + text_or_empty(part.get("text"))
        elif part.get("type") == last.get("type") == "thinking":
            last["thinking"] = [*objects_in(last.get("thinking")), *objects_in(part.get("thinking"))]
        else:
            parts.append(part)
    message[key] = parts


def _parts(content: object) -> list[Item]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [dict(part) for part in objects_in(content)]


def _add_call(calls: list[Item], current: dict[object, Item], piece: Mapping[str, Any], position: int) -> None:
    """Add a piece to the call that it belongs to: the one of its index, unless it begins another."""
    index = piece.get("index", position)
    index = index if isinstance(index, int) else position
    id = text_or_empty(piece.get("id"))
    call = current.get(index)
    if call is None or (id and call["id"] and id != call["id"]):  # some servers say index 0 for each
        kind = text_or_empty(piece.get("type")) or "function"
        call = Item(id="", type=kind)
        call[kind] = Item()
        current[index] = call
        calls.append(call)
    call["id"] = call["id"] or id
    inner: Item = call[call["type"]]
    for key, value in object_or_empty(piece.get(call["type"])).items():
        if isinstance(value, str) and key in ("arguments", "input"):
            inner[key] = text_or_empty(inner.get(key)) + value
        elif value is not None and value != "":
            inner[key] = value
    call |= {key: value for key, value in piece.items() if key not in (*_OWN, call["type"]) and value is not None}
