"""Requests to an authorization server, bounded in time and size and never redirected; its metadata (RFC 8414, 9728)."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
from collections.abc import Mapping, Sequence
from typing import Any, cast
from urllib.parse import quote_plus, urlsplit, urlunsplit

import httpx2

from toolcrib._tls import shared_tls
from toolcrib.serving.oauth._authorization_server import checked_url

_SECONDS = 5.0
_BYTES = 512 * 1024
_log = logging.getLogger("toolcrib.serving")


class AuthorizationServerUnavailable(Exception):
    """The authorization server did not answer as it should, so that it is not known whether a token is valid."""


def client_form(client: str, secret: str | None, how: str) -> tuple[dict[str, str], dict[str, str]]:
    """Return the fields and the headers by which a client says who it is: in the header (`basic`), or in the form."""
    if secret is not None and how == "basic":
        pair = f"{quote_plus(client)}:{quote_plus(secret)}".encode()
        return {}, {"authorization": f"Basic {base64.b64encode(pair).decode()}"}
    return {"client_id": client} | ({} if secret is None else {"client_secret": secret}), {}


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
                    if reply.status_code != 200:
                        raise ValueError(f"it answers {reply.status_code}")
                    body = b""
                    async for chunk in reply.aiter_bytes():
                        body += chunk
                        if len(body) > _BYTES:
                            raise ValueError(f"it is longer than {_BYTES} bytes")
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


_RESOURCE = "/.well-known/oauth-protected-resource"


def metadata_path(resource: str) -> str:
    """Return the path of the metadata of a resource: the well-known one, then the resource's own."""
    return f"{_RESOURCE}{urlsplit(resource).path.rstrip('/')}"


def metadata_url(resource: str) -> str:
    """Return the address of the metadata of a resource."""
    parts = urlsplit(resource)
    return urlunsplit((parts.scheme, parts.netloc, metadata_path(resource), parts.query, ""))


async def find_jwks(issuer: str, fetch: Fetch) -> str:
    """Return the address of an issuer's keys, by its metadata.

    Raises:
        AuthorizationServerUnavailable: It has no metadata, that of another issuer, or keys at an address without https.
    """
    return (await find_metadata(issuer, fetch, ("jwks_uri",)))["jwks_uri"]


async def find_metadata(issuer: str, fetch: Fetch, addresses: Sequence[str]) -> dict[str, Any]:
    """Return the metadata of an issuer.

    Args:
        addresses: The fields that have to be there, each of them an address.

    Raises:
        AuthorizationServerUnavailable: It has no metadata, that of another issuer, or an address without https.
    """
    problem = "it has no metadata"
    # as RFC 8414 and OpenID Connect have it
    parts = urlsplit(issuer)
    root, path = urlunsplit((parts.scheme, parts.netloc, "", "", "")), parts.path.rstrip("/")
    places = [f"{root}/.well-known/{name}{path}" for name in ("oauth-authorization-server", "openid-configuration")]
    for url in [*places, f"{root}{path}/.well-known/openid-configuration"] if path else places:
        try:
            found = await fetch.json(url)
        except AuthorizationServerUnavailable:
            continue
        problem = _problem(issuer, found, addresses)
        if not problem:
            return found
    raise AuthorizationServerUnavailable(f"the keys of {issuer} cannot be found: {problem}")


def _problem(issuer: str, found: dict[str, Any], addresses: Sequence[str]) -> str:
    if (issuer_found := found.get("issuer")) != issuer:
        return f"its metadata belongs to {issuer_found!r:.200}"
    for name in addresses:
        address = found.get(name)
        if not isinstance(address, str):
            return f"its metadata has no `{name}`"
        try:
            checked_url(name, address)
        except ValueError as error:
            return str(error)
    return ""
