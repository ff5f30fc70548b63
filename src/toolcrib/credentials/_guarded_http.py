"""HTTP client for addresses that another server names: it visits no private network that the server is not in itself.

Each name is resolved once, all of its addresses are checked, and the request goes to one that was checked. Redirects
are not followed, the proxies of the environment are not used, and replies have a limit.
"""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from ipaddress import ip_address
from typing import Any, Final, Literal, TypeAlias, cast
from urllib.parse import urlsplit

import httpx2

from toolcrib._networks import inner_address, is_about_machine, is_public
from toolcrib._tls import shared_tls
from toolcrib.errors import ConsentError

_Range: TypeAlias = Literal["public", "private", "loopback", "never"]
_MOST_BYTES: Final = 256 * 1024
_SECONDS: Final = 15.0


class AddressError(ConsentError):
    """An address that another server names and that is not visited."""


class GuardedClient:
    """Makes requests to the addresses that a server, or its authorization server, names.

    Args:
        http: Sends them.
        seconds: The time in which a whole answer has to come.
    """

    def __init__(self, http: httpx2.AsyncClient, *, seconds: float = _SECONDS) -> None:
        self._http, self._seconds = http, seconds

    async def get_json(self, url: str) -> dict[str, Any] | None:
        """Return the object at an address, or None."""
        status, body = await self._reply(self._http.build_request("GET", url, headers={"accept": "application/json"}))
        return _object(body) if status == 200 else None

    async def get_status(self, url: str) -> tuple[int, str]:
        """Return the status of an address, and the header `WWW-Authenticate` of its reply."""
        request = self._http.build_request("POST", url, json={}, headers={"accept": "application/json"})
        async with _sent(self._http, request) as response:
            return response.status_code, response.headers.get("www-authenticate", "")

    async def post_json(self, url: str, value: Mapping[str, Any]) -> tuple[int, dict[str, Any]]:
        """Return the status and the object that the answer to an object has."""
        status, body = await self._reply(self._http.build_request("POST", url, json=dict(value)))
        return status, _object(body) or {}

    async def post_form(
        self, url: str, fields: Mapping[str, str], basic: tuple[str, str] | None = None
    ) -> tuple[int, dict[str, Any]]:
        """Return the status and the object that the answer to a form has."""
        request = self._http.build_request("POST", url, data=dict(fields), headers={"accept": "application/json"})
        if basic is not None:
            request = next(httpx2.BasicAuth(*basic).auth_flow(request))
        status, body = await self._reply(request)
        return status, _object(body) or {}

    async def _reply(self, request: httpx2.Request) -> tuple[int, bytes]:
        request.headers["accept-encoding"] = "identity"  # what is unpacked may be of any size
        try:
            async with asyncio.timeout(self._seconds), _sent(self._http, request) as response:
                body = b""
                async for part in response.aiter_raw():
                    body += part
                    if len(body) > _MOST_BYTES:
                        raise AddressError(f"{_shown(request)} answered with more than {_MOST_BYTES} bytes")
                return response.status_code, body
        except TimeoutError:
            raise AddressError(f"{_shown(request)} did not answer within {self._seconds:g} s") from None


@asynccontextmanager
async def _sent(http: httpx2.AsyncClient, request: httpx2.Request) -> AsyncGenerator[httpx2.Response]:
    try:
        response = await http.send(request, stream=True)
        try:
            yield response
        finally:
            await response.aclose()
    except httpx2.HTTPError as error:
        raise AddressError(f"{_shown(request)} cannot be reached: {type(error).__name__}") from None


def _shown(request: httpx2.Request) -> str:
    """Return an address without what may be secret in it."""
    url = request.url
    return f"{url.scheme}://{url.netloc.decode('ascii').rpartition('@')[2]}{url.path}"


def _object(body: bytes) -> dict[str, Any] | None:
    try:
        read: Any = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, Any]", read) if isinstance(read, dict) else None


@asynccontextmanager
async def guarded_client(server: str) -> AsyncGenerator[GuardedClient]:
    """Return a client for the addresses that a server names.

    Public addresses are reached over https. An address of a private network, or of this machine, is reached only where
    the server itself is there; http only on this machine.

    Args:
        server: The address of the server, which the host chose.
    """
    home = urlsplit(server)
    allowed = set[_Range](("public",))
    allowed.update(map(_range_of, await _addresses(home.hostname or "", home.port or 443)))
    transport = _CheckedTransport(frozenset(allowed - {"never"}))
    async with httpx2.AsyncClient(transport=transport, timeout=_SECONDS, follow_redirects=False) as http:
        yield GuardedClient(http)


class _CheckedTransport(httpx2.AsyncBaseTransport):
    """Sends a request to an address of its host that was checked."""

    def __init__(self, allowed: frozenset[_Range]) -> None:
        self._allowed, self._inner = allowed, httpx2.AsyncHTTPTransport(verify=shared_tls())

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        url = request.url
        place = await _checked_address(url.scheme, url.host, url.port, self._allowed)
        headers = request.headers.copy()  # its Host is that of the name
        extensions = {**request.extensions, "sni_hostname": url.host}
        sent = httpx2.Request(
            request.method, url.copy_with(host=place), headers=headers, stream=request.stream, extensions=extensions
        )
        return await self._inner.handle_async_request(sent)

    async def aclose(self) -> None:
        await self._inner.aclose()


async def _checked_address(scheme: str, host: str, port: int | None, allowed: frozenset[_Range]) -> str:
    found = await _addresses(host, port or (443 if scheme == "https" else 80))
    ranges = {_range_of(address) for address in found}
    if not ranges <= allowed:
        raise AddressError(f"{host} is not visited: it leads to an address of a private network or of this machine")
    if scheme != "https" and ranges != {"loopback"}:
        raise AddressError(f"{scheme}://{host} is not visited: it is not https")
    return found[0]


async def _addresses(host: str, port: int) -> list[str]:
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise AddressError(f"there is no address of {host}") from None
    return [str(place[0]) for *_, place in found]


def _range_of(text: str) -> _Range:
    address = inner_address(ip_address(text.partition("%")[0]))
    if address.is_loopback:
        return "loopback"
    if address.is_multicast or is_about_machine(address) or address.is_unspecified or address.is_reserved:
        return "never"
    return "public" if is_public(address) else "private"
