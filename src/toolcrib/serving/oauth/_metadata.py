"""Metadata of an authorization server (RFC 8414, OpenID Connect), and the place of that of a resource (RFC 9728)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from toolcrib.serving.oauth._authorization_server import checked_url
from toolcrib.serving.oauth._fetch import AuthorizationServerUnavailable, Fetch

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
    for url in _places(issuer):
        try:
            found = await fetch.json(url)
        except AuthorizationServerUnavailable:
            continue
        problem = _problem(issuer, found, addresses)
        if not problem:
            return found
    raise AuthorizationServerUnavailable(f"the keys of {issuer} cannot be found: {problem}")


def _places(issuer: str) -> list[str]:
    """Return the addresses where the metadata of an issuer may be, as RFC 8414 and OpenID Connect have it."""
    parts = urlsplit(issuer)
    root, path = urlunsplit((parts.scheme, parts.netloc, "", "", "")), parts.path.rstrip("/")
    places = [f"{root}/.well-known/{name}{path}" for name in ("oauth-authorization-server", "openid-configuration")]
    return [*places, f"{root}{path}/.well-known/openid-configuration"] if path else places


def _problem(issuer: str, found: dict[str, Any], addresses: Sequence[str]) -> str:
    if (said := found.get("issuer")) != issuer:
        return f"its metadata is of {said!r:.200}"
    for name in addresses:
        address = found.get(name)
        if not isinstance(address, str):
            return f"its metadata has no `{name}`"
        try:
            checked_url(name, address)
        except ValueError as error:
            return str(error)
    return ""
