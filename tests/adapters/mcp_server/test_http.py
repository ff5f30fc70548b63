"""What is checked of a request over HTTP, one gate at a time, on servers of this process."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any
from urllib.parse import urlsplit

import httpx2 as httpx
import pytest
import pytest_asyncio
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings
from starlette.applications import Starlette
from starlette.routing import Mount

from tests.adapters.mcp_server.http import served
from toolcrib import tool
from toolcrib.adapters.mcp_server import HttpOptions, ServerOptions, http_app
from toolcrib.approvals import MemoryApprovalStore

pytestmark = pytest.mark.asyncio(loop_scope="module")

ANN, BEN = "ann-0123456789abcdef", "ben-0123456789abcdef"
STORE = MemoryApprovalStore()
ACCEPT = {"accept": "application/json, text/event-stream"}
OPENING = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}


@tool(requires_approval=True)
async def buy(item: str) -> str:
    """Buy something."""
    return item


BEGUN = asyncio.Event()


@tool
async def forever() -> str:
    """Never return."""
    BEGUN.set()
    await asyncio.Event().wait()
    return ""


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def url() -> AsyncIterator[str]:
    """A server that knows who comes, with limits that a test can reach."""
    limits = {"max_sessions": 3, "max_sessions_each": 2, "max_body": 4096, "max_headers": 20}
    tokens = {"ann": ANN, "ben": BEN}
    named = {"allowed_hosts": ["crib.example"], "allowed_origins": ["https://pages.example"]}
    async with served([buy], ServerOptions(approvals=STORE), tokens=tokens, **limits, **named) as where:
        yield where


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def impatient_url() -> AsyncIterator[str]:
    """A server on which a request has to arrive soon."""
    async with served([buy], tokens={"ann": ANN}, body_seconds=0.2) as where:
        yield where


async def post(url: str, *, token: str = ANN, content: Any = None, **headers: str) -> httpx.Response:
    """Send one request; without content, one that opens a session."""
    sent = {**ACCEPT, **({"authorization": f"Bearer {token}"} if token else {}), **headers}
    async with httpx.AsyncClient(timeout=60) as client:
        if content is None:
            return await client.post(url, json=OPENING, headers=sent)
        return await client.post(url, content=content, headers={"content-type": "application/json", **sent})


@asynccontextmanager
async def connected(url: str, token: str, mode: Any) -> AsyncIterator[Client]:
    headers = {"authorization": f"Bearer {token}"}
    async with (
        httpx.AsyncClient(headers=headers) as http,
        Client(streamable_http_client(url, http_client=http), mode=mode) as client,
    ):
        yield client


async def test_another_path_says_where_mcp_is_served(url: str) -> None:
    async with httpx.AsyncClient() as client:
        reply = await client.get(url.removesuffix("/mcp") + "/sse")

    assert (reply.status_code, reply.text) == (404, "There is nothing here: MCP is served at /mcp\n")


# --- who comes


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_call_is_on_behalf_of_whose_token_came(url: str, mode: str) -> None:
    async with connected(url, BEN, mode) as client:
        result = await client.call_tool("buy", {"item": mode})

    assert result.is_error
    (entry,) = [e for e in await STORE.list() if e.request.arguments == {"item": mode}]
    assert entry.request.principal == "ben"


@pytest.mark.parametrize("token", ["", "wrong", ANN[:-1], f"{ANN}x", "é" * 20])
async def test_who_has_no_token_of_ours_is_sent_away(url: str, token: str) -> None:
    reply = await post(url, token="", **({"authorization": f"Bearer {token}"} if token.isascii() and token else {}))

    assert reply.status_code == 401
    assert reply.headers["www-authenticate"].startswith("Bearer ")


async def test_a_session_is_its_opener_s_alone(url: str) -> None:
    session = (await post(url)).headers["mcp-session-id"]
    ping = b'{"jsonrpc": "2.0", "id": 2, "method": "ping"}'

    own = await post(url, content=ping, **{"mcp-session-id": session})
    other = await post(url, token=BEN, content=ping, **{"mcp-session-id": session})

    assert (own.status_code, other.status_code) == (200, 404)
    await end(url, session)


async def end(url: str, session: str, token: str = ANN) -> None:
    async with httpx.AsyncClient(timeout=60) as client:
        await client.delete(url, headers={"authorization": f"Bearer {token}", "mcp-session-id": session, **ACCEPT})


# --- what is sent


@pytest.mark.parametrize(
    ("host", "origin", "status"),
    [
        ("localhost", "", 200),
        ("localhost:9", "http://localhost:6274", 200),
        ("127.0.0.2:80", "", 200),
        ("[::1]:80", "http://[::1]", 200),
        ("Crib.Example:443", "https://pages.example", 200),
        ("crib.example", "https://crib.example", 200),
        ("evil.example", "", 421),
        ("localhost.evil.example", "", 421),
        ("localhost:80@evil.example", "", 421),
        ("10.0.0.1", "", 421),
        ("[::1].evil.example", "", 421),
        ("", "", 421),
        ("localhost", "http://evil.example", 403),
        ("localhost", "http://localhost.evil.example", 403),
        ("localhost", "http://pages.example", 403),
        ("localhost", "null", 403),
        ("localhost", "http://localhost/x", 403),
        ("localhost", "file://localhost", 403),
        ("localhost", "http://[", 403),
    ],
)
async def test_host_and_origin_are_ones_of_this_server(url: str, host: str, origin: str, status: int) -> None:
    reply = await post(url, host=host, **({"origin": origin} if origin else {}))

    assert reply.status_code == status
    if status == 200:
        await end(url, reply.headers["mcp-session-id"])


async def chunks(size: int, count: int) -> AsyncIterator[bytes]:
    for _ in range(count):
        yield b" " * size


@pytest.mark.parametrize("content", [lambda: b" " * 5000, lambda: chunks(1000, 6)])
async def test_a_body_has_a_size(url: str, content: Callable[[], Any]) -> None:
    reply = await post(url, content=content())

    assert reply.status_code == 413


async def test_a_request_has_so_many_headers(url: str) -> None:
    reply = await post(url, **{f"x-{n}": "1" for n in range(20)})

    assert reply.status_code == 431


async def test_a_request_has_to_arrive_in_time(impatient_url: str) -> None:
    place = urlsplit(impatient_url)
    reading, writing = await asyncio.open_connection(place.hostname, place.port)
    accept = b"".join(
        f"{name}: {value}\r\n".encode() for name, value in {**ACCEPT, "authorization": f"Bearer {ANN}"}.items()
    )
    writing.write(HEAD + accept + b"content-type: application/json\r\ncontent-length: 99\r\n\r\n{")
    status, _, rest = (await reading.read()).partition(b"\r\n")
    writing.close()

    assert b" 408 " in status
    assert json.loads(rest.partition(b"\r\n\r\n")[2]) == {
        "error": "the request did not arrive within 0.2 s",
        "code": "late",
    }


HEAD = b"POST /mcp HTTP/1.1\r\nhost: localhost\r\n"


@pytest.mark.parametrize("sent", [b"", HEAD, HEAD + b"content-length: 99\r\n\r\n{"], ids=["nothing", "half", "rest"])
async def test_a_connection_on_which_no_request_arrives_is_closed(impatient_url: str, sent: bytes) -> None:
    place = urlsplit(impatient_url)
    reading, writing = await asyncio.open_connection(place.hostname, place.port)
    writing.write(sent)

    async with asyncio.timeout(60):
        with suppress(ConnectionError):
            while await reading.read(4096):
                pass
    writing.close()


async def test_how_long_a_request_is_is_said_in_one_way(url: str) -> None:
    both = HEAD + b"content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n"
    place = urlsplit(url)
    reading, writing = await asyncio.open_connection(place.hostname, place.port)
    writing.write(both)

    assert b" 400 " in await reading.readline()
    writing.close()


async def test_a_session_that_ended_by_itself_makes_room() -> None:
    async with served([buy], tokens={"ann": ANN}, max_sessions_each=1, idle_seconds=0.05) as url:
        first = await post(url)
        async with asyncio.timeout(60):
            while (again := await post(url)).status_code != 200:  # noqa: ASYNC110 -- the server has no event
                await asyncio.sleep(0.05)

    assert [first.status_code, again.status_code] == [200, 200]


async def test_sessions_that_were_not_opened_make_room(url: str) -> None:
    wrong = [(await post(url, content=b"{}")).status_code for _ in range(4)]
    right = await post(url)

    assert (wrong, right.status_code) == ([400] * 4, 200)
    await end(url, right.headers["mcp-session-id"])


async def test_a_client_that_does_not_read_on_is_hung_up_on() -> None:
    ran = asyncio.Event()

    @tool(replace=True)
    async def long() -> str:
        """Return more than the system keeps for a client."""
        ran.set()
        return "x" * 8_000_000

    call = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "long"}}).encode()
    async with served([long], read_seconds=0.1) as url:
        place, session = urlsplit(url), (await post(url, token="")).headers["mcp-session-id"]
        sent = {**ACCEPT, "content-type": "application/json", "mcp-session-id": session, "content-length": len(call)}
        with socket.socket() as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.connect((place.hostname, place.port))
            connection.sendall(HEAD + b"".join(f"{k}: {v}\r\n".encode() for k, v in sent.items()) + b"\r\n" + call)
            await ran.wait()
            _, waiting = await asyncio.wait(answering(), timeout=60)

    assert waiting == set()


def answering() -> list[asyncio.Task[Any]]:
    """Return the requests of this process that are being answered."""
    return [task for task in asyncio.all_tasks() if "run_asgi" in repr(task.get_coro())]


async def test_a_page_that_may_use_it_is_told_so(url: str) -> None:
    asked = {"origin": "https://pages.example", "access-control-request-method": "POST"}
    async with httpx.AsyncClient(timeout=60) as client:
        reply = await client.options(url, headers={**asked, "access-control-request-headers": "authorization"})

    assert reply.headers["access-control-allow-origin"] == "https://pages.example"


# --- options


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"host": "0.0.0.0"}, "other machines can reach 0.0.0.0"),
        ({"host": "::"}, "other machines can reach ::"),
        ({"host": "crib.example"}, "give a token for each client"),
        ({"allowed_hosts": ["crib.example"]}, "other machines can reach crib.example"),
        ({"tokens": {"ann": "short"}}, "the token of ann must have at least 16 characters"),
        ({"tokens": {"ann": ANN, "ben": ANN}}, "two names have the same token"),
        ({"tokens": {"": ANN}}, "invalid name of a principal"),
        ({"path": "mcp"}, "path must begin with a slash"),
        ({"max_sessions": 0}, "max_sessions must be at least 1"),
        ({"max_sessions_each": 0}, "max_sessions_each must be at least 1"),
        ({"grace_seconds": -1}, "grace_seconds must be at least 0"),
    ],
)
async def test_options_that_are_no_good_are_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        HttpOptions(**options)


async def test_tokens_are_not_shown() -> None:
    assert ANN not in repr(HttpOptions(host="0.0.0.0", tokens={"ann": ANN}))


# --- other ways to serve


class Verifier:
    """An authorization server's word for it, as the SDK asks."""

    async def verify_token(self, token: str) -> AccessToken | None:
        if not token.startswith("of-"):
            return None
        return AccessToken(token=token, client_id="app", subject=token, scopes=["tools"] if "tools" in token else [])


async def test_tokens_of_an_authorization_server_are_verified() -> None:
    issuer: Any = "https://login.example"
    resource: Any = "http://127.0.0.1:8000/mcp"
    auth = AuthSettings(
        issuer_url=issuer, resource_server_url=resource, required_scopes=["tools"], validate_token_resource=False
    )

    async with served([buy], ServerOptions(approvals=STORE), token_verifier=Verifier(), auth=auth) as url:
        statuses = [(await post(url, token=token)).status_code for token in ("of-x-tools", "of-x", "x")]
        told = (await post(url, token="x")).headers["www-authenticate"]
        async with httpx.AsyncClient(timeout=60) as client:
            metadata = (await client.get(url.replace("/mcp", "/.well-known/oauth-protected-resource/mcp"))).json()

    assert statuses == [200, 403, 401]
    assert 'resource_metadata="http://127.0.0.1:8000/.well-known/oauth-protected-resource/mcp"' in told
    assert metadata["authorization_servers"] == ["https://login.example"]


class AudienceVerifier:
    """Says for which server a token is: the token is that server's address."""

    async def verify_token(self, token: str) -> AccessToken | None:
        return AccessToken(token=token, client_id="app", scopes=[], resource=None if token == "any" else token)


@pytest.mark.parametrize(
    ("checked", "statuses"), [(None, [200, 401, 401]), (True, [200, 401, 401]), (False, [200] * 3)]
)
@pytest.mark.filterwarnings("ignore:`AuthSettings.validate_token_resource`")
async def test_a_token_for_another_server_is_refused_unless_the_verifier_looks_itself(
    checked: bool | None, statuses: list[int]
) -> None:
    issuer: Any = "https://login.example"
    here: Any = "http://127.0.0.1:8000/mcp"
    auth = AuthSettings(issuer_url=issuer, resource_server_url=here, validate_token_resource=checked)

    async with served([buy], ServerOptions(approvals=STORE), token_verifier=AudienceVerifier(), auth=auth) as url:
        answered = [(await post(url, token=token)).status_code for token in (here, "https://other.example/mcp", "any")]

    assert answered == statuses


async def test_it_is_mounted_in_another_application() -> None:
    app = http_app([buy], ServerOptions(approvals=MemoryApprovalStore()), HttpOptions(path="/"))
    outer = Starlette(routes=[Mount("/tools", app)])

    async with app.running(), httpx.AsyncClient(transport=httpx.ASGITransport(outer), base_url="http://localhost") as c:
        reply = await c.post("/tools/", json=OPENING, headers=ACCEPT)

    assert reply.status_code == 200


# --- the end


async def test_stopping_ends_streams_at_once_and_calls_after_their_grace() -> None:
    call: asyncio.Task[Any] | None = None
    async with httpx.AsyncClient(timeout=60) as client:
        async with served([forever], grace_seconds=0.1) as url:
            session = (await client.post(url, json=OPENING, headers=ACCEPT)).headers["mcp-session-id"]
            sent = {**ACCEPT, "mcp-session-id": session}
            body = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "forever", "arguments": {}}}
            request = client.build_request("GET", url, headers=sent)
            stream = await client.send(request, stream=True)
            BEGUN.clear()
            call = asyncio.create_task(client.post(url, json=body, headers=sent))
            await BEGUN.wait()

        news = await stream.aread()
        reply = await call

    assert (stream.status_code, news) == (200, b"")
    assert b"result" not in reply.content


async def test_a_place_that_is_taken_is_an_error() -> None:
    async with served([buy]) as url:
        with pytest.raises(OSError, match="in use"):
            async with served([buy], port=int(url.split(":")[2].split("/")[0])):
                pass
