"""A client of the SDK that knows nothing but the address: it finds the login, signs its user in, and asks for more."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import parse_qsl, urlsplit

import httpx2 as httpx
import pytest
from mcp.client.auth import OAuthClientProvider
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientMetadata
from pydantic import AnyUrl

from tests.adapters.mcp_server.http import served
from tests.adapters.mcp_server.test_oauth import TOOLS
from tests.adapters.tokens import MemoryTokens
from tests.serving.oauth.login import Login, login
from toolcrib.adapters.mcp_server import AuthorizationServer


class User:
    """A user whose browser goes where it is sent, and who says yes.

    Attributes:
        asked: The scopes that the user was asked for, one after another.
    """

    def __init__(self, server: Login) -> None:
        self._server, self._back = server, ""
        self.asked: list[set[str]] = []

    async def go(self, url: str) -> None:
        query = dict(parse_qsl(urlsplit(url).query))
        self.asked.append({*query.get("scope", "").split()})
        self._back = self._server.authorize(query)

    async def come_back(self) -> AuthorizationCodeResult:
        found = dict(parse_qsl(urlsplit(self._back).query))
        return AuthorizationCodeResult(code=found["code"], state=found["state"])


@pytest.fixture
def server() -> Iterator[Login]:
    with login() as made:
        yield made


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_client_signs_in_and_asks_for_what_a_call_needs(server: Login, mode: str) -> None:
    user = User(server)
    about = OAuthClientMetadata(redirect_uris=[AnyUrl("http://localhost:1/back")], client_name="test")
    known = AuthorizationServer(server.issuer, scopes=["mcp"])
    async with served(TOOLS, authorization_server=known) as url:
        signing = OAuthClientProvider(url, about, MemoryTokens(), user.go, user.come_back)
        async with (
            httpx.AsyncClient(auth=signing, timeout=60) as http,
            Client(streamable_http_client(url, http_client=http), mode=mode) as client,
        ):
            said = await client.call_tool("whoami", {})
            before = [*user.asked]
            booked = await client.call_tool("book", {"place": "Oslo"})

    assert said.structured_content is not None
    assert said.structured_content["principal"] == f"ann;iss={server.issuer}"
    assert before == [{"mcp"}]
    assert user.asked == [{"mcp"}, {"mcp", "trips:write"}]
    assert not booked.is_error
