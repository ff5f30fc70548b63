"""Media behind a URL that another framework gives in a tool's result."""

from __future__ import annotations

from base64 import b64decode
from binascii import Error
from urllib.parse import unquote_to_bytes

from toolcrib.calls import Media

__all__ = ["media_at"]


def media_at(url: str, kind: str, name: str = "") -> Media | str:
    """Return the media of a URL, of which a `data:` URL holds the bytes; the text itself where it is none.

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
