"""The API for approvals as a program uses it: the ID token of a provider, and what it is answered."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.serving.oauth.login import OTHER_RSA, Login, login
from toolcrib.approvals import MemoryApprovalStore
from toolcrib.calls import ApprovalRequest, Denial, Grant, RequiredApprovers
from toolcrib.console import ConsoleOptions, console_app
from toolcrib.console.openid import OpenIDLogin, OpenIDProvider
from toolcrib.record import SqliteSink

RULE = RequiredApprovers("refunds", {"finance": 1}, from_login=("finance",), excluded=("ada",))
APPROVE = {"request": "ask_1", "answer": "approve", "name": "somebody else"}


class Api:
    """The API of a console whose people log in at a provider of the test."""

    def __init__(self, server: Login, client: httpx2.AsyncClient, store: MemoryApprovalStore) -> None:
        self.server, self._client, self.store = server, client, store

    def token(self, audience: Any = "console", **options: Any) -> str:
        given: dict[str, Any] = {"sub": "bob", "groups": ["finance"], "scope": None, "client_id": None}
        given |= {"header": {"typ": "JWT"}, **options}
        return self.server.token(audience, **given)

    async def send(self, token: str | None, path: str = "/api/answer", body: Any = APPROVE) -> httpx2.Response:
        headers = {} if token is None else {"authorization": f"Bearer {token}"}
        return await self._client.request("POST" if body else "GET", path, json=body, headers=headers)


@asynccontextmanager
async def api(tmp_path: Path) -> AsyncGenerator[Api]:
    store = MemoryApprovalStore()
    await store.put(ApprovalRequest("ask_1", "call_1", "refund", {"cents": 5}, "d5", principal="ada", required=(RULE,)))
    with login() as server, SqliteSink(tmp_path / "toolcrib.db") as sink:
        provider = OpenIDProvider(server.issuer, "console", id_claim="sub")
        people = OpenIDLogin(provider, "http://127.0.0.1:8137", approvers=["finance", "support"], viewers=["auditors"])
        app = console_app(sink.log(), store, ConsoleOptions(login=people))
        transport = httpx2.ASGITransport(app)
        async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:8137") as client:
            yield Api(server, client, store)
        await app.close()


async def test_a_program_reads_the_inbox_and_answers_as_whose_token_it_sends(tmp_path: Path) -> None:
    async with api(tmp_path) as desk:
        inbox = (await desk.send(desk.token(), "/api/inbox", None)).json()
        shown = (await desk.send(desk.token(), f"/api/request?id={inbox['requests'][0]['id']}", None)).json()
        reply = await desk.send(desk.token())
        again = await desk.send(desk.token())
        kept = (await desk.store.show("ask_1")).answer

    assert (inbox["total"], shown["tool"], shown["answerers"][0]["group"]) == (1, "refund", "finance")
    assert (reply.status_code, reply.json()["state"], again.status_code) == (200, "answered", 409)
    assert isinstance(kept, Grant)
    assert kept.identity is not None
    assert (kept.by, kept.identity.groups, kept.identity.until is None) == ("bob (openid)", ("finance",), False)


@pytest.mark.parametrize(
    ("options", "status"),
    [
        ({"iss": "https://evil.example"}, 401),
        ({"exp": time.time() - 3600}, 401),
        ({"audience": "other"}, 401),
        ({"audience": ["console", "other"]}, 401),
        ({"groups": ["staff"]}, 401),
        ({"groups": None}, 401),
        ({"key": OTHER_RSA}, 401),
        ({"header": {"typ": "at+jwt"}}, 401),
        ({"azp": "other"}, 401),
        ({"groups": ["auditors"]}, 403),
        ({"groups": ["support"]}, 409),
        ({"sub": "ada"}, 409),
    ],
    ids=[
        *("wrong issuer", "expired", "wrong audience", "of several applications", "without the role", "without groups"),
        *("another key", "an access token", "issued to another", "a viewer", "not of the rule", "who asked"),
    ],
)
async def test_a_token_that_may_not_answer_answers_nothing(
    tmp_path: Path, options: dict[str, Any], status: int
) -> None:
    async with api(tmp_path) as desk:
        reply = await desk.send(desk.token(**options))
        kept = (await desk.store.show("ask_1")).answer

    assert (reply.status_code, kept) == (status, None), reply.text
    assert reply.json()["error"]


@pytest.mark.parametrize("token", [None, "not-a-token"])
async def test_without_a_token_nothing_is_read(tmp_path: Path, token: str | None) -> None:
    async with api(tmp_path) as desk:
        replies = [await desk.send(token, path, None) for path in ("/api/inbox", "/api/request?id=ask_1")]

    assert [reply.status_code for reply in replies] == [401, 401]


@pytest.mark.parametrize(
    ("path", "body", "status", "error"),
    [
        ("/api/answer", {"request": "gone", "answer": "deny"}, 409, "there is no request gone"),
        ("/api/answer", {"request": "ask_1", "answer": "maybe"}, 422, "it must be approve, deny, done or always"),
        ("/api/answers", {"requests": [], "answer": "deny"}, 422, "Name 1 to 200 requests."),
        ("/api/revoke", {"grant": {"tool": "refund"}}, 404, "this grant no longer exists"),
        ("/api/inbox?sort=best", None, 400, "sort must be one of oldest"),
    ],
)
async def test_a_request_that_is_wrong_says_how(tmp_path: Path, path: str, body: Any, status: int, error: str) -> None:
    async with api(tmp_path) as desk:
        reply = await desk.send(desk.token(), path, body)

    assert reply.status_code == status, reply.text
    assert error in reply.json()["error"]


async def test_several_are_denied_with_one_message(tmp_path: Path) -> None:
    async with api(tmp_path) as desk:
        sent = {"requests": ["ask_1", "gone"], "answer": "deny", "message": "too much"}
        reply = (await desk.send(desk.token(groups=["support"]), "/api/answers", sent)).json()
        kept = (await desk.store.show("ask_1")).answer

    assert isinstance(kept, Denial)
    assert (kept.by, kept.message, list(reply["failed"])) == ("bob (openid)", "too much", ["gone"])
