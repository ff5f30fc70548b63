"""OAuth for servers: a token of each principal, refreshed before it ends, revoked when it is forgotten."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final
from weakref import WeakValueDictionary

import httpx2

from toolcrib.calls import Consent
from toolcrib.credentials._api_keys import holders_in
from toolcrib.credentials._auth import host_key, pages_address
from toolcrib.credentials._guarded_http import guarded_client
from toolcrib.credentials._store import TOKEN, CredentialStore, Row, link_for
from toolcrib.credentials._token_requests import Endpoints, OAuthClient, Refused, Settings, Token, refreshed, revoked
from toolcrib.errors import ConsentError, CredentialError, explain_options

_EARLY: Final = 30.0  # seconds before its end in which a token is refreshed
_CLAIM: Final = 60.0  # seconds that one process has for a refresh
_POLL: Final = 0.05


@explain_options()
class OAuth:
    """OAuth 2.1 for servers, with a token of each principal.

    A principal consents on a page that `pages` serves: the authorization server is found by the server's metadata, we
    register there once, and the token is for this server alone.

    Args:
        store: Where tokens are kept.
        pages: The address of the consent pages: `https://gateway.example/consent`, or one of this machine.
        scopes: The scopes to ask for; those that the server names when empty.
        client_id: A client that was registered before at `issuer`, with its secret if it has one.
        client_secret: The secret of that client.
        issuer: The authorization server of that client. It is shown to no other.
        client_document: The https address of the client's metadata, which is its id where a server takes that.
        endpoints: The authorization server's `authorize`, `token`, and perhaps `revoke`, `issuer` and `resource`, where
            the server has no metadata.
        client_name: The name that principals see at the authorization server.
        list_as: The principal whose access lists what a server has; the first who gives access when None.

    Raises:
        ValueError: A client is given without its issuer, or an address cannot be used.
    """

    in_query = False

    def __init__(
        self,
        store: CredentialStore,
        *,
        pages: str,
        scopes: Sequence[str] = (),
        client_id: str = "",
        client_secret: str = "",
        issuer: str = "",
        client_document: str = "",
        endpoints: Mapping[str, str] | None = None,
        client_name: str = "toolcrib",
        list_as: str | None = None,
    ) -> None:
        if isinstance(scopes, str):
            raise ValueError(f"scopes must be a list: write scopes={scopes.split()!r}")
        if client_id and not issuer and endpoints is None:
            raise ValueError("client_id needs issuer: the client is shown to no other authorization server")
        if client_secret and not client_id:
            raise ValueError("client_secret needs client_id: it is the secret of that client")
        if client_document and not client_document.startswith("https://"):
            raise ValueError(f"client_document must be an https address, and is {client_document!r}")
        self._pages = pages_address("OAuth", pages)
        self._store, self.list_as = store, list_as
        self._scopes, self._issuer, self._document, self._name = tuple(scopes), issuer, client_document, client_name
        self._client = OAuthClient(client_id, client_secret) if client_id else None
        self._endpoints = None if endpoints is None else _given_endpoints(endpoints, tuple(scopes))
        self._locks: WeakValueDictionary[tuple[int, str, str], asyncio.Lock] = WeakValueDictionary()
        self._refreshing: set[asyncio.Task[Row | None]] = set()

    def _settings(self, server: str) -> Settings:
        return Settings(
            server, self._scopes, self._client, self._issuer, self._document, self._endpoints, name=self._name
        )

    # --- what an adapter asks

    async def consent_for(self, principal: str, server: str) -> Consent | None:
        """Return where a principal consents, unless they have and it still holds."""
        if await self._usable(principal, server) is not None:
            return None
        about = {"kind": TOKEN, "settings": self._settings(server).to_dict()}
        url = await link_for(self._store, self._pages, principal, server, about)
        return Consent(f"{principal} has not given access to {server}; they do so at the link", url, principal, server)

    async def sign(self, principal: str, server: str, request: httpx2.Request) -> str:
        """Put a principal's token on a request."""
        row = await self._usable(principal, server)
        if row is None:
            raise CredentialError(server, f"{principal} has not given access, or has taken it back")
        request.headers["Authorization"] = f"Bearer {Token.from_dict(row.value).access}"
        return row.version

    async def renew(self, principal: str, server: str, used: str) -> bool:
        """Refresh a token that the server has refused; one that cannot be is forgotten, and consent asked again."""
        row = await self._store.read(TOKEN, principal, server)
        if row is None or row.version != used:
            return row is not None
        try:
            return await self._renewed(principal, server, row) is not None
        except CredentialError:
            return False

    async def holders(self, server: str) -> tuple[str, ...]:
        """Return the principals who have given access."""
        return await holders_in(self._store, "oauth", server)

    async def forget(self, principal: str, server: str) -> bool:
        """Remove a principal's token, and have the authorization server revoke it; return whether there was one.

        Raises:
            CredentialError: It is removed here, and the authorization server did not revoke it.
            NewerForm: A newer version wrote it; it stays.
        """
        principal, server = host_key(principal, server)
        row = await self._store.read(TOKEN, principal, server)
        if row is None:
            return False
        Token.from_dict(row.value)  # one of a newer version is not removed, since nobody could revoke it
        row = await self._store.take(TOKEN, principal, server)
        if row is not None:
            await revoke_at_issuer(server, Token.from_dict(row.value))
        return row is not None

    # --- tokens

    async def _usable(self, principal: str, server: str) -> Row | None:
        """Return a token that holds, refreshed if it is about to end; None where consent is needed."""
        row = await self._store.read(TOKEN, principal, server)
        if row is None or not 0 < Token.from_dict(row.value).expires_at < time.time() + _EARLY:
            return row
        return await self._renewed(principal, server, row)

    async def _renewed(self, principal: str, server: str, row: Row) -> Row | None:
        """Return another token than this one, or None where consent is needed; of callers at once one refreshes."""
        key = (id(asyncio.get_running_loop()), principal, server)
        lock = self._locks.setdefault(key, asyncio.Lock())
        async with lock:
            now = await self._store.read(TOKEN, principal, server)
            if now is None or now.version != row.version:
                return now
            task = asyncio.ensure_future(self._refresh(principal, server, row))
            self._refreshing.add(task)
            task.add_done_callback(self._refreshing.discard)
            return await asyncio.shield(task)  # the old token is used up, although the caller may leave

    async def _refresh(self, principal: str, server: str, row: Row) -> Row | None:
        store, token = self._store, Token.from_dict(row.value)
        if not await store.claim(TOKEN, principal, server, row.version, _CLAIM):
            return await self._by_another(principal, server, row)
        try:
            fresh = None
            if token.refresh:
                async with guarded_client(server) as http:
                    fresh = await refreshed(http, token)
        except Refused:
            fresh = None
        except ConsentError as error:  # it may work later
            await store.unclaim(TOKEN, principal, server)
            if token.expires_at > time.time():
                return row
            raise CredentialError(server, f"they cannot be renewed now: {error}") from None
        except BaseException:
            await store.unclaim(TOKEN, principal, server)
            raise
        is_stored = await store.swap(TOKEN, principal, server, row.version, None if fresh is None else fresh.to_dict())
        if fresh is not None and not is_stored:  # it was forgotten meanwhile
            await revoke_at_issuer(server, fresh)
        return await store.read(TOKEN, principal, server)

    async def _by_another(self, principal: str, server: str, row: Row) -> Row | None:
        """Wait for the process that refreshes a token."""
        until = time.monotonic() + _CLAIM
        while time.monotonic() < until:
            now = await self._store.read(TOKEN, principal, server)
            if now is None or now.version != row.version:
                return now
            await asyncio.sleep(_POLL)
        raise CredentialError(server, "another process has not renewed them in time; call again")


async def revoke_at_issuer(server: str, token: Token) -> None:
    """Revoke a token at its authorization server.

    Raises:
        CredentialError: It does not.
    """
    try:
        async with guarded_client(server) as http:
            await revoked(http, token)
    except ConsentError as error:
        raise CredentialError(server, f"they are removed here, and not revoked: {error}") from None


def _given_endpoints(addresses: Mapping[str, str], scopes: tuple[str, ...]) -> Endpoints:
    known = {"authorize", "token", "revoke", "issuer", "resource"}
    if unknown := sorted(set(addresses) - known):
        raise ValueError(f"endpoints has no {unknown[0]!r}; it has {', '.join(sorted(known))}")
    if missing := [name for name in ("authorize", "token") if not addresses.get(name)]:
        raise ValueError(f"endpoints needs {missing[0]!r}")
    values: dict[str, Any] = {"issuer": "", **addresses}
    return Endpoints(**values, scopes=scopes)
