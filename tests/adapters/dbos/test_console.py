"""What the console finds in the database of durable work: what happened, what waits, and the answers it gave."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

import pytest

from tests.adapters.dbos.durable import QUICK, durable, engine_of, pay
from toolcrib.adapters.dbos import DurableFailure, DurableToolkit, Queue
from toolcrib.adapters.dbos._lost_work import close_lost_work
from toolcrib.approvals import MemoryApprovalStore
from toolcrib.calls import ActivityEvent, ApprovalRequest, ToolCall, now
from toolcrib.code import Toolkit
from toolcrib.console import console_app
from toolcrib.durable._answered import allowed_meanwhile
from toolcrib.errors import EngineError
from toolcrib.pipeline import Pipeline, Run, run_for
from toolcrib.record import ActivityFilter, EventLog, ListSink, SqliteSink, postgres_events, sqlite_events
from toolcrib.testing import FakeSandbox
from toolcrib.tools import tool
from toolcrib.turns import Turn


@tool(requires_approval=True)
async def refund(cents: int) -> str:
    """Pay money back."""
    return f"paid {cents}"


def log_of(database: str) -> EventLog:
    return postgres_events(database) if "://" in database else sqlite_events(database)


async def test_a_tool_begins_when_its_beginning_is_kept(database: str) -> None:
    kept: list[str] = []

    @tool()
    async def look() -> None:
        kept.extend(event.kind for event in log_of(database).since(0) if event.name == "look")

    @tool()
    async def outer() -> None:
        await Pipeline([look]).run(ToolCall("look", {}, "c1"), run_for(None, "round"))

    agent = durable(outer)
    async with engine_of(database, agent, record=True):
        await (await agent.put(Turn(outer))).outcome()

    assert kept[-1] == "started"


async def test_what_a_worker_does_is_kept_for_the_console(database: str) -> None:
    agent = durable(refund)
    toolkit = DurableToolkit(Toolkit([refund]), agent.queue, name=agent.name)
    async with engine_of(database, agent, record=True) as engine:
        turn = await agent.put(Turn(refund, kwargs={"cents": 3}))
        asked = await turn.outcome()
        program = await toolkit.start("print(refund(5))")
        waiting = await program.settled(polling=QUICK)
        for request in (asked.request, *waiting.suspended):
            await engine.client.approvals.answer(request.grant("ann"))
        await turn.outcome(through=True)
        await program.result(polling=QUICK)
        approvals = engine.client.approvals
        assert console_app(log_of(database), approvals)  # the stores of a worker are what it takes

    log = log_of(database)
    (kept,) = log.activities(ActivityFilter(sources=("turn",), ids=(turn.id,)))
    (ran,) = log.activities(ActivityFilter(sources=("program",), text="refund(5)"))
    (call,) = log.activities(ActivityFilter(parent_id=ran.id))
    assert [(one.name, one.status) for one in (kept, ran, call)] == [
        ("refund", "completed"),
        ("program", "completed"),
        ("refund", "completed"),
    ]
    assert call.id == waiting.suspended[0].call_id
    assert (ran.id, call.parent_id) == (program.id, program.id)  # what `toolcrib workflows show` takes


async def test_an_agent_s_own_sinks_are_told_and_one_in_the_same_file_once(tmp_path: Path) -> None:
    @tool
    async def greet() -> str:
        return "hello"

    listed, path = ListSink(), tmp_path / "work.db"
    with SqliteSink(path) as kept:
        agent = durable(greet, sinks=[listed, kept])
        async with engine_of(str(path), agent, record=True):
            await (await agent.put(Turn(greet))).outcome()
        events = [event.kind for event in kept.log().since(0) if event.source == "call"]

    assert events == [event.kind for event in listed.events] == ["received", "started", "ended"]


async def test_a_standing_grant_lets_go_on_what_waits_for_the_same_tool(tmp_path: Path) -> None:
    agent = durable(refund)
    toolkit = DurableToolkit(Toolkit([refund]), agent.queue, name=agent.name)
    async with engine_of(str(tmp_path / "work.db"), agent) as engine:
        first, second = [await agent.put(Turn(refund, kwargs={"cents": n})) for n in (1, 2)]
        program = await toolkit.start("print(refund(3))")
        await program.settled(polling=QUICK)
        await second.outcome()
        asked = (await first.outcome()).request
        await engine.client.approvals.answer(asked.always("ann", scope="tool", expires=timedelta(hours=1)))

        outcomes = [await turn.outcome(through=True) for turn in (first, second)]
        result = await program.result(polling=QUICK)

        assert await engine.client.approvals.list(pending=True) == ()
    assert [outcome.value for outcome in outcomes] == ["paid 1", "paid 2"]
    assert result.output == "paid 3\n"


async def test_always_is_not_said_of_a_call_that_may_have_been_made() -> None:
    store = MemoryApprovalStore()
    asked = ApprovalRequest("ask_1", "call_1", "refund", {"cents": 5}, "d5")
    doubted = ApprovalRequest("ask_2", "call_2", "refund", {"cents": 5}, "d5", in_doubt=True)
    for request in (asked, doubted):
        await store.put(request)
    await store.answer(replace(asked.always("ann"), request_id=None))

    assert [entry.request.id for entry in await allowed_meanwhile(store)] == ["ask_1"]


async def test_what_a_killed_worker_could_not_tell_is_told_by_another(tmp_path: Path) -> None:
    @tool
    async def greet() -> str:
        return "hello"

    path = str(tmp_path / "work.db")
    agent = durable(greet, refund)
    toolkit = DurableToolkit(Toolkit([greet, refund]), agent.queue, name=agent.name)
    async with engine_of(path, agent, record=True) as engine:
        assert engine.sink is not None
        ended, asked = [await agent.put(turn) for turn in (Turn(greet), Turn(refund, kwargs={"cents": 3}))]
        program, failing = [await toolkit.start(code) for code in ("print(greet())", "1/0")]
        for turn in (ended, asked):
            await turn.outcome()
        for one in (program, failing):
            await one.result(polling=QUICK)
        log = engine.sink.sink.log()
        for source, id in (("turn", ended.id), ("turn", asked.id), ("program", program.id), ("program", failing.id)):
            engine.sink.emit_activity(
                ActivityEvent("opened", source, id, None, source, now())
            )  # as when the end was not told
        engine.sink.sink.flush()
        assert {one.status for one in log.activities(ActivityFilter(sources=("turn", "program")))} == {"running"}

        await close_lost_work(engine.client, log, engine.sink)
        engine.sink.sink.flush()
        early = {one.status for one in log.activities(ActivityFilter(sources=("turn", "program")))}
        await close_lost_work(engine.client, log, engine.sink, timedelta())
        engine.sink.sink.flush()
        settled = {one.id: one.status for one in log.activities(ActivityFilter(sources=("turn", "program")))}

    assert early == {"running"}  # it may be about to be told
    assert settled == {ended.id: "completed", asked.id: "suspended", program.id: "completed", failing.id: "failed"}


async def test_what_a_stopped_worker_leaves_is_interrupted_until_it_goes_on(tmp_path: Path) -> None:
    began, go = asyncio.Event(), asyncio.Event()

    @tool(idempotent=True)
    async def slow() -> str:
        began.set()
        await go.wait()
        return "done"

    path, log = str(tmp_path / "work.db"), sqlite_events(tmp_path / "work.db")
    agent = durable(slow)
    async with engine_of(path, agent, worker_id="w", record=True, grace=0.0):
        turn = await agent.put(Turn(slow))
        await began.wait()
    (stopped,) = log.activities(ActivityFilter(sources=("turn",)))
    go.set()
    async with engine_of(path, agent, worker_id="w", record=True):
        outcome = await agent.handle(turn.id).outcome()
    (finished,) = log.activities(ActivityFilter(sources=("turn",)))

    assert outcome.value == "done"
    assert (stopped.status, finished.status) == ("interrupted", "completed")
    assert [one.status for one in log.activities(ActivityFilter(sources=("call",)))] == ["completed"]


async def test_a_turn_that_is_cancelled_fills_no_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    began = asyncio.Event()

    @tool
    async def endless() -> None:
        began.set()
        await asyncio.Event().wait()

    agent = durable(endless)
    dbos = logging.getLogger("dbos")
    dbos.addHandler(caplog.handler)
    try:
        async with engine_of(str(tmp_path / "work.db"), agent) as engine:
            engine.client.declare(agent.queue)  # on an event loop, where DBOS has a word to say, too
            turn = await agent.put(Turn(endless))
            await began.wait()
            await turn.cancel()
            with pytest.raises(DurableFailure, match="was cancelled"):
                await turn.outcome()
            with pytest.raises(EngineError, match="there is no workflow nobodys in"):
                await agent.handle("nobodys").outcome()
    finally:
        dbos.removeHandler(caplog.handler)

    assert caplog.records == []


async def test_an_error_about_time_that_is_not_the_works_own_limit_is_logged(
    file: str, caplog: pytest.LogCaptureFixture
) -> None:
    def late() -> Run:
        raise TimeoutError("the vault did not answer")

    toolkit = DurableToolkit(
        Toolkit([pay], sandbox=FakeSandbox()), Queue(f"q_{uuid4().hex[:8]}", polling=QUICK), name="late", run=late
    )
    dbos = logging.getLogger("dbos")
    dbos.addHandler(caplog.handler)
    try:
        async with engine_of(file, toolkit):
            with pytest.raises(DurableFailure, match="the vault did not answer"):
                await (await toolkit.start("...")).settled(polling=QUICK)
    finally:
        dbos.removeHandler(caplog.handler)

    assert any(record.exc_info and "the vault" in str(record.exc_info[1]) for record in caplog.records)
