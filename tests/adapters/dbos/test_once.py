"""What is written down of a call decides what a second execution of its turn may do, also without an engine."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from pydantic import SecretStr

from tests.adapters.dbos.durable import durable, engine_of
from toolcrib.adapters.dbos import Client, show_work
from toolcrib.adapters.dbos._context import SharedContext
from toolcrib.adapters.dbos._continuation import continue_approved
from toolcrib.approvals import MemoryApprovalStore, digest
from toolcrib.calls import ApprovalRequest, Completed, Suspended
from toolcrib.durable import TurnExecution, WorkStore
from toolcrib.tools import ez_tool
from toolcrib.turns import Agent, ContextItem, Turn


@ez_tool
async def pay(amount: int, code: SecretStr | None = None) -> str:
    return f"paid {amount}"


@ez_tool(requires_approval=True, idempotent=True)
async def place(amount: int) -> str:
    return f"placed {amount}"


async def test_what_a_person_typed_is_in_no_record() -> None:
    request = ApprovalRequest("ask_1", "call_1", "pay", {}, "d")
    execution, store = TurnExecution("work", None), MemoryApprovalStore()
    await store.put(request)
    await store.answer(request.grant("ann", user_input="1234", override_args={"code": "5678"}))

    await WorkStore(store, execution).take(request)

    assert execution.approval is not None
    assert (execution.approval["approver"], execution.approval["request_id"]) == ("ann", "ask_1")
    assert not {"1234", "5678"} & set(json.dumps(execution.approval).split('"'))


async def test_a_run_gets_the_answer_again_that_it_used_up() -> None:
    request = ApprovalRequest("ask_1", "call_1", "pay", {}, "d")
    store = MemoryApprovalStore()
    await store.put(request)
    await store.answer(request.grant("ann"))
    run = WorkStore(store)

    answers = [await run.take(request), await run.take(request)]  # its worker died in between
    assert answers[0] is not None
    await run.use(request, answers[0])

    assert answers[0] == answers[1]


# --- in a database


@pytest.fixture
async def client(tmp_path: Path) -> AsyncGenerator[Client]:
    async with Client(tmp_path / "crib.db") as made:
        yield made


async def test_what_a_turn_did_to_the_context_is_done_once(client: Client) -> None:
    agent = Agent("noting", "Tested.", [pay])
    shared = SharedContext(agent)
    changes = [{"op": "append", "item": ContextItem("noted").to_dict()}]

    for work in ("work", "work", "other"):
        await shared.apply(client, work, changes)
    await shared.bring(client)

    assert agent.context_queue.history() == "noted\nnoted"


async def test_an_answer_lets_one_continuation_go_on_whoever_looks(tmp_path: Path) -> None:
    agent = durable(place)
    async with engine_of(str(tmp_path / "crib.db"), agent, answers=60) as engine:
        handle = await agent.put(Turn(place, kwargs={"amount": 5}))
        asked = await handle.outcome()
        assert isinstance(asked, Suspended)
        await engine.client.approvals.answer(asked.request.grant("ann"))
        await asyncio.gather(*(continue_approved(engine.client, engine.client.approvals) for _ in range(3)))
        await agent.handle(asked.request.id).outcome()
        found = await asyncio.to_thread(engine.client.dbos.list_workflows)

    assert {one.workflow_id for one in found} == {handle.id, asked.request.id}


async def test_typing_a_result_is_no_result_of_a_call_that_is_not_in_doubt(tmp_path: Path) -> None:
    agent = durable(place)
    async with engine_of(str(tmp_path / "crib.db"), agent):
        handle = await agent.put(Turn(place, kwargs={"amount": 5}))
        asked = await handle.outcome()
        assert isinstance(asked, Suspended)
        await agent.approve(asked.request, "ann", user_input={"result": "placed nothing"})
        outcome = await handle.outcome(through=True)

    assert outcome == Completed("place", handle.id, "placed 5")


async def test_a_step_is_named_by_its_tool_what_is_asked_of_it_and_its_place(tmp_path: Path) -> None:
    agent = durable(pay)
    async with engine_of(str(tmp_path / "crib.db"), agent) as engine:
        handle = await agent.put(Turn(pay, kwargs={"amount": 5}))
        await handle.outcome()
        _, more = await asyncio.to_thread(show_work, engine.client, handle.id)

    assert [step["name"] for step in more["steps"]] == [f"admit pay {digest('pay', {'amount': 5})[:16]} 1"]
