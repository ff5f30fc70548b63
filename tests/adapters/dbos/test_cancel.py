"""Cancelled turns and programs: they do nothing more, nothing can be answered that lets them, and some are resumed."""

from __future__ import annotations

import asyncio

import pytest

from tests.adapters.dbos.durable import Step, Work, engine_of, looked_at, pay
from toolcrib.adapters.dbos import DurableProgram, cancel_work, list_work, resume_work
from toolcrib.errors import ApprovalError, EngineError
from toolcrib.tools import ez_tool


async def test_a_program_that_went_on_after_an_answer_is_cancelled_by_the_id_that_it_was_given(
    database: str,
) -> None:
    ran: list[str] = []
    begun, stopped = asyncio.Event(), asyncio.Event()

    @ez_tool(idempotent=True)
    async def wait() -> str:
        ran.append("wait")
        if begun.is_set():
            return "waited"
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        return "never"

    @ez_tool
    async def send() -> str:
        ran.append("send")
        return "sent"

    work = Work("program", Step(pay, cents=3), Step(pay, cents=4), Step(wait), Step(send))
    async with engine_of(database, work.worker) as engine:
        work_id = await work.put()
        for _ in range(2):
            while not (pending := await engine.client.approvals.list(pending=True)):  # noqa: ASYNC110 -- the engine asks
                await asyncio.sleep(0.02)
            await engine.client.approvals.answer(pending[0].request.grant("ann"))
        await begun.wait()
        cancelled = await asyncio.to_thread(cancel_work, engine.client, work_id)
        await stopped.wait()
        before = list(ran), await DurableProgram(work_id, engine.client).state()
        resumed = await asyncio.to_thread(resume_work, engine.client, work_id)
        result = await DurableProgram(work_id, engine.client).result(polling=0.02)

    assert (cancelled.id, cancelled.state, resumed.id) == (work_id, "cancelled", work_id)
    assert before == (["wait"], "cancelled")
    assert (result.return_value, ran) == ("sent", ["wait", "wait", "send"])


@pytest.mark.parametrize("kind", ["turn", "program"])
async def test_work_that_is_cancelled_while_it_waits_for_an_answer_never_goes_on(database: str, kind: str) -> None:
    work = Work(kind, Step(pay, cents=3))
    async with engine_of(database, work.worker) as engine:
        work_id = await work.put()
        request = await work.asked(engine, work_id)
        cancelled = await asyncio.to_thread(cancel_work, engine.client, work_id)

        with pytest.raises(ApprovalError, match="was answered before by cancel"):
            await engine.client.approvals.answer(request.grant("ann"))
        for one in {work_id, cancelled.id}:
            with pytest.raises(EngineError, match=r"was cancelled while it waited for an answer.*enqueue it again"):
                await asyncio.to_thread(resume_work, engine.client, one)
        left = [work for state in ("suspended", "waiting", "running") for work in list_work(engine.client, state=state)]
        pending = await engine.client.approvals.list(pending=True)
        looked_at = await engine.client.approvals.answered()

    assert cancelled.state == "cancelled"
    assert (left, pending, looked_at) == ([], (), ())


async def test_a_program_whose_answer_was_given_is_cancelled_before_it_goes_on(database: str) -> None:
    work = Work("program", Step(pay, cents=3))
    async with engine_of(database, work.worker) as engine:
        work_id = await work.put()
        await work.asked(engine, work_id)
        await asyncio.to_thread(engine.client.stop, work.worker.queue.name)
        await looked_at(engine, work.worker.queue)  # a look that had begun before has ended
        await work.answer(engine, work_id)
        while await engine.client.status(f"{work_id}-2") is None:  # noqa: ASYNC110 -- the engine makes it
            await asyncio.sleep(0.02)
        cancelled = await asyncio.to_thread(cancel_work, engine.client, work_id)
        await asyncio.to_thread(engine.client.go, work.worker.queue)
        await asyncio.to_thread(resume_work, engine.client, work_id)
        result = await DurableProgram(work_id, engine.client).result(polling=0.02)

    assert (cancelled.id, cancelled.state) == (work_id, "cancelled")
    assert result.return_value == "paid 3"
