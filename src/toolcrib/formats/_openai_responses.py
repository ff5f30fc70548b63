"""OpenAI, Responses: a flat function tool, and calls and results as items of their own, tied by `call_id`.

Everything that a response put out goes back as it was, reasoning included: the API refuses a call without the reasoning
that led to it. An output stands anywhere after its call, once. It takes text, images and files.
Source: https://platform.openai.com/docs/api-reference/responses/create, the guides to function calling and reasoning.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from toolcrib.calls import Media, carried
from toolcrib.formats._canonical_json import arguments_text, raw_arguments, typed
from toolcrib.formats._format import Declaration, ProviderFormat
from toolcrib.formats._json_reading import (
    fields_of,
    json_shape,
    number_at,
    object_at,
    object_or_empty,
    objects_at,
    objects_in,
    text_or_empty,
)
from toolcrib.formats._openai import CHOICE_MODES, CHOICE_OPTIONS, OPENAI_STRICT, answer_schema, free_text
from toolcrib.formats._provider_client import ProviderClient
from toolcrib.formats._reply_types import ResponsesReply
from toolcrib.formats._result_pairing import Layout
from toolcrib.formats._stop_kinds import StopKind, StreamEnd, error_in
from toolcrib.formats._strict_schema import check_root, strict_schema
from toolcrib.formats._transcript_rules import CallKey
from toolcrib.formats._usage import UsageKeys
from toolcrib.formats._wire import CallPiece, Choice, Item, Turn, WireCall, WireReply, WireResult

_NAMED = {"function_call": "arguments", "custom_tool_call": "input"}  # calls by name, and where their arguments are
_DELTAS = frozenset({"response.function_call_arguments.delta", "response.custom_tool_call_input.delta"})
_ANSWERS = {  # what the client answers, with the item that does, and the key there that names the call
    "function_call": ("function_call_output", "call_id"),
    "custom_tool_call": ("custom_tool_call_output", "call_id"),
    "computer_call": ("computer_call_output", "call_id"),
    "local_shell_call": ("local_shell_call_output", "id"),
    "shell_call": ("shell_call_output", "call_id"),
    "apply_patch_call": ("apply_patch_call_output", "call_id"),
    "tool_search_call": ("tool_search_output", "call_id"),
    "mcp_approval_request": ("mcp_approval_response", "approval_request_id"),
}
_OUTPUTS = dict(_ANSWERS.values())
_NEEDS = {"computer_call": ("output",), "tool_search_call": ("tools",), "mcp_approval_request": ("approve",)}
_REPEATING = {  # what an answer repeats of its call, and of which calls
    "caller": frozenset({"function_call", "custom_tool_call", "shell_call", "apply_patch_call"}),
    "namespace": frozenset({"function_call"}),
}
# A white dot: the answer to a call of the computer has to be a picture, also where there is none.
_BLANK = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGP4DwABAQEAsTj2FAAAAABJRU5ErkJggg=="
)
_KINDS = {
    **dict.fromkeys(("type", "id", "status", "text", "refusal", "encrypted_content", "namespace"), str),
    **dict.fromkeys(("summary", "annotations", "logprobs"), list),
    "caller": Mapping,
}
_PARTS = {"text": "output_text", "refusal": "refusal"}  # the parts of what the model says, by the key of their text
_STATUSES = frozenset({"completed", "incomplete", "in_progress"})
_ASKED_OR_SAID = frozenset({"message", "reasoning", *_ANSWERS})  # items that have no other status
_CLIENTS = frozenset({"user", "system", "developer"})
_OUTPUT_ONLY = frozenset({"parsed", "parsed_arguments", "created_by"})
_CARRIED = (  # types of items that are sent back unchanged, and wait for no answer of the client's
    "message", "reasoning", "compaction", "program", "program_output", "additional_tools", "mcp_call", "agent_message",
    "multi_agent_call", "multi_agent_call_output",
    "mcp_list_tools", "web_search_call", "file_search_call", "image_generation_call", "code_interpreter_call",
    *_OUTPUTS,
)  # fmt: skip


class _Responses(ProviderFormat):
    title = "openai_responses"
    reply_type = ResponsesReply
    # Refused: "No tool output found for function call", "No tool call found for function call output", and "Duplicate
    # function_call_output for call_id" where an id comes again in a later turn.
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

    asks = frozenset(_ANSWERS)
    carried = frozenset(_CARRIED)
    free_texts = frozenset({"custom_tool_call"})
    callers = frozenset({"direct", "programmatic"})
    client = ProviderClient(
        "openai",
        "AsyncOpenAI",
        ("responses", "create"),
        options={**CHOICE_OPTIONS, "input": "transcript=", "instructions": "system=", "text": "output="},
    )
    provider = "openai"
    prices = "openai"
    usage = UsageKeys(
        places=(("usage",), ("response", "usage")),
        input=(("input_tokens",),),
        output=(("output_tokens",),),
        cached=(("input_tokens_details", "cached_tokens"),),
        reasoning=(("output_tokens_details", "reasoning_tokens"),),
    )
    returns = True

    def define(self, tool: Declaration) -> Item:
        name, parameters, options = tool.name, tool.parameters, tool.options
        sent = {"defer_loading": options.defer_loading, "allowed_callers": self.callers_of(tool)}
        beside = {key: value for key, value in sent.items() if value is not None}
        if (text := free_text(tool)) is not None:
            return {"type": "custom", "name": name, "description": tool.description, "format": text, **beside}
        check_root(name, self.title, parameters)
        definition: Item = {"type": "function", "name": name}
        if tool.description:
            definition["description"] = tool.description
        strictly = strict_schema(name, self.title, parameters, OPENAI_STRICT) if tool.strict else dict(parameters)
        definition["parameters"] = strictly
        definition["strict"] = tool.strict  # left out, it would be true
        if tool.returns is not None:
            definition["output_schema"] = dict(tool.returns)
        return {**definition, **beside}

    def wrap(self, definitions: list[Item]) -> list[Item]:
        deferred = any(tool.get("defer_loading") for tool in definitions)
        return [*definitions, {"type": "tool_search"}] if deferred else definitions

    # --- replies

    def read_turn(self, reply: ResponsesReply) -> Turn | None:
        items: list[Any] = reply["output"]
        sent = [item for item in items if item["type"] == "function_call"]
        calls = [WireCall(item["call_id"], item["name"], item["arguments"]) for item in sent]
        others = [] if len(sent) == len(items) else [item for item in items if item["type"] != "function_call"]
        text = "".join(_text_of(item) for item in others if item["type"] == "message")
        return None if items[-1]["type"] == "reasoning" else Turn(items, text, calls, reply["status"], others)

    def read_fields(self, reply: Mapping[str, Any], taken: Collection[str] = ()) -> WireReply:
        return self._read(reply, self.ended(_words(reply), _errors(reply), streamed=False), taken)

    def gather(self, chunks: Iterable[object], taken: Collection[str] = ()) -> WireReply:
        begun: dict[int, Item] = {}
        done: dict[int, Item] = {}
        arguments: dict[int, list[str]] = {}
        stream = _Stream()
        for event in (json_shape(chunk) for chunk in chunks):
            kind = text_or_empty(event.get("type"))
            place = number_at(event, "output_index", stream.misread)
            stream.errors += _errors(event)
            if kind in _ENDED:
                response = object_at(event, "response", stream.misread)
                stream.response = {**stream.response, **response}
                ended = _ENDED[kind]
                stream.words += [*([] if ended == "completed" else [ended]), *_words({"status": ended, **response})]
                stream.errors += _errors(response)
            elif kind == "response.output_item.added":
                begun[place], arguments[place] = dict(object_at(event, "item", stream.misread)), []
            elif kind == "response.output_item.done":
                done[place] = dict(object_at(event, "item", stream.misread))
            elif kind in _DELTAS:
                arguments.setdefault(place, []).append(text_or_empty(event.get("delta")))
            elif place in begun and kind == "response.output_text.delta":
                parts = [dict(part) for part in objects_in(begun[place].get("content"))]
                if not parts:
                    parts.append({"type": "output_text", "text": "", "annotations": []})
                parts[-1]["text"] = text_or_empty(parts[-1].get("text")) + text_or_empty(event.get("delta"))
                begun[place]["content"] = parts
        if not stream.response.get("output"):  # some servers leave it out of the last event
            places = sorted({*begun, *done, *arguments})
            found = (done.get(at) or _cut(begun.get(at, {}), arguments.get(at, []), stream) for at in places)
            stream.response["output"] = [item for item in found if item]
        return self._read(stream.response, self.ended_stream(stream), taken)

    def recognises(self, shape: Mapping[str, Any]) -> bool:
        if shape.get("object") == "response" or str(shape.get("type", "")).startswith("response."):
            return True
        return isinstance(shape.get("output"), list)

    def text_delta(self, chunk: Mapping[str, Any]) -> str:
        return text_or_empty(chunk.get("delta")) if chunk.get("type") == "response.output_text.delta" else ""

    def call_pieces(self, chunk: Mapping[str, Any]) -> Iterable[CallPiece]:
        place, kind = number_at(chunk, "output_index", []), text_or_empty(chunk.get("type"))
        if kind == "response.output_item.added":
            item = object_or_empty(chunk.get("item"))
            [call] = self.calls_of(item) or [WireCall("", "", "")]
            text = text_or_empty(item.get(_NAMED.get(text_or_empty(item.get("type")), "")))
            return (CallPiece(call.id, call.name, call.kind, place, text, begins=True, namespace=call.namespace),)
        if kind in _DELTAS:
            return (CallPiece(place=place, text=text_or_empty(chunk.get("delta"))),)
        return (CallPiece(place=place, ends=True),) if kind == "response.output_item.done" else ()

    def _read(self, response: Mapping[str, Any], draft: WireReply, taken: Collection[str]) -> WireReply:
        """Return the reply; `draft` says how it ended."""
        problems, misread = list(draft.problems), list[str]()
        output = objects_at(response, "output", misread)
        items: list[Item] = []
        for sent in output:
            item = _taken_back(next(iter(typed([sent], {"content": "message"})), Item()), misread)
            is_named = item.get("type") in _NAMED
            says_anything = isinstance(item.get("content"), str | list) and bool(item["content"])
            if is_named and text_or_empty(item.get("name")):
                item["name"] = self.called(item["name"], problems)
                items.append(item)
            elif is_named or not item or (item["type"] == "message" and not says_anything):
                fault = "one of its calls named no tool and" if is_named else "what came without a type or content"
                (misread if is_named or not item else problems).append(f"{fault} was left out")
                _drop_reasoning(items, problems)
            else:
                items.append(item)
        _drop_reasoning(items, problems)
        messages = [item for item in items if item.get("type") == "message"]
        if draft.stop_kind == "finished" and any(
            part.get("type") == "refusal" for item in messages for part in _parts(item)
        ):
            draft = replace(draft, stop_kind="refusal")
        text = "".join(map(_text_of, messages))
        read = replace(draft, items=tuple(items), text=text, problems=tuple(problems))
        return self.with_calls(read.with_misread(misread), taken)

    def canonical_item(self, item: Item, broken: Collection[int]) -> Item:
        key = _NAMED.get(item["type"])
        if key is None:
            return item
        sent = item.get(key)
        text = arguments_text(sent) if key == "arguments" else text_or_empty(sent)
        return item if text is sent else {**item, key: text}

    def parts_of(self, item: Mapping[str, Any]) -> Iterable[tuple[object, Mapping[str, Any]]]:
        return ((item.get("type", "message"), item),)

    def needs(self, kind: str) -> tuple[str, ...]:
        return _NEEDS.get(kind, ())

    # --- transcripts

    def calls_of(self, item: Mapping[str, Any]) -> tuple[WireCall, ...]:
        kind = text_or_empty(item.get("type"))
        if not _is_asked(item, kind):
            return ()
        name = text_or_empty(item.get("name")) or kind
        is_plain = kind == "function_call" and not item.get("namespace")
        caller = text_or_empty(object_or_empty(item.get("caller")).get("type"))
        return (
            WireCall(
                text_or_empty(item.get(_id_key(kind))),
                name,
                raw_arguments(item.get(_NAMED.get(kind, "arguments"))),
                "function" if is_plain else kind,
                self._fault(item, kind),
                None if is_plain and not item.get("caller") else item,
                "programmatic" if caller == "program" else caller or "direct",
            ),
        )

    def _fault(self, item: Mapping[str, Any], kind: str) -> str:
        is_action = bool(
            item.get("action") or item.get("actions")
        )  # which comes at once, and is whole when it is there
        if item.get("status") not in (None, "completed") and not is_action:
            return "its arguments were cut"
        return "its text did not come" if kind in self.free_texts and not isinstance(item.get("input"), str) else ""

    def results_of(self, item: Mapping[str, Any]) -> tuple[WireResult, ...]:
        output = item.get("output")
        text = output if isinstance(output, str) else "".join(text_or_empty(p.get("text")) for p in objects_in(output))
        return tuple(WireResult(WireCall(id, "", ""), text) for id in _answered(item))

    def call_keys(self, item: Mapping[str, Any]) -> list[CallKey]:
        kind = text_or_empty(item.get("type"))
        return [text_or_empty(item.get(_id_key(kind)))] if _is_asked(item, kind) else []

    def result_keys(self, item: Mapping[str, Any]) -> list[CallKey] | None:
        return [*_answered(item)]

    def answer(self, results: Sequence[WireResult]) -> list[Item]:
        return list(map(_answer, results))

    def with_call_ids(self, item: Mapping[str, Any], ids: Sequence[str]) -> Item:
        return {**item, _id_key(text_or_empty(item.get("type"))): ids[0]}

    def with_result_id(self, raw: Item, id: str) -> Item:
        return {**raw, _OUTPUTS[raw["type"]]: id}

    def may_precede(self, item: Mapping[str, Any], following: Mapping[str, Any] | None) -> bool:
        # Refused: "Item of type 'reasoning' was provided without its required following item".
        if item.get("type") != "reasoning":
            return True
        return following is not None and not _answered(following) and str(following.get("role")) not in _CLIENTS

    # --- requests

    def request(self, messages: Sequence[Item], system: str, output: Mapping[str, Any] | None) -> Item:
        body: Item = {"input": [*messages], **({"instructions": system} if system else {})}
        answer_format = None if output is None else {"format": {"type": "json_schema", **answer_schema(output)}}
        return {**body, "text": answer_format} if answer_format else body

    def tool_choice(self, kind: Choice, name: str | None = None, among: Sequence[str] = ()) -> Any:
        if kind == "specific":
            return {"type": "function", "name": name}
        mode, tools = CHOICE_MODES[kind], [{"type": "function", "name": tool_name} for tool_name in among]
        return {"type": "allowed_tools", "mode": mode, "tools": tools} if among else mode

    def system(self, text: str) -> list[Item]:
        return [{"role": "system", "content": text}]

    def takes_media(self, media: Media) -> bool:
        return media.is_sendable

    def user_message(self, parts: Sequence[str | Media]) -> list[Item]:
        return [{"role": "user", "content": list(map(_input, parts))}]

    def asking(self, text: str, calls: Sequence[WireCall]) -> list[Item]:
        named = [(call.id, call.name, arguments_text(call.arguments)) for call in calls]
        items = [{"type": "function_call", "call_id": id, "name": name, "arguments": sent} for id, name, sent in named]
        return [*(self.assistant(text) if text else ()), *items]


def _id_key(kind: str) -> str:
    return "id" if kind == "mcp_approval_request" else "call_id"


def _is_asked(item: Mapping[str, Any], kind: str) -> bool:
    """Return whether an item waits for the client; a search for tools may be the provider's own."""
    return kind in _ANSWERS and (kind != "tool_search_call" or item.get("execution") != "server")


def _answered(item: Mapping[str, Any]) -> list[str]:
    """Return the id of the call that an item answers, if it answers one of the client's."""
    kind = text_or_empty(item.get("type"))
    if kind not in _OUTPUTS or (kind == "tool_search_output" and item.get("execution") == "server"):
        return []
    return [text_or_empty(item.get(_OUTPUTS[kind])) or text_or_empty(item.get("call_id"))]


def _answer(result: WireResult) -> Item:
    kind = "function_call" if result.call.kind == "function" else result.call.kind
    type, key = _ANSWERS[kind]
    item: Item = {"type": type, key: result.call.id}
    if kind == "tool_search_call":
        item["execution"] = "client"
    if sent := result.call.sent:
        item |= {key: sent[key] for key, kinds in _REPEATING.items() if kind in kinds and sent.get(key) is not None}
    if result.fields is not None:
        return {**item, **result.fields}
    if kind not in _NAMED:
        return item | _text_output(result, kind)
    item["output"] = _output(result) if result.parts else result.content
    return item


def _text_output(result: WireResult, kind: str) -> Item:
    """Return the output of an answer in words; where the provider takes none, a refusal."""
    match kind:
        case "shell_call":
            stream, other = ("stderr", "stdout") if result.is_error else ("stdout", "stderr")
            outcome = {"type": "exit", "exit_code": int(result.is_error)}
            return {"output": [{stream: result.content, other: "", "outcome": outcome}]}
        case "apply_patch_call":
            return {"status": "failed" if result.is_error else "completed", "output": result.content}
        case "mcp_approval_request":
            return {"approve": False, "reason": result.content}
        case "tool_search_call":
            return {"tools": list[Any]()}
        case "computer_call":
            return {"output": {"type": "computer_screenshot", "image_url": _BLANK}}
        case _:
            return {"output": result.content}


def _drop_reasoning(items: list[Item], problems: list[str]) -> None:
    """Drop reasoning at the end of these items: it is not taken back without the item that it led to."""
    while items and items[-1].get("type") == "reasoning":
        items.pop()
        problems.append("its last reasoning led to nothing and was left out")


def _taken_back(sent: Mapping[str, Any], misread: list[str]) -> Item:
    """Return an item of the output as the input takes it: what is null or of another kind stays out."""
    item = {key: value for key, value in fields_of(sent, _KINDS, misread).items() if key not in _OUTPUT_ONLY}
    if isinstance(item.get("content"), list):
        parts = [_taken_back(part, misread) for part in objects_at(item, "content", misread)]
        texts = {kind: key for key, kind in _PARTS.items()}  # the key without which such a part says nothing
        item["content"] = [part for part in typed(parts, _PARTS) if texts.get(part["type"], "type") in part]
    if item.get("type") == "message":
        item["role"] = "assistant"
    if item.get("type") in _ASKED_OR_SAID and item.get("status", "completed") not in _STATUSES:
        item["status"] = "incomplete"
    return item


def _parts(item: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    return objects_in(item.get("content"))


def _text_of(item: Mapping[str, Any]) -> str:
    return "".join(text_or_empty(part.get("text")) for part in _parts(item))


def _output(result: WireResult) -> str | list[Item]:
    parts = carried(result.parts, lambda media: media.is_sendable)
    if all(isinstance(part, str) for part in parts):
        return result.content
    return list(map(_input, parts))


def _input(media: str | Media) -> Item:
    if isinstance(media, str):
        return {"type": "input_text", "text": media}
    if media.is_image:
        return {"type": "input_image", "image_url": media.link, "detail": "auto"}
    if media.data is None:
        return {"type": "input_file", "file_url": media.url}
    return {"type": "input_file", "filename": media.name or "file", "file_data": media.link}


# --- streams

_ENDED = {f"response.{status}": status for status in ("completed", "incomplete", "failed")}


def _words(response: Mapping[str, Any]) -> list[object]:
    """Return the status of a response, and the reason of an incomplete one."""
    return [response.get("status"), object_or_empty(response.get("incomplete_details")).get("reason")]


def _errors(response: Mapping[str, Any]) -> list[str]:
    return list(filter(None, [error_in(response)]))


@dataclass(slots=True)
class _Stream(StreamEnd):
    """The response that events make up."""

    response: Item = field(default_factory=Item)


def _cut(item: Item, arguments: list[str], stream: _Stream) -> Item | None:
    """Return the received part of an item that was never done; None for one that the provider would not take back."""
    kind = text_or_empty(item.get("type"))
    if kind in _NAMED:
        stream.problems.append(f"the arguments of a call of `{text_or_empty(item.get('name'))}` were cut")
        key = _NAMED[kind]
        grown = {key: "".join([text_or_empty(item.get(key)), *arguments])} if arguments else {}
        return {**item, **grown, "status": "incomplete"}
    if kind == "message" and item.get("content"):
        return {**item, "status": "incomplete"}
    stream.misread += ["a piece of a call came where no call is open"] if any(arguments) else []
    stream.problems.append(f"an item of type `{kind}` was cut and left out")
    return None


OPENAI_RESPONSES = _Responses()
