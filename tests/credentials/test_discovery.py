"""Metadata of others: what is not the server's own is refused, and no private place is visited for it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.adapters.mcp_client.servers import serving
from tests.networks import free_port
from toolcrib.credentials import AddressError
from toolcrib.credentials._guarded_http import GuardedClient, _range_of, guarded_client
from toolcrib.credentials._token_requests import Settings, discovered
from toolcrib.errors import ConsentError

SERVER = "https://tools.example/team/mcp"
ISSUER = "https://login.example"
ABOUT = {"resource": SERVER, "authorization_servers": [ISSUER], "scopes_supported": ["read"]}
METADATA = {
    "issuer": ISSUER,
    "authorization_endpoint": f"{ISSUER}/authorize",
    "token_endpoint": f"{ISSUER}/token",
    "code_challenge_methods_supported": ["S256"],
}


class Web(GuardedClient):
    """Pages by address, in place of the network."""

    def __init__(self, about: Any, metadata: Any, challenge: str = "") -> None:
        self._pages = {
            "https://tools.example/.well-known/oauth-protected-resource/team/mcp": about,
            f"{ISSUER}/.well-known/oauth-authorization-server": metadata,
        }
        self._challenge = challenge

    async def get_json(self, url: str) -> dict[str, Any] | None:
        return self._pages.get(url)

    async def get_status(self, url: str) -> tuple[int, str]:
        return 401, self._challenge


async def test_endpoints_are_those_of_the_metadata() -> None:
    found = await discovered(Web(ABOUT, METADATA), Settings(SERVER))

    assert (found.issuer, found.token, found.resource) == (ISSUER, f"{ISSUER}/token", SERVER)
    assert found.scopes == ("read",)


@pytest.mark.parametrize(
    "resource",
    [
        "https://bank.example/mcp",  # the token would be the bank's
        "https://tools.example.evil.example/team/mcp",
        "http://tools.example/team/mcp",
        "https://tools.example:444/team/mcp",
        "https://tools.example/team/mc",
        "https://tools.example/other",
        "https://tools.example/team/mcp?x=1",
        "",
    ],
)
async def test_metadata_about_another_server_is_refused(resource: str) -> None:
    with pytest.raises(ConsentError, match="another server"):
        await discovered(Web({**ABOUT, "resource": resource}, METADATA), Settings(SERVER))


async def test_metadata_of_another_authorization_server_is_refused() -> None:
    with pytest.raises(ConsentError, match="and not to"):
        await discovered(Web(ABOUT, {**METADATA, "issuer": "https://evil.example"}), Settings(SERVER))


async def test_server_that_names_another_authorization_server_does_not_see_our_client() -> None:
    settings = Settings(SERVER, issuer="https://ours.example")

    with pytest.raises(ConsentError, match="and not https://ours"):
        await discovered(Web(ABOUT, METADATA), settings)


@pytest.mark.parametrize("methods", [None, [], ["plain"]])
async def test_authorization_server_without_pkce_is_refused(methods: Any) -> None:
    with pytest.raises(ConsentError, match="PKCE"):
        await discovered(Web(ABOUT, {**METADATA, "code_challenge_methods_supported": methods}), Settings(SERVER))


@pytest.mark.parametrize("url", ["javascript:alert(1)", "file:///etc/passwd", "https://u:p@login.example/x", None, 5])
async def test_endpoint_that_is_no_web_address_is_refused(url: Any) -> None:
    with pytest.raises(ConsentError, match="token_endpoint"):
        await discovered(Web(ABOUT, {**METADATA, "token_endpoint": url}), Settings(SERVER))


# --- addresses


@pytest.mark.parametrize(
    ("address", "where"),
    [
        ("93.184.216.34", "public"),
        ("127.0.0.1", "loopback"),
        ("::1", "loopback"),
        ("::ffff:127.0.0.1", "loopback"),
        ("64:ff9b::7f00:1", "loopback"),
        ("2002:7f00:1::", "loopback"),
        ("10.1.2.3", "private"),
        ("192.168.0.1", "private"),
        ("172.16.0.1", "private"),
        ("100.64.0.1", "private"),
        ("fd00::1", "private"),
        ("fec0::1", "private"),
        ("64:ff9b:1::1", "never"),
        ("3fff::1", "private"),
        ("5f00::1", "never"),
        ("::ffff:10.0.0.1", "private"),
        ("64:ff9b::a9fe:a9fe", "never"),
        ("169.254.169.254", "never"),
        ("fe80::1%eth0", "never"),
        ("0.0.0.0", "never"),
        ("::", "never"),
        ("224.0.0.1", "never"),
        ("240.0.0.1", "never"),
    ],
)
def test_range_of_an_address(address: str, where: str) -> None:
    assert _range_of(address) == where


class Asked:
    """An application that notes what it is asked."""

    def __init__(self, status: int = 200, headers: tuple[tuple[bytes, bytes], ...] = (), body: bytes = b"{}") -> None:
        self.status, self.headers, self.body = status, headers, body
        self.paths: list[str] = []
        self.hosts: list[bytes] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.paths.append(scope["path"])
        self.hosts += [value for name, value in scope["headers"] if name == b"host"]
        await send({"type": "http.response.start", "status": self.status, "headers": self.headers})
        await send({"type": "http.response.body", "body": self.body})


async def test_server_on_the_network_leads_nobody_to_this_machine() -> None:
    app, port = Asked(), free_port()
    async with serving(app, port), guarded_client("https://93.184.216.34/mcp") as http:
        for url in (f"http://127.0.0.1:{port}/x", f"http://localhost:{port}/x", f"https://127.0.0.1:{port}/x"):
            with pytest.raises(AddressError, match="is not visited"):
                await http.get_json(url)
        with pytest.raises(AddressError, match="is not visited"):
            await http.get_json("http://169.254.169.254/latest/meta-data")
        with pytest.raises(AddressError, match="not https"):
            await http.get_json("http://93.184.216.34/x")

    assert app.paths == []


async def test_server_of_this_machine_leads_to_this_machine_and_not_to_its_network() -> None:
    app, port = Asked(), free_port()
    async with serving(app, port), guarded_client(f"http://127.0.0.1:{port}/mcp") as http:
        found = await http.get_json(f"http://localhost:{port}/x")
        with pytest.raises(AddressError, match="is not visited"):
            await http.get_json("http://10.0.0.1/x")

    assert found == {}
    assert app.hosts == [f"localhost:{port}".encode()]


async def test_redirect_is_not_followed_and_long_reply_not_read() -> None:
    port = free_port()
    redirect = Asked(302, ((b"location", f"http://127.0.0.1:{port}/y".encode()),))
    async with serving(redirect, port), guarded_client(f"http://127.0.0.1:{port}/mcp") as http:
        found = await http.get_json(f"http://127.0.0.1:{port}/x")
    port = free_port()
    async with serving(Asked(body=b" " * 10**6), port), guarded_client(f"http://127.0.0.1:{port}/mcp") as http:
        with pytest.raises(AddressError, match="more than"):
            await http.get_json(f"http://127.0.0.1:{port}/x")

    assert found is None
    assert redirect.paths == ["/x"]
