"""Checks of a request over HTTP: its Host, Origin, headers, token, and how long its body takes; where it came from."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from urllib.parse import urlsplit

import anyio
from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from toolcrib._numbers import count_text
from toolcrib.errors import explain_options


class Site:
    """The names that a server goes by, and the pages that a browser may use it from.

    A page from anywhere can have its own name lead to this machine: so the header Host must hold a name of this server
    or an address, and the header Origin, which only browsers send, a page that is allowed.

    Args:
        host: The address the server listens on.
        allowed_hosts: Further names of the server, without a port.
        allowed_origins: Pages that may use it, besides its own: `https://example.org`.
        local_pages: Whether all pages of this machine may use a server that listens on this machine alone.

    Attributes:
        is_local: Whether only this machine can reach the server.
    """

    def __init__(
        self,
        host: str,
        allowed_hosts: Sequence[str] = (),
        allowed_origins: Sequence[str] = (),
        *,
        local_pages: bool = False,
    ) -> None:
        self.is_local = is_loopback(host)
        names = ("localhost", host, *allowed_hosts, *(() if self.is_local else (socket.gethostname(),)))
        self._names = frozenset(name.strip("[]").lower() for name in names)
        self._origins = frozenset(origin.rstrip("/").lower() for origin in allowed_origins)
        self._local_pages = local_pages and self.is_local

    def has_name(self, host: str) -> bool:
        """Return whether a header Host names this server."""
        name = host_of(host)
        return name in self._names or (_is_address(name) and (not self.is_local or is_loopback(name)))

    def allows(self, origin: str, host: str) -> bool:
        """Return whether the page of a header Origin may use the server that a header Host names."""
        if origin.lower() in self._origins:
            return True
        try:
            page = urlsplit(origin)
            name = page.hostname or ""
        except ValueError:
            return False
        if page.scheme not in ("http", "https") or page.path or page.query:
            return False
        return page.netloc.lower() == host.lower() or (self._local_pages and is_loopback(name))


class HttpGuard:
    """ASGI middleware: refuses requests that are not meant for this server, and ends open ones when it stops.

    Args:
        app: The application.
        site: The names of the server, and the pages that may use it.
        max_headers: The most headers of one request.
    """

    def __init__(self, app: ASGIApp, site: Site, max_headers: int = 100) -> None:
        self._app, self._site, self._max_headers = app, site, max_headers
        self._calls: set[anyio.CancelScope] = set()
        self._streams: set[anyio.CancelScope] = set()
        self._idle = asyncio.Event()
        self._idle.set()
        self._closing = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        refused = self._refusal(Headers(scope=scope))
        if refused is not None:
            await refused(scope, receive, send)
            return
        cancel, reply = anyio.CancelScope(), _Reply(send)
        open_requests = self._streams if scope["method"] == "GET" else self._calls
        open_requests.add(cancel)
        self._idle.clear()
        try:
            with cancel:
                await self._app(scope, receive, reply)
        finally:
            open_requests.discard(cancel)
            if not self._calls and not self._streams:
                self._idle.set()
        if cancel.cancelled_caught:
            await reply.end()

    @property
    def is_open(self) -> bool:
        """True if new requests are accepted."""
        return not self._closing

    async def close(self, grace: float = 0.0) -> None:
        """Refuse new requests, end streams (GET) at once, and other requests after `grace` seconds."""
        self._closing = True
        for stream in tuple(self._streams):
            stream.cancel()
        with suppress(TimeoutError):
            async with asyncio.timeout(grace):
                await self._idle.wait()
        for call in tuple(self._calls):
            call.cancel()
        await asyncio.sleep(0)

    def _refusal(self, headers: Headers) -> ASGIApp | None:
        if len(headers.raw) > self._max_headers:
            return refusal(431, "headers", f"a request has at most {count_text(self._max_headers, 'header')}")
        if "content-length" in headers and "transfer-encoding" in headers:  # a proxy may have read it otherwise
            return refusal(400, "length", "a request states its length in one way")
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not self._site.has_name(hosts[0]):
            return refusal(421, "host", "the header Host holds no name of this server; its options allow further names")
        if not all(self._site.allows(origin, hosts[0]) for origin in headers.getlist("origin")):
            return refusal(403, "origin", "the page in the header Origin may not use this server")
        if self._closing:
            return refusal(503, "closing", "this server is being stopped")
        return None


class _Reply:
    """Sends a reply, and can end one whose application was cancelled."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._begun = self._ended = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._begun = True
        elif message["type"] == "http.response.body":
            self._ended = not message.get("more_body", False)
        await self._send(message)

    async def end(self) -> None:
        if not self._begun:
            await self({"type": "http.response.start", "status": 503, "headers": [(b"content-length", b"0")]})
        if not self._ended:
            await self({"type": "http.response.body", "body": b""})


class BodyDeadline:
    """ASGI middleware: answers 408 when the body of a request has not arrived after `seconds`."""

    def __init__(self, app: ASGIApp, seconds: float) -> None:
        self._app, self._seconds = app, seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        deadline = asyncio.get_running_loop().time() + self._seconds
        arrived = False

        async def receive_in_time() -> Message:
            nonlocal arrived
            if arrived:  # the next message is that the client has disconnected
                return await receive()
            try:
                async with asyncio.timeout_at(deadline):
                    message = await receive()
            except TimeoutError:
                raise _LateError from None
            arrived = not message.get("more_body", False)
            return message

        try:
            await self._app(scope, receive_in_time, send)
        except _LateError:
            refused = refusal(408, "late", f"the request did not arrive within {self._seconds:g} s")
            await refused(scope, receive, send)


class _LateError(Exception):
    """The body of a request did not arrive in time."""


def refusal(status: int, code: str, error: str) -> ASGIApp:
    """Return the application that answers a refused request, and closes its connection."""
    return JSONResponse({"error": error, "code": code}, status, {"connection": "close"})


def is_loopback(host: str) -> bool:
    """Return whether a name or an address means this machine, and cannot be reached from another."""
    host = host.strip("[]").lower()
    return host == "localhost" or (_is_address(host) and ip_address(host).is_loopback)


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def host_of(header: str) -> str:
    """Return the name or address of a header Host, without the port; empty for an invalid one."""
    if header.startswith("["):
        address, bracket, rest = header[1:].partition("]")
        return address.lower() if bracket and _is_port(rest) else ""
    name, colon, port = header.partition(":")
    return name.lower() if _is_port(colon + port) else ""


def _is_port(text: str) -> bool:
    return text == "" or (text[0] == ":" and text[1:].isdigit() and len(text) <= 6)


_SHORTEST = 16  # characters


def check_tokens(tokens: Mapping[str, str]) -> None:
    """Check that tokens are secrets, one for each holder.

    Raises:
        ValueError: A token is short, not a word of ASCII, or held by two.
    """
    for name, token in tokens.items():
        if len(token) < _SHORTEST or not token.isascii() or not token.isprintable() or " " in token:
            raise ValueError(
                f"the token{name and f' of {name}'} must have at least {_SHORTEST} characters, of ASCII and without "
                'spaces; make one with: python -c "import secrets; print(secrets.token_urlsafe())"'
            )
    if len(set(tokens.values())) < len(tokens):
        raise ValueError("two names have the same token: give each its own")


class TokenTable:
    """Finds the holder of a token; the time that takes says nothing about any token.

    Args:
        tokens: The token of each holder, by name.
    """

    def __init__(self, tokens: Mapping[str, str]) -> None:
        self._hashes = tuple((name, _hash(token)) for name, token in tokens.items())

    def holder(self, token: str) -> str | None:
        """Return the name of a token's holder; None for an unknown token."""
        digest, found = _hash(token), None
        for name, known in self._hashes:
            if hmac.compare_digest(digest, known):
                found = name
        return found


def _hash(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


@explain_options()
class TrustedProxies:
    """Proxies whose `X-Forwarded-For` tells where a request came from.

    A proxy appends the address of its own client to the header, so it is read from the right, and only as far as
    trusted proxies wrote it: what stands further left may be the client's own invention. Without trusted proxies the
    address is that of the connection, whatever the header says.

    Args:
        addresses: Addresses of proxies, or networks such as `10.0.0.0/8`.

    Raises:
        ValueError: An address is invalid.
    """

    def __init__(self, addresses: Sequence[str] = ()) -> None:
        try:
            self._networks = [_network(address) for address in addresses]
        except ValueError as error:
            text = "invalid address of a trusted proxy: {}; write an IP address, or a network such as 10.0.0.0/8"
            raise ValueError(text.format(error)) from None

    def client_address(self, scope: Scope) -> str:
        """Return the address that a request came from; that of a proxy which does not tell its client's."""
        peer = scope.get("client")
        found = _address(str(peer[0])) if peer else None
        if found is None:
            return str(peer[0]) if peer else "an unknown address"
        entries = ",".join(Headers(scope=scope).getlist("x-forwarded-for")).split(",")
        while entries and any(found in network for network in self._networks):
            before = _address(entries.pop().strip())
            if before is None:
                break
            found = before
        return str(found)


def _network(text: str) -> IPv4Network | IPv6Network:
    """Return a network; one of IPv4 also where it is written as IPv6."""
    network = ip_network(text)
    mapped = network.network_address.ipv4_mapped if isinstance(network, IPv6Network) else None
    return network if mapped is None or network.prefixlen < 96 else ip_network((mapped, network.prefixlen - 96))


def _address(text: str) -> IPv4Address | IPv6Address | None:
    """Return an address, with or without a port; an IPv4 address also where it is written as IPv6."""
    for candidate in (text, host_of(text)):
        try:
            address = ip_address(candidate)
        except ValueError:
            continue
        return (address.ipv4_mapped or address) if isinstance(address, IPv6Address) else address
    return None
