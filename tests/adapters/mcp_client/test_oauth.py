"""A server that sends its clients to an authorization server first: found, registered with and asked, over loopback."""

from __future__ import annotations

import secrets
import time
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
from mcp.client.auth import OAuthClientProvider
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    construct_redirect_uri,
)
from mcp.server.auth.settings import AuthSettings
from mcp.server.mcpserver import Context, MCPServer
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from pydantic import AnyUrl

from tests.adapters.mcp_client.servers import called, served
from tests.adapters.tokens import MemoryTokens
from tests.networks import free_port
from toolcrib.adapters.mcp_client import connect

BACK = "http://127.0.0.1:9/back"


class Authority:
    """An authorization server where everybody may come in, as the SDK wants one."""

    def __init__(self) -> None:
        self.clients: dict[str, OAuthClientInformationFull] = {}
        self.codes: dict[str, AuthorizationCode] = {}
        self.tokens: dict[str, AccessToken] = {}

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
            subject="ann",
        )
        self.codes[code.code] = code
        return construct_redirect_uri(str(params.redirect_uri), code=code.code, state=params.state)

    async def load_authorization_code(self, client: Any, authorization_code: str) -> AuthorizationCode | None:
        return self.codes.get(authorization_code)

    async def exchange_authorization_code(self, client: Any, authorization_code: AuthorizationCode) -> OAuthToken:
        code = self.codes.pop(authorization_code.code)
        token = secrets.token_urlsafe(32)
        self.tokens[token] = AccessToken(
            token=token, client_id=code.client_id, scopes=code.scopes, resource=code.resource, subject=code.subject
        )
        return OAuthToken(access_token=token, expires_in=60)

    async def load_access_token(self, token: str) -> AccessToken | None:
        return self.tokens.get(token)

    async def load_refresh_token(self, client: Any, refresh_token: str) -> None:
        return None


class Browser:
    """A person's browser, which is sent to the authorization server and back."""

    def __init__(self) -> None:
        self.visits = 0
        self.back: dict[str, list[str]] = {}

    async def go(self, url: str) -> None:
        self.visits += 1
        async with httpx2.AsyncClient(timeout=60) as http:
            self.back = parse_qs(urlsplit((await http.get(url)).headers["location"]).query)

    async def came_back(self) -> AuthorizationCodeResult:
        return AuthorizationCodeResult(
            **{name: self.back[name][0] for name in ("code", "state", "iss") if name in self.back}
        )


async def test_who_is_sent_to_an_authorization_server_comes_back_with_a_token() -> None:
    port, authority, kept, browser = free_port(), Authority(), MemoryTokens(), Browser()
    place = f"http://127.0.0.1:{port}"
    given = {"issuer_url": place, "resource_server_url": f"{place}/mcp", "validate_token_resource": True}
    settings = AuthSettings.model_validate({**given, "client_registration_options": {"enabled": True}})
    server = MCPServer("guarded", auth_server_provider=authority, auth=settings, log_level="CRITICAL")  # type: ignore[arg-type]

    @server.tool(structured_output=False)
    def whoami(ctx: Context[Any, Any]) -> str:
        """Tell whose token came."""
        return authority.tokens[(ctx.headers or {})["authorization"].removeprefix("Bearer ")].subject or ""

    about = OAuthClientMetadata(client_name="toolcrib", redirect_uris=[AnyUrl(BACK)])

    def signing() -> OAuthClientProvider:
        return OAuthClientProvider(f"{place}/mcp", about, kept, browser.go, browser.came_back)

    async with served(server, port):
        async with connect(f"{place}/mcp", auth=signing()).open() as tools:
            first = await called(tools, "whoami")
        async with connect(f"{place}/mcp", auth=signing()).open() as tools:
            again = await called(tools, "whoami")

    assert (first, again) == ("ann", "ann")
    assert browser.visits == 1  # the second time the token is known
