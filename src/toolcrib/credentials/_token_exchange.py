"""Token exchange (RFC 8693): the access token that a caller came with, for one of the server behind."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Literal
from urllib.parse import urlsplit
from weakref import WeakValueDictionary

import httpx2

from toolcrib._subject_tokens import SubjectTokens, subject_tokens
from toolcrib.calls import Consent
from toolcrib.credentials._guarded_http import guarded_client
from toolcrib.credentials._token_requests import Endpoints, OAuthClient, Token, granted, identity_assertion
from toolcrib.errors import ConsentError, CredentialError, explain_options

GATEWAY: Final = "<gateway>"
"""The name of the client itself, which lists a server's tools by its own credentials; no token's claim gives it."""

_EARLY: Final = 30.0  # seconds before its end in which a token is exchanged anew
_UNKNOWN: Final = 300.0  # seconds that a token without a stated end is used
_MOST: Final = 10_000  # tokens in memory
_EXCHANGE: Final = "urn:ietf:params:oauth:grant-type:token-exchange"
_BEARER: Final = "urn:ietf:params:oauth:grant-type:jwt-bearer"
_TYPE: Final = "urn:ietf:params:oauth:token-type:"


@dataclass(frozen=True, slots=True)
class IdJag:
    """The server's own authorization server, which takes an assertion of the identity provider (ID-JAG) for a token.

    Attributes:
        issuer: Its issuer: whom the assertion is for.
        token: Its token endpoint.
        client_id: The client that this process is there.
        client_secret: The secret of that client.
    """

    issuer: str
    token: str
    client_id: str
    client_secret: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        _require_address("IdJag(token=...)", self.token)


@dataclass(frozen=True, slots=True)
class _Exchanged:
    """A token of the server behind, with the version of the token that it was exchanged for."""

    token: Token
    of: str

    @property
    def version(self) -> str:
        return _digest(self.token.access)

    def is_good(self, of: str) -> bool:
        return self.of == of and self.token.expires_at > time.time() + _EARLY


@explain_options({"endpoint": "token", "token_endpoint": "token", "url": "token", "scope": "scopes", "issuer": "token"})
class TokenExchange:
    """Exchanges the access token of each caller for one of the server behind, on the caller's behalf.

    Callers come over HTTP with tokens of `HttpOptions.authorization_server` or of a `token_verifier`. Their tokens and
    the exchanged ones are in memory alone. What a server has is listed with a token of the client's own, by the grant
    `client_credentials`.

    Args:
        token: The token endpoint of the authorization server that exchanges.
        client_id: The client that this process is there.
        client_secret: The secret of that client.
        audience: The name of the server there, where it is not known by its address.
        scopes: The scopes to ask for; those that the authorization server gives when empty.
        subject: The type of the callers' tokens, as RFC 8693 names it.
        resource: Whether the address of the server is sent as `resource`.
        id_jag: The server's own authorization server, where the first one gives an assertion for it and no token.
        list_as: The principal whose token lists what the server has, in place of the client's own.

    Raises:
        ValueError: An address cannot be used, or `scopes` is a text.
    """

    in_query = False

    def __init__(
        self,
        token: str,
        *,
        client_id: str,
        client_secret: str = "",
        audience: str = "",
        scopes: Sequence[str] = (),
        subject: Literal["access_token", "id_token", "jwt"] = "access_token",
        resource: bool = True,
        id_jag: IdJag | None = None,
        list_as: str | None = None,
    ) -> None:
        if isinstance(scopes, str):
            raise ValueError(f"scopes must be a list: write scopes={scopes.split()!r}")
        if not client_id:
            raise ValueError("TokenExchange: give the client_id that this process has at the authorization server")
        _require_address("TokenExchange(token)", token)
        self._endpoint, self._client = token, OAuthClient(client_id, client_secret)
        self._audience, self._scopes, self._subject = audience, tuple(scopes), subject
        self._resource, self._id_jag = resource, id_jag
        self.list_as: str | None = GATEWAY if list_as is None else list_as
        self._exchanged: dict[tuple[str, str], _Exchanged] = {}
        self._locks: WeakValueDictionary[tuple[int, str, str], asyncio.Lock] = WeakValueDictionary()
        self._subjects: SubjectTokens = subject_tokens
        self._subjects.is_wanted = True

    # --- what an adapter asks

    async def consent_for(self, principal: str, server: str) -> Consent | None:
        """Return that a principal has to come with a token, where they have no token to exchange.

        Raises:
            CredentialError: It is the name of the client itself, which lists and calls nothing; or it was refused.
        """
        if principal == GATEWAY:
            raise CredentialError(
                server, f"{GATEWAY} is the client itself, and not a principal: give the run another one"
            )
        if await self._token(principal, server) is not None:
            return None
        reason = (
            f"{principal} has no access token here that could be exchanged for one of {server}; "
            "it comes with their next request over HTTP"
        )
        return Consent(reason, "", principal, server)

    async def sign(self, principal: str, server: str, request: httpx2.Request) -> str:
        """Put the exchanged token on a request."""
        found = await self._token(principal, server)
        if found is None:
            raise CredentialError(server, f"{principal} has no access token here that could be exchanged")
        request.headers["Authorization"] = f"Bearer {found.token.access}"
        return found.version

    async def renew(self, principal: str, server: str, used: str) -> bool:
        """Exchange anew where the server has refused a token; return whether there is another one now."""
        stored = self._exchanged.get((principal, server))
        if stored is not None and stored.version == used:
            del self._exchanged[principal, server]
        try:
            found = await self._token(principal, server)
        except CredentialError:
            return False
        return found is not None and found.version != used

    async def holders(self, server: str) -> tuple[str, ...]:
        """Return the client itself, and the principals who have a token here."""
        return (GATEWAY, *self._subjects.principals())

    async def forget(self, principal: str, server: str) -> bool:
        """Remove a principal's exchanged token; return whether there was one."""
        return self._exchanged.pop((principal, server), None) is not None

    # --- tokens

    async def _token(self, principal: str, server: str) -> _Exchanged | None:
        """Return a principal's token for a server, exchanged where need be; of callers at once one does it."""
        key = principal, server
        subject, stored = self._subject_of(principal), self._exchanged.get(key)
        if subject is None:
            return None
        if stored is not None and stored.is_good(_digest(subject)):
            return stored
        async with self._locks.setdefault((id(asyncio.get_running_loop()), *key), asyncio.Lock()):
            subject, stored = self._subject_of(principal), self._exchanged.get(key)  # it may have come meanwhile
            if subject is None:
                return None
            if stored is None or not stored.is_good(_digest(subject)):
                try:
                    stored = _Exchanged(_with_end(await self._exchange(subject, server)), _digest(subject))
                except ConsentError as error:
                    raise CredentialError(server, f"the token of {principal} was not exchanged: {error}") from None
                if len(self._exchanged) >= _MOST:
                    self._exchanged.clear()
                self._exchanged[key] = stored
        return stored

    def _subject_of(self, principal: str) -> str | None:
        return "" if principal == GATEWAY else self._subjects.token_of(principal)

    async def _exchange(self, subject: str, server: str) -> Token:
        fields = {"scope": " ".join(self._scopes)} if self._scopes else {}
        fields |= {"audience": self._audience} if self._audience else {}
        parts = urlsplit(self._endpoint)
        resource = server if self._resource else ""
        at = Endpoints(f"{parts.scheme}://{parts.netloc}", "", self._endpoint, resource=resource)
        last = self._id_jag
        if not subject:
            endpoints = at if last is None else Endpoints(last.issuer, "", last.token, resource=at.resource)
            client = self._client if last is None else OAuthClient(last.client_id, last.client_secret)
            return await self._ask(endpoints, client, {"grant_type": "client_credentials", **fields})
        fields |= {"subject_token": subject, "subject_token_type": f"{_TYPE}{self._subject}"}
        if last is None:
            return await self._ask(at, self._client, {"grant_type": _EXCHANGE, **fields})
        wanted = {"grant_type": _EXCHANGE, "requested_token_type": f"{_TYPE}id-jag", **fields, "audience": last.issuer}
        async with guarded_client(self._endpoint) as http:
            assertion = await identity_assertion(http, at, self._client, wanted)
        behind = Endpoints(last.issuer, "", last.token, resource=at.resource)
        grant = {"grant_type": _BEARER, "assertion": assertion}
        return await self._ask(behind, OAuthClient(last.client_id, last.client_secret), grant)

    @staticmethod
    async def _ask(at: Endpoints, client: OAuthClient, fields: dict[str, str]) -> Token:
        async with guarded_client(at.token) as http:
            return await granted(http, at, client, fields)


def _with_end(token: Token) -> Token:
    if token.expires_at:
        return token
    return Token(token.access, token.refresh, time.time() + _UNKNOWN + _EARLY, token.endpoints, token.client)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _require_address(noun: str, url: str) -> None:
    parts = urlsplit(url)
    is_here = parts.hostname in ("127.0.0.1", "localhost", "::1")
    if not parts.hostname or parts.username or not (parts.scheme == "https" or (parts.scheme == "http" and is_here)):
        raise ValueError(f"{noun} must be the https address of a token endpoint, and is {url!r}")
