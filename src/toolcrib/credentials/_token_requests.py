"""Requests to an authorization server: its discovery, a registration there, a token, a fresh one, and to revoke one.

It is found by RFC 9728 metadata of the server and RFC 8414 metadata of its own. Both are written by others: what does
not belong to the server that the host chose is refused.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from math import isfinite
from typing import Any, Final, cast
from urllib.parse import quote, urlsplit

from toolcrib.calls import StoredFields, versioned
from toolcrib.credentials._guarded_http import GuardedClient
from toolcrib.errors import ConsentError


@dataclass(frozen=True, slots=True)
class Endpoints:
    """An authorization server, as its metadata or the host says.

    Attributes:
        resource: The resource that tokens are for; empty where the server does not know of resources.
        says_issuer: Whether it says in every answer that it gave the answer.
        takes_documents: Whether the address of a client's metadata may be the client's id.
        methods: How clients may say who they are when they ask for a token.
    """

    issuer: str
    authorize: str
    token: str
    register: str = ""
    revoke: str = ""
    scopes: tuple[str, ...] = ()
    says_issuer: bool = False
    takes_documents: bool = False
    methods: tuple[str, ...] = ("client_secret_basic", "client_secret_post", "none")
    resource: str = ""

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Endpoints:
        """Return the endpoints that `asdict` described."""
        values: dict[str, Any] = {**data, "scopes": tuple(data["scopes"]), "methods": tuple(data["methods"])}
        return cls(**values)


@dataclass(frozen=True, slots=True)
class OAuthClient:
    """This host as a client of an authorization server.

    Attributes:
        method: How we say who we are when we ask for a token.
    """

    client_id: str
    secret: str = field(default="", repr=False)
    method: str = "none"


@dataclass(frozen=True, slots=True)
class Settings:
    """The host's settings of OAuth for a server.

    Attributes:
        resource: The address of the server.
        scopes: The scopes to ask for; those that the server names when empty.
        client: A client that was registered before; one registers itself when None.
        issuer: The only authorization server that a client which was registered before is shown to.
        document: The address of the client's metadata, which is its id where the server takes that.
        endpoints: The authorization server; it is looked for when None.
        offline: Whether to ask for a refresh token where that has a scope of its own.
    """

    resource: str
    scopes: tuple[str, ...] = ()
    client: OAuthClient | None = None
    issuer: str = ""
    document: str = ""
    endpoints: Endpoints | None = None
    offline: bool = True
    name: str = "toolcrib"

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON shapes."""
        return versioned("Settings", asdict(self))

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Settings:
        """Return the settings that `to_dict` described."""
        data = StoredFields(cls, data)
        client, endpoints = data["client"], data["endpoints"]
        values: dict[str, Any] = {
            **data,
            "scopes": tuple(data["scopes"]),
            "client": None if client is None else OAuthClient(**client),
            "endpoints": None if endpoints is None else Endpoints.from_dict(endpoints),
        }
        return cls(**values)


@dataclass(frozen=True, slots=True)
class Token:
    """A principal's token for a server.

    Attributes:
        expires_at: In seconds since 1970; 0 where that is not known.
        endpoints: The authorization server that gave it: it is refreshed and revoked there and nowhere else.
    """

    access: str = field(repr=False)
    refresh: str = field(repr=False)
    expires_at: float
    endpoints: Endpoints
    client: OAuthClient

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON shapes."""
        return versioned("Token", asdict(self))

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Token:
        """Return the token that `to_dict` described."""
        data = StoredFields(cls, data)
        client, endpoints = OAuthClient(**data["client"]), Endpoints.from_dict(data["endpoints"])
        return cls(data["access"], data["refresh"], data["expires_at"], endpoints, client)


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
    named = _words(about.get("authorization_servers"))
    if about and not named:
        raise ConsentError(f"{server} names no authorization server")
    parts = urlsplit(server)
    issuer = named[0] if named else f"{parts.scheme}://{parts.netloc}"  # as servers of 2025-03-26 have it
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


class Refused(ConsentError):
    """An authorization server says no for good: the code or the token counts no more."""


async def registered(http: GuardedClient, endpoints: Endpoints, settings: Settings, redirect: str) -> OAuthClient:
    """Register with an authorization server (RFC 7591).

    Raises:
        ConsentError: It registers no clients, or refuses this one.
    """
    if not endpoints.register:
        raise ConsentError(
            f"the authorization server {endpoints.issuer} registers no clients by itself: "
            "give client_id and issuer, as it has told you"
        )
    host = urlsplit(redirect).hostname
    wanted = "none" if "none" in endpoints.methods else endpoints.methods[0]
    about = {
        "client_name": settings.name,
        "redirect_uris": [redirect],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": wanted,
        "application_type": "native" if host in ("127.0.0.1", "localhost", "::1") else "web",
        **({"scope": " ".join(endpoints.scopes)} if endpoints.scopes else {}),
    }
    status, body = await http.post_json(endpoints.register, about)
    client_id = body.get("client_id")
    if status not in (200, 201) or not isinstance(client_id, str):
        raise ConsentError(f"the authorization server {endpoints.issuer} did not register us: {_why(status, body)}")
    secret = body.get("client_secret")
    method = body.get("token_endpoint_auth_method")
    return OAuthClient(
        client_id, secret if isinstance(secret, str) else "", method if isinstance(method, str) else wanted
    )


async def exchanged(
    http: GuardedClient, endpoints: Endpoints, client: OAuthClient, code: str, verifier: str, redirect: str
) -> Token:
    """Return the token for a code; raises ConsentError without one."""
    fields = {"grant_type": "authorization_code", "code": code, "redirect_uri": redirect, "code_verifier": verifier}
    return await granted(http, endpoints, client, fields)


async def refreshed(http: GuardedClient, token: Token) -> Token:
    """Return a fresh token; raises Refused where the old one counts no more, and ConsentError for any other failure."""
    fields = {"grant_type": "refresh_token", "refresh_token": token.refresh}
    return await granted(http, token.endpoints, token.client, fields, token.refresh)


async def revoked(http: GuardedClient, token: Token) -> None:
    """Revoke a token (RFC 7009), where its authorization server can do that; raises ConsentError where it fails."""
    if not token.endpoints.revoke:
        return
    for kind, value in (("refresh_token", token.refresh), ("access_token", token.access)):
        if value:
            fields, basic = _signed({"token": value, "token_type_hint": kind}, token.client)
            status, body = await http.post_form(token.endpoints.revoke, fields, basic)
            if status != 200:
                raise ConsentError(f"{token.endpoints.issuer} did not revoke it: {_why(status, body)}")


async def granted(
    http: GuardedClient, endpoints: Endpoints, client: OAuthClient, fields: Mapping[str, str], refresh: str = ""
) -> Token:
    """Return the token for a grant, whose fields are given.

    Args:
        refresh: The refresh token of the token where none comes with it.

    Raises:
        Refused: The grant counts no more, or never did.
        ConsentError: Any other failure.
    """
    access, body = await _request_token(http, endpoints, client, fields)
    if str(body.get("token_type", "bearer")).lower() != "bearer":
        raise ConsentError(f"the authorization server {endpoints.issuer} gave a token that is not a bearer token")
    fresh = body.get("refresh_token")
    return Token(access, fresh if isinstance(fresh, str) else refresh, _end(body.get("expires_in")), endpoints, client)


async def identity_assertion(
    http: GuardedClient, endpoints: Endpoints, client: OAuthClient, fields: Mapping[str, str]
) -> str:
    """Return the assertion for another authorization server (ID-JAG) of a token exchange; raises as `granted`."""
    assertion, body = await _request_token(http, endpoints, client, fields)
    if not str(body.get("issued_token_type", "")).endswith(":id-jag"):
        raise ConsentError(f"the authorization server {endpoints.issuer} gave a token that is not an ID-JAG")
    return assertion


async def _request_token(
    http: GuardedClient, endpoints: Endpoints, client: OAuthClient, fields: Mapping[str, str]
) -> tuple[str, Mapping[str, Any]]:
    """Return the access token of a reply, and the whole of it."""
    resource = {"resource": endpoints.resource} if endpoints.resource else {}
    signed, basic = _signed({**fields, **resource}, client)
    status, body = await http.post_form(endpoints.token, signed, basic)
    refused = f"the authorization server {endpoints.issuer} gave no token: {_why(status, body)}"
    if status in (400, 401, 403):
        raise Refused(refused)
    access = body.get("access_token")
    if status != 200 or not isinstance(access, str) or not access or not access.isascii() or not access.isprintable():
        raise ConsentError(refused)
    return access, body


def _end(seconds: Any) -> float:
    """Return when a token ends, in seconds since 1970; 0 where that cannot be read."""
    try:
        end = time.time() + float(seconds)
    except (TypeError, ValueError, OverflowError):
        return 0.0
    return end if isfinite(end) else 0.0


def _signed(fields: Mapping[str, str], client: OAuthClient) -> tuple[dict[str, str], tuple[str, str] | None]:
    """Return the fields of a form that say who we are, and the name and password of its header."""
    if client.secret and client.method != "client_secret_post":
        return dict(fields), (quote(client.client_id, safe=""), quote(client.secret, safe=""))
    named = {**fields, "client_id": client.client_id}
    return ({**named, "client_secret": client.secret} if client.secret else named), None


def _why(status: int, body: Mapping[str, Any]) -> str:
    """Return the code of a refusal alone: its other texts may repeat the request."""
    code = body.get("error")
    return code if isinstance(code, str) and code.isidentifier() and len(code) < 60 else f"status {status}"
