"""Media in the content of another framework, and behind a URL in a tool's result."""

from __future__ import annotations

from base64 import b64decode
from binascii import Error
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote_to_bytes

from toolcrib.calls import Media, Rendered


@dataclass(frozen=True, slots=True)
class MediaForms:
    """The framework's own content for what a model is shown.

    Attributes:
        text: Makes content of text.
        kinds: Makes content of media with `data`, by the first half of their MIME type, such as `image`; `""` is for
            all others.
        links: The same of media whose `url` alone is known; the makers of `kinds` when None.
    """

    text: Callable[[str], Any]
    kinds: Mapping[str, Callable[[Media], Any]]
    links: Mapping[str, Callable[[Media], Any]] | None = None

    def of(self, part: str | Media) -> Any:
        """Return one part of a result as content."""
        if isinstance(part, str):
            return self.text(part)
        makers = self.links if part.data is None and self.links is not None else self.kinds
        return makers.get(part.mime_type.partition("/")[0], makers[""])(part)

    def contents(self, shown: Rendered) -> list[Any]:
        """Return all that a model is shown of an outcome as content."""
        return [self.of(part) for part in shown.parts or (shown.text,)]


def media_at(url: str, kind: str, name: str = "") -> Media | str:
    """Return the media of a URL, of which a `data:` URL holds the bytes; the text itself where the URL is invalid.

    Args:
        kind: The MIME type of what a URL does not name one for.
        name: A file name.
    """
    try:
        if not url.startswith("data:"):
            return Media(kind, url=url, name=name)
        head, _, body = url.removeprefix("data:").partition(",")
        mime_type, *words = head.split(";")
        data = b64decode(body, validate=True) if "base64" in words else unquote_to_bytes(body)
        return Media(mime_type or kind, data, name=name)
    except (Error, ValueError):
        return url
