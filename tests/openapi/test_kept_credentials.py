"""Credentials that are kept for each principal: consent, renewal, and the one server that they are for."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest

from tests.openapi.standin import StandIn, document, operation
from toolcrib import Completed, Failed, Pipeline, Run, Suspended, ToolCall
from toolcrib.calls import Consent
from toolcrib.credentials import ApiKeys, MemoryCredentialStore
from toolcrib.errors import CredentialError
from toolcrib.openapi import toolset

SERVER = "http://api.test/v1"
SCHEMES: dict[str, Any] = {
    "key": {"type": "apiKey", "in": "query", "name": "k"},
    "cookie": {"type": "apiKey", "in": "cookie", "name": "sid"},
    "basic": {"type": "http", "scheme": "basic"},
    "oauth": {"type": "oauth2", "flows": {}},
}


class Tokens:
    """Tokens of principals, in the place of OAuth."""

    def __init__(self, **tokens: str) -> None:
        self.tokens, self.asked = tokens, list[tuple[str, str]]()

    async def consent_for(self, principal: str, server: str) -> Consent | None:
        self.asked.append((principal, server))
        return None if principal in self.tokens else Consent("not yet", "https://pages.test/1", principal, server)

    async def sign(self, principal: str, server: str, request: Any) -> str:
        if principal not in self.tokens:
            raise CredentialError(server, "there is none")
        request.headers["Authorization"] = f"Bearer {self.tokens[principal]}"
        return self.tokens[principal]

    async def renew(self, principal: str, server: str, used: str) -> bool:
        self.tokens[principal] = f"{used}+"
        return True


def api(*requirements: dict[str, list[str]], **parts: Any) -> StandIn:
    spec = operation("x", security=list(requirements), **parts)
    return StandIn(document({"/x": {"post": spec}}, components={"securitySchemes": SCHEMES}), checks=False)


def keys(pages: str = "https://pages.test") -> ApiKeys:
    return ApiKeys(MemoryCredentialStore(), pages=pages)


async def test_a_call_without_consent_waits_and_goes_on_when_it_is_given() -> None:
    server, tokens = api({"oauth": []}), Tokens()
    pipeline, run = Pipeline(server.tools(credentials={"oauth": tokens})), Run(principal="ann")

    waits = await pipeline.run(ToolCall("x", {}), run)
    assert isinstance(waits, Suspended)
    assert waits.request.consent is not None
    assert waits.request.consent.url == "https://pages.test/1"
    assert tokens.asked[0] == ("ann", SERVER)
    assert server.requests == []

    tokens.tokens["ann"] = "t"
    outcome = await pipeline.run(waits, run)

    assert isinstance(outcome, Completed)
    assert server.last.headers["authorization"] == "Bearer t"


async def test_each_principal_is_signed_with_their_own() -> None:
    server, tokens = api({"oauth": []}), Tokens(ann="a", bob="b")
    pipeline = Pipeline(server.tools(credentials={"oauth": tokens}))

    for name in ("ann", "bob"):
        await pipeline.run(ToolCall("x", {}), Run(principal=name))

    assert [request.headers["authorization"] for request in server.requests] == ["Bearer a", "Bearer b"]


async def test_a_token_that_is_refused_is_renewed_once() -> None:
    server, tokens = api({"oauth": []}), Tokens(ann="t")
    server.answers = lambda request: httpx2.Response(401)

    outcome = await server.call("x", {}, Run(principal="ann"), credentials={"oauth": tokens})

    assert isinstance(outcome, Failed)
    assert [request.headers["authorization"] for request in server.requests] == ["Bearer t", "Bearer t+"]


@pytest.mark.parametrize(
    ("scheme", "sent"),
    [
        ("key", "?k=s3%3Acret"),
        ("cookie", "sid=s3%3Acret"),
        ("basic", "Basic czM6Y3JldA=="),
        ("oauth", "Bearer s3:cret"),
    ],
)
async def test_a_kept_key_goes_where_the_document_says(scheme: str, sent: str) -> None:
    server, kept = api({scheme: []}), keys()
    await kept.add("ann", SERVER, "s3:cret")

    await server.call("x", {}, Run(principal="ann"), credentials={scheme: kept})

    assert sent in f"{server.last.url} {server.last.headers.get('cookie')} {server.last.headers.get('authorization')}"


async def test_the_requirement_that_lacks_nothing_is_taken() -> None:
    server, tokens = api({"oauth": []}, {"key": []}), Tokens()

    outcome = await server.call("x", {}, Run(principal="ann"), credentials={"oauth": tokens, "key": "k"})

    assert isinstance(outcome, Completed)
    assert str(server.last.url).endswith("?k=k")


async def test_what_may_be_asked_without_credentials_waits_for_none() -> None:
    server = api({"oauth": []}, {})

    outcome = await server.call("x", {}, Run(principal="ann"), credentials={"oauth": keys()})

    assert isinstance(outcome, Completed)
    assert "authorization" not in server.last.headers


# --- another host


def elsewhere() -> StandIn:
    return api({"oauth": []}, servers=[{"url": "http://other.test/"}])


async def test_credentials_of_the_host_do_not_go_to_another_host() -> None:
    server = elsewhere()

    outcome = await server.call("x", {}, credentials={"oauth": "secret"})

    assert isinstance(outcome, Failed)
    assert "other.test, which gets none of the credentials" in outcome.message
    assert server.requests == []


@pytest.mark.parametrize("options", [{"credential_hosts": ["other.test"]}, {"server": "http://other.test"}])
async def test_the_host_may_name_another_host(options: dict[str, Any]) -> None:
    server = elsewhere()

    await server.call("x", {}, credentials={"oauth": "secret"}, **options)

    assert server.last.headers["authorization"] == "Bearer secret"


async def test_a_kept_key_is_of_one_server() -> None:
    server, kept = elsewhere(), keys()
    await kept.add("ann", SERVER, "s3cret")

    outcome = await server.call("x", {}, Run(principal="ann"), credentials={"oauth": kept})

    assert isinstance(outcome, Suspended)
    assert outcome.request.consent is not None
    assert outcome.request.consent.server == "http://other.test"
    assert server.requests == []


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "169.254.169.254", "[::1]", "10.0.0.1", "localhost", "db.internal", "127.1", "2130706433"]
)
def test_an_operation_does_not_lead_from_the_open_net_into_a_private_one(host: str) -> None:
    bad = operation("bad", servers=[{"url": "http://{host}/", "variables": {"host": {"default": host}}}])
    spec = document({"/good": {"get": operation("good")}, "/bad": {"get": bad}})

    assert toolset(spec).names() == ["good"]
    assert toolset(spec, server="http://127.0.0.1").names() == ["good", "bad"]


def test_no_document_leads_to_what_a_machine_says_of_itself() -> None:
    spec = document({"/x": {"get": operation("x")}}) | {"servers": [{"url": "http://169.254.169.254/latest"}]}

    with pytest.raises(ValueError, match="no operation that can be used"):
        toolset(spec)
