"""Checks of requests over HTTP that need no server of a protocol, and time limits of connections."""

import asyncio
from contextlib import suppress

import httpx2 as httpx
import pytest
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from toolcrib.serving.http import HttpGuard, HttpLimits, Site, TokenTable, listen, serve_app


class Hello:
    """An application that answers every request."""

    closed = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await PlainTextResponse("hello")(scope, receive, send)

    async def close(self) -> None:
        self.closed = True


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
