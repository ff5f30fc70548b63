"""A call that waits for a changed tool of another server goes on when the change is accepted elsewhere."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.adapters.mcp_client.test_pins import POISON, accept_all, server, tools_of, used_before
from tests.adapters.mcp_server.clients import Way, every_generation, text_of
from tests.adapters.mcp_server.test_tasks import begin, of_tasks, result, status
from toolcrib.adapters.mcp_server import ServerOptions, build_server
from toolcrib.approvals import MemoryApprovalStore
from toolcrib.testing import FakeClock

CALLS = {
    "by itself": ("add", {"a": 1, "b": 2}),
    "in a program": ("run_python", {"code": "print(add(a=1, b=2)['result'])"}),
}


async def pending(store: MemoryApprovalStore) -> None:
    while not await store.list(pending=True):  # noqa: ASYNC110 -- the call suspends in the server
        await asyncio.sleep(0.01)


@every_generation
async def test_a_task_goes_on(way: Way, tmp_path: Path) -> None:
    await used_before(tmp_path)
    store = MemoryApprovalStore()
    tools = tools_of(tmp_path, server(POISON), clock=FakeClock(100))
    gateway = build_server(tools, ServerOptions(approvals=store))

    async with of_tasks(way, gateway) as client:
        task = await begin(client, way, *CALLS["by itself"])
        await pending(store)
        waiting = await status(client, task)
        await accept_all(tmp_path, server(POISON))
        text = await result(client, way, task)

    assert "a person has to answer it" in waiting["statusMessage"]
    assert text == "3"
    assert {(entry.state, entry.answer.by) for entry in await store.list()} == {("used", "ann")}


@pytest.mark.processes
@every_generation
@pytest.mark.parametrize("call", CALLS)
async def test_a_call_that_is_held_goes_on(way: Way, call: str, tmp_path: Path) -> None:
    await used_before(tmp_path)
    store, code_mode = MemoryApprovalStore(), call == "in a program"
    options = ServerOptions(approvals=store, wait=20, code_mode=code_mode)
    gateway = build_server(tools_of(tmp_path, server(POISON), clock=FakeClock(100)), options)

    async with way(gateway) as client:
        held = asyncio.create_task(client.call_tool(*CALLS[call]))
        await pending(store)
        await accept_all(tmp_path, server(POISON))
        text = text_of(await held)

    assert text.strip() == "3"


@every_generation
async def test_a_call_waits_on_while_the_change_is_not_accepted(way: Way, tmp_path: Path) -> None:
    await used_before(tmp_path)
    store = MemoryApprovalStore()
    gateway = build_server(tools_of(tmp_path, server(POISON)), ServerOptions(approvals=store, wait=0.1))

    async with way(gateway) as client:
        held = await client.call_tool(*CALLS["by itself"])

    assert held.structured_content["status"] == "suspended"
    assert [entry.state for entry in await store.list()] == ["pending"]
