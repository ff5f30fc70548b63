"""Metadata of an authorization server (RFC 8414, OpenID Connect), and the place of that of a resource (RFC 9728)."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit, urlunsplit

from toolcrib.serving.oauth._authorization_server import checked_url
from toolcrib.serving.oauth._fetch import AuthorizationServerUnavailable, Fetch

__all__ = ["find_jwks", "metadata_path", "metadata_url"]

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
    problem = "it has no metadata"
    for url in _places(issuer):
        try:
            found = await fetch.json(url)
        except AuthorizationServerUnavailable:
            continue
        problem = _problem(issuer, found)
        if not problem:
            return found["jwks_uri"]
    raise AuthorizationServerUnavailable(f"the keys of {issuer} cannot be found: {problem}")


def _places(issuer: str) -> list[str]:
    """Return the addresses where the metadata of an issuer may be, as RFC 8414 and OpenID Connect have it."""
    parts = urlsplit(issuer)
    root, path = urlunsplit((parts.scheme, parts.netloc, "", "", "")), parts.path.rstrip("/")
    places = [f"{root}/.well-known/{name}{path}" for name in ("oauth-authorization-server", "openid-configuration")]
    return [*places, f"{root}{path}/.well-known/openid-configuration"] if path else places


def _problem(issuer: str, found: dict[str, Any]) -> str:
    said, keys = found.get("issuer"), found.get("jwks_uri")
    if said != issuer:
        return f"its metadata is of {said!r:.200}"
    if not isinstance(keys, str):
        return "its metadata has no `jwks_uri`"
    try:
        checked_url("jwks_uri", keys)
    except ValueError as error:
        return str(error)
    return ""
