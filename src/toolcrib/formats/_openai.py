"""OpenAI, Chat Completions: a function tool, a message with tool calls, a tool message for each result.

After a message with calls come the tool messages, one for each id, before anything else. A tool message takes text.
Source: https://platform.openai.com/docs/api-reference/chat/create, and the guide to function calling.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Literal, NotRequired, TypedDict

from toolcrib.calls import Media
from toolcrib.errors import FormatError
from toolcrib.formats._chat import ChatFormat
from toolcrib.formats._format import Declaration
from toolcrib.formats._json_reading import object_or_empty, text_or_empty
from toolcrib.formats._provider_client import ProviderClient
from toolcrib.formats._provider_options import text_parameter
from toolcrib.formats._reply_types import ChatReply
from toolcrib.formats._strict_schema import NUMBERS, STRUCTURE, SchemaLimits, StrictRules, check_root, strict_schema
from toolcrib.formats._wire import Choice, Item, WireResult

# Source: https://platform.openai.com/docs/guides/structured-outputs, supported schemas.
OPENAI_STRICT = StrictRules(
    STRUCTURE | NUMBERS | {"pattern", "format", "minItems", "maxItems"},
    all_required=True,
    limits=SchemaLimits(properties=5000, depth=10, text=120_000, values=1000, long_enum=250, long_enum_text=15_000),
)
ANSWER = "answer"
CHOICE_OPTIONS = {"tools": "provider_tools=", "tool_choice": "require=", "parallel_tool_calls": "require="}
CHOICE_MODES = {"optional": "auto", "validated": "auto", "at_least_one": "required", "none": "none"}
_SOUNDS = {"audio/wav": "wav", "audio/mpeg": "mp3"}
_SAID = ("content", "refusal", "tool_calls")
_READ = frozenset(  # keys that have a rule here, or that the provider does not take back
    {"role", *_SAID, "audio", "function_call", "annotations", "parsed"}
)


class OpenAIFunction(TypedDict):
    """The function of an `OpenAITool`."""

    name: str
    description: NotRequired[str]
    parameters: NotRequired[dict[str, object]]
    strict: NotRequired[bool | None]


class OpenAITool(TypedDict):
    """A definition; type checkers take it for the SDK's `ChatCompletionToolParam`."""

    type: Literal["function"]
    function: OpenAIFunction


class _OpenAI(ChatFormat):
    title = "openai"
    reply_type = ChatReply
    asks = frozenset({"function", "custom"})
    free_texts = frozenset({"custom"})
    carried = frozenset({"text", "refusal"})
    client = ProviderClient(
        "openai",
        "AsyncOpenAI",
        ("chat", "completions", "create"),
        streaming={"stream": True, "stream_options": {"include_usage": True}},
        options={**CHOICE_OPTIONS, "messages": "transcript=", "response_format": "output="},
    )
    provider = "openai"
    prices = "openai"

    def define(self, tool: Declaration) -> Item:
        self.callers_of(tool)
        if (text := free_text(tool)) is not None:
            kind = {"type": text.pop("type")}
            format = {**kind, "grammar": text} if text else kind
            return {"type": "custom", "custom": {"name": tool.name, "description": tool.description, "format": format}}
        check_root(tool.name, self.title, tool.parameters)
        function: Item = {"name": tool.name}
        if tool.description:
            function["description"] = tool.description
        function["parameters"] = dict(tool.parameters)
        if tool.strict:
            function["parameters"] = strict_schema(tool.name, self.title, tool.parameters, OPENAI_STRICT)
            function["strict"] = True
        return {"type": "function", "function": function}

    def message_fields(self, message: Mapping[str, Any], misread: list[str]) -> Item:
        item = super().message_fields(message, misread)
        if any(message.get(key) for key in _SAID):  # a server's own thoughts, which it wants back with what they led to
            item |= {key: value for key, value in message.items() if key not in _READ and value is not None}
        if refusal := text_or_empty(message.get("refusal")):
            item["refusal"] = refusal
        spoken = text_or_empty(object_or_empty(message.get("audio")).get("id"))  # what was said is known by its id
        return {**item, "audio": {"id": spoken}} if spoken else item

    def answer(self, results: Sequence[WireResult]) -> list[Item]:
        return list(map(_answer, results))

    def takes_media(self, media: Media) -> bool:
        return _shown(media) is not None

    def user_message(self, parts: Sequence[str | Media]) -> list[Item]:
        shown = [{"type": "text", "text": part} if isinstance(part, str) else _shown(part) for part in parts]
        return [{"role": "user", "content": shown}]

    def request(self, messages: Sequence[Item], system: str, output: Mapping[str, Any] | None) -> Item:
        body: Item = {"messages": [*(self.system(system) if system else ()), *messages]}
        answer_format = None if output is None else {"type": "json_schema", "json_schema": answer_schema(output)}
        return {**body, "response_format": answer_format} if answer_format else body

    def tool_choice(self, kind: Choice, name: str | None = None, among: Sequence[str] = ()) -> Any:
        if kind == "specific":
            return {"type": "function", "function": {"name": name}}
        mode = CHOICE_MODES[kind]
        if not among:
            return mode
        tools = [{"type": "function", "function": {"name": tool_name}} for tool_name in among]
        return {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": tools}}


def answer_schema(output: Mapping[str, Any]) -> Item:
    """Return the name and the schema of an answer that the provider is held to."""
    return {"name": ANSWER, "schema": strict_schema(ANSWER, OPENAI.title, output, OPENAI_STRICT), "strict": True}


def free_text(tool: Declaration) -> Item | None:
    """Return the format of the text of a free-text tool; None for a tool that is a function."""
    wanted = tool.options.free_text
    if wanted is None:
        return None
    if text_parameter(tool.parameters) is None:
        problem = "a free-text tool takes one argument, a text; give it one, or leave `free_text` out"
        raise FormatError(tool.name, OPENAI.title, problem)
    return {"type": "text"} if wanted is True else {"type": "grammar", **asdict(wanted)}


def _answer(result: WireResult) -> Item:
    if result.call.kind == "function_call":  # from before there were tools
        return {"role": "function", "name": result.call.name, "content": result.content}
    return {"role": "tool", "tool_call_id": result.call.id, **(result.fields or {"content": result.content})}


def _shown(media: Media) -> Item | None:
    """Return the part of a user's message that shows an image, a sound or a file; None for what cannot be shown."""
    if media.is_image and media.is_sendable:
        return {"type": "image_url", "image_url": {"url": media.link}}
    if media.mime_type in _SOUNDS and media.data is not None:
        return {"type": "input_audio", "input_audio": {"data": media.base64, "format": _SOUNDS[media.mime_type]}}
    if media.mime_type == "application/pdf" and media.data is not None:
        return {"type": "file", "file": {"filename": media.name or "file.pdf", "file_data": media.link}}
    return None


OPENAI = _OpenAI()
