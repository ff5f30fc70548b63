"""A call that waits for consent, over every way in; and over MCP, where the client is shown the link."""

from __future__ import annotations

from typing import Any

from tests.adapters.mcp_server.clients import IN_MEMORY, every_generation, request_of, text_of
from tests.adapters.mcp_server.clients import Way as Client
from tests.ways import each_representative, representatives
from toolcrib.adapters.mcp_server import ServerOptions, build_server
from toolcrib.approvals import MemoryApprovalStore
from toolcrib.calls import Completed, Consent, Suspended
from toolcrib.testing import Way
from toolcrib.tools import BaseTool

LINK = "https://gateway.example/consent/ticket"
_OLD, _NEW = IN_MEMORY


class Mailbox(BaseTool):
    """Read the mailbox of whoever the call is for."""

    def __init__(self) -> None:
        self.consented = False
        self.read: list[str] = []

    def get_consent(self, ctx: Any) -> Consent | None:
        return None if self.consented else Consent("ann has not given access to mail", LINK, "ann", "mail")

    async def call(self, ctx: Any, folder: str = "in") -> str:
        self.read.append(folder)
        return f"mail in {folder}"


@each_representative
async def test_call_without_consent_never_runs(way: Way) -> None:
    mailbox = Mailbox()

    outcome = await way([mailbox]).call("mailbox", {"folder": "out"})

    assert isinstance(outcome, Suspended), outcome
    assert outcome.request.consent is not None
    assert (outcome.request.consent.principal, outcome.request.consent.server) == ("ann", "mail")
    assert mailbox.read == []


@representatives("answer")
async def test_yes_without_consent_runs_nothing(way: Way) -> None:
    mailbox = Mailbox()
    tools = way([mailbox])
    first = await tools.call("mailbox", {"folder": "out"})
    assert isinstance(first, Suspended)

    outcome = await tools.answer(first, first.request.grant("eve"))

    assert not isinstance(outcome, Completed), outcome
    assert mailbox.read == []


@representatives("answer")
async def test_call_goes_on_after_consent_and_once(way: Way) -> None:
    mailbox = Mailbox()
    tools = way([mailbox])
    first = await tools.call("mailbox", {"folder": "out"})
    assert isinstance(first, Suspended)
    mailbox.consented = True

    outcome = await tools.answer(first, first.request.grant("the consent of ann"))

    assert isinstance(outcome, Completed), outcome
    assert mailbox.read == ["out"]


@every_generation
async def test_client_is_shown_the_link_and_goes_on_with_the_same_call(way: Client) -> None:
    mailbox, store = Mailbox(), MemoryApprovalStore()
    server = build_server([mailbox], ServerOptions(approvals=store, principal="ann"))

    async with way(server) as client:
        first = await client.call_tool("mailbox", {"folder": "out"})
        before = await client.call_tool("mailbox", {"folder": "out"})
        entry = await store.show(request_of(first))
        mailbox.consented = True
        await store.answer(entry.request.grant("the consent of ann"))
        after = await client.call_tool("mailbox", {"folder": "out"})

    assert LINK in text_of(first)
    assert "no tool of yours takes the place" in text_of(first)
    assert request_of(before) == request_of(first)
    assert text_of(after) == "mail in out"
    assert mailbox.read == ["out"]
