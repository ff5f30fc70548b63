"""What is written down of a call decides what a second execution of its turn may do, also without an engine."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from functools import partial
from pathlib import Path

import pytest
import sqlalchemy as sa
from dbos._error import DBOSWorkflowConflictIDError
from pydantic import SecretStr

from tests.adapters.dbos.durable import Step, Work, durable, engine_of
from toolcrib.adapters.dbos import Client, Placement, show_work
from toolcrib.adapters.dbos._context import SharedContext
from toolcrib.adapters.dbos._continuation import continue_approved
from toolcrib.adapters.dbos._engine import current_engine
from toolcrib.adapters.dbos._workers import hand_back
from toolcrib.adapters.dbos._workflow import HeldTables
from toolcrib.approvals import POSTGRES_APPROVAL_TABLES, MemoryApprovalStore, SqlApprovalStore, digest
from toolcrib.calls import ApprovalRequest, Completed, Suspended
from toolcrib.durable import TurnExecution, WorkStore
from toolcrib.pipeline import current_run
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


def take_up(client: Client, work_id: str, owner: str) -> None:
    """Have the worker `w1` hold a piece of work, with this token of DBOS."""
    database = client.dbos._sys_db
    table = database.tables.workflow_status
    with database.engine.begin() as connection:
        mine = sa.update(table).where(table.c.workflow_uuid == work_id)
        connection.execute(mine.values(status="PENDING", executor_id="w1", owner_xid=owner))


@pytest.mark.parametrize("verb", ["put", "begin", "take"])
async def test_an_execution_that_is_handed_over_right_behind_its_fence_writes_nothing(database: str, verb: str) -> None:
    """Else the next one would find its call begun, or a question about it, and a person would be asked once more."""
    request = ApprovalRequest("ask_1", "call_1", "pay", {}, "d")
    async with Client(database) as client:
        await client.enqueue("tests.held", "q", {}, Placement("work"))
        take_up(client, "work", "mine")
        store, grant = client.approvals, request.grant("ann")
        assert isinstance(store, SqlApprovalStore)
        if verb != "put":
            await store.put(request)
            await store.answer(grant)
        if verb == "take":
            await store.begin(request, grant)  # by an execution before this one, which would break it off
        before = await store.list()

        async def fence() -> None:
            await asyncio.to_thread(hand_back, client, "w1", ["work"])  # once the fence has said that it may begin

        held_store = store.over(lambda _: HeldTables(client, "work", "mine", POSTGRES_APPROVAL_TABLES.lock))
        work = WorkStore(store, None, fence=fence, held_store=held_store)
        with pytest.raises(DBOSWorkflowConflictIDError):
            await {"put": work.put, "take": work.take, "begin": partial(work.begin, grant=grant)}[verb](request)

        assert await store.list() == before


@pytest.mark.parametrize("kind", ["turn", "program"])
async def test_a_call_of_work_that_was_handed_over_asks_about_nothing_more(database: str, kind: str) -> None:
    refused, may_try, tried, work_id = list[str](), asyncio.Event(), asyncio.Event(), ""

    @ez_tool
    async def ask() -> None:
        await may_try.wait()
        engine, run = current_engine(), current_run()
        assert run is not None
        assert run.approvals is not None
        take_up(engine.client, work_id, "another's")  # and its lease holds
        try:
            await run.approvals.put(ApprovalRequest("ask_1", "call_1", "pay", {}, "d"))
        except DBOSWorkflowConflictIDError as error:
            refused.append(str(error))
        tried.set()
        await asyncio.Event().wait()

    work = Work(kind, Step(ask))
    async with engine_of(database, work.worker, grace=0.0) as engine:
        work_id = await work.put()
        may_try.set()
        await tried.wait()

        assert len(refused) == 1
        assert await engine.client.approvals.list() == ()


async def test_what_an_execution_has_begun_while_it_holds_its_work_is_ended_by_it(database: str) -> None:
    request = ApprovalRequest("ask_1", "call_1", "pay", {}, "d")
    async with Client(database) as client:
        await client.enqueue("tests.held", "q", {}, Placement("work"))
        take_up(client, "work", "mine")
        store, grant = client.approvals, request.grant("ann")
        assert isinstance(store, SqlApprovalStore)
        work = WorkStore(
            store,
            None,
            held_store=store.over(lambda _: HeldTables(client, "work", "mine", POSTGRES_APPROVAL_TABLES.lock)),
        )

        await work.put(request)
        await store.answer(grant)
        begun = await work.begin(request, grant)
        running = (await store.show(request.id)).execution_state
        await asyncio.to_thread(hand_back, client, "w1", ["work"])
        await work.end(request, grant, {"value": 1})  # it was done, whoever has the work now

        assert (begun, running, (await store.show(request.id)).execution_state) == (None, "running", "ended")


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
