"""Credentials: where each security scheme puts them, whose they are, and that a model never gives them."""

from __future__ import annotations

import asyncio
import base64
from typing import Any

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.openapi.standin import StandIn, document, operation, parameter
from toolcrib import Completed, Failed, Pipeline, Run, ToolCall
from toolcrib.errors import ToolConstraintError
from toolcrib.openapi import CredentialsOf, toolset

SCHEMES: dict[str, Any] = {
    "header": {"type": "apiKey", "in": "header", "name": "X-Key"},
    "query": {"type": "apiKey", "in": "query", "name": "key"},
    "cookie": {"type": "apiKey", "in": "cookie", "name": "sid"},
    "basic": {"type": "http", "scheme": "basic"},
    "bearer": {"type": "http", "scheme": "bearer"},
    "oauth": {"type": "oauth2", "flows": {}},
    "oidc": {"type": "openIdConnect", "openIdConnectUrl": "https://x.test"},
    "token": {"type": "http", "scheme": "Token"},
}


def secured(*requirements: dict[str, list[str]], **parts: Any) -> StandIn:
    """Return a server whose operation has these requirements."""
    spec = operation("x", security=list(requirements), **parts)
    return StandIn(document({"/x": {"get": spec}}, components={"securitySchemes": SCHEMES}), checks=False)


@pytest.mark.parametrize(
    ("scheme", "value", "name", "sent"),
    [
        ("header", "k", "x-key", "k"),
        ("cookie", "k", "cookie", "sid=k"),
        ("basic", ("me", "pass:word"), "authorization", f"Basic {base64.b64encode(b'me:pass:word').decode()}"),
        ("basic", "me:pass:word", "authorization", f"Basic {base64.b64encode(b'me:pass:word').decode()}"),
        ("bearer", "t", "authorization", "Bearer t"),
        ("oauth", "t", "authorization", "Bearer t"),
        ("oidc", "t", "authorization", "Bearer t"),
        ("token", "t", "authorization", "Token t"),
    ],
)
async def test_each_scheme_puts_its_credentials_where_the_document_says(
    scheme: str, value: Any, name: str, sent: str
) -> None:
    server = secured({scheme: []})

    await server.call("x", {}, credentials={scheme: value})

    assert server.last.headers[name] == sent


async def test_a_key_in_the_query_is_no_argument() -> None:
    server = secured({"query": []}, parameters=[parameter("key", "query", {"type": "string"})])

    await server.call("x", {}, credentials={"query": "k&a=b"})

    assert server.last.url.raw_path == b"/v1/x?key=k%26a%3Db"
    assert server.tools()["x"].parameters["properties"] == {}


async def test_the_first_requirement_that_can_be_met_is() -> None:
    server = secured({"oauth": [], "header": []}, {"header": [], "cookie": []})

    await server.call("x", {}, credentials={"header": "h", "cookie": "c"})

    assert (server.last.headers["x-key"], server.last.headers["cookie"]) == ("h", "sid=c")
    assert "authorization" not in server.last.headers


async def test_an_operation_that_needs_no_credentials_is_sent_none() -> None:
    server = secured()

    await server.call("x", {}, credentials={"header": "h"})

    assert "x-key" not in server.last.headers


async def test_a_call_without_credentials_for_its_principal_sends_nothing() -> None:
    server = secured({"header": []}, {"oauth": []})

    outcome = await server.call("x", {}, Run(principal="ann"), credentials=lambda principal: None)

    assert isinstance(outcome, Failed)
    assert outcome.message == "the operation needs credentials, `header` or `oauth`, and the host has none for `ann`"
    assert server.requests == []


async def test_credentials_that_break_a_header_are_not_sent() -> None:
    server = secured({"header": []})

    outcome = await server.call("x", {}, credentials={"header": "k\r\nX-Admin: 1"})

    assert isinstance(outcome, Failed)
    assert server.requests == []


def test_credentials_for_an_unknown_scheme_are_an_error() -> None:
    with pytest.raises(ToolConstraintError, match="`heather`: `credentials` has it"):
        secured({"header": []}).tools(credentials={"heather": "k"})


@pytest.mark.parametrize(
    ("credentials", "problem"),
    [
        ({"header": 5}, "the credentials for it must be a text, and not a value of the type int"),
        ({"header": ("s3cret", "s3cret")}, "the credentials for it must be a text, and not a value of the type tuple"),
        ({"header": ""}, "the credentials for it are empty"),
        ({"basic": ("s3cret",)}, r"must be a name and a password, as in \('ann', 's3cret'\)"),
        ({"basic": {"username": "ann", "password": "s3cret"}}, "must be a name and a password"),
        ("s3cret-key", "credentials is a value of the type str; give"),
        (["s3cret-key"], "credentials is a value of the type list; give"),
    ],
)
def test_credentials_of_another_kind_are_refused_without_being_shown(credentials: Any, problem: str) -> None:
    spec = document({"/x": {"get": operation("x")}}, components={"securitySchemes": SCHEMES})

    with pytest.raises((TypeError, ToolConstraintError), match=problem) as raised:
        toolset(spec, server="https://shop.example", credentials=credentials)
    assert "s3cret-key" not in str(raised.value)


def test_credentials_are_in_no_text_of_the_toolset() -> None:
    server = secured({"header": []})

    tools = server.tools(credentials={"header": "s3cret"}, headers={"X": "s3cret"})

    assert "s3cret" not in repr(tools["x"].tool.source.__dict__)
    assert "s3cret" not in repr(tools.definitions(format="openai"))


@given(st.lists(st.sampled_from(["ann", "bob", "eve", None]), min_size=2, max_size=12))
def test_no_principal_is_sent_the_credentials_of_another(callers: list[str | None]) -> None:
    sent: list[tuple[str, str]] = []

    async def answers(request: httpx2.Request) -> httpx2.Response:
        await asyncio.sleep(0)
        sent.append((request.url.params["who"], request.headers["authorization"]))
        return httpx2.Response(200, json=1)

    async def credentials(principal: str | None) -> CredentialsOf:
        await asyncio.sleep(0)
        return {"bearer": f"token-of-{principal}"}

    async def work() -> None:
        spec = operation("x", [parameter("who", "query", {"type": "string"})], security=[{"bearer": []}])
        found = document({"/x": {"get": spec}}, components={"securitySchemes": SCHEMES})
        client = httpx2.AsyncClient(transport=httpx2.MockTransport(answers))
        pipeline = Pipeline(toolset(found, client=client, credentials=credentials))
        calls = [pipeline.run(ToolCall("x", {"who": str(who)}), Run(principal=who)) for who in callers]
        assert all(isinstance(outcome, Completed) for outcome in await asyncio.gather(*calls))

    asyncio.run(work())

    assert len(sent) == len(callers)
    assert all(token == f"Bearer token-of-{who}" for who, token in sent)
