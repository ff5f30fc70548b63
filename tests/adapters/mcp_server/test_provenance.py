"""Provenance of what a client of a server asks for: its arguments are the model's, unless the host says otherwise."""

from __future__ import annotations

from typing import Any

from tests.adapters.mcp_server.clients import APPROVE, Way, answering, every_generation, text_of
from toolcrib.adapters.mcp_server import ServerOptions, build_server
from toolcrib.approvals import MemoryApprovalStore
from toolcrib.pipeline import Run
from toolcrib.provenance import Provenance
from toolcrib.tools import Tool, ez_tool

IBAN = "GB29NWBK60161331926819"


def bank(paid: list[str]) -> list[Tool[..., Any]]:
    @ez_tool(effect="none")
    async def read_file(path: str) -> str:
        """Read a file."""
        return "Nothing new"

    @ez_tool(effect="send", source="trusted")
    async def pay(recipient: str) -> str:
        """Pay."""
        paid.append(recipient)
        return "paid"

    return [read_file, pay]


@every_generation
async def test_arguments_of_a_client_are_not_the_users_words(way: Way) -> None:
    store, paid, run = MemoryApprovalStore(), list[str](), Run(features=[Provenance()])
    server = build_server(bank(paid), ServerOptions(approvals=store, run=lambda name: run))
    async with way(server) as client:
        await client.call_tool("read_file", {"path": IBAN})
        await client.call_tool("pay", {"recipient": IBAN})
    [entry] = await store.list(pending=True)
    assert "is in nothing that the user wrote" in entry.request.reason
    assert paid == []


@every_generation
async def test_what_the_host_says_that_the_user_wrote_is_the_users(way: Way) -> None:
    paid, run = list[str](), Run(features=[Provenance()])
    server = build_server(bank(paid), ServerOptions(run=lambda name: run))
    async with way(server) as client:
        await client.call_tool("read_file", {"path": "a.txt"})
        run.add_user_message(f"pay to {IBAN}")
        assert text_of(await client.call_tool("pay", {"recipient": IBAN})) == "paid"


@every_generation
async def test_a_clients_user_is_shown_where_the_value_comes_from(way: Way) -> None:
    shown, paid, run = list[str](), list[str](), Run(features=[Provenance()])
    run.add_user_message("pay the bill")
    server = build_server(bank(paid), ServerOptions(approve_by="elicit", run=lambda name: run))
    async with way(server, elicitation_callback=answering(APPROVE, asked=shown)) as client:
        await client.call_tool("read_file", {"path": "a.txt"})
        assert text_of(await client.call_tool("pay", {"recipient": IBAN})) == "paid"
    why = f"recipient `{IBAN}` is in nothing that the user wrote or that a trusted tool gave; you wrote: pay the bill"
    assert shown == [f'pay needs approval: {why}\n  recipient = "{IBAN}"']
