"""What is seen of durable work by those who look after it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.adapters.dbos.durable import QUICK, durable, engine_of
from toolcrib.adapters.dbos import DurableFailure, DurableToolkit, Queue, cancel_work, list_work, resume_work
from toolcrib.calls import Suspended
from toolcrib.code import Toolkit
from toolcrib.errors import ApprovalError, EngineError
from toolcrib.tools import ez_tool
from toolcrib.turns import Turn


@ez_tool(requires_approval=True)
async def pay(amount: int) -> str:
    return f"paid {amount}"


@ez_tool
async def count() -> int:
    return 1


async def test_a_turn_that_waited_is_continued_once_its_answer_lets_it_go_on(tmp_path: Path) -> None:
    agent = durable(pay)

    async with engine_of(str(tmp_path / "work.db"), agent) as engine:
        handle = await agent.put(Turn(pay, kwargs={"amount": 3}))
        asked = await handle.outcome()
        assert isinstance(asked, Suspended)
        before = [work.id for work in list_work(engine.client, state="paused", limit=1)]
        await engine.client.approvals.answer(asked.request.grant("ann"))
        await handle.outcome(through=True)
        after = {work.id: work.state for work in list_work(engine.client)}
        listed = [list_work(engine.client, state=state) for state in ("paused", "continued", "done")]

    assert before == [handle.id]
    assert after == {handle.id: "continued", asked.request.id: "done"}
    assert [[work.id for work in works] for works in listed] == [[], [handle.id], [asked.request.id]]


async def test_a_program_that_waited_is_continued_as_well(tmp_path: Path) -> None:
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
        after = [work.state for work in list_work(engine.client)]

    assert (before, after) == (["paused"], ["done", "continued"])


async def test_a_paused_turn_that_is_cancelled_cannot_be_approved_into_running(tmp_path: Path) -> None:
    agent = durable(pay)

    async with engine_of(str(tmp_path / "work.db"), agent) as engine:
        by_id, by_handle = [await agent.put(Turn(pay, kwargs={"amount": n})) for n in (3, 4)]
        asked = [await handle.outcome() for handle in (by_id, by_handle)]
        cancelled = cancel_work(engine.client, by_id.id)
        await by_handle.cancel()
        for outcome in asked:
            assert isinstance(outcome, Suspended)
            with pytest.raises(ApprovalError, match="was answered before by cancel"):
                await engine.client.approvals.answer(outcome.request.grant("ann"))
        listed = list_work(engine.client, state="paused")
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

        with pytest.raises(EngineError, match=r"has ended \(done\), and cannot be resumed"):
            await asyncio.to_thread(resume_work, engine.client, handle.id)
