"""Refresh of tokens: one at a time, with the newest refresh token, and no way back for what was forgotten."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import pytest

from tests.credentials.authority import Browser, Guarded, guarded
from tests.networks import free_port
from toolcrib.credentials import CredentialKeys, CredentialStore, MemoryCredentialStore, OAuth, SqliteCredentialStore
from toolcrib.credentials import new_key as fresh_key
from toolcrib.errors import CredentialError
from toolcrib.serving.http.consent import consent_server


@asynccontextmanager
async def with_token(store: CredentialStore, pages: str) -> AsyncGenerator[tuple[Guarded, OAuth]]:
    async with guarded() as server, consent_server(pages, store):
        server.authority.lasts = 10  # less than what counts as about to end
        oauth = OAuth(store, pages=pages)
        consent = await oauth.consent_for("ann", server.url)
        assert consent is not None
        async with Browser(server.authority, "ann") as browser:
            assert (await browser.gives_access(consent.url)).status_code == 200
        server.authority.lasts = 3600
        yield server, oauth


async def token_of(oauth: OAuth, server: Guarded) -> str:
    request = httpx2.Request("GET", server.url)
    await oauth.sign("ann", server.url, request)
    return request.headers["authorization"]


def pages_here() -> str:
    return f"http://127.0.0.1:{free_port()}/consent"


async def test_of_many_callers_one_refreshes() -> None:
    async with with_token(MemoryCredentialStore(), pages_here()) as (server, oauth):
        tokens = await asyncio.gather(*(token_of(oauth, server) for _ in range(50)))

    assert len(set(tokens)) == 1
    assert server.authority.refreshes == 1
    assert server.authority.reused == []


async def test_of_many_processes_one_refreshes(tmp_path: Path) -> None:
    keys, pages = [fresh_key()], pages_here()
    store = SqliteCredentialStore(tmp_path / "c.db", CredentialKeys(keys))
    async with with_token(store, pages) as (server, _):
        others = [OAuth(SqliteCredentialStore(tmp_path / "c.db", CredentialKeys(keys)), pages=pages) for _ in range(6)]
        tokens = await asyncio.gather(*(token_of(one, server) for one in others for _ in range(5)))

    assert len(set(tokens)) == 1
    assert server.authority.refreshes == 1
    assert server.authority.reused == []


async def test_caller_that_leaves_does_not_lose_the_new_token() -> None:
    async with with_token(MemoryCredentialStore(), pages_here()) as (server, oauth):
        server.authority.replies.clear()
        leaving = asyncio.create_task(token_of(oauth, server))
        await server.authority.refreshed.wait()
        leaving.cancel()
        await asyncio.wait({leaving})
        server.authority.replies.set()
        token = await token_of(oauth, server)

    assert token.removeprefix("Bearer ") in server.authority.tokens
    assert server.authority.reused == []


async def test_token_that_is_forgotten_during_its_refresh_is_gone_and_revoked() -> None:
    async with with_token(MemoryCredentialStore(), pages_here()) as (server, oauth):
        server.authority.replies.clear()
        using = asyncio.create_task(token_of(oauth, server))
        await server.authority.refreshed.wait()
        await oauth.forget("ann", server.url)
        server.authority.replies.set()
        ended = await asyncio.gather(using, return_exceptions=True)

    assert isinstance(ended[0], CredentialError)
    assert await oauth.holders(server.url) == ()
    assert server.authority.tokens == {}
    assert server.authority.refresh == {}


async def test_token_that_cannot_be_refreshed_any_more_is_forgotten() -> None:
    async with with_token(MemoryCredentialStore(), pages_here()) as (server, oauth):
        server.authority.take_back("ann")
        consent = await oauth.consent_for("ann", server.url)

    assert consent is not None
    assert await oauth.holders(server.url) == ()


async def test_authorization_server_that_is_away_costs_no_consent() -> None:
    store, pages = MemoryCredentialStore(), pages_here()
    async with with_token(store, pages) as (server, oauth):
        row = await store.read("token", "ann", server.url)
        assert row is not None
        ended = {**row.value, "expires_at": time.time() - 1}
        await store.write("token", "ann", server.url, ended)
    with pytest.raises(CredentialError, match="renewed now"):
        await oauth.consent_for("ann", server.url)

    assert await oauth.holders(server.url) == ("ann",)


async def test_token_that_the_server_refuses_is_refreshed_once() -> None:
    async with with_token(MemoryCredentialStore(), pages_here()) as (server, oauth):
        await token_of(oauth, server)
        row_before = server.authority.refreshes
        request = httpx2.Request("GET", server.url)
        used = await oauth.sign("ann", server.url, request)
        renewed = await asyncio.gather(*(oauth.renew("ann", server.url, used) for _ in range(10)))

    assert renewed == [True] * 10
    assert server.authority.refreshes == row_before + 1


async def test_client_is_shown_to_its_issuer_alone() -> None:
    with pytest.raises(ValueError, match="issuer"):
        OAuth(MemoryCredentialStore(), pages="http://127.0.0.1:1/c", client_id="we", client_secret="s")
