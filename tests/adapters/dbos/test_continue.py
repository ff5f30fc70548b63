"""What a standing grant lets go on that waits already: what it was given for, and nothing else."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from datetime import datetime, timedelta
from uuid import uuid4

import pytest

from tests.adapters.dbos.durable import QUICK, durable, engine_of, pay
from toolcrib.adapters.dbos import DurableAgent, Queue
from toolcrib.adapters.dbos._continuation import continue_approved
from toolcrib.approvals import MemoryApprovalStore, PostgresApprovalStore, SqliteApprovalStore
from toolcrib.approvers import ApproverRule, ApproverRules
from toolcrib.calls import ApprovalRequest, Rejected, Suspended, now
from toolcrib.durable._answered import allowed_meanwhile
from toolcrib.testing import FakeClock
from toolcrib.tools import ez_tool
from toolcrib.toolsets import Toolset
from toolcrib.turns import Agent, Turn

_ASKED = ApprovalRequest("ask_1", "call_1", "refund", {"cents": 5}, "d5", principal="ann")


@pytest.mark.parametrize(
    ("waits", "goes_on"),
    [
        (_ASKED, True),
        (replace(_ASKED, digest="d6"), True),
        (replace(_ASKED, tool="ship"), False),
        (replace(_ASKED, principal="bob"), False),
    ],
)
async def test_it_is_for_its_tool_and_for_whom_it_was_asked(waits: ApprovalRequest, goes_on: bool) -> None:
    store = MemoryApprovalStore()
    await store.put(waits)

    await store.answer(replace(_ASKED.always("cay"), request_id=None))

    assert bool(await allowed_meanwhile(store)) is goes_on


async def test_it_lets_nothing_go_on_once_it_is_over() -> None:
    store = MemoryApprovalStore()
    await store.put(_ASKED)

    await store.answer(replace(_ASKED.always("cay"), request_id=None, expires_at=now() - timedelta(hours=1)))

    assert await allowed_meanwhile(store) == []


async def test_an_answer_whose_work_goes_on_is_not_looked_into_again_and_then_forgotten(file: str) -> None:
    agent = durable(pay)
    settled = set[tuple[str, datetime | None]]()
    async with engine_of(file, agent, answers=600.0) as engine:
        client, store = engine.client, engine.client.approvals
        await store.put(_ASKED)
        await store.answer(_ASKED.grant("ann"))  # of no durable work
        handle = await agent.put(Turn(pay, kwargs={"cents": 3}))
        asked = await handle.outcome()
        assert isinstance(asked, Suspended)
        await asyncio.to_thread(client.stop, agent.queue.name)
        await store.answer(asked.request.grant("ann"))

        made = [await continue_approved(client, store, ended=settled) for _ in range(3)]
        known = {request_id for request_id, _ in settled}
        await asyncio.to_thread(client.go, agent.queue)
        await handle.outcome(through=True)
        await continue_approved(client, store, ended=settled)

    assert made == [[asked.request.id], [], []]
    assert known == {"ask_1", asked.request.id}
    assert {request_id for request_id, _ in settled} == {"ask_1"}


@ez_tool
async def refund(cents: int) -> str:
    """Refund."""
    return f"refunded {cents}"


async def test_a_turn_goes_on_refused_when_nobody_approves_it_in_the_time_of_the_rule(database: str) -> None:
    clock = FakeClock()
    clock.advance(time.time())
    kind = PostgresApprovalStore if database.startswith("postgres") else SqliteApprovalStore
    store = kind(database, clock=clock)
    rule = ApproverRule(name="soon", not_requester=False, expires=timedelta(hours=2))
    tools = Toolset([refund]).with_gates(ApproverRules([rule]))
    agent = DurableAgent(Agent(name := f"agent_{uuid4().hex[:8]}", "Tested.", tools), Queue(name, polling=QUICK))
    async with engine_of(database, agent, approvals=store):
        handle = await agent.put(Turn(refund, kwargs={"cents": 3}))
        asked = await handle.outcome()
        clock.advance(3 * 3600.0)
        outcome = await handle.outcome(through=True)

    assert isinstance(asked, Suspended)
    assert isinstance(outcome, Rejected)
    assert outcome.text() == "Rejected: it was not approved within 2 hours, which the rule soon sets, and has not run"
