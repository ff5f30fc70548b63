"""A token that a newer version wrote: what would use it is left as it is, for a process that reads it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import httpx2
import pytest
from mcp.shared.exceptions import MCPError

from tests.adapters.mcp_server.clients import Way as Client
from tests.adapters.mcp_server.clients import every_generation, text_of
from tests.adapters.mcp_server.test_tasks import begin, of_tasks, result, status
from tests.ways import REPRESENTATIVES, WAYS
from toolcrib.adapters.mcp_server import ServerOptions, build_server
from toolcrib.approvals import MemoryApprovalStore
from toolcrib.calls import FORM_VERSIONS, Completed, Consent, Suspended
from toolcrib.credentials import MemoryCredentialStore, OAuth, PrincipalAuth
from toolcrib.credentials._token_requests import Endpoints, OAuthClient, Token
from toolcrib.errors import NewerForm
from toolcrib.testing import Way
from toolcrib.tools import BaseTool

SERVER = "https://mail.example/mcp"
ENDPOINTS = Endpoints("https://auth.example", "https://auth.example/authorize", "https://auth.example/token")
CALLS = {"by itself": ("mailbox", {"folder": "out"}), "in a program": ("run_python", {"code": "print(mailbox('out'))"})}
Newer = Callable[[], None]

# a server answers with an error of the protocol, as below, and an engine leaves the work:
# tests/adapters/dbos/test_stored_forms.py
HERE = [
    way
    for way in WAYS
    if way.title in {*REPRESENTATIVES} - {"mcp over stdio", "durable agent"} and "answer" in way.abilities
]


class Mailbox(BaseTool):
    """Read the mailbox of whoever the call is for."""

    def __init__(self) -> None:
        self.store = MemoryCredentialStore()
        self.oauth = OAuth(self.store, pages="https://gateway.example/consent", endpoints=None)
        self.read: list[str] = []

    async def get_consent(self, ctx: Any) -> Consent | None:
        return await self.oauth.consent_for("ann", SERVER)

    async def call(self, ctx: Any, folder: str = "in") -> str:
        self.read.append(folder)
        return f"mail in {folder}"

    async def consented(self, version: int = 1, lasts: float = 0.0) -> None:
        token = Token("access", "refresh", lasts, ENDPOINTS, OAuthClient("client"))
        await self.store.write("token", "ann", SERVER, token.to_dict() | {"version": version})


@pytest.fixture
def newer(monkeypatch: pytest.MonkeyPatch) -> Newer:
    """Make this process one of the newer version."""
    return lambda: monkeypatch.setitem(FORM_VERSIONS, "Token", 2)


@pytest.mark.parametrize("way", HERE, ids=repr)
async def test_a_suspended_call_is_no_outcome(way: Way, newer: Newer) -> None:
    mailbox = Mailbox()
    tools = way([mailbox])
    first = await tools.call("mailbox", {"folder": "out"})
    assert isinstance(first, Suspended), first
    await mailbox.consented(version=2)

    with pytest.raises(Exception, match="Token has version 2"):
        await tools.answer(first, first.request.grant("the consent of ann"))
    before = list(mailbox.read)
    newer()
    outcome = await tools.answer(first, first.request.grant("the consent of ann"))

    assert before == []
    assert isinstance(outcome, Completed), outcome
    assert mailbox.read == ["out"]


@pytest.mark.processes
@every_generation
@pytest.mark.parametrize("call", CALLS)
async def test_a_call_that_a_server_keeps_is_kept(way: Client, call: str, newer: Newer) -> None:
    mailbox, store = Mailbox(), MemoryApprovalStore()
    options = ServerOptions(approvals=store, principal="ann", code_mode=call == "in a program")
    server = build_server([mailbox], options)

    async with way(server) as client:
        await client.call_tool(*CALLS[call])
        await mailbox.consented(version=2)
        for _ in range(2):
            with pytest.raises(MCPError, match="waits as before, and was not made: the stored Token has version 2"):
                await client.call_tool(*CALLS[call])
        before = list(mailbox.read)
        newer()
        after = await client.call_tool(*CALLS[call])

    assert before == []
    assert text_of(after).strip() == "mail in out"
    assert mailbox.read == ["out"]


@every_generation
async def test_a_task_waits_on(way: Client, newer: Newer) -> None:
    mailbox, store = Mailbox(), MemoryApprovalStore()
    server = build_server([mailbox], ServerOptions(approvals=store, principal="ann"))

    async with of_tasks(way, server) as client:
        task = await begin(client, way, *CALLS["by itself"])
        while not (entries := await store.list(pending=True)):  # noqa: ASYNC110 -- the call suspends in the server
            await asyncio.sleep(0.01)
        await mailbox.consented(version=2)
        await store.answer(entries[0].request.grant("the consent of ann"))
        waiting = await status(client, task)
        before = list(mailbox.read)
        newer()
        text = await result(client, way, task)

    assert (waiting["status"], before) == ("working", [])
    assert text == "mail in out"
    assert mailbox.read == ["out"]


@pytest.mark.parametrize("lasts", [0.0, 1.0], ids=["lasts", "about to end"])
async def test_a_request_is_not_sent(lasts: float) -> None:
    mailbox = Mailbox()
    await mailbox.consented(version=2, lasts=lasts)

    async def principal(request: httpx2.Request) -> str:
        return "ann"

    auth = PrincipalAuth(mailbox.oauth, SERVER, principal)
    transport = httpx2.MockTransport(lambda request: httpx2.Response(200))
    async with httpx2.AsyncClient(auth=auth, transport=transport) as http:
        with pytest.raises(httpx2.ConnectError, match="Token has version 2"):
            await http.get(SERVER)

    assert await mailbox.oauth.holders(SERVER) == ("ann",)


async def test_it_is_not_forgotten_unrevoked() -> None:
    mailbox = Mailbox()
    await mailbox.consented(version=2)

    with pytest.raises(NewerForm):
        await mailbox.oauth.forget("ann", SERVER)

    assert await mailbox.oauth.holders(SERVER) == ("ann",)
