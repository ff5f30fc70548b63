"""Discovery of a server's authorization server: RFC 9728 metadata of the server, RFC 8414 metadata of the other.

Both are written by others: what does not belong to the server that the host chose is refused.
"""

from __future__ import annotations

import re
from typing import Any, Final, cast
from urllib.parse import urlsplit

from toolcrib.credentials._guarded_http import GuardedClient
from toolcrib.credentials._settings import Endpoints, Settings
from toolcrib.errors import ConsentError

_RESOURCE: Final = "/.well-known/oauth-protected-resource"
_AUTHORITY: Final = "/.well-known/oauth-authorization-server"
_OPENID: Final = "/.well-known/openid-configuration"
_FIELD: Final = r'(?:^|[\s,]){name}=(?:"([^"]*)"|([^\s,]+))'


async def discovered(http: GuardedClient, settings: Settings) -> Endpoints:
    """Return where a principal consents to the use of a server, and where tokens come from.

    Raises:
        ConsentError: The server names no authorization server, or the metadata is another's.
    """
    if settings.endpoints is not None:
        return settings.endpoints
    server = settings.resource
    status, challenge = await http.get_status(server)
    about = await _about_resource(http, server, _field(challenge, "resource_metadata") if status in (401, 403) else "")
    issuer = _issuer(about, server)
    if settings.issuer and issuer.rstrip("/") != settings.issuer.rstrip("/"):
        raise ConsentError(f"{server} names the authorization server {issuer:.200}, and not {settings.issuer}")
    found = await _about_issuer(http, issuer)
    methods = _words(found.get("code_challenge_methods_supported"))
    if "S256" not in methods:
        raise ConsentError(f"the authorization server {issuer} does not offer PKCE with S256, which is required")
    scopes = settings.scopes or tuple(_field(challenge, "scope").split()) or _words(about.get("scopes_supported"))
    if settings.offline and "offline_access" in _words(found.get("scopes_supported")) and scopes:
        scopes = tuple(dict.fromkeys((*scopes, "offline_access")))
    return Endpoints(
        issuer=str(found["issuer"]),
        authorize=_url(found, "authorization_endpoint", issuer),
        token=_url(found, "token_endpoint", issuer),
        register=_url(found, "registration_endpoint", issuer, needed=False),
        revoke=_url(found, "revocation_endpoint", issuer, needed=False),
        scopes=scopes,
        says_issuer=found.get("authorization_response_iss_parameter_supported") is True,
        takes_documents=found.get("client_id_metadata_document_supported") is True,
        methods=_words(found.get("token_endpoint_auth_methods_supported")) or ("client_secret_basic",),
        resource=settings.resource if about.get("resource") is None else str(about["resource"]),
    )


async def _about_resource(http: GuardedClient, server: str, named: str) -> dict[str, Any]:
    """Return the metadata of a server, which has to say that it is about this server."""
    parts = urlsplit(server)
    home = f"{parts.scheme}://{parts.netloc}"
    path = parts.path.rstrip("/")
    places = ([named] if named else []) + ([f"{home}{_RESOURCE}{path}"] if path else []) + [f"{home}{_RESOURCE}"]
    for place in dict.fromkeys(places):
        about = await http.get_json(place)
        if about is None:
            continue
        if not _is_of(str(about.get("resource", "")), server):
            resource = str(about.get("resource", "nothing"))
            raise ConsentError(
                f"the metadata of {server} is about {resource:.200}: its tokens would be for another server"
            )
        return about
    return {}


def _is_of(resource: str, server: str) -> bool:
    """Return whether a resource is the server, or a folder that it is in."""
    folder, other = urlsplit(resource), urlsplit(server)
    if _origin(folder) != _origin(other) or folder.query or folder.fragment:
        return False
    if ".." in other.path.split("/") or "%2e" in other.path.lower():
        return False
    return f"{other.path.rstrip('/')}/".startswith(f"{folder.path.rstrip('/')}/")


def _origin(parts: Any) -> tuple[str, str, int | None]:
    try:
        port = parts.port or {"https": 443, "http": 80}.get(parts.scheme)
    except ValueError:
        port = None
    return parts.scheme, (parts.hostname or "").lower(), port


def _issuer(about: dict[str, Any], server: str) -> str:
    named = _words(about.get("authorization_servers"))
    if about and not named:
        raise ConsentError(f"{server} names no authorization server")
    parts = urlsplit(server)
    return named[0] if named else f"{parts.scheme}://{parts.netloc}"  # as servers of 2025-03-26 have it


async def _about_issuer(http: GuardedClient, issuer: str) -> dict[str, Any]:
    parts = urlsplit(issuer)
    home, path = f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
    if parts.query or parts.fragment:
        raise ConsentError("the name of an authorization server has no query")
    places = [f"{home}{_AUTHORITY}{path}", f"{home}{_OPENID}{path}", *([f"{home}{path}{_OPENID}"] if path else [])]
    for place in places:
        found = await http.get_json(place)
        if found is None:
            continue
        if str(found.get("issuer", "")).rstrip("/") != issuer.rstrip("/"):
            named = str(found.get("issuer", "nobody"))
            raise ConsentError(f"the metadata at {place} belongs to {named:.200}, and not to {issuer:.200}")
        return found
    raise ConsentError(f"{issuer:.200} has no metadata of an authorization server")


def _url(found: dict[str, Any], name: str, issuer: str, *, needed: bool = True) -> str:
    value = found.get(name)
    if value is None and not needed:
        return ""
    parts = urlsplit(value) if isinstance(value, str) else None
    if parts is None or parts.scheme not in ("https", "http") or not parts.hostname or parts.username:
        raise ConsentError(f"the authorization server {issuer:.200} has no usable `{name}`")
    return str(value)


def _words(value: Any) -> tuple[str, ...]:
    return tuple(word for word in cast("list[Any]", value) if isinstance(word, str)) if isinstance(value, list) else ()


def _field(challenge: str, name: str) -> str:
    found = re.search(_FIELD.format(name=name), challenge)
    return "" if found is None else found[1] or found[2] or ""
