"""Requests of operations: the address, headers and body that arguments come to."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, unquote

from toolcrib.errors import ModelRetry
from toolcrib.openapi._bodies import Content
from toolcrib.openapi._credentials import Signing
from toolcrib.openapi._operations import Endpoint
from toolcrib.openapi._styles import Parameter

_PART = re.compile(r"\{([^{}]+)\}")
_PATH = "/:@!$&'()*+,;=-._~%"  # of what a document's own path has


@dataclass(frozen=True, slots=True)
class Prepared:
    """A request that is ready to be sent.

    Attributes:
        headers: But for those of credentials, the host and the body.
        signing: The additions of the credentials.
    """

    method: str
    url: str
    headers: Mapping[str, str]
    content: Content | None
    signing: Signing = field(repr=False)


def prepared(
    method: str, server: str, path: str, endpoint: Endpoint, arguments: Mapping[str, Any], signing: Signing
) -> Prepared:
    """Return the request that arguments come to.

    Raises:
        ModelRetry: An argument cannot be written where it has to go.
    """
    kinds = [kind for kind in endpoint.accepts if kind.isascii() and kind.isprintable() and "*" not in kind]
    headers: dict[str, str] = {"Accept": ", ".join([*(kinds or ["application/json"]), "*/*;q=0.5"])}
    cookies: list[str] = []
    for _, parameter, value in _sent_parameters(endpoint, arguments):
        if parameter.place == "header":
            headers[parameter.name] = parameter.in_header(value)
        elif parameter.place == "cookie":
            cookies += parameter.in_cookie(value)
    has_body = endpoint.body is not None and "body" in arguments
    content = endpoint.body.content(arguments["body"]) if endpoint.body is not None and has_body else None
    if cookies or signing.cookies:
        headers["Cookie"] = "; ".join([*cookies, *signing.cookies])
    url = address_of(server, path, endpoint, arguments, signing.query)
    return Prepared(method, url, headers, content, signing)


def address_of(
    server: str, path: str, endpoint: Endpoint, arguments: Mapping[str, Any], signed: Sequence[str] = ()
) -> str:
    """Return the address that a request with these arguments goes to.

    Args:
        signed: The additions of the credentials to the query.

    Raises:
        ModelRetry: An argument cannot be written there.
    """
    parts: dict[str, str] = {}
    query: list[str] = []
    for name, parameter, value in _sent_parameters(endpoint, arguments):
        if parameter.place == "path":
            text = parameter.in_path(value)
            if not text:
                raise ModelRetry(f"`{name}` is a part of the address: it cannot be empty.")
            parts[parameter.name] = text
        elif parameter.place == "query":
            query += parameter.in_query(value)
    query += signed
    path, _, written_query = path.partition("#")[0].partition("?")  # a fragment only tells operations of one path apart
    query[:0] = [_PART.sub(lambda found: parts.get(found[1], ""), written_query)] if written_query else []
    address = server.rstrip("/") + _filled(path, parts)
    return f"{address}?{'&'.join(query)}" if query else address


def _sent_parameters(endpoint: Endpoint, arguments: Mapping[str, Any]) -> Iterator[tuple[str, Parameter, Any]]:
    """Yield the parameters that are sent, each after the name of its argument and with its value."""
    for name, parameter in endpoint.parameters.items():
        value = arguments.get(name)
        if value is not None or (parameter.place == "path" and name in arguments):
            yield name, parameter, value


def _filled(path: str, parts: Mapping[str, str]) -> str:
    """Return a path with its parameters; raises ModelRetry where one would lead to another path."""
    filled = _PART.sub(lambda found: parts.get(found[1], ""), path)
    segments: list[str] = []
    for wanted, segment in zip(path.split("/"), filled.split("/"), strict=True):  # a value has no slash of its own
        if segment != wanted and unquote(segment) in (".", ".."):
            name = ", ".join(_PART.findall(wanted))
            raise ModelRetry(f"`{name}` is a part of the address: it cannot be `{unquote(segment)}`.")
        segments.append(segment if segment != wanted else quote(segment, safe=_PATH))
    return "/".join(segments)
