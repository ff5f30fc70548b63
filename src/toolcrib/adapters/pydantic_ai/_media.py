"""Media as Pydantic AI's content, and back."""

from __future__ import annotations

from typing import Any, TypeAlias, cast

from pydantic_ai.messages import (
    MULTI_MODAL_CONTENT_TYPES,
    AudioUrl,
    BinaryContent,
    CachePoint,
    DocumentUrl,
    ImageUrl,
    TextContent,
    ToolReturn,
    VideoUrl,
)

from toolcrib.calls import Media

_Url: TypeAlias = ImageUrl | AudioUrl | VideoUrl | DocumentUrl
_URLS: dict[str, type[_Url]] = {"image": ImageUrl, "audio": AudioUrl, "video": VideoUrl}


def content_of(media: Media) -> BinaryContent | _Url:
    """Return media as their content."""
    name, kind = media.name or None, media.mime_type
    if media.data is not None:
        return BinaryContent(media.data, media_type=kind, identifier=name)
    url = _URLS.get(kind.partition("/")[0], DocumentUrl)
    return url(media.url or "", media_type=kind, identifier=name)


def file_in(value: object) -> str | None:
    """Return the text of their own content in a tool's result, which is empty; None for anything else."""
    return "" if isinstance(value, MULTI_MODAL_CONTENT_TYPES) else None


def content_in(value: object) -> str | None:
    """Return the same, also for a result with more content beside it: the adapter looks at the parts of that."""
    return "" if isinstance(value, ToolReturn) else file_in(value)


def text_in(value: object) -> str | None:
    """Return the text of their own content beside a tool's result, None for anything else."""
    match value:
        case str():
            return value
        case TextContent():
            return value.content
        case CachePoint():
            return ""
        case _:
            return file_in(value)


def with_media(value: Any) -> Any:
    """Return a tool's value with media in the place of their content, alone or in a list.

    Content with metadata for one provider stays as it is, because media have no place for them.
    """
    if isinstance(value, list):
        return [_media_of(part) for part in cast("list[Any]", value)]
    return _media_of(value)


def _media_of(content: Any) -> Any:
    if not isinstance(content, BinaryContent | ImageUrl | AudioUrl | VideoUrl | DocumentUrl) or content.vendor_metadata:
        return content
    try:
        kind = content.media_type
    except ValueError:  # it is guessed from the URL, and cannot be
        return content
    return Media(kind, content.data) if isinstance(content, BinaryContent) else Media(kind, url=content.url)
