"""Media as content blocks of the protocol."""

from __future__ import annotations

from typing import Any, get_args
from urllib.parse import quote

import mcp_types as types

from toolcrib.calls import Media

__all__ = ["block_of", "is_block_type", "text_in"]

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
            held = types.BlobResourceContents(uri=place, mime_type=media.mime_type, blob=media.base64)
            return types.EmbeddedResource(resource=held)


def _names_of(media: Media) -> dict[str, Any] | None:
    """Return what media are called, in the place for what a block of its kind has no field for."""
    names = {key: text for key in ("name", "title", "description") if (text := getattr(media, key))}
    return {"toolcrib/media": names} if names else None


def text_in(value: object) -> str | None:
    """Return the text of a block of the protocol that a tool gave itself, None for what is no block."""
    match value:
        case types.TextContent():
            return value.text
        case types.EmbeddedResource(resource=types.TextResourceContents(text=text)):
            return text
        case _:
            return "" if isinstance(value, _BLOCKS) else None


def is_block_type(annotation: Any) -> bool:
    """Return whether a tool with this return annotation gives blocks or media, which have no schema to keep to."""
    return annotation is Media or annotation in _BLOCKS or any(map(is_block_type, get_args(annotation)))
