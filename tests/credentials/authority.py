"""An authorization server and a server that it guards, on loopback, made of the SDK's own pieces; and a browser."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx2
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    RefreshToken,
    TokenError,
    construct_redirect_uri,
)
from mcp.server.auth.settings import AuthSettings
from mcp.server.mcpserver import Context, MCPServer
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken

from tests.adapters.mcp_client.servers import served
from tests.networks import free_port

__all__ = ["Authority", "Browser", "Guarded", "guarded", "held_in", "query_of", "with_query"]


class Authority:
    """An authorization server: who is `signed_in` at it consents at once.

    Attributes:
        lasts: Seconds that an access token lasts.
        refreshes: How often a refresh token was used, the first time and again.
        reused: Refresh tokens that were used twice, as only a thief or a race does.
        refreshed: Whether a refresh token has been used.
        replies: Whether it answers those who refresh; a test may have it wait.
    """

    def __init__(self) -> None:
        self.signed_in = "nobody"
        self.lasts: int | None = 3600
        self.clients: dict[str, OAuthClientInformationFull] = {}
        self.codes: dict[str, AuthorizationCode] = {}
        self.tokens: dict[str, AccessToken] = {}
        self.refresh: dict[str, RefreshToken] = {}
        self.spent: set[str] = set()
        self.reused: list[str] = []
        self.refreshes = 0
        self.refreshed = asyncio.Event()
        self.replies = asyncio.Event()
        self.replies.set()
        self.revoked: list[str] = []

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        return self.clients.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        self.clients[client_info.client_id or ""] = client_info

    async def authorize(self, client: OAuthClientInformationFull, params: AuthorizationParams) -> str:
        code = AuthorizationCode(
            code=secrets.token_urlsafe(32),
            scopes=params.scopes or [],
            expires_at=time.time() + 60,
            client_id=client.client_id or "",
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=params.resource,
            subject=self.signed_in,
        )
        self.codes[code.code] = code
        return construct_redirect_uri(str(params.redirect_uri), code=code.code, state=params.state)

    async def load_authorization_code(self, client: Any, authorization_code: str) -> AuthorizationCode | None:
        return self.codes.get(authorization_code)

    async def exchange_authorization_code(self, client: Any, authorization_code: AuthorizationCode) -> OAuthToken:
        code = self.codes.pop(authorization_code.code)
        return self._made(code.client_id, code.scopes, code.subject or "", code.resource)

    async def load_refresh_token(self, client: Any, refresh_token: str) -> RefreshToken | None:
        if refresh_token in self.spent:
            self.reused.append(refresh_token)
        return self.refresh.get(refresh_token)

    async def exchange_refresh_token(self, client: Any, refresh_token: RefreshToken, scopes: list[str]) -> OAuthToken:
        if refresh_token.token not in self.refresh:
            raise TokenError("invalid_grant")
        del self.refresh[refresh_token.token]
        self.spent.add(refresh_token.token)
        self.refreshes += 1
        self.refreshed.set()
        await self.replies.wait()
        return self._made(refresh_token.client_id, scopes, refresh_token.subject or "", None)

    async def load_access_token(self, token: str) -> AccessToken | None:
        if token in self.reused:  # it was looked up to be revoked, where the refresh tokens are looked through first
            self.reused.remove(token)
        found = self.tokens.get(token)
        return None if found is None or (found.expires_at or 2**40) < time.time() else found

    async def revoke_token(self, token: AccessToken | RefreshToken) -> None:
        self.revoked.append(token.token)
        self.tokens.pop(token.token, None)
        self.refresh.pop(token.token, None)

    def _made(self, client_id: str, scopes: list[str], subject: str, resource: str | None) -> OAuthToken:
        access, refresh = f"at-{secrets.token_urlsafe(24)}", f"rt-{secrets.token_urlsafe(24)}"
        until = None if self.lasts is None else int(time.time()) + self.lasts
        self.tokens[access] = AccessToken(
            token=access, client_id=client_id, scopes=scopes, resource=resource, subject=subject, expires_at=until
        )
        self.refresh[refresh] = RefreshToken(token=refresh, client_id=client_id, scopes=scopes, subject=subject)
        return OAuthToken(access_token=access, refresh_token=refresh, expires_in=self.lasts)

    def take_back(self, subject: str) -> None:
        """Let every token of a person count no more."""
        self.tokens = {token: one for token, one in self.tokens.items() if one.subject != subject}
        self.refresh = {token: one for token, one in self.refresh.items() if one.subject != subject}

    def end(self, subject: str) -> None:
        """Let the access tokens of a person end now."""
        self.tokens = {token: one for token, one in self.tokens.items() if one.subject != subject}


class Browser:
    """A person's browser: it keeps cookies, and goes where it is sent."""

    def __init__(self, authority: Authority, person: str) -> None:
        self._authority, self.person = authority, person
        self.http = httpx2.AsyncClient(timeout=60)

    async def __aenter__(self) -> Browser:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.http.aclose()

    async def gives_access(self, link: str) -> httpx2.Response:
        """Open a link, agree, sign in, and come back."""
        back = await self.sent_back(link)
        return await self.http.get(back)

    async def sent_back(self, link: str) -> str:
        """Open a link, agree and sign in; return where the authorization server sends the browser back to."""
        left = await self.agrees(link)
        assert left.status_code == 303, left.text
        self._authority.signed_in = self.person
        return (await self.http.get(left.headers["location"])).headers["location"]

    async def agrees(self, link: str, **fields: str) -> httpx2.Response:
        """Open a link, and send the form there."""
        page = await self.http.get(link)
        assert page.status_code == 200, page.text
        proof = page.text.partition('name="proof" value="')[2].partition('"')[0]
        origin = "://".join(urlsplit(link)[:2])
        return await self.http.post(link, data={"proof": proof, **fields}, headers={"origin": origin})


class Guarded:
    """A guarded server of tools.

    Attributes:
        called: Who called, as the token says, and with what.
    """

    def __init__(self, authority: Authority, url: str) -> None:
        self.authority, self.url = authority, url
        self.called: list[tuple[str, str]] = []


@asynccontextmanager
async def guarded(authority: Authority | None = None) -> AsyncGenerator[Guarded]:
    """Serve an MCP server and its authorization server."""
    port = free_port()
    place = f"http://127.0.0.1:{port}"
    known = Guarded(authority or Authority(), f"{place}/mcp")
    settings = AuthSettings.model_validate(
        {
            "issuer_url": place,
            "resource_server_url": f"{place}/mcp",
            "validate_token_resource": False,
            "client_registration_options": {"enabled": True},
            "revocation_options": {"enabled": True},
        }
    )
    server = MCPServer("guarded", auth_server_provider=known.authority, auth=settings, log_level="CRITICAL")  # type: ignore[arg-type]

    @server.tool(structured_output=False)
    def whoami(ctx: Context[Any, Any], note: str = "") -> str:
        """Tell whose token came."""
        token = (ctx.headers or {})["authorization"].removeprefix("Bearer ")
        subject = known.authority.tokens[token].subject or ""
        known.called.append((subject, note))
        return subject

    async with served(server, port):
        yield known


def query_of(url: str) -> dict[str, str]:
    """Return the parameters of an address."""
    return {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}


def with_query(url: str, **fields: str) -> str:
    """Return an address with other parameters."""
    return f"{url.partition('?')[0]}?{urlencode({**query_of(url), **fields})}"


def held_in(folder: Path) -> bytes:
    """Return what all files of a folder hold."""
    return b"".join(one.read_bytes() for one in folder.iterdir())
