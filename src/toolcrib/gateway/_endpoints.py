"""Endpoints of a file of servers: several paths of one process, each with servers and options of its own."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, cast

from pydantic import Field

from toolcrib.errors import TargetError, closest
from toolcrib.gateway._fields import FilePlace, Part, Text, read_part

_OWN: Final = ("approvers", "budgets", "code_mode", "errors", "groups", "instructions", "limits", "name", "provenance")
_OF_SECTION: Final = (*_OWN, "scopes", "search")
"""The options of the section that an endpoint may have; what it has takes the place of what the section says."""


class _Endpoint(Part):
    """The options of an endpoint besides those of the section.

    Attributes:
        servers: The servers and APIs whose tools are offered there.
        public_url: The whole URL of it as clients write it, behind a proxy.
    """

    servers: list[str] = Field(min_length=1)
    public_url: Text | None = None


def endpoints_of(path: Path, document: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the section of each endpoint in a document, by its path.

    Raises:
        TargetError: A path is invalid, or an option is unknown; the error names the endpoint and the field.
    """
    entry: Any = document.get("toolcrib")
    section = cast("dict[str, Any]", entry) if isinstance(entry, dict) else {}
    found: Any = section.get("endpoints", {})
    place = FilePlace(path)
    if not isinstance(found, dict):
        raise place.wrong("toolcrib.endpoints", 'it has them by path: {"/finance/mcp": {"servers": ["books"]}}')
    endpoints = cast("dict[str, Any]", found)
    if endpoints and "public_url" in (section.get("http") or {}):
        raise place.wrong("toolcrib.http.public_url", "there are several endpoints: give each its own `public_url`")
    for name, options in endpoints.items():
        if not name.startswith("/") or name.endswith("/") or {*name} & {*"?#{}"} or not isinstance(options, dict):
            raise place.wrong(f"toolcrib.endpoints.{name}", 'write it as "/finance/mcp": {"servers": ["books"]}')
        for option in cast("dict[str, Any]", options):
            if option not in (*_OF_SECTION, *_Endpoint.model_fields):
                known = closest(option, (*_OF_SECTION, *_Endpoint.model_fields))
                raise place.wrong(f"toolcrib.endpoints.{name}.{option}", f"an endpoint has no such option. {known}")
    return endpoints


def document_of(path: Path, document: Mapping[str, Any], endpoint: str | None) -> Mapping[str, Any]:
    """Return a document as it is for one endpoint: with its servers, and its options in place of the section's.

    Raises:
        TargetError: The document has endpoints and none is named, or the one that is named does not exist.
    """
    endpoints = endpoints_of(path, document)
    if endpoint is None and not endpoints:
        return document
    if endpoint is None:
        first, names = next(iter(endpoints)), ", ".join(endpoints)
        raise TargetError(str(path), f"it has the endpoints {names}: name one, as in {path.name}#{first}")
    if endpoint not in endpoints:
        raise TargetError(str(path), f"it has no endpoint `{endpoint}`. {closest(endpoint, endpoints)}")
    fields = {name: value for name, value in endpoints[endpoint].items() if name in _Endpoint.model_fields}
    read = read_part(FilePlace(path), _Endpoint, fields, f"toolcrib.endpoints.{endpoint}.")
    section: dict[str, Any] = {name: value for name, value in document["toolcrib"].items() if name != "endpoints"}
    http = {**section.get("http", {}), "path": endpoint}
    http |= {} if read.public_url is None else {"public_url": read.public_url}
    options = {name: value for name, value in endpoints[endpoint].items() if name in _OF_SECTION}
    return {**document, "toolcrib": {**section, **options, "http": http}, "of_endpoint": read.servers}
