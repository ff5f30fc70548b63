"""Pages of consent at a gateway's public address, behind a reverse proxy: from a call over HTTP to its effect."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2

from tests.adapters.mcp_server.http import command_over_http
from tests.adapters.mcp_server.test_oauth import call, post, result_of
from tests.credentials.authority import Browser, Guarded, guarded
from toolcrib.credentials import new_key

PUBLIC = "https://tools.example.org"
TOKENS = {"ANN": "a-secret-of-ann-0123456789", "BOB": "a-secret-of-bob-0123456789"}


class Proxy(httpx2.AsyncBaseTransport):
    """A reverse proxy: what is sent to the public address reaches the gateway, with the public host's name."""

    def __init__(self, gateway: str) -> None:
        self._gateway, self._http = httpx2.URL(gateway), httpx2.AsyncHTTPTransport()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if request.url.host == "tools.example.org":
            url = request.url.copy_with(scheme="http", host=self._gateway.host, port=self._gateway.port)
            request = httpx2.Request(request.method, url, headers=request.headers, stream=request.stream)
        return await self._http.handle_async_request(request)

    async def aclose(self) -> None:
        await self._http.aclose()


class Outside:
    """Those who reach a gateway by its public address."""

    def __init__(self, server: Guarded, proxy: Proxy, path: str) -> None:
        self.server, self._proxy, self._path = server, proxy, path

    async def link(self, who: str, tool: str) -> str:
        """Call a tool for somebody who has not given access; return the link in the answer."""
        text = await self.says(who, tool)
        link = re.search(rf"{PUBLIC}\S*/consent/[\w-]+", text)
        assert link is not None, text
        return link[0]

    async def says(self, who: str, tool: str) -> str:
        """Call a tool for somebody, and return the text of the answer."""
        async with httpx2.AsyncClient(transport=self._proxy, base_url=PUBLIC + self._path, timeout=60) as http:
            reply = await post(http, TOKENS[who], call(tool))
            assert reply.status_code == 200, reply.text
            return result_of(reply)["content"][0]["text"]

    @asynccontextmanager
    async def browser(self, person: str) -> AsyncGenerator[Browser]:
        """Open the browser of a person, which keeps cookies as of the public address."""
        async with Browser(self.server.authority, person) as browser:
            await browser.http.aclose()
            browser.http = httpx2.AsyncClient(transport=self._proxy)
            yield browser


@asynccontextmanager
async def outside(folder: Path, path: str) -> AsyncGenerator[Outside]:
    """Serve a file of servers over HTTP in a process of its own."""
    async with guarded() as server:
        section = {
            "http": {"public_url": f"{PUBLIC}{path}/mcp", "path": f"{path}/mcp"},
            "tokens_env": {"ann": "ANN", "bob": "BOB"},
            "credentials": {"pages": f"{PUBLIC}{path}/consent"},
        }
        tickets = {"url": server.url, "toolcrib": {"credentials": {"oauth": True}}}
        (folder / "mcp.json").write_text(json.dumps({"mcpServers": {"tickets": tickets}, "toolcrib": section}))
        with command_over_http(folder, "mcp.json", TOOLCRIB_CREDENTIALS_KEY=new_key(), **TOKENS) as url:
            yield Outside(server, Proxy(url), path)


async def test_call_over_http_gets_a_link_to_the_public_address_and_is_made_after_it(tmp_path: Path) -> None:
    async with outside(tmp_path, "/gw") as here:
        link = await here.link("ANN", "get_access")
        async with here.browser("ann@there") as browser:
            page = await browser.gives_access(link)
        await here.says("ANN", "get_access")
        said = await here.says("ANN", "whoami")
        other = await here.link("BOB", "whoami")

    assert link.startswith(f"{PUBLIC}/gw/consent/")
    assert page.status_code == 200, page.text
    assert said == "ann@there"
    assert other != link
    assert [subject for subject, _ in here.server.called] == ["ann@there"]
