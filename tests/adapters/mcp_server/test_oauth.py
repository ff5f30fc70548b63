"""A server as the resource server of OAuth 2.1: whose calls it takes, what it says to others, and what stays apart."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2 as httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import AccessToken

from tests.adapters.mcp_server.http import served
from tests.adapters.mcp_server.test_http import ACCEPT, OPENING, connected
from tests.adapters.mcp_server.test_scopes import LISTEN, NOTES, REQUESTS, SUBSCRIBE
from tests.serving.oauth.login import ED, Login, login
from toolcrib.adapters.mcp_server import AuthorizationServer, HttpOptions, ServerOptions, http_app
from toolcrib.pipeline import CallLimits
from toolcrib.schema import RunContext
from toolcrib.testing import RecordingSink
from toolcrib.tools import ez_tool
from toolcrib.toolsets import Toolset

HERE = "http://127.0.0.1:8000/mcp"
NEWER = "2026-07-28"


@pytest.fixture
def server() -> Iterator[Login]:
    with login() as made:
        yield made


@ez_tool
async def whoami(ctx: RunContext[Any]) -> dict[str, Any]:
    """Say whose call it is."""
    run = ctx.run
    return {
        "principal": run.principal,
        "run": run.id,
        "claims": sorted(run.channel.access.claims),
        "sub": run.channel.access.claims["sub"],
    }


@ez_tool
async def book(place: str) -> str:
    """Book a place."""
    return f"booked {place}"


TOOLS = Toolset([whoami, book]).with_scopes({"book": ["trips:write"]})


@asynccontextmanager
async def guarded(
    server: Login, tools: Any = TOOLS, options: ServerOptions | None = None, **http: Any
) -> AsyncIterator[httpx.AsyncClient]:
    """Serve tools to those who have a token of the authorization server, and yield a client of the ASGI application."""
    options_of = {name: http.pop(name) for name in ("scopes", "principal_claim") if name in http}
    known = http.pop("authorization_server", None) or AuthorizationServer(server.issuer, **options_of)
    app = http_app(tools, options, HttpOptions(authorization_server=known, **http))
    transport = httpx.ASGITransport(app)
    async with app.running(), httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000") as client:
        yield client


def call(name: str, **arguments: Any) -> dict[str, Any]:
    """Return a call of the newer generation."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": NEWER,
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    params = {"name": name, "arguments": arguments, "_meta": meta}
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}


async def post(client: httpx.AsyncClient, token: str | None, body: Any, **more: str) -> httpx.Response:
    sent = {**ACCEPT, **({} if token is None else {"authorization": f"Bearer {token}"}), **more}
    if isinstance(body, dict) and body.get("method") == "tools/call":
        sent |= {"mcp-protocol-version": NEWER, "mcp-method": "tools/call", "mcp-name": body["params"]["name"]}
    return await client.post("/mcp", json=body, headers=sent)


def result_of(reply: httpx.Response) -> Any:
    """Return the result in a reply, be it a stream."""
    text = next((line[6:] for line in reply.text.splitlines() if line.startswith("data: {")), reply.text)
    return json.loads(text)["result"]


# --- who is let in


async def test_a_call_is_on_behalf_of_the_subject_of_its_token(server: Login) -> None:
    async with guarded(server) as client:
        reply = await post(client, server.token(HERE), call("whoami"))

    said = result_of(reply)["structuredContent"]
    assert said["principal"] == f"ann;iss={server.issuer}"
    assert said["sub"] == "ann"


async def test_who_has_no_token_learns_where_to_get_one(server: Login) -> None:
    async with guarded(server, scopes=["mcp", "trips:read"]) as client:
        reply = await post(client, None, OPENING)
        metadata = await client.get("/.well-known/oauth-protected-resource/mcp")
        at_root = await client.get("/.well-known/oauth-protected-resource")

    where = "http://127.0.0.1:8000/.well-known/oauth-protected-resource/mcp"
    said = f'Bearer realm="mcp", scope="mcp trips:read", resource_metadata="{where}"'
    assert (reply.status_code, reply.headers["www-authenticate"]) == (401, said)
    assert metadata.json() == {
        "resource": HERE,
        "authorization_servers": [server.issuer],
        "scopes_supported": ["mcp", "trips:read"],
        "bearer_methods_supported": ["header"],
    }
    assert at_root.json() == metadata.json()
    assert metadata.headers["access-control-allow-origin"] == "*"


@pytest.mark.parametrize(
    ("claims", "said"),
    [
        ({"audience": "https://other.example/mcp"}, "the token is for another audience"),
        ({"audience": HERE, "iss": "https://login.evil.example"}, "the token comes from another issuer"),
        ({"audience": HERE, "exp": 1}, "the token has expired"),
    ],
)
async def test_a_token_that_is_not_good_is_refused(server: Login, claims: dict[str, Any], said: str) -> None:
    token = server.token(**claims)
    async with guarded(server) as client:
        reply = await post(client, token, OPENING)

    assert reply.status_code == 401
    assert f'error="invalid_token", error_description="{said}"' in reply.headers["www-authenticate"]
    assert token not in reply.text


@pytest.mark.parametrize("headers", [["Basic YTpi"], ["Bearer"], ["Bearer "], ["bearer x y"], ["TWO", "TWO"]])
async def test_odd_headers_let_nobody_in(server: Login, headers: list[str]) -> None:
    good = f"Bearer {server.token(HERE)}"
    async with guarded(server) as client:
        sent = [("authorization", good if text == "TWO" else text) for text in headers]
        reply = await client.post("/mcp", json=OPENING, headers=[*ACCEPT.items(), *sent])

    assert reply.status_code == 401


async def test_every_request_needs_the_scopes_of_the_server(server: Login) -> None:
    async with guarded(server, scopes=["mcp", "trips:read"]) as client:
        reply = await post(client, server.token(HERE, scope="mcp"), OPENING)
        good = await post(client, server.token(HERE, scope="mcp trips:read"), OPENING)

    assert (reply.status_code, good.status_code) == (403, 200)
    said = reply.headers["www-authenticate"]
    assert 'error="insufficient_scope", error_description="the token lacks: trips:read"' in said
    assert 'scope="mcp trips:read"' in said


@pytest.mark.parametrize("newer", [True, False])
async def test_a_call_that_needs_more_scopes_says_which(server: Login, newer: bool) -> None:
    less, more = server.token(HERE), server.token(HERE, scope="mcp trips:write")
    async with guarded(server, scopes=["mcp"]) as client:
        known = {} if newer else {"mcp-session-id": (await post(client, less, OPENING)).headers["mcp-session-id"]}
        body = call("book", place="Oslo")

        async def send(token: str) -> httpx.Response:
            if newer:
                return await post(client, token, body)
            sent = {**ACCEPT, **known, "authorization": f"Bearer {token}"}
            return await client.post("/mcp", json=body, headers=sent)

        refused, done, again = await send(less), await send(more), await send(less)

    assert [one.status_code for one in (refused, done, again)] == [403, 200, 403]
    said = refused.headers["www-authenticate"]
    assert 'error="insufficient_scope"' in said
    assert 'scope="mcp trips:write"' in said
    assert 'resource_metadata="http://127.0.0.1:8000/.well-known/oauth-protected-resource/mcp"' in said
    assert result_of(done)["content"][0]["text"] == "booked Oslo"


async def test_a_call_that_is_written_otherwise_is_told_the_same(server: Login) -> None:
    body = json.dumps(call("book", place="Oslo")).replace("tools/call", "tools\\/call")
    sent = {**ACCEPT, "authorization": f"Bearer {server.token(HERE)}", "content-type": "application/json"}
    newer = {"mcp-protocol-version": NEWER, "mcp-method": "tools/call", "mcp-name": "book"}
    async with guarded(server) as client:
        reply = await client.post("/mcp", content=body, headers={**sent, **newer})

    assert reply.status_code == 403
    assert 'scope="trips:write"' in reply.headers["www-authenticate"]


@pytest.mark.parametrize("newer", [True, False])
@pytest.mark.parametrize(
    ("scope", "method", "params"),
    [*REQUESTS, LISTEN, SUBSCRIBE],
    ids=lambda part: part if isinstance(part, str) else "",
)
async def test_a_request_for_what_is_no_tool_says_which_scopes_it_lacks(
    server: Login, newer: bool, scope: str, method: str, params: dict[str, Any]
) -> None:
    less, more = server.token(HERE), server.token(HERE, scope=scope)
    meta = call("")["params"]["_meta"]
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, **({"_meta": meta} if newer else {})}}
    async with guarded(server, NOTES) as client:
        if newer:
            known = {"mcp-protocol-version": NEWER, "mcp-method": method}
        else:
            known = {"mcp-session-id": (await post(client, less, OPENING)).headers["mcp-session-id"]}
        named = params.get("uri", params.get("name"))
        known |= {"mcp-name": named} if newer and named else {}
        refused = await post(client, less, body, **known)
        done = None if method == "subscriptions/listen" else await post(client, more, body, **known)

    assert refused.status_code == 403
    assert (
        f'error="insufficient_scope", error_description="the token lacks: {scope}"'
        in refused.headers["www-authenticate"]
    )
    assert done is None or done.status_code != 403


async def test_a_request_about_a_task_needs_the_scopes_of_its_tool(server: Login) -> None:
    @ez_tool(tags=["task"])
    async def write() -> str:
        """Write."""
        return "written"

    tools = Toolset([write]).with_scopes({"write": "trips:write"})
    async with guarded(server, tools) as client:
        body = call("write")
        meta = body["params"]["_meta"]
        meta["io.modelcontextprotocol/clientCapabilities"] = {"extensions": {"io.modelcontextprotocol/tasks": {}}}
        task = result_of(await post(client, server.token(HERE, scope="trips:write"), body))
        about = {"jsonrpc": "2.0", "id": 2, "method": "tasks/get", "params": {"taskId": task["taskId"], "_meta": meta}}
        known = {"mcp-protocol-version": NEWER, "mcp-method": "tasks/get", "mcp-name": task["taskId"]}
        refused = await post(client, server.token(HERE), about, **known)
        others = await post(client, server.token(HERE, sub="ben"), about, **known)
        done = await post(client, server.token(HERE, scope="trips:write"), about, **known)

    assert (refused.status_code, done.status_code) == (403, 200)
    assert others.status_code != 403  # it learns nothing of the task
    assert result_of(done)["result"]["content"][0]["text"] == "written"


@pytest.mark.parametrize("way", ["keys", "introspection"])
async def test_nobody_is_let_in_while_tokens_cannot_be_checked(server: Login, way: str) -> None:
    server.broken = {"/jwks", "/introspect"}
    asking = {"introspect": f"{server.url}/introspect", "client_id": "x", "client_secret": "x"}
    known = AuthorizationServer(server.issuer, **(asking if way == "introspection" else {}))
    async with guarded(server, authorization_server=known) as client:
        reply = await post(client, server.token(HERE), OPENING)
        ready, lives = await client.get("/readyz"), await client.get("/healthz")

    assert (reply.status_code, reply.headers["retry-after"]) == (503, "5")
    assert "www-authenticate" not in reply.headers  # a new token would be of no use
    assert (ready.status_code, lives.status_code) == (503 if way == "keys" else 200, 200)


# --- what stays apart


async def test_nobody_is_handed_a_token(server: Login) -> None:
    seen: list[Any] = []

    @ez_tool
    async def look(ctx: RunContext[Any]) -> str:
        """Look for the token."""
        seen.extend([ctx, ctx.run, ctx.run.channel.access, get_access_token()])
        return "looked"

    sink, token = RecordingSink(), server.token(HERE)
    async with guarded(server, [look], ServerOptions(sinks=(sink,))) as client:
        await post(client, token, call("look"))

    assert len(seen) == 4
    assert token not in repr(seen)
    assert token not in repr([vars(seen[3]), sink.record.to_dict(), *(vars(sink).values())])


async def test_a_token_of_one_s_own_has_no_scopes(server: Login) -> None:
    app = http_app(TOOLS, None, HttpOptions(tokens={"ann": "a-secret-of-ann-1"}))
    transport = httpx.ASGITransport(app)
    async with app.running(), httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000") as client:
        reply = await post(client, "a-secret-of-ann-1", call("book", place="Oslo"))
        ready = await client.get("/readyz")

    assert (reply.status_code, ready.status_code) == (403, 200)
    assert 'error="insufficient_scope"' in reply.headers["www-authenticate"]


class Verifier:
    """A verifier of the host's own, which hands the token on."""

    async def verify_token(self, token: str) -> AccessToken:
        return AccessToken(token=token, client_id="app", scopes=["trips:write"])


async def test_nobody_is_handed_the_token_of_a_verifier_of_the_host_s_own() -> None:
    seen: list[Any] = []

    @ez_tool
    async def look(ctx: RunContext[Any]) -> str:
        """Look for the token."""
        found = get_access_token()
        assert found is not None
        seen.extend([found.token, ctx.run.channel.access.scopes])
        return "looked"

    app = http_app([look], None, HttpOptions(token_verifier=Verifier()))
    transport = httpx.ASGITransport(app)
    async with app.running(), httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000") as client:
        await post(client, "a-secret-of-the-host", call("look"))

    assert seen == ["", {"trips:write"}]


async def test_a_session_is_its_subject_s_alone(server: Login) -> None:
    ping = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
    async with guarded(server) as client:
        known = {"mcp-session-id": (await post(client, server.token(HERE), OPENING)).headers["mcp-session-id"]}
        renewed = await post(client, server.token(HERE, scope="mcp more"), ping, **known)
        other = await post(client, server.token(HERE, sub="ben"), ping, **known)

    assert (renewed.status_code, other.status_code) == (200, 404)


PEOPLE = 1000


@pytest.mark.systems
@settings(max_examples=2, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, 2**32))
def test_of_a_thousand_principals_each_gets_its_own_run(seed: int) -> None:
    with login() as server:
        tokens = [server.token(HERE, ED, "EdDSA", sub=f"user{n}") for n in range(PEOPLE)]
        asyncio.run(_interleave(server, tokens, random.Random(seed)))


async def _interleave(server: Login, tokens: list[str], order: random.Random) -> None:
    """Make two calls for each, in any order and 50 at a time; and a third, which is over their own budget alone."""
    runs: dict[int, set[str]] = {n: set() for n in range(len(tokens))}
    calls = [n for n in runs for _ in range(2)]
    order.shuffle(calls)
    late = order.sample(sorted(runs), 20)

    async def one(client: httpx.AsyncClient, number: int) -> None:
        said = result_of(await post(client, tokens[number], call("whoami")))["structuredContent"]
        assert (said["sub"], said["principal"]) == (f"user{number}", f"user{number};iss={server.issuer}")
        runs[number].add(said["run"])

    async with guarded(server, TOOLS, ServerOptions(limits=CallLimits(total=2))) as client:
        for at in range(0, len(calls), 50):
            await asyncio.gather(*(one(client, number) for number in calls[at : at + 50]))
        spent = [result_of(await post(client, tokens[number], call("whoami")))["isError"] for number in late]

    assert all(len(own) == 1 for own in runs.values())
    assert len(set.union(*runs.values())) == len(tokens)
    assert spent == [True] * len(late)


# --- over a socket, with the SDK's own client


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_client_of_the_sdk_calls_with_a_token(server: Login, mode: str) -> None:
    async with (
        served(TOOLS, authorization_server=AuthorizationServer(server.issuer)) as url,
        connected(url, server.token(url), mode) as client,
    ):
        result = await client.call_tool("whoami", {})

    assert result.structured_content is not None
    assert result.structured_content["principal"] == f"ann;iss={server.issuer}"


# --- options


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"tokens": {"ann": "a" * 20}}, "give one of tokens, authorization_server and token_verifier"),
        ({"host": "0.0.0.0"}, "give the public_url of the endpoint, such as https://tools.example.org/mcp"),
        ({"public_url": "http://tools.example.org/mcp"}, "public_url must be the whole URL"),
        ({"public_url": "tools.example.org"}, "public_url must be the whole URL"),
        ({"public_url": "https://tools.example.org/mcp?x=1"}, "without a query"),
    ],
)
def test_options_that_are_no_good_are_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        HttpOptions(authorization_server=AuthorizationServer("https://login.example.org"), **options)


def test_a_public_url_needs_known_callers() -> None:
    with pytest.raises(ValueError, match=r"other machines can reach tools\.example\.org"):
        HttpOptions(public_url="https://tools.example.org/mcp")
