"""Media as content blocks of the protocol."""

from __future__ import annotations

from base64 import b64decode
from typing import Any, cast, get_args
from urllib.parse import quote

import mcp_types as types
from pydantic import BaseModel

from toolcrib.calls import Media, lenient

_BLOCKS: tuple[type[Any], ...] = get_args(types.ContentBlock)


def block_of(media: Media) -> types.ContentBlock:
    """Return media as a block: an image, a sound, an embedded file, or a link where only the URL is known."""
    if media.data is None:
        return types.ResourceLink(
            uri=media.url or "",
            name=media.name or media.url or "",
            title=media.title or None,
            description=media.description or None,
            mime_type=media.mime_type,
        )
    match media.mime_type.partition("/")[0]:
        case "image":
            return types.ImageContent(data=media.base64, mime_type=media.mime_type, _meta=_names_of(media))
        case "audio":
            return types.AudioContent(data=media.base64, mime_type=media.mime_type, _meta=_names_of(media))
        case _:
            place = media.url or f"toolcrib://result/{quote(media.name)}"
            resource = types.BlobResourceContents(uri=place, mime_type=media.mime_type, blob=media.base64)
            return types.EmbeddedResource(resource=resource)


def _names_of(media: Media) -> dict[str, Any] | None:
    """Return the names of media, in the place for facts that a block of its kind has no field for."""
    names = {key: text for key in ("name", "title", "description") if (text := getattr(media, key))}
    return {"toolcrib/media": names} if names else None


def text_in(value: object) -> str | None:
    """Return the text of a block of the protocol that a tool gave itself, None for another value."""
    match value:
        case types.TextContent():
            return value.text
        case types.EmbeddedResource(resource=types.TextResourceContents(text=text)):
            return text
        case _:
            return "" if isinstance(value, _BLOCKS) else None


def _media_of(block: types.ImageContent | types.AudioContent) -> Media:
    try:
        return Media(block.mime_type, b64decode(block.data))
    except ValueError:
        return Media(block.mime_type, b"")


def is_block_type(annotation: Any) -> bool:
    """Return whether a tool with this return annotation gives blocks or media, which have no schema to keep to."""
    blocks = (Media, types.CallToolResult, *_BLOCKS)
    return annotation in blocks or any(map(is_block_type, get_args(annotation)))


def shape_of(value: Any) -> Any:
    """Return a value with blocks of the protocol as JSON shapes; of media the facts, as these are blocks beside it."""
    match value:
        case list() | tuple():
            return [shape_of(part) for part in cast("list[Any]", value)]
        case types.ImageContent() | types.AudioContent():
            return _media_of(value).facts()
        case _ if isinstance(value, _BLOCKS):
            return cast("BaseModel", value).model_dump(by_alias=True, mode="json", exclude_none=True)
        case _:
            return lenient(value)
