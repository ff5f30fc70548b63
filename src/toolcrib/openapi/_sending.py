"""Sending of requests: deadline, limit in bytes, retries of what may be done twice, redirects without secrets."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urljoin, urlsplit

import httpx2

from toolcrib._tls import shared_tls
from toolcrib.clock import wanted_pause
from toolcrib.errors import ModelRetry, RemoteToolError, ServerError
from toolcrib.openapi._operations import SAFE
from toolcrib.openapi._requests import Prepared
from toolcrib.openapi._servers import addresses_of, is_inside, is_private, origin_of

__all__ = ["IDEMPOTENT", "Answer", "Sender", "bound_request"]

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
    """How requests are sent.

    Attributes:
        server: The name of the server in messages.
        headers: Of the host, for each request to the server itself.
        timeout: Seconds for a call, with all its retries.
        max_bytes: Of an answer.
        retries: Of requests that may be made twice.
        client: The host's own client; else each call has one of its own, and no cookie of one is sent in another.
    """

    server: str
    headers: dict[str, str]
    timeout: float
    max_bytes: int
    retries: int
    client: httpx2.AsyncClient | None

    async def answer(self, request: Prepared) -> Answer:
        """Return the answer to a request, of any status.

        Raises:
            ModelRetry: The answer of an operation that only reads is too large.
            RemoteToolError: The answer of another one is, or it is a redirect that is not followed.
            ServerError: The server cannot be reached, or did not answer in time.
        """
        try:
            async with asyncio.timeout(self.timeout):
                if self.client is not None:
                    return await self._tried(self.client, request)
                async with httpx2.AsyncClient(verify=shared_tls()) as client:
                    return await self._tried(client, request)
        except TimeoutError:
            problem = f"did not answer within {self.timeout:g} s"
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            problem = f"did not answer: {str(error) or type(error).__name__}"
            if isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout):
                raise ServerError(self.server, f"cannot be reached: {str(error) or type(error).__name__}") from None
        late = "" if request.method in SAFE else ". The request may have taken effect"
        raise ServerError(self.server, problem + late)

    async def _tried(self, client: httpx2.AsyncClient, request: Prepared) -> Answer:
        left = self.retries if request.method in IDEMPOTENT else 0
        pause = _FIRST_PAUSE
        while True:
            try:
                answer = await self._followed(client, request)
            except httpx2.TransportError:
                if left <= 0:
                    raise
                wanted = pause
            else:
                asked = wanted_pause(answer.headers.get("retry-after", ""))
                wanted = pause if asked is None else asked
                if left <= 0 or answer.status not in _AGAIN or wanted > _LONGEST_PAUSE:
                    return answer
            left -= 1
            await asyncio.sleep(wanted)
            pause *= 2

    async def _followed(self, client: httpx2.AsyncClient, request: Prepared) -> Answer:
        """Return the answer, after redirects of an operation that only reads."""
        own = {name.lower() for name in self.headers} | {name.lower() for name in request.signing.headers}
        given = {name: text for name, text in request.headers.items() if name.lower() not in own}
        headers = {**self.headers, **given, **request.signing.headers}  # a model does not replace the host's
        sent, url = self._request(request, request.url, headers), request.url
        for _ in range(_MOST_REDIRECTS):
            answer = await self._received(client, sent, request.method)
            place = answer.headers.get("location")
            if answer.status not in _FOLLOWED or not place or request.method not in SAFE:
                return answer
            further, checked = urljoin(url, place), None
            if origin_of(further) != origin_of(url):
                found = await addresses_of(further)
                if not _may_lead(url, further) or not await _may_reach(url, found):
                    host = urlsplit(further).hostname
                    raise RemoteToolError(self.server, f"it leads on to {host!r:.100}, which is not followed")
                headers = {"Accept": request.headers["Accept"]}  # another host learns nothing of the caller
                checked = found[0] if found and self.client is None else None
            url = further
            sent = bound_request(httpx2.Request(request.method, url, headers=headers), checked)
        raise RemoteToolError(self.server, f"it leads on more than {_MOST_REDIRECTS} times")

    def _request(self, request: Prepared, url: str, headers: dict[str, str]) -> httpx2.Request:
        content = request.content
        extra: dict[str, Any] = {}
        if content is not None and content.data is None:
            extra = {"files": content.parts} if content.parts else {"files": [("", (None, b""))]}
        elif content is not None:
            headers = {**headers, "Content-Type": content.media_type}
            extra = {"content": content.data}
        return httpx2.Request(request.method, url, headers={"User-Agent": "toolcrib", **headers}, **extra)

    async def _received(self, client: httpx2.AsyncClient, request: httpx2.Request, method: str) -> Answer:
        request.extensions = {**request.extensions, "timeout": httpx2.Timeout(self.timeout).as_dict()}
        response = await client.send(request, stream=True, auth=None, follow_redirects=False)
        try:
            data = bytearray()
            async for piece in response.aiter_bytes():
                data += piece
                if len(data) > self.max_bytes:
                    raise self._too_large(method)
        finally:
            await response.aclose()
        return Answer(response.status_code, response.reason_phrase, response.headers, bytes(data))

    def _too_large(self, method: str) -> Exception:
        problem = f"the answer is larger than {self.max_bytes:,} bytes"
        if method in SAFE:
            return ModelRetry(f"{problem}. Ask for less: a narrower filter, fewer fields, a smaller page.")
        return RemoteToolError(self.server, f"{problem}, and was not read; the request has taken effect")


async def _may_reach(url: str, found: Sequence[str]) -> bool:
    """Return whether a redirect may lead to these network addresses: a private one only from a private one."""
    if not any(map(is_private, found)):
        return True
    here = await addresses_of(url)
    return is_inside(urlsplit(url).hostname) or (bool(here) and all(map(is_private, here)))


def bound_request(request: httpx2.Request, address: str | None) -> httpx2.Request:
    """Return a request that goes to an address of its host that was checked, whatever its name leads to next."""
    if address is None:
        return request
    extensions = {**request.extensions, "sni_hostname": request.url.host}
    return httpx2.Request(
        request.method, request.url.copy_with(host=address), headers=request.headers, extensions=extensions
    )


def _may_lead(url: str, further: str) -> bool:
    """Return whether a redirect to another host may be followed: it stays encrypted, and on the open net."""
    here, there = urlsplit(url), urlsplit(further)
    if there.scheme not in ("http", "https") or (here.scheme == "https" and there.scheme != "https"):
        return False
    return not is_inside(there.hostname) or is_inside(here.hostname)
