"""Images, sounds and files in results, as content blocks of the protocol."""

from __future__ import annotations

import base64
from typing import Any, Protocol, cast, get_args, runtime_checkable

import mcp_types as types

__all__ = ["Media", "blocks_of", "is_block_type"]

_BLOCKS: tuple[type[Any], ...] = get_args(types.ContentBlock)


@runtime_checkable
class Media(Protocol):
    """Bytes that say what they are, such as Pydantic AI's `BinaryContent`."""

    @property
    def data(self) -> bytes:
        """The bytes."""
        ...

    @property
    def media_type(self) -> str:
        """What they are: `image/png`."""
        ...


def is_block_type(annotation: Any) -> bool:
    """Return whether a tool with this return annotation gives content blocks, which have no schema to keep to."""
    parts = get_args(annotation) or (annotation,)
    return any(part in _BLOCKS for part in parts)


def blocks_of(value: object) -> list[Any] | None:
    """Return a result's parts, blocks for what is or holds media and other values as they are; None without media."""
    several: list[Any] = cast("list[Any]", value) if isinstance(value, list) else [value]
    parts = [_block(part) for part in several]
    return parts if any(isinstance(part, _BLOCKS) for part in parts) else None


def _block(value: object) -> Any:
    if isinstance(value, _BLOCKS) or not isinstance(value, Media):
        return value
    text, kind = base64.b64encode(value.data).decode(), value.media_type
    match kind.partition("/")[0]:
        case "image":
            return types.ImageContent(data=text, mime_type=kind)
        case "audio":
            return types.AudioContent(data=text, mime_type=kind)
        case _:
            held = types.BlobResourceContents(uri="toolcrib://result", mime_type=kind, blob=text)
            return types.EmbeddedResource(resource=held)
