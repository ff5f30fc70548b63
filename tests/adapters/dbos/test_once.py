"""What is written down of a call decides what a second execution of its turn may do, also without an engine."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from tests.adapters.dbos.durable import durable, engine_of
from toolcrib.adapters.dbos import Client, show_work
from toolcrib.adapters.dbos._context import SharedContext
from toolcrib.adapters.dbos._continuation import continue_approved
from toolcrib.adapters.dbos._recorded import NotingStore, RecordedPipeline, Unit, current_unit
from toolcrib.adapters.dbos._run_store import RunStore
from toolcrib.approvals import MemoryApprovalStore, approve_all, deny_all, digest
from toolcrib.calls import ApprovalRequest, Completed, Outcome, Rejected, Suspended, ToolCall
from toolcrib.errors import ApprovalError
from toolcrib.pipeline import Performed, Prepared, Run
from toolcrib.tools import ez_tool
from toolcrib.toolsets import Toolset
from toolcrib.turns import Agent, ContextItem, Turn


@ez_tool
async def pay(amount: int, code: SecretStr | None = None) -> str:
    return f"paid {amount}"


@ez_tool(requires_approval=True, idempotent=True)
async def place(amount: int) -> str:
    return f"placed {amount}"


PIPELINE = RecordedPipeline(Toolset([pay, place]))


async def written(name: str, scope: Run, **arguments: Any) -> dict[str, Any]:
    """Take a call through its gates as a worker does that dies when that is written down; return what was written."""
    unit = Unit("work", None)
    token = current_unit.set(unit)
    preparing = asyncio.create_task(PIPELINE.prepare(ToolCall(name, arguments, "call_1"), scope))
    current_unit.reset(token)
    await asyncio.wait({preparing, unit.reached}, return_when=asyncio.FIRST_COMPLETED)
    preparing.cancel()
    return json.loads(json.dumps(unit.reached.result()))


async def taken_up(state: dict[str, Any], scope: Run, work: str = "work") -> Prepared | Outcome:
    """Take up what was written down, as the next worker does."""
    unit = Unit(work, None)
    unit.state = state
    token = current_unit.set(unit)
    try:
        return await PIPELINE.prepare(ToolCall("any", {}), scope)
    finally:
        current_unit.reset(token)


async def test_a_call_in_doubt_is_one_question_however_often_it_is_taken_up() -> None:
    store = MemoryApprovalStore()
    scope = Run(approvals=store, principal="ann")
    state = await written("pay", scope, amount=5, code="sesame")

    asked = [await taken_up(state, scope, work) for work in ("work", "work", "other")]

    first, again, other = [one.request for one in asked if isinstance(one, Suspended)]
    assert first.id == again.id != other.id
    assert len(await store.list(pending=True)) == 2
    assert first.principal == "ann"
    assert "sesame" not in json.dumps(first.to_dict())


async def test_an_approval_is_not_asked_again_and_holds_for_the_same_arguments_only() -> None:
    state = await written("place", Run(approver=approve_all), amount=5)
    other = {**state, "prepared": {**state["prepared"], "arguments": {"amount": 500}}}

    made = [await taken_up(one, Run(approver=deny_all)) for one in (state, other)]
    done = [await PIPELINE.perform(one, Run()) for one in made if isinstance(one, Prepared)]

    first, second = [one for one in done if isinstance(one, Performed)]
    assert (first.value, first.error) == ("placed 5", None)
    assert isinstance(second.error, ApprovalError)


async def test_a_refusal_that_was_written_down_is_the_outcome() -> None:
    state = await written("place", Run(approver=deny_all), amount=5)

    outcome = await taken_up(state, Run(approver=approve_all))

    assert isinstance(outcome, Rejected)


async def test_what_a_person_typed_is_in_no_record() -> None:
    request = ApprovalRequest("ask_1", "call_1", "pay", {}, "d")
    unit, store = Unit("work", None), MemoryApprovalStore()
    await store.put(request)
    await store.answer(request.grant("ann", user_input="1234", override_args={"code": "5678"}))

    await NotingStore(store, unit).take(request)

    assert unit.approval is not None
    assert (unit.approval["approver"], unit.approval["request_id"]) == ("ann", "ask_1")
    assert not {"1234", "5678"} & set(json.dumps(unit.approval).split('"'))


async def test_a_run_gets_the_answer_again_that_it_used_up() -> None:
    request = ApprovalRequest("ask_1", "call_1", "pay", {}, "d")
    store = MemoryApprovalStore()
    await store.put(request)
    await store.answer(request.grant("ann"))
    run = RunStore(store)

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

    assert [step["name"] for step in more["steps"]] == [f"prepare pay {digest('pay', {'amount': 5})[:16]} 1"]
