"""Servers of a document: the address that requests go to, with its variables filled in."""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import Mapping, Sequence
from ipaddress import ip_address
from typing import Any
from urllib.parse import urljoin, urlsplit

from toolcrib._networks import address_of, inner_address, is_about_machine, is_public, plain_host
from toolcrib._numbers import count_text
from toolcrib.errors import DocumentError, ToolConstraintError
from toolcrib.openapi._document import Document
from toolcrib.openapi._shapes import list_of, mapping_of

_VARIABLE = re.compile(r"\{([^{}]*)\}")


def server_of(
    document: Document, servers: Sequence[Any] | None, server: str | int | None, variables: Mapping[str, str]
) -> str:
    """Return the address of the server of an operation.

    Args:
        document: The document.
        servers: Those of the operation itself, in the place of the document's.
        server: The host's own address, or which of the servers it is.
        variables: Values for variables in the address.

    Raises:
        DocumentError: No server of it is on the web, a variable has no such value, or the document leads into a
            private net that it is not from itself.
    """
    if isinstance(server, str):
        return _on_the_web(document, server)
    found = [*(servers or list_of(document.root.get("servers")))] or [{"url": "/"}]
    number = server or 0
    if number >= len(found):
        if servers is None:
            raise document.error(f"has {count_text(len(found), 'server')}, and `server` says {number}")
        number = 0
    spec = mapping_of(found[number])
    address = _VARIABLE.sub(lambda part: _value(document, spec, part[1], variables), str(spec.get("url", "/")))
    url = _on_the_web(document, urljoin(document.address, address) if document.address else address)
    _require_reach(document, url, leaders_of(document, servers, server, variables) or ())
    return url


def require_variables(document: Document, variables: Mapping[str, str]) -> None:
    """Check that each variable is of a server's address; raises ToolConstraintError for one that has no effect."""
    parts = [document.root, *(mapping_of(path) for path in mapping_of(document.root.get("paths")).values())]
    parts += [mapping_of(operation) for path in parts[1:] for operation in path.values()]
    servers = [mapping_of(server) for part in parts for server in list_of(part.get("servers"))]
    known = sorted({name for server in servers for name in _VARIABLE.findall(str(server.get("url", "")))})
    for name in variables:
        if name not in known:
            raise ToolConstraintError(name, "`variables` has it, and no server of the document does", tuple(known))


def leaders_of(
    document: Document, servers: Sequence[Any] | None, server: str | int | None, variables: Mapping[str, str]
) -> tuple[str, ...] | None:
    """Return the addresses that lead an operation to its server, which may be private where all of them are.

    None where the host says where the server is, and may say anything.
    """
    if isinstance(server, str):
        return None
    home = () if servers is None else (server_of(document, None, server, variables),)
    return (document.address, *home) if document.address.startswith(("http://", "https://")) else home


def _require_reach(document: Document, address: str, leaders: Sequence[str]) -> None:
    """Raise DocumentError for an address that the document is not to decide on: the host says it with `server`."""
    host = urlsplit(address).hostname
    leads_inside = is_inside(host) and not all(is_inside(urlsplit(leader).hostname) for leader in leaders)
    if leads_inside or _tells_secrets(host):
        mend = "if that is where the API is, say so with server='http://...'"
        raise document.error(f"has a server in a private net or on this machine, {host!r:.100}; {mend}")


def is_elsewhere(document: Document, address: str, server: str | int | None, variables: Mapping[str, str]) -> bool:
    """Return whether an address is of another host than the API's own server."""
    return origin_of(address) != origin_of(server_of(document, None, server, variables))


def origin_of(address: str) -> tuple[str, str | None, int | None]:
    """Return the scheme, host and port of an address."""
    parts = urlsplit(address)
    return parts.scheme, parts.hostname, parts.port or {"http": 80, "https": 443}.get(parts.scheme)


async def addresses_of(address: str) -> list[str]:
    """Return the network addresses that the host of an address has; none where its name is not known here."""
    parts = urlsplit(address)
    try:
        found = await asyncio.get_running_loop().getaddrinfo(
            parts.hostname, parts.port or {"http": 80}.get(parts.scheme, 443), type=socket.SOCK_STREAM
        )
    except (OSError, UnicodeError, ValueError):
        return []
    return list(dict.fromkeys(str(place[0]).partition("%")[0] for *_, place in found))


async def may_reach(leaders: Sequence[str], found: Sequence[str]) -> bool:
    """Return whether a request may go to these network addresses: to private ones only where all leaders are private.

    What answers a machine about itself is never reached.
    """
    if any(map(_tells_secrets, found)):
        return False
    return not any(map(is_private, found)) or all([await _is_private_host(leader) for leader in leaders])


async def _is_private_host(address: str) -> bool:
    here = await addresses_of(address)
    return is_inside(urlsplit(address).hostname) or (bool(here) and all(map(is_private, here)))


def is_private(address: str) -> bool:
    """Return whether a network address is of a private net, of this machine, or for a purpose of its own."""
    return not is_public(inner_address(ip_address(address)))


def is_inside(host: str | None) -> bool:
    """Return whether a name is one of a machine's or of a private net, as far as the name says so."""
    name = plain_host(host or "")
    if not name or name == "localhost" or name.endswith((".localhost", ".local", ".internal", ".home.arpa")):
        return True
    address = address_of(name)
    if address is not None:
        return not is_public(inner_address(address))
    return "." not in name or name.rpartition(".")[2].isdecimal()


def _tells_secrets(host: str | None) -> bool:
    """Return whether a host is one that answers this machine alone about itself, as the metadata of clouds do."""
    address = address_of(host or "")
    if address is None:
        return plain_host(host or "") in ("metadata.google.internal", "metadata.goog")
    return is_about_machine(address)


def _value(document: Document, spec: Mapping[str, Any], name: str, variables: Mapping[str, str]) -> str:
    about = mapping_of(mapping_of(spec.get("variables")).get(name))
    value = variables.get(name, about.get("default"))
    if value is None:
        raise document.error(f"has a server with the variable `{name}`; give it with variables={{{name!r}: ...}}")
    allowed = list_of(about.get("enum"))
    if allowed and value not in allowed:
        values = ", ".join(map(str, allowed))
        raise document.error(
            f"has a server whose variable `{name}` must be one of {values:.300}, and not {value!r:.80}"
        )
    return str(value)


def _on_the_web(document: Document, address: str) -> str:
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        mend = "say where it is with server='https://...'"
        raise document.error(f"names no server on the web ({address!r:.200}); {mend}")
    if parts.query or parts.fragment or parts.username is not None:
        raise DocumentError(document.title, f"has a server with more than an address: {parts.hostname}{parts.path}")
    return address
