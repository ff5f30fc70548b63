"""Outcomes of the calls that read resources and prompts, as results of `resources/read` and `prompts/get`."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, cast

import mcp_types as types
from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS
from pydantic import ValidationError

from toolcrib.adapters.mcp_server._media import block_of, text_in
from toolcrib.adapters.mcp_server._offers import FoundResource, not_found
from toolcrib.adapters.mcp_server._replies import clean, is_untouched, meta_of
from toolcrib.calls import Completed, Failed, Media, Outcome, render
from toolcrib.tools import PromptText
from toolcrib.toolsets import ToolEntry

_NOT_THERE = ("unknown_tool", "not_available")
_CONTENTS = types.TextResourceContents | types.BlobResourceContents


def resource_reply(
    uri: str, found: FoundResource, outcome: Outcome, original: Any, *, stateless: bool
) -> types.ReadResourceResult:
    """Return what was read; the result of another server as it came, where nothing of the host's stands in between.

    Raises:
        MCPError: There is no such resource, or the call has no result.
    """
    if isinstance(outcome, Failed) and outcome.code in _NOT_THERE:
        raise not_found(uri, stateless=stateless)
    done = _completed(outcome)
    if isinstance(original, types.ReadResourceResult) and is_untouched(done, found.entry, original):
        # a copy that is kept for others would go round the gates
        return original.model_copy(update={"meta": meta_of(original), "cache_scope": "private"})
    return types.ReadResourceResult(contents=[*_contents(uri, found, done)])


def prompt_reply(name: str, entry: ToolEntry, outcome: Outcome, original: Any) -> types.GetPromptResult:
    """Return the messages of a prompt; those of another server as they came, as `resource_reply` does.

    Raises:
        MCPError: There is no such prompt, or the call has no result.
    """
    if isinstance(outcome, Failed) and outcome.code in _NOT_THERE:
        raise MCPError(INVALID_PARAMS, clean(f"there is no prompt `{name:.200}`"))
    done = _completed(outcome)
    if isinstance(original, types.GetPromptResult) and is_untouched(done, entry, original):
        return original.model_copy(update={"meta": meta_of(original)})
    messages = [*_messages(done, done.value, "user")]
    return types.GetPromptResult(description=entry.description or None, messages=messages)


def _completed(outcome: Outcome) -> Completed:
    if isinstance(outcome, Completed):
        return outcome
    wrong = isinstance(outcome, Failed) and outcome.code == "invalid_arguments"
    raise MCPError(INVALID_PARAMS if wrong else INTERNAL_ERROR, clean(outcome.text()))


def _contents(uri: str, found: FoundResource, done: Completed) -> Iterator[_CONTENTS]:
    """Yield what a resource holds: bytes and media as they are, all else as text."""
    value, mime_type, meta = done.value, found.offer.mime_type, found.offer.meta
    parts = cast("list[Any]", value) if isinstance(value, list) else [value]
    if not any(isinstance(part, bytes | bytearray | Media | types.TextResourceContents) for part in parts):
        rendered = render(done)
        if rendered.is_error:
            raise MCPError(INTERNAL_ERROR, clean(rendered.text))
        kind = mime_type or ("text/plain" if isinstance(value, str) else "application/json")
        yield types.TextResourceContents(uri=uri, mime_type=kind, text=clean(rendered.text), _meta=_dict(meta))
        return
    for part in parts:
        match part:
            case types.TextResourceContents() | types.BlobResourceContents():
                yield part
            case bytes() | bytearray():
                blob = base64.b64encode(part).decode()
                kind = mime_type or "application/octet-stream"
                yield types.BlobResourceContents(uri=uri, mime_type=kind, blob=blob, _meta=_dict(meta))
            case Media(data=bytes()):
                kind = mime_type or part.mime_type
                yield types.BlobResourceContents(uri=uri, mime_type=kind, blob=part.base64, _meta=_dict(meta))
            case _:
                text = clean(render(replace(done, value=part)).text)
                yield types.TextResourceContents(
                    uri=uri, mime_type=mime_type or "text/plain", text=text, _meta=_dict(meta)
                )


def _dict(meta: Mapping[str, Any] | None) -> dict[str, Any] | None:
    return None if meta is None else dict(meta)


def _messages(done: Completed, value: Any, role: Any) -> Iterator[types.PromptMessage]:
    """Yield the messages that a value is."""
    match value:
        case types.PromptMessage():
            yield value
        case PromptText():
            yield from _messages(done, value.content, value.role)
        case {"role": str() as said, "content": content}:
            yield from _messages(done, content, said)
        case list() | tuple():
            for part in cast("list[Any]", value):
                yield from _messages(done, part, role)
        case {"type": str()}:
            yield _message(done, role, value)
        case _:
            rendered = render(replace(done, value=value), blocks=text_in)
            if rendered.is_error:
                raise MCPError(INTERNAL_ERROR, clean(rendered.text))
            for part in rendered.parts or (rendered.text,):
                content = types.TextContent(text=clean(part)) if isinstance(part, str) else part
                yield _message(done, role, block_of(content) if isinstance(content, Media) else content)


def _message(done: Completed, role: Any, content: Any) -> types.PromptMessage:
    try:
        return types.PromptMessage.model_validate({"role": role, "content": content})
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        text = f"the prompt `{done.tool}` has an invalid message: {place}: {first['msg']}"
        raise MCPError(INTERNAL_ERROR, text) from None
