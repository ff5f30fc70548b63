"""Stored forms of durable work: a worker leaves what is newer than it, and records no outcome of it."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
import sqlalchemy as sa

from tests.adapters.dbos.durable import QUICK, Step, Work, count, durable, engine_of, pay
from tests.stored.golden import require_golden
from toolcrib.adapters.dbos import Client, Engine, list_work
from toolcrib.adapters.dbos import _work_tables as tables
from toolcrib.adapters.dbos._continuation import continue_approved
from toolcrib.adapters.dbos._program import DurableProgram
from toolcrib.adapters.dbos._program_journal import program_run
from toolcrib.calls import FORM_VERSIONS, ApprovalRequest, Completed, Grant
from toolcrib.credentials._token_requests import Endpoints, OAuthClient, Token
from toolcrib.tools import ez_tool, tool
from toolcrib.turns import ContextItem, ContextQueue, Turn


@ez_tool
async def note(queue: ContextQueue) -> int:
    """Remember something."""
    await queue.append(ContextItem("x", "about x", "x"))
    return 1


async def given_of(client: Client, work_id: str) -> Any:
    status = await client.status(work_id)
    assert status is not None
    given: Any = status.input
    return given["args"][0]


async def test_a_turn_and_what_its_agent_remembers_are_written_as_their_golden_files_have_them(file: str) -> None:
    agent = durable(pay, note)
    async with engine_of(file, agent) as engine:
        noted = await agent.put(Turn(note))
        await noted.outcome()
        handle = await agent.put(Turn(pay, kwargs={"cents": 5}), priority=1, conversation_id="conv")
        asked = await handle.outcome()
        record = await engine.client.result(handle.id)
        work = await given_of(engine.client, handle.id)
        await agent.approve(asked.request)
        await handle.outcome()
        after = record["waits_for"]
        steps = engine.client.dbos.list_workflow_steps(after)
        with engine.client.engine.begin() as connection:
            context = connection.execute(sa.select(tables.contexts.c.context)).scalar_one()

    require_golden("TurnWork", work)
    require_golden("TurnRecord", record)
    require_golden("TurnState", steps[0]["output"])
    require_golden("AgentContext", json.loads(context))


async def test_a_program_is_written_as_its_golden_files_have_it(file: str) -> None:
    work = Work("program", Step(pay, cents=5))
    async with engine_of(file, work.worker) as engine:
        work_id = await work.put()
        await work.asked(engine, work_id)
        given = await given_of(engine.client, work_id)
        run = program_run(engine.client, work_id)

    assert run is not None
    require_golden("ProgramWork", given)
    require_golden("ProgramResult", run.result)


async def outcome_of(work: Work, engine: Engine, work_id: str) -> Any:
    """Return what the work's call came to."""
    if work_id.startswith("program"):
        return (await DurableProgram(work_id, engine.client).result(polling=QUICK)).success
    return (await work.worker.handle(work_id).outcome(through=True)).kind  # type: ignore[union-attr]


async def left_by(engine: Engine) -> str | None:
    """Return why work waits, once a worker has left it."""
    while not (why := [work.error for work in list_work(engine.client, state="waiting") if work.error]):  # noqa: ASYNC110 -- it is the database that is asked
        await asyncio.sleep(QUICK)
    return why[0]


def make_newer(patch: pytest.MonkeyPatch, form: str) -> None:
    """Write a form in the version after the one that is written here, as a newer process does."""
    patch.setitem(FORM_VERSIONS, form, FORM_VERSIONS[form] + 1)
    if form in ("ApprovalRequest", "Grant"):  # which are written in the first version that has what they use
        _write_in(patch, ApprovalRequest if form == "ApprovalRequest" else Grant, FORM_VERSIONS[form])


def _write_in(patch: pytest.MonkeyPatch, kind: type[ApprovalRequest | Grant], version: int) -> None:
    described: Any = kind.to_dict
    patch.setattr(kind, "to_dict", lambda self: {**described(self), "version": version})  # pyright: ignore


def waits_for_newer(form: str) -> str:
    """Return why work waits that holds a form which was made newer."""
    version = FORM_VERSIONS[form]
    return f"waits for a worker that has a newer version of toolcrib, since the stored {form} has version {version}"


@pytest.mark.parametrize(("kind", "form"), [("turn", "TurnWork"), ("turn", "Turn"), ("program", "ProgramWork")])
async def test_work_that_a_newer_process_enqueued_waits_for_a_newer_worker(
    file: str, monkeypatch: pytest.MonkeyPatch, kind: str, form: str
) -> None:
    work = Work(kind, Step(count))
    async with engine_of(file, work.worker, worker_id="old") as engine:
        with monkeypatch.context() as newer:
            make_newer(newer, form)
            work_id = await work.put(delay=0.2)
        left = await left_by(engine)
    make_newer(monkeypatch, form)
    async with engine_of(file, work.worker, worker_id="new") as engine:
        outcome = await outcome_of(work, engine, work_id)

    assert (left, outcome) == (waits_for_newer(form), "completed" if kind == "turn" else True)


@pytest.mark.parametrize(
    ("kind", "form"),
    [
        ("turn", "Suspended"),  # a `Call` says its version where it has secrets alone
        *(("program", form) for form in ("PausedProgram", "JournalEntry", "Suspended", "Run")),
    ],
)
async def test_what_a_newer_worker_paused_is_resumed_by_a_newer_worker(
    file: str, monkeypatch: pytest.MonkeyPatch, kind: str, form: str
) -> None:
    paid: list[int] = []

    @ez_tool(requires_approval=True)
    async def settle(cents: int) -> str:
        paid.append(cents)
        return f"paid {cents}"

    work = Work(kind, Step(settle, cents=5))
    with monkeypatch.context() as newer:
        make_newer(newer, form)
        async with engine_of(file, work.worker, worker_id="new_1") as engine:
            work_id = await work.put()
            await work.asked(engine, work_id)
    async with engine_of(file, work.worker, worker_id="old") as engine:
        await engine.client.approvals.answer((await engine.client.approvals.list())[0].request.grant("ann"))
        left = await left_by(engine)
        before = list(paid)
    make_newer(monkeypatch, form)
    async with engine_of(file, work.worker, worker_id="new_2") as engine:
        outcome = await outcome_of(work, engine, work_id)

    assert (left, before) == (waits_for_newer(form), [])
    assert (outcome, paid) == ("completed" if kind == "turn" else True, [5])


@pytest.mark.parametrize(
    ("kind", "form"),
    [*(("turn", form) for form in ("Grant", "ApprovalRequest", "TurnRecord")), ("program", "Grant")],
)
async def test_what_a_newer_process_answered_is_used_by_a_newer_worker(
    file: str, monkeypatch: pytest.MonkeyPatch, kind: str, form: str
) -> None:
    work = Work(kind, Step(pay, cents=5))
    with monkeypatch.context() as newer:
        make_newer(newer, form)
        async with engine_of(file, work.worker, worker_id="new_1", answers=600.0) as engine:
            work_id = await work.put()
            asked = await work.asked(engine, work_id)
            # a grant without bounds is written as in version 1
            answer = asked.always("ann", uses=9) if form == "Grant" else asked.grant("ann")
            await engine.client.approvals.answer(answer)
    async with engine_of(file, work.worker, worker_id="old") as engine:
        made = await continue_approved(engine.client, engine.client.approvals)
        waiting = list_work(engine.client, state="waiting")
    make_newer(monkeypatch, form)
    async with engine_of(file, work.worker, worker_id="new_2") as engine:
        outcome = await outcome_of(work, engine, work_id)

    assert (made, waiting) == ([], [])
    assert outcome == ("completed" if kind == "turn" else True)


@pytest.mark.parametrize("kind", ["turn", "program"])
async def test_a_call_that_a_newer_standing_grant_may_allow_waits_for_a_newer_worker(
    file: str, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    work = Work(kind, Step(pay, cents=5))
    request = ApprovalRequest("ask_1", "call_1", "pay", {}, "d")
    async with engine_of(file, work.worker, worker_id="old") as engine:
        await engine.client.approvals.put(request)
        with monkeypatch.context() as newer:
            make_newer(newer, "Grant")
            await engine.client.approvals.answer(request.always("ann", uses=9))
        work_id = await work.put()
        left = await left_by(engine)
        asked = [entry.request.id for entry in await engine.client.approvals.list() if entry.answer is None]
    make_newer(monkeypatch, "Grant")
    async with engine_of(file, work.worker, worker_id="new") as engine:
        if kind == "turn":
            outcome = await outcome_of(work, engine, work_id)
        else:  # the journal of a program has a call before its gates are asked
            outcome = (await work.asked(engine, work_id)).in_doubt

    assert (left, asked) == (waits_for_newer("Grant"), [])
    assert outcome == ("completed" if kind == "turn" else True)


@pytest.mark.parametrize("form", ["TurnState"])
async def test_a_turn_that_a_newer_worker_began_goes_on_with_a_newer_worker(
    file: str, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    begun, may_end = asyncio.Event(), asyncio.Event()

    @tool(idempotent=True)
    async def slow() -> str:
        begun.set()
        await may_end.wait()
        return "done"

    agent = durable(slow)
    with monkeypatch.context() as newer:
        make_newer(newer, form)
        async with engine_of(file, agent, worker_id="new_1", grace=0.0) as engine:
            handle = await agent.put(Turn(slow))
            await begun.wait()
    may_end.set()
    async with engine_of(file, agent, worker_id="old") as engine:
        left = await left_by(engine)
    make_newer(monkeypatch, form)
    async with engine_of(file, agent, worker_id="new_2") as engine:
        outcome = await handle.outcome()

    assert left == waits_for_newer(form)
    assert outcome == Completed("slow", handle.id, "done")


async def test_a_turn_waits_for_a_worker_that_reads_what_its_agent_remembers(
    file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = durable(note)
    with monkeypatch.context() as newer:
        make_newer(newer, "AgentContext")
        async with engine_of(file, agent, worker_id="new_1") as engine:
            await (await agent.put(Turn(note))).outcome()
    again = durable(note, queue=agent.queue)
    async with engine_of(file, again, worker_id="old") as engine:
        with engine.client.engine.begin() as connection:  # a later turn of the newer worker
            connection.execute(sa.update(tables.contexts).values(agent=again.name, version=3))
        handle = await again.put(Turn(note))
        left = await left_by(engine)
    make_newer(monkeypatch, "AgentContext")
    async with engine_of(file, again, worker_id="new_2") as engine:
        outcome = await again.handle(handle.id).outcome()

    assert left == waits_for_newer("AgentContext")
    assert outcome == Completed("note", handle.id, 1)


@pytest.mark.parametrize("kind", ["turn", "program"])
@pytest.mark.parametrize("place", ["gate", "body"])
async def test_a_call_whose_credentials_are_in_a_newer_form_waits_for_a_newer_worker(
    file: str, monkeypatch: pytest.MonkeyPatch, kind: str, place: str
) -> None:
    endpoints = Endpoints("https://auth.test", "https://auth.test/a", "https://auth.test/t")
    with monkeypatch.context() as newer:
        make_newer(newer, "Token")
        stored = Token("a", "r", 0.0, endpoints, OAuthClient("toolcrib")).to_dict()

    def asks(arguments: Any, ctx: Any) -> bool:
        return place == "gate" and not Token.from_dict(stored)

    @ez_tool(requires_approval=asks, idempotent=True)
    async def mailbox() -> str:
        return Token.from_dict(stored).access

    work = Work(kind, Step(mailbox))
    async with engine_of(file, work.worker, worker_id="old") as engine:
        work_id = await work.put()
        left = await left_by(engine)
    make_newer(monkeypatch, "Token")
    async with engine_of(file, work.worker, worker_id="new") as engine:
        outcome = await outcome_of(work, engine, work_id)

    assert left == waits_for_newer("Token")
    assert outcome == ("completed" if kind == "turn" else True)
