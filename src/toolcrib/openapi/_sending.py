"""Sending of requests: deadline, limit in bytes, retries of what may be done twice, redirects without secrets."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urljoin, urlsplit
from urllib.request import getproxies, proxy_bypass

import httpx2

from toolcrib._tls import shared_tls
from toolcrib.clock import SYSTEM_CLOCK, Clock, wanted_pause
from toolcrib.errors import ModelRetry, RemoteToolError, ServerError
from toolcrib.openapi._operations import SAFE
from toolcrib.openapi._requests import Prepared
from toolcrib.openapi._servers import addresses_of, is_inside, may_reach, origin_of

IDEMPOTENT: Final = SAFE | {"PUT", "DELETE"}
"""The methods that may be sent again: twice is as good as once."""

_FOLLOWED = frozenset({301, 302, 303, 307, 308})
_MOST_REDIRECTS = 5
_AGAIN = frozenset({429, 502, 503, 504})
_LONGEST_PAUSE = 10.0
_FIRST_PAUSE = 0.3


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of a server."""

    status: int
    reason: str
    headers: httpx2.Headers
    data: bytes


@dataclass(frozen=True, slots=True)
class Sender:
    """The settings by which requests are sent.

    Attributes:
        server: The name of the server in messages.
        headers: Of the host, for each request to the server itself.
        timeout: Seconds for a call, with all its retries.
        max_bytes: Of an answer.
        retries: Of requests that may be made twice.
        client: The host's own client; else each call has one of its own, and no cookie of one is sent in another.
        clock: The clock of the pauses between two tries.
    """

    server: str
    headers: dict[str, str]
    timeout: float
    max_bytes: int
    retries: int
    client: httpx2.AsyncClient | None
    clock: Clock = SYSTEM_CLOCK

    async def answer(self, request: Prepared, leaders: Sequence[str] | None = None) -> Answer:
        """Return the answer to a request, of any status.

        Args:
            request: The request.
            leaders: The addresses that lead to its server; None where the host names the server.

        Raises:
            ModelRetry: The answer of an operation that only reads is too large.
            RemoteToolError: The answer of another one is, it is a redirect that is not followed, or the server's name
                leads into a private net that its leaders are not in.
            ServerError: The server cannot be reached, or did not answer in time.
        """
        try:
            async with asyncio.timeout(self.timeout):
                if self.client is not None:
                    return await self._tried(self.client, request, leaders)
                async with httpx2.AsyncClient(verify=shared_tls()) as client:
                    return await self._tried(client, request, leaders)
        except TimeoutError:
            problem = f"did not answer within {self.timeout:g} s"
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            problem = f"did not answer: {str(error) or type(error).__name__}"
            if isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout):
                raise ServerError(self.server, f"cannot be reached: {str(error) or type(error).__name__}") from None
        late = "" if request.method in SAFE else ". The request may have taken effect"
        raise ServerError(self.server, problem + late)

    async def _tried(self, client: httpx2.AsyncClient, request: Prepared, leaders: Sequence[str] | None) -> Answer:
        retries = self.retries if request.method in IDEMPOTENT else 0
        pause = _FIRST_PAUSE
        while True:
            try:
                answer = await self._followed(client, request, leaders)
            except httpx2.TransportError:
                if retries <= 0:
                    raise
                wanted = pause
            else:
                asked = wanted_pause(answer.headers.get("retry-after", ""))
                wanted = pause if asked is None else asked
                if retries <= 0 or answer.status not in _AGAIN or wanted > _LONGEST_PAUSE:
                    return answer
            retries -= 1
            await self.clock.sleep(wanted)
            pause *= 2

    async def _followed(self, client: httpx2.AsyncClient, request: Prepared, leaders: Sequence[str] | None) -> Answer:
        """Return the answer, after redirects of an operation that only reads."""
        host_names = {name.lower() for name in self.headers} | {name.lower() for name in request.signing.headers}
        written_headers = {name: text for name, text in request.headers.items() if name.lower() not in host_names}
        headers = {**self.headers, **written_headers, **request.signing.headers}  # a model does not replace the host's
        sent, url = self._request(request, request.url, headers), request.url
        is_bound = leaders is not None and not self._is_looked_up_elsewhere(url)
        places = await self._places(url, leaders or ()) if is_bound else []
        for _ in range(_MOST_REDIRECTS):
            answer = await self._received(client, sent, places)
            place = answer.headers.get("location")
            if answer.status not in _FOLLOWED or not place or request.method not in SAFE:
                return answer
            further = urljoin(url, place)
            if origin_of(further) != origin_of(url):
                if not _may_lead(url, further):
                    host = urlsplit(further).hostname
                    raise RemoteToolError(self.server, f"it leads on to {host!r:.100}, which is not followed")
                places = await self._places(further, (url,))
                headers = {"Accept": request.headers["Accept"]}  # another host learns nothing of the caller
            url = further
            sent = httpx2.Request(request.method, url, headers=headers)
        raise RemoteToolError(self.server, f"it leads on more than {_MOST_REDIRECTS} times")

    async def _places(self, url: str, leaders: Sequence[str]) -> list[str]:
        """Return the checked addresses of a host; none where a client or a proxy looks the name up by itself."""
        found = await addresses_of(url)
        host = urlsplit(url).hostname
        if not await may_reach(leaders, found):
            problem = f"{host!r:.100} leads into a private net or to this machine, which is not followed"
            raise RemoteToolError(self.server, f"{problem}; `server=` of the toolset says where the API is")
        if self._is_looked_up_elsewhere(url):
            return []
        if not found:  # the next look-up, which nobody checks, might find one
            raise ServerError(self.server, f"cannot be reached: {host!r:.100} has no address")
        return found

    def _is_looked_up_elsewhere(self, url: str) -> bool:
        parts, proxies = urlsplit(url), getproxies()
        is_proxied = bool({parts.scheme, "all"} & proxies.keys()) and not proxy_bypass(parts.hostname or "")
        return self.client is not None or is_proxied

    def _request(self, request: Prepared, url: str, headers: dict[str, str]) -> httpx2.Request:
        content = request.content
        extra: dict[str, Any] = {}
        if content is not None and content.data is None:
            extra = {"files": content.parts} if content.parts else {"files": [("", (None, b""))]}
        elif content is not None:
            headers = {**headers, "Content-Type": content.media_type}
            extra = {"content": content.data}
        return httpx2.Request(request.method, url, headers={"User-Agent": "toolcrib", **headers}, **extra)

    async def _received(self, client: httpx2.AsyncClient, request: httpx2.Request, places: Sequence[str]) -> Answer:
        """Return the answer of the first of the addresses that takes a connection; of the name without addresses."""
        request.extensions = {**request.extensions, "timeout": httpx2.Timeout(self.timeout).as_dict()}
        for place in places[:-1]:
            with suppress(httpx2.ConnectError):
                return await self._read(client, bound_request(request, place))
        return await self._read(client, bound_request(request, places[-1] if places else None))

    async def _read(self, client: httpx2.AsyncClient, request: httpx2.Request) -> Answer:
        response = await client.send(request, stream=True, auth=None, follow_redirects=False)
        try:
            data = bytearray()
            async for piece in response.aiter_bytes():
                data += piece
                if len(data) > self.max_bytes:
                    raise self._too_large(request.method)
        finally:
            await response.aclose()
        return Answer(response.status_code, response.reason_phrase, response.headers, bytes(data))

    def _too_large(self, method: str) -> Exception:
        problem = f"the answer is larger than {self.max_bytes:,} bytes"
        if method in SAFE:
            return ModelRetry(f"{problem}. Ask for less: a narrower filter, fewer fields, a smaller page.")
        return RemoteToolError(self.server, f"{problem}, and was not read; the request has taken effect")


def bound_request(request: httpx2.Request, address: str | None) -> httpx2.Request:
    """Return a request that goes to an address of its host that was checked, even if its name leads elsewhere later."""
    if address is None:
        return request
    extensions = {**request.extensions, "sni_hostname": request.url.host}
    place, stream = request.url.copy_with(host=address), request.stream
    return httpx2.Request(request.method, place, headers=request.headers, stream=stream, extensions=extensions)


def _may_lead(url: str, further: str) -> bool:
    """Return whether a redirect to another host may be followed: it stays encrypted, and on the open net."""
    here, there = urlsplit(url), urlsplit(further)
    if there.scheme not in ("http", "https") or (here.scheme == "https" and there.scheme != "https"):
        return False
    return not is_inside(there.hostname) or is_inside(here.hostname)
