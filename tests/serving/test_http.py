"""Checks of requests over HTTP that need no server of a protocol, and time limits of connections."""

import asyncio
from contextlib import suppress

import httpx2 as httpx
import pytest
from pydantic import BaseModel, field_validator
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from toolcrib.errors import FrontEndError
from toolcrib.serving.http import (
    HttpGuard,
    HttpLimits,
    Site,
    TokenTable,
    TrustedProxies,
    listen,
    parse_body,
    serve_app,
)


class Hello:
    """An application that answers every request."""

    closed = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await PlainTextResponse("hello")(scope, receive, send)

    async def close(self) -> None:
        self.closed = True


class Peer(Hello):
    """An application that answers with the scheme of a request, and where it came from."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await PlainTextResponse(f"{scope['scheme']} {scope['client'][0]}")(scope, receive, send)


@pytest.mark.parametrize(
    ("host", "local_pages", "status"), [("127.0.0.1", True, 200), ("127.0.0.1", False, 403), ("0.0.0.0", True, 403)]
)
async def test_pages_of_this_machine_use_a_server_of_this_machine_alone(
    host: str, local_pages: bool, status: int
) -> None:
    guard = HttpGuard(Hello(), Site(host, local_pages=local_pages))

    async with httpx.AsyncClient(transport=httpx.ASGITransport(guard), base_url="http://localhost:8000") as client:
        reply = await client.get("/", headers={"origin": "http://localhost:6274"})

    assert reply.status_code == status


def test_a_token_has_one_holder() -> None:
    table = TokenTable({"ann": "a" * 16, "ben": "b" * 16})

    assert [table.holder(token) for token in ("b" * 16, "b" * 15, "", "ü\udc80")] == ["ben", None, None, None]


async def test_a_connection_without_a_request_in_time_is_closed_and_so_is_the_application() -> None:
    app, started = Hello(), asyncio.Event()
    with listen("127.0.0.1", 0) as listener:
        limits = HttpLimits(arrive_seconds=0.1)
        serving = asyncio.create_task(serve_app(app, listener, limits, started=started.set))
        await started.wait()
        reader, writer = await asyncio.open_connection(*listener.socket.getsockname())

        writer.write(b"GET / HTTP/1.1\r\n")  # and no end to it
        with suppress(ConnectionResetError):
            assert await reader.read() == b""
        writer.close()
        serving.cancel()
        await asyncio.wait([serving])

    assert app.closed


@pytest.mark.parametrize(
    ("peer", "header", "found"),
    [
        ("192.0.2.1", ["198.51.100.1"], "192.0.2.1"),  # a peer that is no proxy
        ("127.0.0.1", [], "127.0.0.1"),
        ("127.0.0.1", ["198.51.100.1"], "198.51.100.1"),
        ("127.0.0.1", ["9.9.9.9, 198.51.100.1"], "198.51.100.1"),  # the client wrote the first
        ("127.0.0.1", ["9.9.9.9", "198.51.100.1, 10.1.2.3"], "198.51.100.1"),  # 10.1.2.3 is a trusted proxy, too
        ("127.0.0.1", ["10.1.2.3"], "10.1.2.3"),
        ("127.0.0.1", ["9.9.9.9, unknown"], "127.0.0.1"),
        ("127.0.0.1", ["9.9.9.9, "], "127.0.0.1"),
        ("127.0.0.1", ["198.51.100.1:4711"], "198.51.100.1"),
        ("127.0.0.1", ["[2001:db8::1]:4711"], "2001:db8::1"),
        ("::ffff:127.0.0.1", ["2001:db8::1"], "2001:db8::1"),
    ],
)
def test_an_address_is_the_first_from_the_right_that_no_trusted_proxy_has(
    peer: str, header: list[str], found: str
) -> None:
    scope = {"type": "http", "client": (peer, 5), "headers": [(b"x-forwarded-for", one.encode()) for one in header]}

    assert TrustedProxies(["127.0.0.1", "10.0.0.0/8"]).client_address(scope) == found
    assert TrustedProxies().client_address(scope) == peer.removeprefix("::ffff:")


@pytest.mark.parametrize("proxy", ["::ffff:10.0.0.1", "::ffff:10.0.0.0/104", "::/0"])
@pytest.mark.parametrize("peer", ["10.0.0.1", "::ffff:10.0.0.1"])
def test_a_trusted_proxy_may_be_written_as_ipv6(proxy: str, peer: str) -> None:
    scope = {"type": "http", "client": (peer, 5), "headers": [(b"x-forwarded-for", b"198.51.100.1")]}

    found = TrustedProxies([proxy]).client_address(scope)

    assert found == ("10.0.0.1" if proxy == "::/0" else "198.51.100.1")


@pytest.mark.parametrize("client", [None, ("/run/console.sock", None)])
def test_a_connection_without_an_address_is_no_trusted_proxy(client: object) -> None:
    scope = {"type": "http", "client": client, "headers": [(b"x-forwarded-for", b"198.51.100.1")]}

    assert TrustedProxies(["0.0.0.0/0"]).client_address(scope) in ("an unknown address", "/run/console.sock")


@pytest.mark.parametrize("addresses", [["proxy.example"], ["10.0.0.1/8"]])
def test_an_address_that_is_none_is_no_trusted_proxy(addresses: list[str]) -> None:
    with pytest.raises(ValueError, match="trusted prox"):
        TrustedProxies(addresses)


def test_trusted_proxies_are_a_list() -> None:
    with pytest.raises(TypeError, match=r"addresses is '127\.0\.0\.1'; write addresses=\['127\.0\.0\.1'\]"):
        TrustedProxies("127.0.0.1")


async def test_no_server_takes_the_address_of_a_client_from_a_header() -> None:
    app, started = Peer(), asyncio.Event()
    with listen("127.0.0.1", 0) as listener:
        serving = asyncio.create_task(serve_app(app, listener, HttpLimits(), started=started.set))
        await started.wait()
        async with httpx.AsyncClient(timeout=60) as client:
            forged = {"x-forwarded-for": "198.51.100.1", "x-forwarded-proto": "https"}
            reply = await client.get(listener.url, headers=forged)
        serving.cancel()
        await asyncio.wait([serving])

    assert reply.text == "http 127.0.0.1"


class Body(BaseModel):
    """A request of a protocol, one of whose fields is too deep to be read."""

    name: str
    tree: str = ""

    @field_validator("tree")
    @classmethod
    def _read(cls, tree: str) -> str:
        raise RecursionError


@pytest.mark.parametrize(
    ("body", "problem"),
    [({}, "1 wrong field"), ({"name": 1, "x": 2}, "1 wrong field"), ({"name": "a", "tree": "("}, "too deep")],
    ids=str,
)
def test_a_body_that_is_not_of_the_protocol_is_refused_with_the_reason(body: dict[str, object], problem: str) -> None:
    with pytest.raises(FrontEndError, match=f"the request is not a Body: it .*{problem}") as refused:
        parse_body(Body, body, "a Body")

    assert refused.value.status == 422
