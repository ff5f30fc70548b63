"""A server behind a real reverse proxy, at a sub-path: clients are told its address there, and no header changes it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx2 as httpx
import pytest

from tests.adapters.mcp_server.http import served
from tests.adapters.mcp_server.test_http import ACCEPT, OPENING, connected
from tests.adapters.mcp_server.test_oauth import TOOLS
from tests.networks import free_port
from tests.nginx import needs_nginx, nginx
from tests.serving.oauth.login import Login, login
from toolcrib.adapters.mcp_server import AuthorizationServer

pytestmark = needs_nginx

STRIPPED = """
    location /gw/ {{ proxy_pass http://127.0.0.1:{port}/; proxy_buffering off; {headers} }}
    location /.well-known/oauth-protected-resource/gw/ {{ proxy_pass http://127.0.0.1:{port}; {headers} }}
"""
WHOLE = "location / {{ proxy_pass http://127.0.0.1:{port}; proxy_buffering off; {headers} }}"
HOST = "proxy_set_header Host $http_host;"


@pytest.fixture
def server() -> Iterator[Login]:
    with login() as made:
        yield made


@pytest.mark.parametrize(
    ("locations", "path", "headers"),
    [(STRIPPED, "/mcp", HOST), (STRIPPED, "/mcp", ""), (WHOLE, "/gw/mcp", HOST), (WHOLE, "/gw/mcp", "")],
    ids=["prefix taken off", "and the host", "prefix kept", "and not the host"],
)
async def test_clients_are_told_the_address_of_the_proxy(
    tmp_path: Path, server: Login, locations: str, path: str, headers: str
) -> None:
    front = free_port()
    public = f"http://127.0.0.1:{front}/gw/mcp"
    known = AuthorizationServer(server.issuer)
    async with served(TOOLS, path=path, public_url=public, authorization_server=known) as url:
        text = locations.format(port=url.split(":")[2].split("/")[0], headers=headers)
        with nginx(tmp_path, front, text):
            async with httpx.AsyncClient(timeout=60) as client:
                refused = await client.post(public, json=OPENING, headers=ACCEPT)
                where = refused.headers["www-authenticate"].partition('resource_metadata="')[2].rstrip('"')
                metadata = (await client.get(where)).json()
            results = []
            for mode in ("auto", "legacy"):
                async with connected(public, server.token(metadata["resource"]), mode) as calling:
                    results.append(await calling.call_tool("whoami", {}))

    assert where == f"http://127.0.0.1:{front}/.well-known/oauth-protected-resource/gw/mcp"
    assert (metadata["resource"], metadata["authorization_servers"]) == (public, [server.issuer])
    assert [result.is_error for result in results] == [False, False]


async def test_no_header_of_a_request_says_where_the_server_is(server: Login) -> None:
    forged = {
        "x-forwarded-host": "evil.example",
        "x-forwarded-proto": "https",
        "x-forwarded-prefix": "/evil",
        "forwarded": "host=evil.example;proto=https",
    }
    public = "https://tools.example.org/gw/mcp"
    known = AuthorizationServer(server.issuer)
    async with (
        served(TOOLS, public_url=public, authorization_server=known) as url,
        httpx.AsyncClient(timeout=60) as client,
    ):
        refused = await client.post(url, json=OPENING, headers={**ACCEPT, **forged})
        place = url.replace("/mcp", "/.well-known/oauth-protected-resource/gw/mcp")
        metadata = (await client.get(place, headers=forged)).json()
        named = await client.post(url, json=OPENING, headers={**ACCEPT, "host": "tools.example.org"})
        own_page = {"host": "127.0.0.1", "origin": "https://tools.example.org"}
        from_page = await client.post(url, json=OPENING, headers={**ACCEPT, **own_page})
        other = await client.post(url, json=OPENING, headers={**ACCEPT, "host": "evil.example"})
        other_page = await client.post(url, json=OPENING, headers={**ACCEPT, "origin": "https://evil.example"})

    assert "evil" not in refused.headers["www-authenticate"]
    assert metadata["resource"] == public
    assert [one.status_code for one in (named, from_page, other, other_page)] == [401, 401, 421, 403]


async def test_health_says_nothing_and_needs_nothing(server: Login) -> None:
    known = AuthorizationServer(server.issuer)
    async with (
        served(TOOLS, authorization_server=known) as url,
        httpx.AsyncClient(base_url=url.removesuffix("/mcp"), timeout=60) as client,
    ):
        lives = await client.get("/healthz", headers={"host": "10.1.2.3:8000"})
        ready = await client.get("/readyz")
        head = await client.head("/readyz")
        other = await client.post("/healthz")

    assert [(one.status_code, one.json()) for one in (lives, ready)] == [(200, {"status": "ok"})] * 2
    assert (head.status_code, other.status_code) == (200, 404)
