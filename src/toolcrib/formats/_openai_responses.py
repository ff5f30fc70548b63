"""OpenAI, Responses: a flat function tool, and calls and results as items of their own, tied by `call_id`.

Everything that a response put out goes back as it was, reasoning included: the API refuses a call without the reasoning
that led to it. An output stands anywhere after its call, once. It takes text, images and files.
Source: https://platform.openai.com/docs/api-reference/responses/create, the guides to function calling and reasoning.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from toolcrib.calls import Media, carried
from toolcrib.formats._canonical_json import arguments_text, raw_arguments
from toolcrib.formats._format import Declaration, ProviderFormat
from toolcrib.formats._json_reading import json_shape, object_or_empty, objects_in, text_or_empty
from toolcrib.formats._openai import CHOICE_MODES, OPENAI_STRICT, free_text
from toolcrib.formats._result_pairing import Layout
from toolcrib.formats._stop_kinds import StopKind
from toolcrib.formats._strict_schema import check_root, strict_schema
from toolcrib.formats._transcript_rules import CallKey
from toolcrib.formats._wire import Choice, Item, WireCall, WireReply, WireResult

__all__ = ["OPENAI_RESPONSES"]

_CALLS = {"function_call": "arguments", "custom_tool_call": "input"}  # kinds of calls, and where their arguments are
_OUTPUTS = frozenset(f"{kind}_output" for kind in _CALLS)
_OUTPUT_ONLY = frozenset({"parsed", "parsed_arguments", "created_by"})


class _Responses(ProviderFormat):
    title = "openai_responses"
    layout = Layout("later", unique=True)
    stops = MappingProxyType[str, StopKind](
        {  # the status of a response; of one that is incomplete the reason
            "completed": "finished",
            "failed": "error",
            "cancelled": "cut",
            "queued": "cut",
            "in_progress": "cut",
            "incomplete": "cut",
            "max_output_tokens": "length",
            "max_messages": "length",
            "content_filter": "content_filter",
            "steered": "cut",
        }
    )

    callers = frozenset({"direct", "programmatic"})
    returns = True

    def define(self, tool: Declaration) -> Item:
        name, parameters, options = tool.name, tool.parameters, tool.options
        sent = {"defer_loading": options.defer_loading, "allowed_callers": self.callers_of(tool)}
        beside = {key: value for key, value in sent.items() if value is not None}
        if (text := free_text(tool)) is not None:
            return {"type": "custom", "name": name, "description": tool.description, "format": text, **beside}
        check_root(name, self.title, parameters)
        made: Item = {"type": "function", "name": name}
        if tool.description:
            made["description"] = tool.description
        strictly = strict_schema(name, self.title, parameters, OPENAI_STRICT) if tool.strict else dict(parameters)
        made["parameters"] = strictly
        made["strict"] = tool.strict  # left out, it would be true
        if tool.returns is not None:
            made["output_schema"] = dict(tool.returns)
        return {**made, **beside}

    # --- replies

    def parse(self, reply: object, taken: Collection[str] = ()) -> WireReply:
        return self._read(json_shape(reply), taken, (), streamed=False)

    def gather(self, chunks: Iterable[object], taken: Collection[str] = ()) -> WireReply:
        response, problems = _gathered(json_shape(chunk) for chunk in chunks)
        return self._read(response, taken, problems, streamed=True)

    def recognises(self, shape: Mapping[str, Any]) -> bool:
        if shape.get("object") == "response" or str(shape.get("type", "")).startswith("response."):
            return True
        return isinstance(shape.get("output"), list)

    def text_delta(self, chunk: Mapping[str, Any]) -> str:
        return text_or_empty(chunk.get("delta")) if chunk.get("type") == "response.output_text.delta" else ""

    def _read(
        self, response: Mapping[str, Any], taken: Collection[str], before: Sequence[str], *, streamed: bool
    ) -> WireReply:
        problems = list(before)
        status = text_or_empty(response.get("status")) or None
        stop = text_or_empty(object_or_empty(response.get("incomplete_details")).get("reason")) or status
        kind = self.stop_kind(stop, streamed=streamed)
        error = object_or_empty(response.get("error")).get("message")
        if error:
            kind = "error"
            problems.append(f"the response failed: {error}")
        items: list[Item] = []
        for sent in objects_in(response.get("output")):
            if text_or_empty(sent.get("type")) in _CALLS and not text_or_empty(sent.get("name")):
                problems.append("one of its calls named no tool and was left out")
            else:
                item = _taken_back(sent)
                if text_or_empty(item.get("type")) in _CALLS:
                    item["name"] = self.called(item["name"], problems)
                items.append(item)
        while items and items[-1].get("type") == "reasoning":  # not taken back without the item that it led to
            items.pop()
            problems.append("its last reasoning led to nothing and was left out")
        said = [item for item in items if item.get("type") == "message"]
        if kind == "finished" and any(part.get("type") == "refusal" for item in said for part in _parts(item)):
            kind = "refusal"
        text = "".join(map(_text_of, said))
        return self.with_calls(WireReply(tuple(items), text, (), stop, tuple(problems), kind), taken)

    def canonical_item(self, item: Item, broken: Collection[int]) -> Item:
        sent = item.get("arguments")
        text = arguments_text(sent) if item["type"] == "function_call" else sent
        return item if text is sent else {**item, "arguments": text}

    # --- transcripts

    def calls_of(self, item: Mapping[str, Any]) -> tuple[WireCall, ...]:
        kind = text_or_empty(item.get("type"))
        if kind not in _CALLS:
            return ()
        name = "function" if kind == "function_call" else "custom"
        return (
            WireCall(
                text_or_empty(item.get("call_id")),
                text_or_empty(item.get("name")),
                raw_arguments(item.get(_CALLS[kind])),
                name,
                item.get("status") in (None, "completed"),
            ),
        )

    def results_of(self, item: Mapping[str, Any]) -> tuple[WireResult, ...]:
        if text_or_empty(item.get("type")) not in _OUTPUTS:
            return ()
        output = item.get("output")
        text = (
            output
            if isinstance(output, str)
            else "".join(text_or_empty(part.get("text")) for part in objects_in(output))
        )
        return (WireResult(WireCall(text_or_empty(item.get("call_id")), "", ""), text),)

    def call_keys(self, item: Mapping[str, Any]) -> list[CallKey]:
        return [text_or_empty(item.get("call_id"))] if text_or_empty(item.get("type")) in _CALLS else []

    def result_keys(self, item: Mapping[str, Any]) -> list[CallKey] | None:
        return [text_or_empty(item.get("call_id"))] if text_or_empty(item.get("type")) in _OUTPUTS else []

    def answer(self, results: Sequence[WireResult]) -> list[Item]:
        return [
            {
                "type": "custom_tool_call_output" if one.call.kind == "custom" else "function_call_output",
                "call_id": one.call.id,
                "output": _output(one),
            }
            for one in results
        ]

    def raw_results(self, item: Mapping[str, Any]) -> list[Item]:
        return [dict(item)] if text_or_empty(item.get("type")) in _OUTPUTS else []

    def leading(self, item: Mapping[str, Any]) -> int:
        return len(self.raw_results(item))

    def rest_of(self, item: Mapping[str, Any]) -> Item | None:
        return None if text_or_empty(item.get("type")) in _OUTPUTS else dict(item)

    def pack(self, raw: Sequence[Item], rest: Item | None = None) -> list[Item]:
        return [*raw] if rest is None else [*raw, rest]

    def with_call_ids(self, item: Mapping[str, Any], ids: Sequence[str]) -> Item:
        return {**item, "call_id": ids[0]}

    def with_result_id(self, raw: Item, id: str) -> Item:
        return {**raw, "call_id": id}

    # --- requests

    def tool_choice(self, kind: Choice, name: str | None = None, among: Sequence[str] = ()) -> Any:
        if kind == "specific":
            return {"type": "function", "name": name}
        mode, tools = CHOICE_MODES[kind], [{"type": "function", "name": one} for one in among]
        return {"type": "allowed_tools", "mode": mode, "tools": tools} if among else mode

    def user(self, text: str) -> list[Item]:
        return [{"role": "user", "content": text}]

    def system(self, text: str) -> list[Item]:
        return [{"role": "system", "content": text}]

    def assistant(self, text: str) -> list[Item]:
        return [{"role": "assistant", "content": text}]


def _taken_back(sent: Mapping[str, Any]) -> Item:
    """Return an item of the output as the input takes it: what is null stays out."""
    item = {**sent}
    if None in item.values() or not _OUTPUT_ONLY.isdisjoint(item):
        item = {key: value for key, value in item.items() if value is not None and key not in _OUTPUT_ONLY}
    if isinstance(item.get("content"), list):
        item["content"] = [_taken_back(part) for part in objects_in(item["content"])]
    return item


def _parts(item: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    return objects_in(item.get("content"))


def _text_of(item: Mapping[str, Any]) -> str:
    return "".join(text_or_empty(part.get("text")) for part in _parts(item))


def _output(result: WireResult) -> str | list[Item]:
    parts = carried(result.parts, lambda media: media.is_sendable)
    if all(isinstance(part, str) for part in parts):
        return result.content
    return [_input(part) if isinstance(part, Media) else {"type": "input_text", "text": part} for part in parts]


def _input(media: Media) -> Item:
    if media.is_image:
        return {"type": "input_image", "image_url": media.link, "detail": "auto"}
    if media.data is None:
        return {"type": "input_file", "file_url": media.url}
    return {"type": "input_file", "filename": media.name or "file", "file_data": media.link}


# --- streams

_ENDED = {f"response.{status}": status for status in ("completed", "incomplete", "failed")}


def _gathered(events: Iterable[Mapping[str, Any]]) -> tuple[Item, list[str]]:
    """Return the response, and what was wrong with the stream."""
    begun: dict[int, Item] = {}
    done: dict[int, Item] = {}
    problems: list[str] = []
    response: Item = {}
    for event in events:
        kind = text_or_empty(event.get("type"))
        index = event.get("output_index")
        place = index if isinstance(index, int) else 0
        if kind in _ENDED:
            response = {"status": _ENDED[kind], **object_or_empty(event.get("response"))}
            break
        if kind == "response.output_item.added":
            begun[place] = dict(object_or_empty(event.get("item")))
        elif kind == "response.output_item.done":
            done[place] = dict(object_or_empty(event.get("item")))
        elif kind == "error":
            said = text_or_empty(event.get("message"))
            response["status"] = "failed"
            problems.append(f"the stream ended in an error: {said}")
        elif place in begun:
            _grow(begun[place], kind, text_or_empty(event.get("delta")))
    if not response.get("output"):  # some servers leave it out of the last event
        found = [done.get(place) or _cut(begun[place], problems) for place in sorted({*begun, *done})]
        response["output"] = [item for item in found if item]
    return response, problems


def _grow(item: Item, kind: str, delta: str) -> None:
    if kind == "response.function_call_arguments.delta":
        item["arguments"] = text_or_empty(item.get("arguments")) + delta
    elif kind == "response.custom_tool_call_input.delta":
        item["input"] = text_or_empty(item.get("input")) + delta
    elif kind == "response.output_text.delta":
        parts = [dict(part) for part in objects_in(item.get("content"))]
        if not parts:
            parts.append({"type": "output_text", "text": "", "annotations": []})
        parts[-1]["text"] = text_or_empty(parts[-1].get("text")) + delta
        item["content"] = parts


def _cut(item: Item, problems: list[str]) -> Item | None:
    """Return an item that was begun and never done, as far as it came; None for one that would not be taken back."""
    kind = text_or_empty(item.get("type"))
    if kind in ("function_call", "custom_tool_call"):
        problems.append(f"the arguments of a call of `{text_or_empty(item.get('name'))}` were cut")
        return {**item, "status": "incomplete"}
    if kind == "message" and item.get("content"):
        return {**item, "status": "incomplete"}
    problems.append(f"an item of type `{kind}` was cut and left out")
    return None


OPENAI_RESPONSES = _Responses()
