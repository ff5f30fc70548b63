"""What is seen of durable work by those who look after it."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import sqlalchemy as sa
from sqlalchemy import event

from tests.adapters.dbos.durable import QUICK, count, durable, engine_of, looked_at, pay
from toolcrib.adapters.dbos import (
    Client,
    DurableAgent,
    DurableFailure,
    DurableToolkit,
    Placement,
    Queue,
    cancel_work,
    list_work,
    resume_work,
    retry_work,
    show_work,
    workers,
)
from toolcrib.adapters.dbos import _work_tables as tables
from toolcrib.calls import Completed, Failed, Suspended
from toolcrib.code import Toolkit
from toolcrib.errors import ApprovalError, EngineError
from toolcrib.pipeline import Run
from toolcrib.testing import FakeClock, FakeSandbox
from toolcrib.tools import ez_tool
from toolcrib.turns import Agent, Turn


async def test_a_turn_that_waited_is_one_piece_of_work_under_one_id(tmp_path: Path) -> None:
    agent = durable(pay)

    async with engine_of(str(tmp_path / "work.db"), agent) as engine:
        handle = await agent.put(Turn(pay, kwargs={"cents": 3}))
        asked = await handle.outcome()
        assert isinstance(asked, Suspended)
        before = [work.id for work in list_work(engine.client, state="suspended", limit=1)]
        await engine.client.approvals.answer(asked.request.grant("ann"))
        await handle.outcome(through=True)
        after = [(work.id, work.state) for work in list_work(engine.client)]
        listed = [list_work(engine.client, state=state) for state in ("suspended", "done")]
        work, more = show_work(engine.client, handle.id)
        by_part, _ = show_work(engine.client, asked.request.id)

    assert before == [handle.id]
    assert after == [(handle.id, "done")]
    assert [[work.id for work in works] for works in listed] == [[], [handle.id]]
    assert (work, work.state) == (by_part, "done")
    assert more["output"]["outcome"]["kind"] == "completed"


async def test_the_list_is_read_in_pages_that_leave_out_nothing(tmp_path: Path) -> None:
    agent = durable(pay, count)

    async with engine_of(str(tmp_path / "work.db"), agent) as engine:
        asked = await agent.put(Turn(pay, kwargs={"cents": 3}))
        delayed = [await agent.put(Turn(count), delay=3600) for _ in range(3)]
        outcome = await asked.outcome()
        assert isinstance(outcome, Suspended)
        await agent.approve(outcome.request)
        await asked.outcome(through=True)
        pages = [list_work(engine.client, limit=2, start=start) for start in (0, 2, 4)]

    assert [len(page) for page in pages] == [2, 2, 0]
    assert {work.id for page in pages for work in page} == {asked.id, *(handle.id for handle in delayed)}


async def test_work_is_found_by_words_and_by_time(tmp_path: Path) -> None:
    agent = Agent(f"agent_{uuid4().hex[:8]}", "Tested.", (pay, count))
    worker = DurableAgent(agent, Queue(agent.name, polling=QUICK), run=Run(principal="ann"))

    async with engine_of(str(tmp_path / "work.db"), worker) as engine:
        asked = await worker.put(Turn(pay, kwargs={"cents": 3}), conversation_id="case 7")
        delayed = [await worker.put(Turn(count), delay=3600) for _ in range(2)]
        await asked.outcome()
        later = datetime.now(UTC) + timedelta(minutes=1)
        chosen = [
            list_work(engine.client, text=f"{agent.name} COUNT"),
            list_work(engine.client, text="ann case"),
            list_work(engine.client, text=delayed[0].id[:20]),
            list_work(engine.client, text="ann count"),
            list_work(engine.client, since=later),
            list_work(engine.client, until=later, state="suspended"),
        ]

    assert [{work.id for work in found} for found in chosen] == [
        {handle.id for handle in delayed},
        {asked.id},
        {delayed[0].id},
        set(),
        set(),
        {asked.id},
    ]


async def test_what_changes_between_two_pages_hides_nothing(database: str) -> None:
    agent = durable(count)

    async with engine_of(database, agent) as engine:
        handles = [await agent.put(Turn(count), delay=3600) for _ in range(201)]  # one more than a page has
        system = engine.client.dbos._sys_db
        rows = system.tables.workflow_status

        def end_the_latest(connection: Any, cursor: Any, statement: str, *more: Any) -> None:
            if "ORDER BY" in statement and "created_at DESC" in statement:
                latest = sa.update(rows).where(rows.c.workflow_uuid == handles[-1].id)
                connection.execute(latest.values(status="CANCELLED"))

        event.listen(system.engine, "after_cursor_execute", end_the_latest)
        found = [work.id for work in list_work(engine.client, state="delayed", limit=1000)]

    assert set(found) >= {handle.id for handle in handles[:-1]}
    assert len(found) == len(set(found))


async def test_a_program_that_waited_is_one_piece_of_work_as_well(tmp_path: Path) -> None:
    queue = Queue("admin", polling=QUICK)
    toolkit = DurableToolkit(Toolkit([pay]), queue, name="admin")

    async with engine_of(str(tmp_path / "work.db"), toolkit) as engine:
        program = await toolkit.start("print(pay(4))")
        waiting = await program.settled(polling=QUICK)
        await engine.client.result(program.id)  # the first workflow's, which ends a moment later
        before = [work.state for work in list_work(engine.client)]
        await engine.client.approvals.answer(waiting.suspended[0].grant("ann"))
        await program.result(polling=QUICK)
        await engine.client.result(f"{program.id}-2")
        after = [(work.id, work.state) for work in list_work(engine.client)]
        work, more = show_work(engine.client, program.id)

    assert (before, after) == (["suspended"], [(program.id, "done")])
    assert (work.state, more["result"]["output"]) == ("done", "paid 4\n")


@pytest.mark.parametrize("answer", ["grant", "deny"])
async def test_answered_work_waits_for_a_worker_and_for_no_person(database: str, answer: str) -> None:
    agent = durable(pay)
    toolkit = DurableToolkit(Toolkit([pay]), Queue("admin", polling=QUICK), name="admin")

    async with engine_of(database, agent, toolkit, answers=3600) as engine:  # it looks for no answer meanwhile
        handle = await agent.put(Turn(pay, kwargs={"cents": 3}))
        outcome, program = await handle.outcome(), await toolkit.start("print(pay(4))")
        assert isinstance(outcome, Suspended)
        [of_program] = (await program.settled(polling=QUICK)).suspended
        await engine.client.result(program.id)
        before = list_work(engine.client)
        for request in (outcome.request, of_program):
            await engine.client.approvals.answer(getattr(request, answer)(by="ann"))
        after = list_work(engine.client, state="suspended")

    assert {work.waits_for for work in before} == {(outcome.request.id,), (of_program.id,)}
    assert [(work.waits_for, work.error) for work in after] == [((), "answered; waits for a worker")] * 2


async def test_work_that_a_standing_grant_allows_meanwhile_waits_for_a_worker_and_for_no_person(database: str) -> None:
    agent = durable(pay)
    toolkit = DurableToolkit(Toolkit([pay]), Queue("admin", polling=QUICK), name="admin")

    async with engine_of(database, agent, toolkit, answers=3600) as engine:
        handle = await agent.put(Turn(pay, kwargs={"cents": 3}))
        outcome, program = await handle.outcome(), await toolkit.start("print(pay(4))")
        assert isinstance(outcome, Suspended)
        await program.settled(polling=QUICK)
        await engine.client.result(program.id)
        await engine.client.approvals.answer(outcome.request.always("ann", scope="tool"))
        after = list_work(engine.client, state="suspended")

    assert [(work.waits_for, work.error) for work in after] == [((), "answered; waits for a worker")] * 2


def waiting_agent() -> tuple[DurableAgent, Turn[int], asyncio.Event, asyncio.Event]:
    """Return an agent, its turn that waits, the event of its beginning, and the event that it waits for."""
    began, go_on = asyncio.Event(), asyncio.Event()

    @ez_tool(idempotent=True)
    async def wait() -> int:
        began.set()
        await go_on.wait()
        return 1

    return durable(wait), Turn(wait), began, go_on


def lose_workers(client: Client) -> None:
    """Record the workers as processes that are gone."""
    with client.engine.begin() as connection:
        connection.execute(sa.update(tables.workers).values(pid=2**31 - 1))  # no process has that number


async def test_work_whose_worker_is_lost_says_so(database: str) -> None:
    agent, turn, began, go_on = waiting_agent()
    async with engine_of(database, agent) as engine:
        await agent.put(turn)
        await began.wait()
        [alive] = list_work(engine.client)
        lose_workers(engine.client)
        [lost] = list_work(engine.client)
        go_on.set()

    assert (alive.state, alive.error) == ("running", None)
    assert (lost.state, lost.error) == ("running", f"its worker is lost: toolcrib workers recover {lost.worker}")


async def test_a_worker_that_hands_nothing_over_logs_once_what_a_lost_one_holds(
    database: str, caplog: pytest.LogCaptureFixture
) -> None:
    (agent, turn, began, go_on), clock = waiting_agent(), FakeClock(speed=100.0)
    async with engine_of(database, agent, worker_id="till", clock=clock) as engine:
        await agent.put(turn)
        await began.wait()
        lose_workers(engine.client)
        while "is lost" not in caplog.text:  # noqa: ASYNC110 -- the log
            await asyncio.sleep(QUICK)
        until = clock.monotonic() + 60.0
        while clock.monotonic() < until:  # noqa: ASYNC110 -- further looks
            await asyncio.sleep(QUICK)
        go_on.set()

    lines = [line for line in caplog.messages if "is lost" in line]
    assert lines == [
        "the worker till is lost, and holds work, 1 in number: start it again under its id, or run "
        f"`toolcrib workers recover till --database {engine.database}`"
    ]


async def test_a_suspended_turn_that_is_cancelled_cannot_be_approved_into_running(tmp_path: Path) -> None:
    agent = durable(pay)

    async with engine_of(str(tmp_path / "work.db"), agent) as engine:
        by_id, by_handle = [await agent.put(Turn(pay, kwargs={"cents": n})) for n in (3, 4)]
        asked = [await handle.outcome() for handle in (by_id, by_handle)]
        cancelled = cancel_work(engine.client, by_id.id)
        await by_handle.cancel()
        for outcome in asked:
            assert isinstance(outcome, Suspended)
            with pytest.raises(ApprovalError, match="was answered before by cancel"):
                await engine.client.approvals.answer(outcome.request.grant("ann"))
        listed = list_work(engine.client, state="suspended")
        for handle in (by_id, by_handle):
            with pytest.raises(DurableFailure, match="was cancelled"):
                await handle.outcome()

    assert (cancelled.state, listed) == ("cancelled", [])


async def test_a_paused_program_that_is_cancelled_is_listed_as_that(tmp_path: Path) -> None:
    toolkit = DurableToolkit(Toolkit([pay]), Queue("cancelled", polling=QUICK), name="cancelled")

    async with engine_of(str(tmp_path / "work.db"), toolkit) as engine:
        program = await toolkit.start("print(pay(4))")
        await program.settled(polling=QUICK)
        await engine.client.result(program.id)
        cancelled = await asyncio.to_thread(cancel_work, engine.client, program.id)

    assert cancelled.state == "cancelled"


async def test_work_that_has_ended_by_itself_is_not_resumed(tmp_path: Path) -> None:
    agent = durable(count)

    async with engine_of(str(tmp_path / "work.db"), agent) as engine:
        handle = await agent.put(Turn(count))
        await handle.outcome()

        with pytest.raises(EngineError, match="is done, and only work that was cancelled or given up is resumed"):
            await asyncio.to_thread(resume_work, engine.client, handle.id)


async def test_failed_work_is_listed_as_that_with_its_reason(database: str) -> None:
    @ez_tool
    async def fail(why: str) -> str:
        raise ValueError(why)

    @ez_tool
    async def wait() -> str:
        await asyncio.Event().wait()
        return "never"

    agent, toolkit = durable(fail, wait, pay), DurableToolkit(Toolkit([fail]), Queue("failing", polling=QUICK))
    async with engine_of(database, agent, toolkit) as engine:
        raised = await agent.put(Turn(fail, kwargs={"why": "no money"}))
        late = await agent.put(Turn(wait), timeout=0.1)
        program = await toolkit.start("fail('no shop')")
        refused = await agent.put(Turn(pay, kwargs={"cents": 3}))
        asked = await refused.outcome()
        assert isinstance(asked, Suspended)
        await agent.deny(asked.request, message="too dear")
        await refused.outcome(through=True)
        await raised.outcome()
        await engine.client.result(program.id)
        with pytest.raises(DurableFailure):
            await late.outcome()
        failed = {work.id: work.error for work in list_work(engine.client, state="failed")}
        rejected = [(work.id, work.error) for work in list_work(engine.client, state="rejected")]
        elsewhere = [list_work(engine.client, state=state) for state in ("done", "cancelled")]

    assert failed[raised.id] == "no money"
    assert failed[late.id] == "WorkTimeoutError: it did not end within 0.1 s"
    assert "no shop" in str(failed[program.id])
    assert len(failed) == 3
    assert rejected == [(refused.id, "too dear")]
    assert elsewhere == [[], []]


async def test_a_failed_turn_is_retried_and_asks_before_it_does_its_call_again(database: str) -> None:
    ran: list[str] = []

    @ez_tool
    async def charge(amount: int) -> str:
        ran.append("charge")
        if len(ran) == 1:
            raise ValueError("the line is dead")
        return f"charged {amount}"

    agent = durable(charge)
    async with engine_of(database, agent) as engine:
        handle = await agent.put(Turn(charge, kwargs={"amount": 3}))
        first = await handle.outcome()
        await asyncio.to_thread(engine.client.stop, agent.queue.name)
        await looked_at(engine, agent.queue)
        again = await asyncio.to_thread(retry_work, engine.client, handle.id)
        await asyncio.to_thread(engine.client.go, agent.queue)
        asked = await handle.outcome()
        before = list(ran)
        assert isinstance(asked, Suspended)
        await agent.approve(asked.request, "ann")
        outcome = await handle.outcome(through=True)
        with pytest.raises(EngineError, match="is done, and only failed work is retried"):
            await asyncio.to_thread(retry_work, engine.client, handle.id)

    assert isinstance(first, Failed)
    assert (again.id, again.state, asked.request.in_doubt) == (handle.id, "waiting", True)
    assert asked.request.reason.startswith('this call was begun and failed: "the line is dead". It may have been done')
    assert list(asked.request.metadata) == ["begun", "failed with"]
    assert before == ["charge"]
    assert outcome == Completed("charge", handle.id, "charged 3")


async def test_a_turn_that_failed_before_its_call_begins_anew(tmp_path: Path) -> None:
    closed, ran = [True], list[str]()

    @ez_tool(requires_approval=lambda arguments, ctx: 1 // 0 if closed[0] else False)
    async def charge(amount: int) -> str:
        ran.append("charge")
        return f"charged {amount}"

    agent = durable(charge)
    async with engine_of(str(tmp_path / "work.db"), agent) as engine:
        handle = await agent.put(Turn(charge, kwargs={"amount": 3}))
        first = await handle.outcome()
        closed[0] = False
        await asyncio.to_thread(retry_work, engine.client, handle.id)
        outcome = await handle.outcome()

    assert isinstance(first, Failed)
    assert outcome == Completed("charge", handle.id, "charged 3")
    assert ran == ["charge"]


async def test_a_turn_that_ran_out_of_time_is_retried(tmp_path: Path) -> None:
    ran: list[str] = []
    begun, clock = asyncio.Event(), FakeClock(speed=1.0)

    @ez_tool(idempotent=True)
    async def wait() -> str:
        ran.append("wait")
        begun.set()
        if len(ran) == 1:
            await asyncio.Event().wait()
        return "waited"

    agent = durable(wait)
    async with engine_of(str(tmp_path / "work.db"), agent, clock=clock) as engine:
        handle = await agent.put(Turn(wait), timeout=600.0)
        await begun.wait()
        clock.advance(600.0)
        with pytest.raises(DurableFailure):
            await handle.outcome()
        await asyncio.to_thread(retry_work, engine.client, handle.id)
        outcome = await handle.outcome()

    assert outcome == Completed("wait", handle.id, "waited")
    assert ran == ["wait"] * 2


async def test_a_retried_turn_puts_once_what_it_had_put_before_it_failed(database: str) -> None:
    ran: list[str] = []

    @ez_tool
    async def leaf(item: str) -> str:
        ran.append(item)
        return item

    @ez_tool(idempotent=True)
    async def order() -> str:
        for item in ("tea", "tea", f"try {ran.count('order') + 1}"):
            await agent.put(Turn(leaf, kwargs={"item": item}), priority=3)
        ran.append("order")
        if ran.count("order") == 1:
            raise ValueError("the line is dead")
        return "ordered"

    agent = durable(order, leaf)
    async with engine_of(database, agent) as engine:
        handle = await agent.put(Turn(order))
        first = await handle.result()
        await asyncio.gather(*(agent.handle(child["turn"]["uuid"]).outcome() for child in first["children"]))
        await asyncio.to_thread(retry_work, engine.client, handle.id)
        outcome = await handle.outcome()
        second = await handle.result()
        await asyncio.gather(*(agent.handle(child["turn"]["uuid"]).outcome() for child in second["children"]))
        status = engine.client.find(second["children"][0]["turn"]["uuid"])

    assert outcome == Completed("order", handle.id, "ordered")
    assert sorted(ran) == ["order", "order", "tea", "tea", "try 1", "try 2"]
    assert status is not None
    assert status.priority == 3


async def test_a_failed_program_is_retried_without_its_calls_that_were_done(database: str) -> None:
    ran: list[str] = []

    @ez_tool
    async def order(item: str) -> str:
        ran.append(f"order {item}")
        return item

    @ez_tool
    async def charge(amount: int) -> str:
        ran.append("charge")
        if ran.count("charge") == 1:
            raise ValueError("the line is dead")
        return f"charged {amount}"

    toolkit = DurableToolkit(Toolkit([order, charge]), Queue("retried", polling=QUICK), name="retried")
    async with engine_of(database, toolkit) as engine:
        program = await toolkit.start("print(order('tea'), charge(3))")
        failed = await program.settled(polling=QUICK)
        await engine.client.result(program.id)
        await asyncio.to_thread(retry_work, engine.client, program.id)
        waiting = await program.settled(polling=QUICK)
        (call,) = waiting.suspended_calls
        before = list(ran)
        await engine.client.result(program.id)
        await toolkit.approve(call.request, "ann")
        result = await program.result(polling=QUICK)

    assert "the line is dead" in str(failed.error)
    assert (call.tool, call.request.in_doubt, before) == ("charge", True, ["order tea", "charge"])
    assert call.request.reason.startswith('this call was begun and failed: "the line is dead". It may have been done')
    assert result.output == "tea charged 3\n"
    assert ran == ["order tea", "charge", "charge"]


async def test_the_request_of_a_retried_program_that_ran_out_of_time_says_so(file: str) -> None:
    begun, clock = asyncio.Event(), FakeClock(speed=1.0)

    @ez_tool
    async def charge(amount: int) -> str:
        begun.set()
        await asyncio.Event().wait()
        return "never"

    toolkit = DurableToolkit(
        Toolkit([charge], sandbox=FakeSandbox(("charge", {"amount": 3}))), Queue("late", polling=QUICK), name="late"
    )
    async with engine_of(file, toolkit, clock=clock) as engine:
        program = await toolkit.start("...", placement=Placement("late", timeout=600.0))
        await begun.wait()
        clock.advance(600.0)
        with pytest.raises(DurableFailure):
            await program.settled(polling=QUICK)
        await asyncio.to_thread(retry_work, engine.client, program.id)
        (call,) = (await program.settled(polling=QUICK)).suspended_calls

    assert call.request.in_doubt
    assert 'failed: "WorkTimeoutError: it did not end within 600 s"' in call.request.reason
    assert list(call.request.metadata) == ["begun", "failed with"]


async def test_the_queues_that_a_worker_serves_are_known(tmp_path: Path) -> None:
    agent = durable(count)

    async with engine_of(str(tmp_path / "work.db"), agent, worker_id="till") as engine:
        found = [(worker.id, worker.queues) for worker in workers(engine.client)]

    assert found == [("till", (agent.queue.name,))]
