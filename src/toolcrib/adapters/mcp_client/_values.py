"""Values of a server: results as JSON shapes and `Media`, and what it lists."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal, TypeAlias, cast
from urllib.parse import unquote, urlsplit

import mcp_types as types

from toolcrib.calls import Media
from toolcrib.tools import Effect, Trust


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """The state of a server while its toolset is open.

    Attributes:
        state: `down` has no connection; `in part`, where something of what it has is left out; else `up`.
        reason: The problem; empty where it is up.
        retry_in: Seconds until it is connected to again.
        since: When it came, or went; None where its toolset is not open.
        tools: How many tools it has, as last listed.
        changed: Its tools that wait for a person, as they are new or changed where tools are pinned.
        last_error: The last error, also where it is up again.
        timeout: Seconds for one call; None waits for ever.
    """

    server: str
    state: Literal["up", "in part", "down"]
    reason: str = ""
    retry_in: float = 0.0
    since: datetime | None = None
    tools: int = 0
    changed: tuple[str, ...] = ()
    last_error: str = ""
    timeout: float | None = None


@dataclass(frozen=True, slots=True)
class RemoteTool:
    """A server's description of one of its tools; none of it is verified.

    Attributes:
        name: Its name without the prefix, as `tool_names`, `descriptions` and `approval` have it.
        kind: A `tool`, or a tool that reads a `resource`, fills in a resource `template`, or lists the `prompt`s.
        title: A name for people.
        read_only: Whether the server says that it changes nothing; None where it does not say. The others likewise.
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
        """Return the server's statements about it: texts, parameters and hints."""
        hints = (self.read_only, self.destructive, self.idempotent, self.open_world)
        texts = {"title": self.title, "description": self.description}
        return {"server": self.server, "kind": self.kind, **texts, "parameters": self.parameters, "hints": hints}

    def tags(self) -> frozenset[str]:
        """Return its hints as tags, which hooks select by."""
        hints = {
            "read_only": self.read_only,
            "destructive": self.destructive,
            "idempotent": self.idempotent,
            "open_world": self.open_world,
            "closed_world": None if self.open_world is None else not self.open_world,
        }
        return frozenset({"mcp", *(word for word, is_so in hints.items() if is_so)})


@dataclass(frozen=True, slots=True)
class PromptMessage:
    """One message of a prompt; the content is a value as a tool's result is."""

    role: str
    content: Any


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt that a server offers, by `list_prompts`; with its messages, by `get_prompt`.

    Attributes:
        arguments: Its arguments by name, with their descriptions; those in `required` have to be given.
    """

    name: str
    description: str = ""
    arguments: dict[str, str] | None = None
    required: tuple[str, ...] = ()
    messages: tuple[PromptMessage, ...] = ()


AskKind: TypeAlias = Literal["forms", "urls", "sampling", "roots", "logs"]
"""Kinds of question and message from a server to the client that made a call."""


@dataclass(frozen=True, slots=True)
class Elicitation:
    """A question of a server to a person during a call; none of it is verified.

    Attributes:
        server: The server that asks.
        tool: The tool whose call it belongs to; empty when that is not known.
        message: The question.
        schema: The fields to fill in, as a JSON schema; empty with a `url`.
        url: A page to visit instead.
    """

    server: str
    tool: str
    message: str
    schema: dict[str, Any]
    url: str | None = None


def result_of(result: types.CallToolResult) -> Any:
    """Return the result of a tool: the structured one if there is one, else its text and other parts."""
    if result.structured_content is None:
        return several_of(result.content)
    media = [value for block in result.content if isinstance(value := value_of(block), Media)]
    return _with_media(result.structured_content, media) if media else result.structured_content


def _with_media(value: Any, media: list[Media]) -> Any:
    """Return a structured result with media in the place of the facts of those that are in the blocks beside it."""
    match value:
        case {"kind": "media", "mime_type": kind, "size": size}:
            found = next(
                (medium for medium in media if (medium.mime_type, len(medium.data or b"")) == (kind, size)), None
            )
            if found is None:
                return value
            try:
                described = Media.from_dict({**value, "data": found.base64})
            except (TypeError, ValueError):  # its other facts may be anything
                return value
            media.remove(found)
            return described
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
            return _media(block.mime_type, block.data, None, **_names_in(block.meta))
        case types.EmbeddedResource():
            return contents_of(block.resource)
        case types.ResourceLink():
            link = {"name": block.name, "description": block.description, "mime_type": block.mime_type}
            return {"uri": block.uri, **{key: value for key, value in link.items() if value is not None}}


def _media(kind: str, base64: str, uri: str | None, **names: str) -> Media | str:
    """Return media; a text that says what is wrong where their base64, type or address cannot be read."""
    try:
        data = b64decode(base64)
    except ValueError:
        return "[a file that cannot be read, as it is not base64]"
    try:
        place = uri if uri is not None and urlsplit(uri).scheme else None
        return Media(kind, data, place, **names)
    except ValueError as error:
        return f"[a file that cannot be read: {error}]"


def _names_in(meta: Mapping[str, Any] | None) -> dict[str, str]:
    """Return the names of media that another toolcrib sends beside an image or a sound."""
    match meta:
        case {"toolcrib/media": {**said}}:
            names = {key: said.get(key) for key in ("name", "title", "description")}
            return {key: text for key, text in names.items() if isinstance(text, str)}
        case _:
            return {}


def contents_of(resource: types.TextResourceContents | types.BlobResourceContents) -> Any:
    """Return the contents of a resource, with its URI."""
    if isinstance(resource, types.BlobResourceContents):
        kind, name = resource.mime_type or "application/octet-stream", unquote(resource.uri.rpartition("/")[2])
        return _media(kind, resource.blob, resource.uri, name=name)
    kind = {} if resource.mime_type is None else {"mime_type": resource.mime_type}
    return {"uri": resource.uri, **kind, "text": resource.text}


def resource_of(result: types.ReadResourceResult) -> Any:
    """Return the contents of a resource that was read: text, `Media`, or a list of several parts."""
    parts = result.contents
    if len(parts) == 1 and isinstance(parts[0], types.TextResourceContents):
        return parts[0].text
    values = [contents_of(part) for part in parts]
    return values[0] if len(values) == 1 else values


def text_of(block: object) -> str:
    """Return a content block as text for an error: its text, or its type."""
    if isinstance(block, types.TextContent):
        return block.text
    if isinstance(block, types.EmbeddedResource) and isinstance(block.resource, types.TextResourceContents):
        return block.resource.text
    return f"[{getattr(block, 'type', 'unknown')}]"


def texts_of(result: types.CallToolResult) -> str:
    """Return the text of a failed call."""
    text = "\n".join(text_of(block) for block in result.content)
    if not text and result.structured_content is not None:
        text = json.dumps(result.structured_content, ensure_ascii=False)
    return text or "the server gave no reason"


def read_as_json(value: Any) -> Any:
    """Return the value of a text that is JSON, and any other value as it is."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value


def prompt_of(prompt: types.Prompt) -> Prompt:
    arguments = prompt.arguments or []
    required = tuple(argument.name for argument in arguments if argument.required)
    return Prompt(prompt.name, prompt.description or "", {a.name: a.description or "" for a in arguments}, required)


def messages_of(messages: Iterable[types.PromptMessage]) -> tuple[PromptMessage, ...]:
    return tuple(PromptMessage(message.role, value_of(message.content)) for message in messages)


_TRUST: Final = "io.modelcontextprotocol/trust-annotations"  # the extension that SEP-1913 became
_ANNOTATIONS: Final = "annotations"  # where drafts of SEP-1913 had them
_UNTRUSTED: Final = ("untrusted", "openWorldHint", "maliciousActivityHint")
_PRIVATE: Final = ("sensitive", "privateHint", "sensitiveHint")


@dataclass(frozen=True, slots=True)
class Warnings:
    """The warnings of a server in the `_meta` of a tool or a result.

    Attributes:
        untrusted: Others may have written it.
        private: It is not for everybody.
    """

    untrusted: bool = False
    private: bool = False

    @property
    def labels(self) -> frozenset[str]:
        """The names of the warnings."""
        return frozenset(name for name in ("untrusted", "private") if getattr(self, name))


def warnings_in(meta: Mapping[str, Any] | None) -> Warnings:
    """Return the warnings; an unexpected form is a warning, too."""
    found: list[Any] = [(meta or {}).get(key) for key in (_TRUST, _ANNOTATIONS)]
    labels = [cast("Mapping[str, Any]", label) for label in found if isinstance(label, Mapping)]
    return Warnings(_says(labels, _UNTRUSTED), _says(labels, _PRIVATE))


def _says(labels: list[Mapping[str, Any]], names: tuple[str, ...]) -> bool:
    return any(label.get(name) not in (None, False, "none", "low") for label in labels for name in names)


def effect_of(about: RemoteTool, *, trusted: bool) -> Effect | None:
    """Return the effect of a tool by its hints; None where they do not say it, or not reliably."""
    if about.kind == "resource":
        return "none"  # it takes no arguments, and the protocol has nothing but reading for it
    if about.read_only:
        return None if not trusted else "fetch" if about.open_world else "none"
    return "send" if about.open_world else None


def source_of(about: RemoteTool, warned: Warnings, *, trusted: bool) -> Trust:
    """Return how far a tool's results can be trusted, by its hints."""
    is_own = trusted and about.open_world is False and not warned.untrusted
    return "trusted" if is_own else "untrusted"
