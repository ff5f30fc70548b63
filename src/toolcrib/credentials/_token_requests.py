"""Requests to an authorization server: to register, for a token, for a fresh one, and to revoke one."""

from __future__ import annotations

import time
from collections.abc import Mapping
from math import isfinite
from typing import Any
from urllib.parse import quote, urlsplit

from toolcrib.credentials._guarded_http import GuardedClient
from toolcrib.credentials._settings import Endpoints, OAuthClient, Settings, Token
from toolcrib.errors import ConsentError


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
    access, body = await _asked(http, endpoints, client, fields)
    if str(body.get("token_type", "bearer")).lower() != "bearer":
        raise ConsentError(f"the authorization server {endpoints.issuer} gave a token that is not a bearer token")
    fresh = body.get("refresh_token")
    return Token(access, fresh if isinstance(fresh, str) else refresh, _end(body.get("expires_in")), endpoints, client)


async def identity_assertion(
    http: GuardedClient, endpoints: Endpoints, client: OAuthClient, fields: Mapping[str, str]
) -> str:
    """Return the assertion for another authorization server (ID-JAG) of a token exchange; raises as `granted`."""
    assertion, body = await _asked(http, endpoints, client, fields)
    if not str(body.get("issued_token_type", "")).endswith(":id-jag"):
        raise ConsentError(f"the authorization server {endpoints.issuer} gave a token that is not an ID-JAG")
    return assertion


async def _asked(
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
