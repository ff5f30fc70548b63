"""Mistral, Chat Completions: a function tool, a message with tool calls, a named tool message for each result.

After a message with calls come the tool messages, one for each id. Mistral's own ids are nine letters or digits, and it
refuses others in a history: one of another shape is replaced, in its call and in its result.
Source: https://docs.mistral.ai/api, chat completions, and the guide to function calling.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any, NotRequired, TypedDict

from toolcrib.calls import Media, carried
from toolcrib.formats._chat import ChatFormat
from toolcrib.formats._format import Declaration
from toolcrib.formats._json_reading import object_at
from toolcrib.formats._reply_types import MistralReply
from toolcrib.formats._strict_schema import NUMBERS, STRUCTURE, StrictRules, check_root, strict_schema
from toolcrib.formats._transcript_rules import Speaker
from toolcrib.formats._wire import Choice, Item, WireResult

_STRICT = StrictRules(
    STRUCTURE | NUMBERS | {"default", "pattern", "format", "minItems", "maxItems", "minLength", "maxLength"}
)
_ID = re.compile(r"[a-zA-Z0-9]{9}")
_MODELS = re.compile(r"mistral|codestral|magistral|ministral|pixtral|devstral|voxtral|open-mi")


class MistralFunction(TypedDict):
    """The function of a `MistralTool`."""

    name: str
    parameters: dict[str, Any]
    description: NotRequired[str]
    strict: NotRequired[bool]


class MistralTool(TypedDict):
    """A definition; type checkers take it for the SDK's `ToolTypedDict`."""

    type: Any
    function: MistralFunction


# Whose turns are missing between two, by their roles. Source: the validator of Mistral's package `mistral-common`, and
# what the API was seen to refuse: "Unexpected role 'user' after role 'tool'". Mistral Small was recorded to take that.
_BETWEEN: dict[tuple[str | None, str], Sequence[Speaker]] = {
    (None, "assistant"): ("user",),
    ("assistant", "system"): ("user",),
    ("tool", "user"): ("assistant",),
    ("tool", "system"): ("assistant", "user"),
}
_CARRIED = (  # types of items that are sent back unchanged, and wait for no answer of the client's
    "text", "thinking", "reference", "image_url", "document_url", "file", "input_audio", "resource", "resource_link",
)  # fmt: skip


class _Mistral(ChatFormat):
    title = "mistral"
    reply_type = MistralReply
    provider = "mistral_ai"
    prices = "mistral"
    sdk = "mistralai"
    asks = frozenset({"function"})
    carried = frozenset(_CARRIED)

    def define(self, tool: Declaration) -> Item:
        self.callers_of(tool)
        check_root(tool.name, self.title, tool.parameters)
        function: Item = {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}
        if tool.strict:
            function["parameters"] = strict_schema(tool.name, self.title, tool.parameters, _STRICT)
            function["strict"] = True
        return {"type": "function", "function": function}

    def recognises(self, shape: Mapping[str, Any]) -> bool:
        return super().recognises(shape) and _MODELS.match(str(shape.get("model", ""))) is not None

    def chunk_of(self, event: Mapping[str, Any], misread: list[str]) -> Mapping[str, Any]:
        return object_at(event, "data", misread) or event  # the SDK puts each chunk into an event

    def missing_turns(self, before: Mapping[str, Any] | None, item: Mapping[str, Any]) -> Sequence[Speaker]:
        return _BETWEEN.get((None if before is None else str(before.get("role")), str(item.get("role"))), ())

    def takes_id(self, id: str) -> bool:
        # Refused: "Tool call id was call_1 but must be a-z, A-Z, 0-9, with a length of 9".
        return _ID.fullmatch(id) is not None

    def make_id(self, seed: str) -> str:
        return sha256(seed.encode("utf-8", "replace")).hexdigest()[:9]

    def answer(self, results: Sequence[WireResult]) -> list[Item]:
        return [
            {
                "role": "tool",
                "name": result.call.name,
                "tool_call_id": result.call.id,
                **(result.fields or {"content": _content(result)}),
            }
            for result in results
        ]

    def takes_media(self, media: Media) -> bool:
        return media.is_image and media.is_sendable

    def user_message(self, parts: Sequence[str | Media]) -> list[Item]:
        return [{"role": "user", "content": list(map(_part, parts))}]

    def tool_choice(self, kind: Choice, name: str | None = None, among: Sequence[str] = ()) -> Any:
        self.refuse_among(among)
        if kind == "specific":
            return {"type": "function", "function": {"name": name}}
        return {"at_least_one": "any", "none": "none"}.get(kind, "auto")


def _content(result: WireResult) -> str | list[Item]:
    parts = carried(result.parts, lambda media: media.is_image and media.is_sendable) if result.parts else ()
    if all(isinstance(part, str) for part in parts):
        return result.content
    return list(map(_part, parts))


def _part(part: str | Media) -> Item:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    return {"type": "image_url", "image_url": part.link}


MISTRAL = _Mistral()
