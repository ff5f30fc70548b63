"""Limits of sessions over HTTP: idle ones give way, those in use do not, and nobody pushes out another's."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import httpx2 as httpx
import pytest
import pytest_asyncio

from tests.adapters.mcp_server.http import served
from tests.adapters.mcp_server.test_http import ACCEPT, OPENING
from toolcrib.tools import ez_tool

pytestmark = pytest.mark.asyncio(loop_scope="module")

TOKENS = {name: f"{name}-0123456789abcdef" for name in ("ann", "ben", "eve")}
PING = {"jsonrpc": "2.0", "id": 2, "method": "ping"}


class Gate:
    """A tool that runs until it is let go."""

    def __init__(self) -> None:
        self.began, self.go, self.done = asyncio.Event(), asyncio.Event(), asyncio.Event()

    def tool(self) -> Any:
        @ez_tool(name="wait")
        async def wait() -> str:
            """Wait."""
            self.began.set()
            await self.go.wait()
            self.done.set()
            return "done"

        return wait


@pytest_asyncio.fixture(loop_scope="module")
async def gate() -> Gate:
    return Gate()


@pytest_asyncio.fixture(loop_scope="module")
async def client(gate: Gate) -> AsyncIterator[Sessions]:
    limits = {"max_sessions": 3, "max_sessions_each": 2}
    async with served([gate.tool()], tokens=TOKENS, **limits) as url, httpx.AsyncClient(timeout=60) as http:
        yield Sessions(url, http)


class Sessions:
    """A client that opens sessions, and sees which are left."""

    def __init__(self, url: str, http: httpx.AsyncClient) -> None:
        self.url, self.http = url, http

    def headers(self, name: str, session: str = "") -> dict[str, str]:
        known = {"mcp-session-id": session} if session else {}
        return {**ACCEPT, **known, "authorization": f"Bearer {TOKENS[name]}"}

    async def open(self, name: str) -> httpx.Response:
        return await self.http.post(self.url, json=OPENING, headers=self.headers(name))

    async def opened(self, *names: str) -> list[str]:
        return [(await self.open(name)).headers["mcp-session-id"] for name in names]

    async def lives(self, name: str, session: str) -> bool:
        reply = await self.http.post(self.url, json=PING, headers=self.headers(name, session))
        assert reply.status_code in (200, 404)
        return reply.status_code == 200

    @asynccontextmanager
    async def streaming(self, name: str, session: str) -> AsyncIterator[None]:
        async with self.http.stream("GET", self.url, headers=self.headers(name, session)) as reply:
            assert reply.status_code == 200
            yield


async def test_the_longest_idle_session_of_a_principal_with_too_many_ends(client: Sessions) -> None:
    first, second = await client.opened("ann", "ann")
    assert await client.lives("ann", first)  # so that the second is idle for longer

    (third,) = await client.opened("ann")

    assert [await client.lives("ann", one) for one in (first, second, third)] == [True, False, True]


async def test_where_all_are_too_many_the_one_with_most_idle_sessions_gives_way(client: Sessions) -> None:
    (bens,) = await client.opened("ben")
    anns = await client.opened("ann", "ann")

    (eves,) = await client.opened("eve")

    assert await client.lives("ben", bens)  # although it is idle for longest
    assert [await client.lives("ann", one) for one in anns] == [False, True]
    assert await client.lives("eve", eves)


async def test_sessions_in_use_do_not_end(client: Sessions) -> None:
    first, second, bens = await client.opened("ann", "ann", "ben")
    async with client.streaming("ann", first), client.streaming("ann", second):
        refused = await client.open("ann")  # although ben's is idle
        (again,) = await client.opened("eve")  # in the place of ben's, which is idle
        async with client.streaming("eve", again):
            full = await client.open("ben")

        assert (refused.status_code, full.status_code) == (429, 503)
        assert refused.json() == {
            "error": "ann has 2 sessions in use, the most for one principal (max_sessions_each): end one",
            "code": "sessions",
        }
        assert [await client.lives("ann", one) for one in (first, second)] == [True, True]
        assert not await client.lives("ben", bens)


async def test_a_call_goes_on_whose_client_has_broken_off(client: Sessions, gate: Gate) -> None:
    first, second = await client.opened("ann", "ann")
    body = {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "wait", "arguments": {}}}
    async with httpx.AsyncClient(timeout=60) as other:
        call = asyncio.create_task(other.post(client.url, json=body, headers=client.headers("ann", first)))
        await gate.began.wait()
        call.cancel()
        await asyncio.wait([call])

    await client.opened("ann", "ann")  # the second ends, then the one after it, and not that with the call
    gate.go.set()
    await gate.done.wait()

    assert await client.lives("ann", first)
    assert not await client.lives("ann", second)


async def test_many_at_a_moment_are_never_more_than_there_may_be(client: Sessions) -> None:
    replies = await asyncio.gather(*(client.open(name) for name in ("ann", "ben", "eve") * 10))
    opened = [reply.headers["mcp-session-id"] for reply in replies if reply.status_code == 200]
    names = [name for name, reply in zip(("ann", "ben", "eve") * 10, replies, strict=True) if reply.status_code == 200]
    living = [await client.lives(name, one) for name, one in zip(names, opened, strict=True)]

    assert {reply.status_code for reply in replies} <= {200, 429, 503}
    assert 1 <= sum(living) <= 3


async def test_a_session_that_its_client_ended_makes_room(client: Sessions) -> None:
    async with AsyncExitStack() as stack:
        first, second = await client.opened("ann", "ann")
        for one in (first, second):
            await stack.enter_async_context(client.streaming("ann", one))
        assert (await client.open("ann")).status_code == 429
    await client.http.delete(client.url, headers=client.headers("ann", first))

    assert (await client.open("ann")).status_code == 200
    assert json.loads((await client.open("ann")).request.content) == OPENING


async def test_a_client_of_the_newer_generation_opens_none(client: Sessions) -> None:
    newer = {**client.headers("ann"), "mcp-protocol-version": "2026-07-28"}
    first, second = await client.opened("ann", "ann")

    reply = await client.http.post(client.url, json={}, headers=newer)

    assert reply.status_code == 400
    assert [await client.lives("ann", one) for one in (first, second)] == [True, True]
