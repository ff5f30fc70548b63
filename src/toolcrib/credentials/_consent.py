"""Consent of a principal: from the link to the authorization server, and back with a code."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

from toolcrib.credentials._api_keys import checked_key
from toolcrib.credentials._guarded_http import GuardedClient, guarded_client
from toolcrib.credentials._store import CLIENT, KEY, STATE, TOKEN, CredentialStore, drop_link, name_of, ticket_row
from toolcrib.credentials._token_requests import (
    Endpoints,
    OAuthClient,
    Settings,
    Token,
    discovered,
    exchanged,
    registered,
)
from toolcrib.errors import ConsentError

_STATE_SECONDS: Final = 600.0
_GONE: Final = "This link is no longer valid: it was used, or is too old. Make the call again for another one."


@dataclass(frozen=True, slots=True)
class Arrival:
    """The target of a link.

    Attributes:
        wants_key: Whether the principal enters an API key, in place of consenting elsewhere.
        link: The link itself, as the approval requests have it.
    """

    principal: str
    server: str
    wants_key: bool
    link: str


@dataclass(frozen=True, slots=True)
class Departure:
    """The page that a browser is sent to, and the state that it has to bring back in a cookie.

    Attributes:
        url: The page of the authorization server.
        state: Names the cookie's browser and the principal; one answer counts.
    """

    url: str = field(repr=False)
    state: str = field(repr=False)


class ConsentFlow:
    """The way of a browser: a link, the authorization server, and back, once.

    Args:
        store: Where credentials are kept.
    """

    def __init__(self, store: CredentialStore) -> None:
        self._store = store

    async def look(self, ticket: str) -> Arrival:
        """Return the principal and server of a link; raises ConsentError where it is not valid."""
        row = await ticket_row(self._store, ticket)
        if row is None:
            raise ConsentError(_GONE)
        data = row.value
        return Arrival(data["principal"], data["server"], data["kind"] == KEY, f"{data['pages']}/{ticket}")

    async def keep_key(self, ticket: str, key: str) -> Arrival:
        """Keep the API key that a principal has entered; raises ConsentError for an invalid key or link."""
        about = await self.look(ticket)
        if not about.wants_key:
            raise ConsentError("This link is not for a key.")
        try:
            value = {"key": checked_key(key)}
        except ValueError as error:
            raise ConsentError(f"It could not be saved: {error}.") from None
        await drop_link(self._store, about.principal, about.server, ticket)
        await self._store.write(KEY, about.principal, about.server, value)
        return about

    async def leave(self, ticket: str, browser: str) -> Departure:
        """Return where a browser is sent from a link.

        Args:
            browser: A secret that this browser has in a cookie.

        Raises:
            ConsentError: The link does not count, or the server's or the authorization server's metadata is invalid.
        """
        row = await ticket_row(self._store, ticket)
        if row is None or row.value["kind"] != TOKEN:
            raise ConsentError(_GONE)
        settings, pages = Settings.from_dict(row.value["settings"]), row.value["pages"]
        redirect = f"{pages}/back"
        async with guarded_client(settings.resource) as http:
            endpoints = await discovered(http, settings)
            client = await self._client(http, endpoints, settings, redirect)
        _check_page(endpoints.authorize)
        state, verifier = secrets.token_urlsafe(32), secrets.token_urlsafe(48)
        state_data = {
            "ticket": ticket,
            "principal": row.value["principal"],
            "server": row.value["server"],
            "browser": name_of(browser),
            "verifier": verifier,
            "redirect": redirect,
            "token": Token("", "", 0.0, endpoints, client).to_dict(),
        }
        await self._store.write(STATE, "", name_of(state), state_data, _STATE_SECONDS)
        fields = {
            "response_type": "code",
            "client_id": client.client_id,
            "redirect_uri": redirect,
            "state": state,
            "code_challenge": _challenge(verifier),
            "code_challenge_method": "S256",
            **({"scope": " ".join(endpoints.scopes)} if endpoints.scopes else {}),
            **({"resource": endpoints.resource} if endpoints.resource else {}),
        }
        joint = "&" if urlsplit(endpoints.authorize).query else "?"
        return Departure(f"{endpoints.authorize}{joint}{urlencode(fields)}", state)

    async def come_back(self, answer: Mapping[str, str], browser: str) -> Arrival:
        """Store the token for the answer of an authorization server that a browser brings; once.

        Args:
            answer: The parameters of the address.
            browser: The secret that the browser has in its cookie.

        Raises:
            ConsentError: The answer is a no, was used before, or is not for this browser, principal or server.
        """
        state = name_of(answer.get("state", ""))
        row = await self._store.read(STATE, "", state)
        asked = None if row is None else Token.from_dict(row.value["token"])  # a newer one stays for a newer process
        row = await self._store.take(STATE, "", state)
        if row is None or asked is None:
            raise ConsentError("This answer is not valid: it was used before, is too old, or answers no request.")
        state_data = row.value
        if not hmac.compare_digest(state_data["browser"], name_of(browser)):
            raise ConsentError("This answer is for another browser. Open the link in the one where you want to go on.")
        _check_issuer(answer, asked.endpoints)
        if "error" in answer:
            code = answer["error"]
            shown = code if code.isidentifier() and len(code) < 60 else "an error"
            raise ConsentError(f"The authorization server gave no access: {shown}.")
        if not answer.get("code"):
            raise ConsentError("The authorization server gave neither a code nor an error.")
        about = await self.look(state_data["ticket"])  # it may have been used, or taken back, meanwhile
        if (about.principal, about.server) != (state_data["principal"], state_data["server"]):
            raise ConsentError(_GONE)
        async with guarded_client(about.server) as http:
            token = await exchanged(
                http, asked.endpoints, asked.client, answer["code"], state_data["verifier"], state_data["redirect"]
            )
        await self._store.write(TOKEN, about.principal, about.server, token.to_dict())
        await drop_link(self._store, about.principal, about.server, state_data["ticket"])
        return about

    async def _client(
        self, http: GuardedClient, endpoints: Endpoints, settings: Settings, redirect: str
    ) -> OAuthClient:
        """Return our client at an authorization server, registered there where that is needed."""
        if settings.client is not None:
            return settings.client
        if settings.document and endpoints.takes_documents:
            return OAuthClient(settings.document)
        name = f"{endpoints.issuer} {endpoints.register} {redirect}"
        row = await self._store.read(CLIENT, "", name)
        if row is None:
            client = await registered(http, endpoints, settings, redirect)
            value: dict[str, Any] = {"client_id": client.client_id, "secret": client.secret, "method": client.method}
            row = await self._store.find_or_write(CLIENT, "", name, value, 0.0)
        return OAuthClient(**row.value)


def _check_page(url: str) -> None:
    """Check that a browser may be sent to a page."""
    parts = urlsplit(url)
    local = parts.hostname in ("localhost", "127.0.0.1", "::1")
    if parts.scheme != "https" and not (parts.scheme == "http" and local):
        raise ConsentError("The page of the authorization server is not https.")


def _check_issuer(answer: Mapping[str, str], endpoints: Endpoints) -> None:
    """Check that an answer comes from the authorization server that was asked (RFC 9207)."""
    issuer = answer.get("iss")
    if issuer is None and not endpoints.says_issuer:
        return
    if issuer != endpoints.issuer:
        raise ConsentError("This answer comes from another authorization server than the one that was asked.")


def _challenge(verifier: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
