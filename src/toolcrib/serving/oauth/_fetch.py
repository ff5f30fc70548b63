"""Requests to an authorization server: bounded in time and size, and never redirected."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping
from typing import Any, cast

import httpx2

from toolcrib._tls import shared_tls

_SECONDS = 5.0
_BYTES = 512 * 1024
_log = logging.getLogger("toolcrib.serving")


class AuthorizationServerUnavailable(Exception):
    """The authorization server did not answer as it should, so that it is not known whether a token is valid."""


class Fetch:
    """Requests to one authorization server over connections that are kept."""

    def __init__(self, client: httpx2.AsyncClient | None = None) -> None:
        self._client = client

    async def json(
        self, url: str, *, form: Mapping[str, str] | None = None, headers: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        """Return the object at an address, or the answer to a form.

        Raises:
            AuthorizationServerUnavailable: It did not come in time, or is something else.
        """
        if self._client is None:
            self._client = httpx2.AsyncClient(follow_redirects=False, verify=shared_tls())
        sent = {"accept": "application/json", **(headers or {})}
        try:
            async with asyncio.timeout(_SECONDS):
                method = "GET" if form is None else "POST"
                async with self._client.stream(method, url, data=form, headers=sent) as reply:
                    body = await _read(reply)
            found: Any = json.loads(body)
        except (httpx2.HTTPError, httpx2.InvalidURL, TimeoutError, ValueError, RecursionError) as error:
            _log.warning("%s: %s: %s", url, type(error).__name__, error)
            raise AuthorizationServerUnavailable(f"{url} cannot be read") from error
        if not isinstance(found, dict):
            raise AuthorizationServerUnavailable(f"{url} holds no object")
        return cast("dict[str, Any]", found)

    async def close(self) -> None:
        if self._client is not None:
            await self._client.aclose()
            self._client = None


async def _read(reply: httpx2.Response) -> bytes:
    if reply.status_code != 200:
        raise ValueError(f"it answers {reply.status_code}")
    body = b""
    async for chunk in reply.aiter_bytes():
        body += chunk
        if len(body) > _BYTES:
            raise ValueError(f"it is longer than {_BYTES} bytes")
    return body
