"""A worker's lease: one holder at a time, and none that was given up goes on."""

from __future__ import annotations

import asyncio
import multiprocessing
import time
from collections.abc import AsyncGenerator
from contextlib import nullcontext, suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import sqlalchemy as sa

from tests.adapters.dbos.durable import QUICK, Step, Work, durable, engine_of, looked_at
from toolcrib.adapters.dbos import (
    Client,
    DurableAgent,
    DurableToolkit,
    Engine,
    Placement,
    Queue,
    enqueue_program,
    find_work,
    list_work,
    recover,
    workers,
)
from toolcrib.adapters.dbos import _work_tables as tables
from toolcrib.adapters.dbos._agent import TURN
from toolcrib.adapters.dbos._engine import current_engine
from toolcrib.adapters.dbos._workers import Lease, hand_back, take_lease
from toolcrib.approvals import ApprovalEntry, MemoryApprovalStore
from toolcrib.calls import ApprovalRequest, Completed, Denial, Grant, Suspended, ToolCall
from toolcrib.code import Toolkit
from toolcrib.database._sqlite import sqlite3
from toolcrib.durable import TurnExecution, WorkStore
from toolcrib.errors import EngineError, WorkerError
from toolcrib.pipeline import Pipeline
from toolcrib.schema import RunContext
from toolcrib.testing import FakeClock
from toolcrib.tools import ez_tool, tool
from toolcrib.turns import Agent, Turn


@pytest.fixture(params=["sqlite", "postgres"])
async def client(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[Client]:
    """A client of a database of either kind."""
    postgres = request.param == "postgres"
    database = request.getfixturevalue("postgres").url("durable") if postgres else tmp_path / "crib.db"
    async with Client(database) as made:
        yield made


async def test_a_living_worker_s_name_is_taken_until_it_lets_go(client: Client) -> None:
    first = Lease(client, "till")

    with pytest.raises(WorkerError, match="`till`: it runs already"):
        Lease(client, "till")
    first.release()
    second = Lease(client, "till")

    assert (first.renew(), second.renew()) == (False, True)
    second.release()
    assert [worker.state for worker in workers(client) if worker.id == "till"] == ["stopped"]


async def test_a_worker_that_was_handed_over_is_told_when_it_says_that_it_lives(client: Client) -> None:
    lease = Lease(client, "frozen")

    with pytest.raises(WorkerError, match="it lives"):
        recover(client, "frozen")
    recover(client, "frozen", force=True)

    assert lease.renew() is False
    assert [worker.state for worker in workers(client) if worker.id == "frozen"] == ["recovered"]
    with pytest.raises(WorkerError, match="there is no such worker"):
        recover(client, "nobody")


async def test_a_worker_that_lost_its_name_does_not_let_it_go(client: Client) -> None:
    first = Lease(client, "till")
    first.release()
    Lease(client, "till")

    first.release()

    with pytest.raises(WorkerError, match="`till`: it runs already"):
        Lease(client, "till")


async def test_a_lease_that_was_not_renewed_in_time_holds_once_it_is_unless_it_was_handed_over(client: Client) -> None:
    at = [0.0]
    lease = Lease(client, "slow", clock=lambda: at[0])

    before = await lease.hold()
    at[0] = 60.0  # it stood still, and its work was not taken
    back = await lease.hold()
    recover(client, "slow", force=True)
    at[0] = 120.0
    given_up = await lease.hold()

    assert (before, back, given_up) == (True, True, False)


@pytest.mark.parametrize(
    ("known", "state"),
    [
        ({"pid": 2**31 - 1}, "lost"),  # no process has that number
        ({"pid": 2**31 - 1, "token": "1@another container, of the same host name@1"}, "running"),
        ({"seen_at": time.time() + 3600}, "lost"),  # the clock was set back
        ({"seen_at": 0.0}, "lost"),
        ({"seen_at": 0.0, "token": "1@elsewhere@1"}, "lost"),
    ],
)
async def test_whether_a_worker_lives_is_told_by_its_process_and_by_when_it_was_seen(
    tmp_path: Path, known: dict[str, Any], state: str
) -> None:
    async with Client(tmp_path / "crib.db") as client:
        Lease(client, "till")
        with client.engine.begin() as connection:
            connection.execute(sa.update(tables.workers).values(**known))

        found = [worker.state for worker in workers(client)]

        assert found == [state]
        with pytest.raises(WorkerError) if state == "running" else nullcontext():
            Lease(client, "till")


async def _taking_the_lease_of_another_place(client: Client, clock: FakeClock) -> asyncio.Task[Lease]:
    """Have a worker wait for its name, which one has that cannot be looked at from here."""
    Lease(client, "till")
    with client.engine.begin() as connection:
        connection.execute(sa.update(tables.workers).values(token="1@elsewhere@1"))
    taking = asyncio.create_task(take_lease(client, "till", clock=clock))
    while not clock.waiting:  # noqa: ASYNC110 -- a clock has no event for it
        await asyncio.sleep(0.001)
    return taking


async def test_a_worker_waits_for_its_name_until_the_lease_of_one_in_another_place_runs_out(tmp_path: Path) -> None:
    clock = FakeClock()
    async with Client(tmp_path / "crib.db") as client:
        taking = await _taking_the_lease_of_another_place(client, clock)

        with client.engine.begin() as connection:
            connection.execute(sa.update(tables.workers).values(seen_at=0.0))
        clock.advance(1)

        assert (await taking).renew()


async def test_a_worker_does_not_start_while_one_of_its_name_lives_in_another_place(tmp_path: Path) -> None:
    clock = FakeClock()
    async with Client(tmp_path / "crib.db") as client:
        taking = await _taking_the_lease_of_another_place(client, clock)

        clock.advance(60)

        with pytest.raises(WorkerError, match="`till`: it runs already"):
            await taking


async def test_a_given_up_worker_records_nothing_and_begins_nothing(tmp_path: Path) -> None:
    began, go_on = asyncio.Event(), asyncio.Event()
    runs: list[str] = []

    @tool(idempotent=True)
    async def work() -> str:
        runs.append("run")
        if len(runs) == 1:  # the one that is given up: it goes on all the same, and returns too late
            began.set()
            await go_on.wait()
            return "the first"
        return "the second"

    agent, database = durable(work), str(tmp_path / "crib.db")
    async with engine_of(database, agent, worker_id="zombie") as engine:
        handle, other = await agent.put(Turn(work)), Turn(work)
        await began.wait()
        moved = await asyncio.to_thread(recover, engine.client, "zombie", force=True)
        await agent.put(other)
        go_on.set()
        await looked_at(engine, agent.queue)  # two turns wait in it
        given_up = list(runs)
    async with engine_of(database, agent, worker_id="next"):
        outcomes = [await handle.outcome(), await agent.handle(other.id).outcome()]

    assert (moved, given_up) == ([handle.id], ["run"])
    assert outcomes == [Completed("work", turn, "the second") for turn in (handle.id, other.id)]


async def test_a_worker_that_was_given_up_after_it_recorded_a_call_does_not_begin_it(tmp_path: Path) -> None:
    ran: list[str] = []

    @tool()
    async def work() -> str:
        ran.append("work")
        return "done"

    @work.before_invoke
    async def before() -> None:
        if not engine.recovers_lost:
            engine.lost.set()

    agent, database = durable(work), str(tmp_path / "crib.db")
    async with engine_of(database, agent, worker_id="zombie", grace=0.1) as engine:
        handle = await agent.put(Turn(work))
        while not await asyncio.to_thread(_steps_of, engine.client, handle.id):  # noqa: ASYNC110 -- a database
            await asyncio.sleep(agent.queue.polling)
    async with Client(database) as client:
        moved = await asyncio.to_thread(recover, client, "zombie", force=True)
    async with engine_of(database, agent, worker_id="next", recover_lost=True) as engine:
        outcome = await handle.outcome()

    assert (moved, ran) == ([handle.id], [])
    assert isinstance(outcome, Suspended)
    assert outcome.request.in_doubt


@pytest.mark.parametrize(
    ("worker_id", "given", "recovers"),
    [(None, None, True), ("till-1", None, False), ("till-1", True, True), (None, False, False)],
)
def test_a_worker_without_an_id_of_its_own_takes_up_the_work_of_lost_ones(
    tmp_path: Path, worker_id: str | None, given: bool | None, recovers: bool
) -> None:
    engine = Engine(tmp_path / "crib.db", worker_id=worker_id, recover_lost=given)

    assert engine.recovers_lost is recovers


async def test_a_worker_that_was_given_up_asks_about_nothing(tmp_path: Path) -> None:
    def given_up(arguments: Any, ctx: Any) -> bool:
        engine.lost.set()
        return True

    @tool(requires_approval=given_up, register=False)
    async def pay() -> str:
        return "paid"

    agent = durable(pay)
    async with engine_of(str(tmp_path / "crib.db"), agent, grace=0.1) as engine:
        await agent.put(Turn(pay))
        await engine.lost.wait()
        await looked_at(engine, agent.queue)
        pending = await engine.client.approvals.list(pending=True)

    assert not pending


async def test_a_worker_that_was_given_up_begins_no_call_inside_a_tool(tmp_path: Path) -> None:
    ran: list[str] = []

    @ez_tool
    async def inner() -> str:
        ran.append("inner")
        return "done"

    @tool(register=False)
    async def outer(ctx: RunContext[Any]) -> str:
        engine.lost.set()
        ran.append("outer")
        return (await Pipeline([inner]).run(ToolCall("inner", {}), ctx.run)).text()

    agent = durable(outer)
    async with engine_of(str(tmp_path / "crib.db"), agent, grace=0.1) as engine:
        await agent.put(Turn(outer))
        await engine.lost.wait()
        await looked_at(engine, agent.queue)

    assert ran == ["outer"]


def _steps_of(client: Client, work_id: str) -> list[Any]:
    return client.dbos.list_workflow_steps(work_id)


async def test_a_worker_that_stops_takes_nothing_from_its_queues(tmp_path: Path) -> None:
    agent = durable(_idle)
    async with engine_of(str(tmp_path / "crib.db"), agent, grace=0.1) as engine:
        engine.lost.set()  # its queues are looked at all the same, as by a thread that comes back from an outage
        handle = await agent.put(Turn(_idle))
        await looked_at(engine, agent.queue)

        status = await engine.client.status(handle.id)

    assert status is not None
    assert status.status == "ENQUEUED"


@tool()
async def _idle() -> None: ...


async def test_work_of_an_engine_that_is_left_waits_in_its_queue_for_any_worker(tmp_path: Path) -> None:
    began = asyncio.Event()

    @tool(idempotent=True)
    async def work() -> str:
        if began.is_set():
            return "done"
        began.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError as error:
            raise RuntimeError("cut off") from error  # as a library may put it
        return "never"

    agent, database = durable(work), str(tmp_path / "crib.db")
    async with engine_of(database, agent, worker_id="old", grace=0.0):
        handle = await agent.put(Turn(work))
        await began.wait()
    async with Client(database) as client:
        left = await client.status(handle.id)
    async with engine_of(database, agent, worker_id="new"):
        outcome = await handle.outcome()

    assert left is not None
    assert left.status == "ENQUEUED"
    assert outcome == Completed("work", handle.id, "done")


@pytest.mark.parametrize("kind", ["turn", "program"])
async def test_a_tool_that_catches_its_cancellation_keeps_no_work_from_others(database: str, kind: str) -> None:
    """Its worker held all work, and said that it lives, for as long as the tool ran."""
    ran, may_end = list[str](), asyncio.Event()

    @ez_tool
    async def inner() -> None:
        ran.append("inner")

    @ez_tool
    async def stay(ctx: RunContext[Any]) -> None:
        ran.append("begun")
        while not may_end.is_set():
            with suppress(asyncio.CancelledError):
                await may_end.wait()
        await Pipeline([inner]).run(ToolCall("inner", {}), ctx.run)

    @ez_tool
    async def wait() -> None:
        ran.append("begun")
        await asyncio.Event().wait()

    works = [Work(kind, Step(stay)), Work(kind, Step(wait))]
    async with Client(database) as client:
        async with engine_of(database, *(work.worker for work in works), grace=0.0, clock=FakeClock(50)) as engine:
            ids = [await work.put() for work in works]
            while len(ran) < 2:  # noqa: ASYNC110 -- the tools begin
                await asyncio.sleep(0.02)
        states = [work.state for work in await asyncio.gather(*(asyncio.to_thread(find_work, client, i) for i in ids))]
        (worker,) = await asyncio.to_thread(workers, client)
        may_end.set()
        for _ in range(100):  # in which it would begin another call
            await asyncio.sleep(0)

    assert (engine.gave_back, states, worker.state) == (True, ["waiting", "waiting"], "stopped")
    assert ran == ["begun", "begun"]


async def test_work_that_a_worker_holds_and_does_not_run_goes_back_to_its_queue(tmp_path: Path) -> None:
    @tool()
    async def work() -> str:
        return "done"

    agent, database = durable(work), str(tmp_path / "crib.db")
    async with Client(database) as client:
        client.declare(agent.queue)
        agent.use(client)
        handle = await agent.put(Turn(work))
        held = sa.update(client.dbos._sys_db.tables.workflow_status).values(status="PENDING", executor_id="till")
        with client.dbos._sys_db.engine.begin() as connection:
            connection.execute(held)  # as a dispatch that the database went away from leaves it

        returned = hand_back(client, "till", ["none of its", handle.id])
        status = await client.status(handle.id)

    assert returned == [handle.id]
    assert status is not None
    assert status.status == "ENQUEUED"


async def test_an_engine_that_cannot_start_leaves_room_for_the_next(tmp_path: Path) -> None:
    agent = durable()
    async with Client(tmp_path / "crib.db") as client:
        held = Lease(client, "till")

        with pytest.raises(WorkerError):
            async with engine_of(str(tmp_path / "crib.db"), agent, worker_id="till"):
                pass
        held.release()

        async with engine_of(str(tmp_path / "crib.db"), agent, worker_id="till") as engine:
            assert engine.client is not client
    with pytest.raises(EngineError, match="does not run"):
        _ = engine.client


async def test_an_answer_is_given_again_until_its_call_has_begun() -> None:
    request = ApprovalRequest("ask_1", "call_1", "pay", {}, "d", created_at=datetime(2030, 1, 1, tzinfo=UTC))
    store = MemoryApprovalStore()
    await store.put(request)
    await store.answer(request.grant("ann"))
    waiting = Suspended("pay", "call_1", request)

    taken = [await WorkStore(store, TurnExecution("work", waiting)).take(request) for _ in range(2)]
    assert isinstance(taken[0], Grant)
    began = [await WorkStore(store, TurnExecution("work", waiting)).begin(request, taken[0]) for _ in range(2)]

    assert taken[0] == taken[1]
    assert [entry is None for entry in began] == [True, False]


async def test_an_execution_whose_work_was_handed_over_asks_about_nothing() -> None:
    request = ApprovalRequest("ask_1", "call_1", "pay", {}, "d", in_doubt=True)
    store = MemoryApprovalStore()

    async def handed_over() -> None:
        raise WorkerError("till", "its work was handed over")

    with pytest.raises(WorkerError, match="handed over"):
        await WorkStore(store, fence=handed_over).put(request)

    assert await store.list() == ()


@pytest.mark.parametrize("is_program", [True, False])
async def test_a_call_in_doubt_is_in_the_log_with_the_command_that_answers_it(
    is_program: bool, caplog: pytest.LogCaptureFixture
) -> None:
    request = ApprovalRequest("ask_1", "call_1", "pay", {}, "d")
    execution = None if is_program else TurnExecution("w1", None)
    store = WorkStore(MemoryApprovalStore(), execution, work_id="w1")

    await store.put(request)
    await store.put(replace(request, id="ask_2", in_doubt=True))

    (line,) = caplog.messages
    assert line.startswith("w1: the call of `pay` is in doubt")
    assert "`toolcrib approvals done ask_2 --result JSON`" in line


class OvertakenStore(MemoryApprovalStore):
    """A store in which another execution of the same work, cut off meanwhile, is quicker to use an answer up."""

    async def take(self, request: ApprovalRequest) -> Grant | Denial | None:
        await super().take(request)
        return await super().take(request)


@pytest.mark.parametrize("is_program", [True, False])
async def test_an_answer_that_a_cut_off_execution_uses_up_at_the_same_time_serves_the_one_that_goes_on(
    is_program: bool,
) -> None:
    request = ApprovalRequest("ask_1", "call_1", "pay", {}, "d", in_doubt=True)
    store = OvertakenStore()
    await store.put(request)
    await store.answer(request.grant("ann"))
    execution = None if is_program else TurnExecution("ask_1", Suspended("pay", "call_1", request))

    taken = await WorkStore(store, execution).take(request)

    assert isinstance(taken, Grant)


async def test_the_answer_about_another_doubt_is_taken_by_the_workflow_that_goes_on() -> None:
    first = ApprovalRequest("ask_1", "call_1", "pay", {}, "d", created_at=datetime(2030, 1, 1, tzinfo=UTC))
    second = replace(first, id="ask_2", in_doubt=True)
    store = MemoryApprovalStore()
    await store.put(second)
    await store.answer(second.grant("ann"))

    # taken here, it would be used up before anything says that the call began once more
    cut_off = await WorkStore(store, TurnExecution("ask_1", Suspended("pay", "call_1", first))).take(second)
    goes_on = await WorkStore(store, TurnExecution("ask_2", Suspended("pay", "call_1", second))).take(second)

    assert cut_off is None
    assert isinstance(goes_on, Grant)


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
async def test_a_fork_has_no_engine(tmp_path: Path) -> None:
    async with Engine(tmp_path / "work.db", worker_id="w1"):
        child = multiprocessing.get_context("fork").Process(target=_ask_for_the_engine, args=(tmp_path / "said",))
        child.start()
        await asyncio.to_thread(child.join, 60)

    assert child.exitcode == 0
    assert (tmp_path / "said").read_text().startswith("this process was forked while an engine ran")


def _ask_for_the_engine(path: Path) -> None:
    try:
        current_engine()
    except EngineError as error:
        path.write_text(str(error))


async def test_a_turn_of_a_tool_that_a_worker_does_not_have_waits_for_one_that_does(client: Client) -> None:
    @ez_tool
    async def later() -> str:
        return "done"

    @ez_tool
    async def other() -> str:
        return "other"

    name = f"agent_{uuid4().hex[:8]}"
    queue = Queue(name, polling=QUICK)
    new, database = DurableAgent(Agent(name, "New.", [later, other], register=False), queue), client.database
    new.use(client)
    handle = await new.put(Turn(later))
    old = DurableAgent(Agent(name, "Old.", [other], register=False), queue)
    async with Engine(database, worker_id="old", queues=[queue], answers=QUICK):
        await (await old.put(Turn(other))).outcome()
        while not (left := list_work(client, state="waiting", queue=name)) or left[0].error is None:  # noqa: ASYNC110 -- it is the database that is asked
            await asyncio.sleep(QUICK)
    new = DurableAgent(Agent(name, "New.", [later, other], register=False), queue)
    async with Engine(database, worker_id="new", queues=[queue], answers=QUICK):
        outcome = await new.handle(handle.id).outcome()

    assert [(work.id, work.error) for work in left] == [
        (handle.id, f"waits for a worker that has the tool `later` of the agent `{name}`")
    ]
    assert outcome == Completed("later", handle.id, "done")


async def test_work_of_an_agent_or_toolkit_that_a_worker_does_not_have_waits(tmp_path: Path) -> None:
    queue, database = Queue("shared", polling=QUICK), str(tmp_path / "crib.db")
    async with Client(database) as client:
        await client.enqueue(TURN, "shared", {"agent": "gone", "queue": "shared", "turn": {}}, Placement("turn"))
        await enqueue_program(client, "gone", "shared", "print(1)", Placement("program"))
        async with Engine(database, worker_id="old", queues=[queue], answers=QUICK):
            while not all((found := {work.id: work.error for work in list_work(client)}).values()):  # noqa: ASYNC110 -- as above
                await asyncio.sleep(QUICK)

    assert found == {
        "turn": "waits for a worker that has the agent `gone`",
        "program": "waits for a worker that has the toolkit `gone`",
    }


@pytest.mark.parametrize("paused", [False, True])
async def test_a_program_of_which_one_tool_is_gone_waits_for_a_worker_that_has_it(
    client: Client, *, paused: bool
) -> None:
    @ez_tool
    async def find() -> int:
        return 3

    @ez_tool(requires_approval=paused)
    async def pay(cents: int) -> str:
        return f"paid {cents}"

    @ez_tool
    async def spare() -> None: ...

    name = f"kit_{uuid4().hex[:8]}"
    queue = Queue(name, polling=QUICK)

    def deployed(*tools: Any) -> Engine:
        DurableToolkit(Toolkit(list(tools)), queue, name=name, replace=True)
        return Engine(client.database, worker_id=f"{name}_{len(tools)}", queues=[queue], answers=QUICK)

    new = DurableToolkit(Toolkit([find, pay, spare]), queue, name=name, client=client)
    if paused:  # the process that enqueues it need not have the toolkit
        program = await enqueue_program(client, name, queue.name, "pay(find())")
        async with deployed(find, pay, spare):
            await client.approvals.answer((await program.settled(polling=QUICK)).suspended[0].grant("ann"))
    else:
        program = await new.start("pay(find())")
    async with deployed(find):
        while not (left := list_work(client, state="waiting", queue=name)) or left[0].error is None:  # noqa: ASYNC110 -- as above
            await asyncio.sleep(QUICK)
    async with deployed(find, pay):
        result = await program.result(polling=QUICK)

    assert left[0].error == f"waits for a worker that has the tool `pay` of the toolkit `{name}`"
    assert result.return_value == "paid 3"


async def test_a_worker_says_once_that_it_cannot_run_what_waits_for_long(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    work_id = f"turn-{uuid4().hex}"
    queue = Queue(f"queue_{uuid4().hex[:8]}", polling=QUICK)
    await client.enqueue(TURN, queue.name, {"agent": "gone", "queue": queue.name, "turn": {}}, Placement(work_id))
    long_ago = {"left": "waits for a worker that has the agent `gone`", "left_at": 1.0}
    table = client.dbos._sys_db.tables.workflow_status
    with client.dbos._sys_db.engine.begin() as connection:
        connection.execute(sa.update(table).where(table.c.workflow_uuid == work_id).values(attributes=long_ago))

    async with Engine(client.database, worker_id="old", queues=[queue], answers=QUICK) as engine:
        while not caplog.messages:  # noqa: ASYNC110 -- the engine writes it
            await asyncio.sleep(QUICK)
        await engine.leave(work_id, "the agent `gone`")

    (said,) = caplog.messages
    assert said.startswith(f"{work_id} waits for a worker that has the agent `gone` since 1970-01-01 00:00:01+00:00")


async def test_a_begin_that_heard_no_reply_is_its_own_when_it_is_tried_again() -> None:
    class Away(MemoryApprovalStore):
        """A store whose first reply is lost, though it began the call."""

        lost = False

        async def begin(
            self, request: ApprovalRequest, grant: Grant | None, *, again: bool = False
        ) -> ApprovalEntry | None:
            began = await super().begin(request, grant, again=again)
            if not self.lost:
                self.lost = True
                self._forget(request.id)
                raise sqlite3.OperationalError("database is locked")
            return began

    request = ApprovalRequest("ask_1", "call_1", "pay", {}, "d")

    began = await WorkStore(Away()).begin(request, request.grant("ann"))

    assert began is None
