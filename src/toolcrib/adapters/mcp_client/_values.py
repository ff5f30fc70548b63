"""What a server sends as values: JSON shapes, `Media` for bytes, and the values of its listings."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast
from urllib.parse import unquote, urlsplit

import mcp_types as types

from toolcrib.calls import Media

__all__ = [
    "Elicitation",
    "Progress",
    "Prompt",
    "PromptMessage",
    "RemoteTool",
    "messages_of",
    "prompt_of",
    "read_as_json",
    "resource_of",
    "result_of",
    "texts_of",
]


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a call has come, as the server reports it.

    Attributes:
        progress: Grows with each report.
        total: What it grows to, if that is known.
        message: What the server says to it.
    """

    progress: float
    total: float | None = None
    message: str | None = None


@dataclass(frozen=True, slots=True)
class RemoteTool:
    """What a server says of one of its tools; all of it is the server's word.

    Attributes:
        name: Its name without the prefix, as `tool_names`, `descriptions` and `approval` have it.
        kind: A `tool`, or what stands for a `resource`, a resource `template`, or the server's `prompt`s.
        title: A name for people.
        read_only: Whether it says that it changes nothing; None where it says nothing. The others are alike.
    """

    name: str
    server: str
    kind: Literal["tool", "resource", "template", "prompt"]
    description: str
    parameters: dict[str, Any]
    returns: dict[str, Any] | None = None
    title: str | None = None
    read_only: bool | None = None
    destructive: bool | None = None
    idempotent: bool | None = None
    open_world: bool | None = None

    def definition(self) -> dict[str, Any]:
        """Return what it takes and what it says that it does, without the words for models and people."""
        hints = (self.read_only, self.destructive, self.idempotent, self.open_world)
        return {"server": self.server, "kind": self.kind, "parameters": self.parameters, "hints": hints}

    def tags(self) -> frozenset[str]:
        """Return the words by which global hooks choose, and which are shown on to others."""
        said = {
            "read_only": self.read_only,
            "destructive": self.destructive,
            "idempotent": self.idempotent,
            "open_world": self.open_world,
            "closed_world": None if self.open_world is None else not self.open_world,
        }
        return frozenset({"mcp", *(word for word, is_so in said.items() if is_so)})


@dataclass(frozen=True, slots=True)
class PromptMessage:
    """One message of a prompt; the content is a value as a tool's result is."""

    role: str
    content: Any


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt that a server offers, by `list_prompts`; with its messages, by `get_prompt`.

    Attributes:
        arguments: What it takes, by name, with the description; those in `required` have to be given.
    """

    name: str
    description: str = ""
    arguments: dict[str, str] | None = None
    required: tuple[str, ...] = ()
    messages: tuple[PromptMessage, ...] = ()


@dataclass(frozen=True, slots=True)
class Elicitation:
    """What a server wants to know from a person while a call waits; all of it is the server's word.

    Attributes:
        server: Who asks.
        tool: The call that waits, if it is known which.
        message: What it asks.
        schema: The fields it wants filled in, as a JSON schema; empty when it sends a link.
        url: The page it wants to have visited.
    """

    server: str
    tool: str
    message: str
    schema: dict[str, Any]
    url: str | None = None


def result_of(result: types.CallToolResult) -> Any:
    """Return what a tool gave: the structured result where there is one, else its text and other parts."""
    if result.structured_content is None:
        return several_of(result.content)
    media = [value for block in result.content if isinstance(value := value_of(block), Media)]
    return _with_media(result.structured_content, media) if media else result.structured_content


def _with_media(value: Any, media: list[Media]) -> Any:
    """Return a structured result with media in the place of the facts of those that are in the blocks beside it."""
    match value:
        case {"kind": "media", "mime_type": kind, "size": size}:
            found = next((one for one in media if (one.mime_type, len(one.data or b"")) == (kind, size)), None)
            if found is None:
                return value
            if len(media) > 1:
                media.remove(found)
            return Media.from_dict({**value, "data": found.base64})
        case dict():
            return {name: _with_media(part, media) for name, part in cast("dict[str, Any]", value).items()}
        case list():
            return [_with_media(part, media) for part in cast("list[Any]", value)]
        case _:
            return value


def several_of(blocks: Sequence[types.ContentBlock]) -> Any:
    """Return the values of content blocks: None of none, the one, or a list."""
    values = [value_of(block) for block in blocks]
    return values if len(values) > 1 else values[0] if values else None


def value_of(block: types.ContentBlock) -> Any:
    """Return one content block as a value."""
    match block:
        case types.TextContent():
            return block.text
        case types.ImageContent() | types.AudioContent():
            return Media(block.mime_type, b64decode(block.data))
        case types.EmbeddedResource():
            return contents_of(block.resource)
        case types.ResourceLink():
            said = {"name": block.name, "description": block.description, "mime_type": block.mime_type}
            return {"uri": block.uri, **{key: value for key, value in said.items() if value is not None}}


def contents_of(held: types.TextResourceContents | types.BlobResourceContents) -> Any:
    """Return what is in a resource, with the place it comes from."""
    if isinstance(held, types.BlobResourceContents):
        kind, place = held.mime_type or "application/octet-stream", held.uri if urlsplit(held.uri).scheme else None
        return Media(kind, b64decode(held.blob), place, name=unquote(held.uri.rpartition("/")[2]))
    kind = {} if held.mime_type is None else {"mime_type": held.mime_type}
    return {"uri": held.uri, **kind, "text": held.text}


def resource_of(result: types.ReadResourceResult) -> Any:
    """Return what reading a resource gave: text, `Media`, or a list where it has several parts."""
    parts = result.contents
    if len(parts) == 1 and isinstance(parts[0], types.TextResourceContents):
        return parts[0].text
    values = [contents_of(part) for part in parts]
    return values[0] if len(values) == 1 else values


def text_of(block: object) -> str:
    """Return a content block as words for an error: its text, or what kind of thing it is."""
    if isinstance(block, types.TextContent):
        return block.text
    if isinstance(block, types.EmbeddedResource) and isinstance(block.resource, types.TextResourceContents):
        return block.resource.text
    return f"[{getattr(block, 'type', 'unknown')}]"


def texts_of(result: types.CallToolResult) -> str:
    """Return what a failed call says."""
    said = "\n".join(text_of(block) for block in result.content)
    if not said and result.structured_content is not None:
        said = json.dumps(result.structured_content, ensure_ascii=False)
    return said or "the server gave no reason"


def read_as_json(value: Any) -> Any:
    """Return what a text says where it is JSON, and anything else as it is."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value


def prompt_of(prompt: types.Prompt) -> Prompt:
    """Return a listed prompt."""
    arguments = prompt.arguments or []
    required = tuple(argument.name for argument in arguments if argument.required)
    return Prompt(prompt.name, prompt.description or "", {a.name: a.description or "" for a in arguments}, required)


def messages_of(messages: Iterable[types.PromptMessage]) -> tuple[PromptMessage, ...]:
    """Return the messages of a prompt."""
    return tuple(PromptMessage(message.role, value_of(message.content)) for message in messages)
