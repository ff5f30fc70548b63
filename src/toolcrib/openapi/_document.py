"""OpenAPI document: read from a file, an address or a dict, and what its references lead to.

A reference leads into the document itself, or to another one in the same folder or on the same host, unless the host
allows more. Nothing else is read.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, NamedTuple, cast
from urllib.parse import unquote, urldefrag, urljoin, urlsplit
from urllib.request import url2pathname

import httpx2
from referencing import Registry, Resource, Specification
from referencing.exceptions import Unresolvable

from toolcrib._tls import shared_tls
from toolcrib.errors import DocumentError
from toolcrib.openapi._shapes import mapping_of
from toolcrib.openapi._yaml import read_json_shapes

_log = logging.getLogger("toolcrib.openapi")

_MOST_BYTES = 64 * 1024 * 1024
_MOST_FILES = 200  # that one document refers to
_MOST_STEPS = 50  # of references that lead to references
_SECONDS = 30.0
_MOST_LOGGED = 100  # wrong keywords of one document
_VERSIONS = ("3.0", "3.1", "3.2")


class Place(NamedTuple):
    """The target of a reference.

    Attributes:
        value: The value there.
        base: The address of the document that it is in, by which references in it are read.
        key: Its own address, the same for all references to it.
    """

    value: Any
    base: str
    key: str


class Document:
    """An OpenAPI document.

    Attributes:
        address: Where it was read from; empty for a dict.
        root: The whole of it.
        is_3_0: Whether its schemas are those of OpenAPI 3.0, and not JSON Schema.
        title: Its title.
    """

    def __init__(self, address: str, root: Any, allowed: Collection[str]) -> None:
        self.address, self._allowed = address, frozenset(allowed)
        self._places: dict[tuple[str, str], Place] = {}
        self._read: dict[str, Resource[Any]] = {}
        self._logged = set[str]()
        shown = _shown(address)
        if not isinstance(root, Mapping):
            raise DocumentError(shown, "is not an OpenAPI document: it is not an object")
        named = cast("Mapping[str, Any]", root)
        if "swagger" in named:
            mend = "Convert it to OpenAPI 3, as with `npx swagger2openapi FILE`, and give that"
            raise DocumentError(
                shown, f"is written in Swagger {named['swagger']}, and this reads OpenAPI 3.0 and 3.1. {mend}"
            )
        version = str(named.get("openapi", ""))
        if not version.startswith(_VERSIONS):
            fault = f"says `openapi: {version:.20}`" if version else "has no field `openapi`"
            raise DocumentError(shown, f"{fault}, and this reads OpenAPI 3.0 and 3.1")
        self.root = named
        self.is_3_0 = str(self.root["openapi"]).startswith("3.0")
        title = mapping_of(self.root.get("info")).get("title")
        self.title = title if isinstance(title, str) and title.strip() else _shown(address)
        resource = Resource(contents=self.root, specification=Specification.OPAQUE)
        registry: Any = cast("Any", Registry)(retrieve=self._retrieve)
        self._resolver: Any = registry.with_resource(address, resource).resolver(address)

    def place(self, value: Any, base: str | None = None) -> Place:
        """Return a part of the document, or what it refers to where it is a reference.

        Raises:
            DocumentError: It refers to nothing, to itself, or to what may not be read.
        """
        found = Place(value, self.address if base is None else base, "")
        for _ in range(_MOST_STEPS):
            ref = mapping_of(found.value).get("$ref")
            if not isinstance(ref, str):
                return found
            found = self.find(ref, found.base)
        raise self.error(f"has references that lead in a circle, at {found.key:.200}")

    def find(self, ref: str, base: str) -> Place:
        """Return the target of a reference.

        Raises:
            DocumentError: It leads nowhere, or to what may not be read.
        """
        known = self._places.get((base, ref))
        if known is not None:
            return known
        url = ref if base == "" else urljoin(base, ref)
        address, fragment = urldefrag(url)
        if address != self.address:
            self._retrieve(address)
        try:
            found = self._resolver.lookup(f"{address}#{fragment}")
        except (Unresolvable, ValueError, TypeError, KeyError):
            raise self.error(f"refers to {ref!r:.200}, and there is nothing") from None
        place = self._places[base, ref] = Place(found.contents, address, f"{address}#{fragment}")
        return place

    def log_wrong(self, keyword: str) -> None:
        """Log once what is wrong in a schema."""
        if keyword not in self._logged and len(self._logged) < _MOST_LOGGED:
            self._logged.add(keyword)
            _log.warning(
                "the OpenAPI document `%s` has the wrong %s, which is left out and not checked", self.title, keyword
            )

    def error(self, problem: str) -> DocumentError:
        """Return an error about this document."""
        return DocumentError(_shown(self.address), problem)

    def _retrieve(self, address: str) -> Any:
        """Return another document that this one refers to, read once."""
        if address in self._read:
            return self._read[address]
        if not self._may_read(address):
            mend = "references stay in its folder or on its host; allow others with allow_refs=[...]"
            raise self.error(f"refers to {address!r:.200}: {mend}")
        if len(self._read) >= _MOST_FILES:
            mend = "put it into one file first, as with `npx @redocly/cli bundle FILE`"
            raise self.error(f"refers to more than {_MOST_FILES} other documents; {mend}")
        value, _ = _value_at(address)
        self._read[address] = Resource(contents=value, specification=Specification.OPAQUE)
        return self._read[address]

    def _may_read(self, address: str) -> bool:
        parts, home = urlsplit(address), urlsplit(self.address)
        if any(address == prefix or address.startswith(f"{prefix.rstrip('/')}/") for prefix in self._allowed):
            return True
        if home.scheme == "file" and parts.scheme == "file":
            return _path_of(address).is_relative_to(_path_of(self.address).parent)
        is_same_host = (parts.scheme, parts.netloc) == (home.scheme, home.netloc)
        return is_same_host and parts.scheme in ("http", "https")


def read_document(source: object, allowed: Collection[str] = ()) -> Document:
    """Return the document of a path, an address or a dict.

    Args:
        source: Where it is, or the document itself.
        allowed: Addresses, or beginnings of addresses, of other documents that references may lead to.

    Raises:
        DocumentError: It cannot be read, or is not an OpenAPI document of a version 3.
    """
    if isinstance(source, Mapping):
        return Document("", cast("Mapping[str, Any]", source), allowed)
    if not isinstance(source, str | Path):
        raise TypeError(f"an OpenAPI document is a path, an address or a dict, and this is {source!r:.80}")
    text = str(source)
    is_address = isinstance(source, str) and text.startswith(("http://", "https://"))
    value, address = _value_at(text if is_address else Path(source).resolve().as_uri())
    return Document(address, value, allowed)


def _value_at(address: str) -> tuple[Any, str]:
    """Return the value of the JSON or YAML at an address, and the address that it came from in the end."""
    shown = _shown(address)
    data, address = _downloaded(address) if not address.startswith("file:") else (_file(address), address)
    try:
        return read_json_shapes(data.decode("utf-8-sig")), address
    except ValueError as error:
        raise DocumentError(shown, f"is neither JSON nor YAML: {error}") from None


def _file(address: str) -> bytes:
    try:
        with _path_of(address).open("rb") as file:
            data = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise DocumentError(_shown(address), f"cannot be read: {error.strerror or error}") from None
    return _within(data, address)


def _path_of(address: str) -> Path:
    return Path(url2pathname(urlsplit(address).path)).resolve()


def _within(data: bytes | bytearray, address: str) -> bytes:
    if len(data) > _MOST_BYTES:
        raise DocumentError(_shown(address), f"is larger than {_MOST_BYTES // 1024 // 1024} MB")
    return bytes(data)


def _downloaded(address: str) -> tuple[bytes, str]:
    """Download an address; redirects are followed on the same host alone."""
    host = urlsplit(address).hostname
    try:
        with httpx2.Client(timeout=_SECONDS, verify=shared_tls()) as client:
            for _ in range(5):
                with client.stream("GET", address, headers={"Accept": "application/json, */*;q=0.8"}) as response:
                    if response.next_request is not None:
                        further = str(response.next_request.url)
                        if urlsplit(further).hostname != host or not further.startswith(urlsplit(address).scheme):
                            raise DocumentError(_shown(address), f"has moved to {further:.200}; give that address")
                        address = further
                        continue
                    if response.status_code != 200:
                        raise DocumentError(
                            _shown(address), f"cannot be read: the server answered {response.status_code}"
                        )
                    data = bytearray()
                    for piece in response.iter_bytes():
                        data += piece
                        if len(data) > _MOST_BYTES:
                            break
                    return _within(data, address), address
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise DocumentError(_shown(address), f"cannot be read: {str(error) or type(error).__name__}") from None
    raise DocumentError(_shown(address), "cannot be read: it moves on and on")


def _shown(address: str) -> str:
    """Return an address as messages have it: a file's path, and no secret part of an address on the web."""
    parts = urlsplit(address)
    if parts.scheme == "file":
        return Path(unquote(parts.path)).name
    return f"{parts.hostname}{parts.path}" if parts.hostname else "given as a dict"
