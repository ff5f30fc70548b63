"""The time and the key of durable work: they hold however often it is begun, and no time without a worker counts."""

from __future__ import annotations

import asyncio

import pytest

from tests.adapters.dbos.durable import QUICK, Step, Work, engine_of, looked_at, pay
from toolcrib.adapters.dbos import Engine, list_work, retry_work
from toolcrib.adapters.dbos import Work as Listed
from toolcrib.errors import EngineError
from toolcrib.testing import FakeClock
from toolcrib.tools import ez_tool

KINDS = pytest.mark.parametrize("kind", ["turn", "program"])


async def ended(engine: Engine, *states: str) -> list[Listed]:
    """Return the work that is in one of these states, as soon as there is any."""
    while True:
        found = [work for work in await asyncio.to_thread(list_work, engine.client) if work.state in states]
        if found:
            return found
        await asyncio.sleep(QUICK)


@KINDS
async def test_the_time_of_work_begins_anew_with_the_worker_that_takes_it_up(database: str, kind: str) -> None:
    begun: list[str] = []

    @ez_tool(idempotent=True)
    async def wait() -> str:
        begun.append("wait")
        if len(begun) == 1:
            await asyncio.Event().wait()
        return "waited"

    work, clock = Work(kind, Step(wait)), FakeClock(speed=1.0)
    async with engine_of(database, work.worker, grace=0.0, clock=clock):
        work_id = await work.put(timeout=600.0)
        while not begun:  # noqa: ASYNC110 -- a worker sets it
            await asyncio.sleep(QUICK)
        clock.advance(400.0)
    clock.advance(400.0)  # no worker runs
    async with engine_of(database, work.worker, clock=clock) as engine:
        (found,) = await ended(engine, "done", "failed", "cancelled")

    assert (found.id, found.state, found.error) == (work_id, "done", None)
    assert begun == ["wait", "wait"]


@KINDS
async def test_the_time_of_work_holds_after_an_answer_and_its_call_is_stopped(database: str, kind: str) -> None:
    stopped, begun, clock = list[str](), asyncio.Event(), FakeClock(speed=1.0)

    @ez_tool(requires_approval=True)
    async def send() -> str:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.append("send")
        return "never"

    work = Work(kind, Step(send))
    async with engine_of(database, work.worker, clock=clock) as engine:
        work_id = await work.put(timeout=600.0)
        await work.answer(engine, work_id)
        await begun.wait()
        clock.advance(600.0)
        (found,) = await ended(engine, "failed", "done")

    assert found.error == "WorkTimeoutError: it did not end within 600 s"
    assert stopped == ["send"]


@KINDS
async def test_what_goes_on_after_an_answer_waits_for_its_key(database: str, kind: str) -> None:
    work = Work(kind, Step(pay, cents=3))
    async with engine_of(database, work.worker) as engine:
        work_id = await work.put(key="one")
        await work.asked(engine, work_id)
        await asyncio.to_thread(engine.client.stop, work.worker.queue.name)
        other = await work.put(key="one", delay=600.0)
        await work.answer(engine, work_id)
        await asyncio.sleep(10 * QUICK)  # looks at the answers
        before = {work.id: work.state for work in await asyncio.to_thread(list_work, engine.client)}
        await engine.client.dbos.cancel_workflow_async(other)
        (waiting,) = await ended(engine, "waiting")
        await asyncio.to_thread(engine.client.go, work.worker.queue)
        (found,) = await ended(engine, "done")

    assert before == {work_id: "suspended", other: "delayed"}
    assert (waiting.id, waiting.key) == (found.id, "one")


@KINDS
async def test_failed_work_is_retried_with_its_key_once_that_is_free(database: str, kind: str) -> None:
    ran: list[str] = []

    @ez_tool(idempotent=True)
    async def send() -> str:
        ran.append("send")
        if len(ran) == 1:
            raise ValueError("the line is dead")
        return "sent"

    work = Work(kind, Step(send))
    async with engine_of(database, work.worker) as engine:
        work_id = await work.put(key="one")
        await ended(engine, "failed")
        other = await work.put(key="one", delay=600.0)
        with pytest.raises(EngineError, match="other work of its key `one` waits or runs in the queue"):
            await asyncio.to_thread(retry_work, engine.client, work_id)
        await engine.client.dbos.cancel_workflow_async(other)
        await asyncio.to_thread(engine.client.stop, work.worker.queue.name)
        await looked_at(engine, work.worker.queue)
        again = await asyncio.to_thread(retry_work, engine.client, work_id)
        await asyncio.to_thread(engine.client.go, work.worker.queue)
        (found,) = await ended(engine, "done")

    assert (again.key, again.state, found.id) == ("one", "waiting", work_id)
