"""Roots: the folders of a client that a server may work in."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import unquote, urlsplit

from toolcrib.schema import ClientRoot


def root_uri(place: str | Path) -> str:
    """Return the URI of a folder that is given as a path or as a URI."""
    return str(place) if "://" in str(place) else Path(place).resolve().as_uri()


def common_roots(found: Iterable[ClientRoot], allowed: Iterable[ClientRoot]) -> list[ClientRoot]:
    """Return what is in both: folders of the client inside allowed ones, and allowed ones inside the client's."""
    kept: dict[str, ClientRoot] = {}
    permitted = [*allowed]
    for root in found:
        for other in permitted:
            if _is_inside(root.uri, other.uri):
                kept.setdefault(root.uri, root)
            elif _is_inside(other.uri, root.uri):
                kept.setdefault(other.uri, other)
    return [*kept.values()]


def _is_inside(uri: str, folder: str) -> bool:
    inner, outer = _place(uri), _place(folder)
    return inner[:2] == outer[:2] and inner[2][: len(outer[2])] == outer[2]


def _place(uri: str) -> tuple[str, str, list[str]]:
    """Return scheme, host and the parts of a path, as they are after `..` and escapes."""
    parts = urlsplit(uri)
    path = posixpath.normpath("/" + unquote(parts.path).lstrip("/"))
    host = "" if parts.hostname in (None, "localhost") else str(parts.hostname)
    return parts.scheme.lower(), host, [part for part in path.split("/") if part]
