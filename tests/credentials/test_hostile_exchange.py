"""Token endpoints and callers that mean harm: no token goes elsewhere, stays in a text or blocks the gateway."""

from __future__ import annotations

import asyncio
import gzip
import json
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from typing import Any
from urllib.parse import parse_qs

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tests.adapters.mcp_client.servers import outcome_of, serving
from tests.credentials.test_token_exchange import exchanger, module, tokens
from tests.networks import free_port
from toolcrib.adapters.mcp_client import connect
from toolcrib.calls import Completed
from toolcrib.credentials import TokenExchange
from toolcrib.credentials._guarded_http import AddressError, GuardedClient
from toolcrib.credentials._token_requests import Endpoints, OAuthClient, Token, revoked
from toolcrib.errors import ConsentError, CredentialError
from toolcrib.pipeline import Run

__all__ = ["tokens"]

BEHIND = "https://tools.example/mcp"


class Answer:
    """What the token endpoint answers; what came to it and to where it sends others."""

    def __init__(self) -> None:
        self.status, self.body, self.headers = 200, b"", dict[str, str]()
        self.asked, self.elsewhere = list[bytes](), list[bytes]()


@asynccontextmanager
async def endpoint() -> AsyncGenerator[tuple[str, Answer]]:
    answer, port = Answer(), free_port()

    async def token(request: Request) -> Response:
        answer.asked.append(await request.body())
        return Response(answer.body, answer.status, answer.headers, media_type="application/json")

    async def elsewhere(request: Request) -> Response:
        answer.elsewhere.append(await request.body())
        return Response(b"{}")

    routes = [Route("/token", token, methods=["POST"]), Route("/other", elsewhere, methods=["GET", "POST"])]
    async with serving(Starlette(routes=routes), port):
        yield f"http://127.0.0.1:{port}/token", answer


async def signed(url: str) -> httpx2.Request:
    module.subject_tokens.is_wanted = True
    module.subject_tokens.keep("ann", "anns-own-token", None)
    request = httpx2.Request("POST", BEHIND)
    await TokenExchange(url, client_id="us", client_secret="hush-hush").sign("ann", BEHIND, request)
    return request


BAD: dict[str, Any] = {
    "not json": b"<html>anns-own-token</html>",
    "nothing": b"",
    "a list": b"[]",
    "deep": b"[" * 100_000,
    "deep in a field": b'{"access_token": ' + b"[" * 100_000,
    "half a character": b'{"access_token": "\xff"}',
    "no token": b'{"token_type": "Bearer"}',
    "an empty token": b'{"access_token": "", "token_type": "Bearer"}',
    "a token of two lines": b'{"access_token": "a\\r\\nX-Admin: 1", "token_type": "Bearer"}',
    "a token of other letters": '{"access_token": "tök", "token_type": "Bearer"}'.encode(),
    "a number": b'{"access_token": 7, "token_type": "Bearer"}',
    "another type": b'{"access_token": "t", "token_type": "DPoP"}',
    "a type that is a list": b'{"access_token": "t", "token_type": ["Bearer"]}',
    "no access token": b'{"access_token": "t", "token_type": "N_A"}',
    "huge": b'{"access_token": "' + b"t" * 300_000 + b'", "token_type": "Bearer"}',
}


@pytest.mark.parametrize("name", BAD)
async def test_an_answer_that_is_no_token_fails_the_call_and_quotes_nothing(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    async with endpoint() as (url, answer):
        answer.body = BAD[name]
        with pytest.raises(CredentialError) as error:
            await signed(url)

    text = f"{error.value} {error.value!r} {error.value.__cause__!r} {caplog.text}"
    assert [secret for secret in ("anns-own-token", "hush-hush", "<html>") if secret in text] == []


@pytest.mark.parametrize("name", ["400", "401", "500"])
async def test_a_refusal_that_repeats_what_was_sent_is_not_quoted(name: str) -> None:
    async with endpoint() as (url, answer):
        answer.status = int(name)
        answer.body = json.dumps({"error": "bad anns-own-token", "error_description": "anns-own-token"}).encode()
        with pytest.raises(CredentialError) as error:
            await signed(url)

    assert "anns-own-token" not in f"{error.value} {error.value!r}"


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_takes_no_token_elsewhere(status: int) -> None:
    async with endpoint() as (url, answer):
        answer.status, answer.headers = status, {"location": url.replace("/token", "/other")}
        with pytest.raises(CredentialError):
            await signed(url)

    assert len(answer.asked) == 1
    assert answer.elsewhere == []


@pytest.mark.parametrize("lasts", ["1" + "0" * 400, "1e999", "-1e999", "NaN", "-5", "0", '"soon"', "true", "[1]", "{}"])
async def test_a_token_with_an_end_that_is_none_is_used(lasts: str) -> None:
    async with endpoint() as (url, answer):
        answer.body = f'{{"access_token": "t", "token_type": "Bearer", "expires_in": {lasts}}}'.encode()
        request = await signed(url)

    assert request.headers["authorization"] == "Bearer t"


async def test_an_answer_that_grows_when_it_is_unpacked_is_read_no_further() -> None:
    async with endpoint() as (url, answer):
        answer.headers = {"content-encoding": "gzip"}
        answer.body = gzip.compress(b'{"access_token": "' + b"t" * 50_000_000)
        with pytest.raises(CredentialError):
            await signed(url)

    assert len(answer.asked) == 1


async def test_an_answer_without_end_is_given_up() -> None:
    async def drips() -> AsyncIterator[bytes]:
        while True:
            await asyncio.sleep(0)
            yield b""

    transport = httpx2.MockTransport(lambda request: httpx2.Response(200, content=drips()))
    async with httpx2.AsyncClient(transport=transport) as http:
        with pytest.raises(AddressError, match="did not answer"):
            await GuardedClient(http, seconds=0.05).post_form("https://as.example/token", {"a": "b"})


@pytest.mark.parametrize("status", [200, 503])
async def test_a_token_counts_as_revoked_where_the_server_says_so(status: int) -> None:
    token = Token(
        "access", "refresh", 0, Endpoints("as", "", "", revoke="https://as.example/revoke"), OAuthClient("us")
    )
    asked = list[bytes]()

    async def body() -> AsyncIterator[bytes]:
        yield b'{"error": "busy"}'

    def answer(request: httpx2.Request) -> httpx2.Response:
        asked.append(request.content)
        return httpx2.Response(status, content=body())

    async with httpx2.AsyncClient(transport=httpx2.MockTransport(answer)) as http:
        with nullcontext() if status == 200 else pytest.raises(ConsentError, match=r"as did not revoke it: .*busy"):
            await revoked(GuardedClient(http), token)

    kinds = ["refresh_token", "access_token"] if status == 200 else ["refresh_token"]
    assert [parse_qs(body.decode())["token_type_hint"] for body in asked] == [[kind] for kind in kinds]


async def test_who_waits_while_the_caller_comes_with_another_token_exchanges_that_one() -> None:
    async with exchanger() as known:
        credentials = TokenExchange(known.url, client_id="us")
        module.subject_tokens.keep("ann", "old", None)
        requests = [httpx2.Request("POST", known.behind.url) for _ in range(20)]
        waiting = [asyncio.ensure_future(credentials.sign("ann", known.behind.url, each)) for each in requests]
        while not known.asked:  # noqa: ASYNC110 -- the endpoint has no event
            await asyncio.sleep(0)
        module.subject_tokens.keep("ann", "new", None)
        await asyncio.gather(*waiting)

    assert known.subjects() == ["old", "new"]
    assert len({each.headers["authorization"] for each in requests}) == 2


async def test_a_token_that_ended_is_no_more_sent_though_the_exchanged_one_lasts() -> None:
    async with exchanger() as known:
        credentials = TokenExchange(known.url, client_id="us")
        module.subject_tokens.keep("ann", "ann", time.time() + 60)
        await credentials.sign("ann", known.behind.url, httpx2.Request("POST", known.behind.url))
        module.subject_tokens.keep("ann", "ann", time.time() - 1)
        request = httpx2.Request("POST", known.behind.url)

        with pytest.raises(CredentialError):
            await credentials.sign("ann", known.behind.url, request)

    assert "authorization" not in request.headers


@pytest.mark.parametrize("principal", ["<gateway>", "%3Cgateway%3E", "ann ", "ANN", "ann;iss=https://login.example"])
async def test_a_name_that_looks_like_another_gets_no_token_of_theirs(principal: str) -> None:
    async with exchanger() as known:
        credentials = TokenExchange(known.url, client_id="us")
        module.subject_tokens.keep("ann", "ann", None)
        async with connect(known.behind.url, credentials=credentials).open() as tools:
            outcome = await outcome_of(tools, "whoami", run=Run(principal=principal))

    assert not isinstance(outcome, Completed)
    assert known.subjects() == []


async def test_a_run_of_nobody_calls_nothing_by_the_clients_own_token() -> None:
    async with exchanger() as known:
        credentials = TokenExchange(known.url, client_id="us")
        module.subject_tokens.keep("ann", "ann", None)
        async with connect(known.behind.url, credentials=credentials).open() as tools:
            outcome = await outcome_of(tools, "whoami", run=Run())

    assert not isinstance(outcome, Completed), outcome
    assert known.behind.called == []
