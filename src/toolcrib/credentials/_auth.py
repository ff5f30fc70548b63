"""Credentials for servers, as an adapter uses them: who lacks consent, and what signs the requests of a principal."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any, Final, Protocol, TypeVar
from urllib.parse import urlsplit

import httpx2

from toolcrib._tls import shared_tls
from toolcrib.calls import Consent
from toolcrib.errors import CredentialError, NewerForm

QUERY: Final = "toolcrib.query"  # the extension of a request with what is put in its address when it is sent


class Credentials(Protocol):
    """Credentials of each principal for servers, which are known by their addresses.

    Attributes:
        list_as: The principal whose access lists what a server has; the first who gives access when None.
        in_query: Whether they are sent in the address: see `PrincipalAuth.client_options`.
    """

    list_as: str | None
    in_query: bool

    async def consent_for(self, principal: str, server: str) -> Consent | None:
        """Return the consent that a principal must give before a server is used for them; None where none is needed.

        Raises:
            CredentialError: Their access cannot be renewed now.
        """
        ...

    async def sign(self, principal: str, server: str, request: httpx2.Request) -> str:
        """Put a principal's credential on a request; return what names the credential for `renew`.

        Raises:
            CredentialError: The principal has no credentials for it.
        """
        ...

    async def renew(self, principal: str, server: str, used: str) -> bool:
        """Renew a credential that a server has refused; return whether there is another one now."""
        ...

    async def holders(self, server: str) -> tuple[str, ...]:
        """Return the principals who have given access to a server, the first first."""
        ...

    async def forget(self, principal: str, server: str) -> bool:
        """Remove a credential, and have it revoked where that is possible; return whether there was one."""
        ...


def host_key(principal: str, url: str) -> tuple[str, str]:
    """Return the principal and the address by which a host's call names a credential, in the spelling that is kept.

    Raises:
        ValueError: The principal is not a name, or the address does not begin with http:// or https://.
    """
    if not isinstance(principal, str) or not principal:  # pyright: ignore[reportUnnecessaryIsInstance] -- a host's value
        raise ValueError(f"the principal is {principal!r:.80}; give the name that runs have it by, as in 'ann'")
    return principal, server_key(_require_address("the server", url))


def _require_address(what: str, url: str) -> str:
    """Return an address without a slash at its end; raises ValueError for one that is not of http or https."""
    if not urlsplit(url).hostname or urlsplit(url).scheme not in ("http", "https"):
        raise ValueError(f"{what} is {url!r:.80}; give its address, as in 'https://tickets.example.org/mcp'")
    return url.rstrip("/")


def pages_address(owner: str, pages: str) -> str:
    """Return the address that links to pages begin with, empty where no link is made; raises as `_require_address`."""
    return _require_address(f"{owner}: pages", pages) if pages else ""


def server_key(url: str) -> str:
    """Return the address by which a server's credentials are kept: without query, and in one spelling."""
    parts = urlsplit(url)
    port: Any = parts.port
    default = {"https": 443, "http": 80}.get(parts.scheme)
    host = (parts.hostname or "").lower()
    name = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{name}{f':{port}' if port not in (None, default) else ''}{parts.path.rstrip('/')}"


T = TypeVar("T")


class PrincipalAuth(httpx2.Auth):
    """Signs the requests to one server, and nothing that goes elsewhere; one that is refused is renewed once.

    Args:
        principal: Returns on whose behalf a request is, or None where the principal is not known yet.
    """

    def __init__(
        self, credentials: Credentials, server: str, principal: Callable[[httpx2.Request], Awaitable[str | None]]
    ) -> None:
        self._credentials, self._server, self._principal = credentials, server, principal
        url = httpx2.URL(server)
        self._origin = (url.scheme, url.host, url.port)

    def client_options(self) -> dict[str, Any]:
        """Return the options of a client for such requests: a key in an address is added after its log line."""
        transport = {"transport": _QueryTransport()} if self._credentials.in_query else {}
        return {"auth": self, **transport}

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """Yield the request signed, and once more after the credential was renewed."""
        principal = await self._principal(request)
        if principal is None or (request.url.scheme, request.url.host, request.url.port) != self._origin:
            yield request
            return
        used = await self._credentials_answer(request, self._credentials.sign(principal, self._server, request))
        response = yield request
        if response.status_code != 401:
            return
        if await self._credentials_answer(request, self._credentials.renew(principal, self._server, used)):
            await self._credentials_answer(request, self._credentials.sign(principal, self._server, request))
            yield request

    @staticmethod
    async def _credentials_answer(request: httpx2.Request, answer: Awaitable[T]) -> T:
        """Return the credentials' answer; a missing or unreadable one fails the request as it is sent."""
        try:
            return await answer
        except (CredentialError, NewerForm) as error:
            raise httpx2.ConnectError(str(error), request=request) from error


class _QueryTransport(httpx2.AsyncBaseTransport):
    """Sends requests with the key in their address, which nothing before it has seen."""

    def __init__(self) -> None:
        self._inner = httpx2.AsyncHTTPTransport(verify=shared_tls())

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        found = request.extensions.get(QUERY)
        if found is None:
            return await self._inner.handle_async_request(request)
        extensions = {name: value for name, value in request.extensions.items() if name != QUERY}
        url = request.url.copy_set_param(*found)
        sent = httpx2.Request(
            request.method, url, headers=request.headers, stream=request.stream, extensions=extensions
        )
        return await self._inner.handle_async_request(sent)

    async def aclose(self) -> None:
        await self._inner.aclose()
