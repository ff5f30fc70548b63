"""Cancelled turns and programs: they do nothing more, nothing can be answered that lets them, and some are resumed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from dbos import WorkflowStatus

from tests.adapters.dbos.durable import QUICK, Step, Work, engine_of, looked_at, pay
from toolcrib.adapters.dbos import (
    Client,
    DurableAgent,
    DurableProgram,
    DurableToolkit,
    Engine,
    Queue,
    cancel_work,
    find_work,
    list_work,
    resume_work,
)
from toolcrib.adapters.dbos._continuation import cancel_turn
from toolcrib.approvals import MemoryApprovalStore, SqliteApprovalStore
from toolcrib.calls import ApprovalRequest, RunNormally
from toolcrib.code import Toolkit
from toolcrib.errors import ApprovalError, EngineError
from toolcrib.hooks import HookSet
from toolcrib.pipeline import Run
from toolcrib.testing import FakeSandbox
from toolcrib.tools import ez_tool
from toolcrib.toolsets import Toolset
from toolcrib.turns import Agent, Turn


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
async def test_what_goes_on_right_after_it_was_cancelled_begins_when_its_call_has_been_stopped(
    database: str, kind: str
) -> None:
    ran: list[str] = []
    begun = asyncio.Event()

    @ez_tool(idempotent=True)
    async def wait() -> str:
        ran.append("begins")
        if begun.is_set():
            return "waited"
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.3)
            ran.append("is stopped")
        return "never"

    work = Work(kind, Step(wait))
    async with engine_of(database, work.worker) as engine:
        work_id = await work.put()
        await begun.wait()
        await asyncio.to_thread(_cancel_and_resume, engine.client, work_id)
        await engine.client.result(work_id, polling=QUICK)

    assert ran == ["begins", "is stopped", "begins"]


@pytest.mark.parametrize("kind", ["turn", "program"])
async def test_a_call_is_stopped_whose_work_was_cancelled_and_waits_in_its_queue_again(
    database: str, kind: str
) -> None:
    begun, stopped = asyncio.Event(), asyncio.Event()

    @ez_tool
    async def wait() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    work = Work(kind, Step(wait))
    async with engine_of(database, work.worker) as engine:
        work_id = await work.put()
        await begun.wait()
        await asyncio.to_thread(engine.client.stop, work.worker.queue.name)
        await looked_at(engine, work.worker.queue)
        await asyncio.to_thread(_cancel_and_resume, engine.client, work_id)
        async with asyncio.timeout(30):
            await stopped.wait()
        state = (await asyncio.to_thread(find_work, engine.client, work_id)).state

    assert state == "waiting"


async def test_a_stream_that_went_on_right_after_it_was_cancelled_is_stopped_first(file: str) -> None:
    ran: list[str] = []
    begun = asyncio.Event()

    @ez_tool(idempotent=True)
    async def count() -> AsyncIterator[int]:
        ran.append("begins")
        yield 1
        if not begun.is_set():
            begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                await asyncio.sleep(0.3)
                ran.append("is stopped")

    work = Work("turn", Step(count))
    async with engine_of(file, work.worker) as engine:
        work_id = await work.put()
        await begun.wait()
        await asyncio.to_thread(_cancel_and_resume, engine.client, work_id)
        await engine.client.result(work_id, polling=QUICK)

    assert ran == ["begins", "is stopped", "begins"]


def _cancel_and_resume(client: Client, work_id: str) -> None:
    """Cancel work, and resume it long before a worker looks what was cancelled."""
    cancel_work(client, work_id)
    resume_work(client, work_id)


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


class _SlowStore(MemoryApprovalStore):
    """A store that has kept a request some time before it says so."""

    def __init__(self) -> None:
        super().__init__()
        self.kept, self.may_say = asyncio.Event(), asyncio.Event()

    async def put(self, request: ApprovalRequest) -> None:
        await super().put(request)
        self.kept.set()
        await self.may_say.wait()


@pytest.mark.parametrize("kind", ["turn", "program"])
async def test_what_work_asked_before_it_was_cancelled_cannot_be_answered(database: str, kind: str) -> None:
    store, work = _SlowStore(), Work(kind, Step(pay, cents=3))
    async with engine_of(database, work.worker, approvals=store) as engine:
        work_id = await work.put()
        await store.kept.wait()
        await asyncio.to_thread(cancel_work, engine.client, work_id)
        store.may_say.set()
        state = (await asyncio.to_thread(find_work, engine.client, work_id)).state

        assert await store.list(pending=True) == ()
        assert state == "cancelled"


class _LateStore(SqliteApprovalStore):
    """A store, in a file of its own, that keeps a request when it may."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.asked, self.may_keep, self.tried = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def put(self, request: ApprovalRequest) -> None:
        self.asked.set()
        await asyncio.shield(self._put_late(request))

    async def _put_late(self, request: ApprovalRequest) -> None:
        await self.may_keep.wait()
        try:
            await super().put(request)
        finally:
            self.tried.set()


@pytest.mark.parametrize("kind", ["turn", "program"])
async def test_what_work_asks_in_another_database_after_it_was_cancelled_is_not_kept(
    database: str, tmp_path: Path, kind: str
) -> None:
    store, work = _LateStore(tmp_path / "approvals.db"), Work(kind, Step(pay, cents=3))
    async with engine_of(database, work.worker, approvals=store) as engine:
        work_id = await work.put()
        await store.asked.wait()
        await asyncio.to_thread(cancel_work, engine.client, work_id)
        store.may_keep.set()
        await store.tried.wait()

        assert await store.list(pending=True) == ()


async def test_what_a_program_of_a_named_run_asked_before_it_was_cancelled_cannot_be_answered(file: str) -> None:
    store, toolkit = _SlowStore(), Toolkit([pay], sandbox=FakeSandbox(("pay", {"cents": 3})))
    nightly = DurableToolkit(toolkit, Queue("nightly", polling=QUICK), name="nightly", run=Run(id="nightly"))
    async with engine_of(file, nightly, approvals=store) as engine:
        program = await nightly.start("...")
        await store.kept.wait()
        await asyncio.to_thread(cancel_work, engine.client, program.id)
        store.may_say.set()

        assert await store.list(pending=True) == ()


class _LateClient(Client):
    """A client through whose look at a turn the turn goes on to its request."""

    def __init__(self, database: str, engine: Engine, may_ask: asyncio.Event) -> None:
        super().__init__(database, approvals=engine.client.approvals)
        self._worker, self._may_ask = engine, may_ask

    async def status(self, workflow_id: str) -> WorkflowStatus | None:
        found = await super().status(workflow_id)
        if found is not None and found.status == "PENDING":
            self._may_ask.set()
            await self._worker.client.result(workflow_id)
        return found


async def test_a_turn_that_asks_while_it_is_cancelled_cannot_be_answered(database: str) -> None:
    hooks, admitted, may_ask = HookSet(), asyncio.Event(), asyncio.Event()

    @hooks.on("pay")
    async def wait(call: Any, given: Any) -> RunNormally:
        admitted.set()
        await may_ask.wait()
        return RunNormally(given)

    agent = DurableAgent(Agent("late", "Tested.", Toolset([pay], hooks=hooks)), Queue("late", polling=QUICK))
    async with engine_of(database, agent) as engine, _LateClient(database, engine, may_ask) as client:
        handle = await agent.put(Turn(pay, kwargs={"cents": 3}))
        await admitted.wait()
        await cancel_turn(client, handle.id)

        assert (await asyncio.to_thread(find_work, engine.client, handle.id)).state == "cancelled"
        assert await engine.client.approvals.list(pending=True) == ()


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
