"""The approval store of one piece of durable work: a database that is away is waited for, whatever is asked of it."""

from __future__ import annotations

import asyncio
import inspect
from typing import Any

import pytest

from toolcrib.approvals import ApprovalEntry, MemoryApprovalStore, WrappedApprovalStore
from toolcrib.calls import ApprovalRequest, Completed, Grant, Suspended, ToolCall
from toolcrib.database import DatabaseAway
from toolcrib.durable import TurnExecution, WorkStore, held_run
from toolcrib.errors import WorkerError
from toolcrib.pipeline import Pipeline, Run, is_call
from toolcrib.tools import Deadline, current_deadline, ez_tool
from toolcrib.toolsets import Toolset

REQUEST = ApprovalRequest("ask_1", "call_1", "pay", {"cents": 3}, "d1")
ARGUMENTS: dict[str, Any] = {
    "request": REQUEST,
    "grant": REQUEST.grant("ann"),
    "answer": REQUEST.grant("ann"),
    "key": "program:1",
    "ended": True,
}
VERBS = [name for name, _ in inspect.getmembers(WrappedApprovalStore, inspect.iscoroutinefunction)]


def away_once(verb: str) -> Any:
    """Return a store that is away the first time that one thing is asked of it, and a list of what was asked."""
    asked: list[str] = []

    async def ask(self: MemoryApprovalStore, *args: Any, **kwargs: Any) -> Any:
        asked.append(verb)
        if len(asked) == 1:
            raise DatabaseAway("connection failed")
        return await getattr(super(Store, self), verb)(*args, **kwargs)

    class Store(MemoryApprovalStore):
        pass

    setattr(Store, verb, ask)
    return Store(), asked


@pytest.mark.parametrize("is_turn", [True, False])
@pytest.mark.parametrize("verb", VERBS)
async def test_a_database_that_is_away_is_waited_for(verb: str, *, is_turn: bool) -> None:
    store, asked = away_once(verb)
    await MemoryApprovalStore.put(store, REQUEST)
    work = WorkStore(store, TurnExecution("work_1", None) if is_turn else None)
    parameters = inspect.signature(getattr(WrappedApprovalStore, verb)).parameters
    given = {name: ARGUMENTS[name] for name in parameters if name in ARGUMENTS}

    await asyncio.wait_for(getattr(work, verb)(**given), 30)

    is_claim = verb in ("claim", "release")
    assert len(asked) == (0 if is_claim and not is_turn else 2)


async def test_a_program_is_not_claimed_beside_its_journal() -> None:
    """A worker that was cut off and still lives has no claim that keeps the next one from going on."""
    store = MemoryApprovalStore()
    await store.claim("program:1")

    assert await WorkStore(store).claim("program:1") is None


async def test_a_worker_whose_work_is_handed_over_while_the_database_is_away_asks_nothing() -> None:
    store, asked = away_once("put")

    async def fence() -> None:
        if asked:
            raise WorkerError("w1", "its work was handed over")

    with pytest.raises(WorkerError, match="handed over"):
        await WorkStore(store, fence=fence).put(REQUEST)

    assert await store.list() == ()


@pytest.mark.parametrize("is_turn", [True, False])
async def test_a_worker_whose_work_was_handed_over_leaves_the_answer_to_the_next(*, is_turn: bool) -> None:
    """It would use the answer up and begin nothing, and a person would be asked about its call once more."""
    store, grant = MemoryApprovalStore(), REQUEST.grant("ann")

    async def fence() -> None:
        raise WorkerError("w1", "its work was handed over")

    await store.put(REQUEST)
    await store.answer(grant)
    with pytest.raises(WorkerError, match="handed over"):
        await WorkStore(store, TurnExecution("work_1", None) if is_turn else None, fence=fence).begin(REQUEST, grant)

    assert (await store.show(REQUEST.id)).state == "answered"


@pytest.mark.parametrize("is_turn", [True, False])
@pytest.mark.parametrize("verb", ["take", "begin"])
async def test_what_another_execution_of_the_work_has_begun_is_in_doubt_though_its_process_lives(
    verb: str, *, is_turn: bool
) -> None:
    store, grant = MemoryApprovalStore(), REQUEST.grant("ann")
    works = [WorkStore(store, TurnExecution("work_1", None) if is_turn else None) for _ in range(2)]
    await works[0].use(REQUEST, grant)
    assert await works[0].begin(REQUEST, grant) is None

    own = await works[0].take(REQUEST)
    own_state = own.execution_state if isinstance(own, ApprovalEntry) else None
    other = await (works[1].take(REQUEST) if verb == "take" else works[1].begin(REQUEST, grant))

    assert isinstance(other, ApprovalEntry)
    assert (own_state, other.execution_state) == ("running", "in doubt")


async def test_a_call_of_an_idempotent_tool_begins_again_though_the_process_that_began_it_lives() -> None:
    store, grant = MemoryApprovalStore(), REQUEST.grant("ann")
    await WorkStore(store).use(REQUEST, grant)
    await WorkStore(store).begin(REQUEST, grant)

    assert await WorkStore(store).begin(REQUEST, grant, again=True) is None


async def test_two_executions_of_one_piece_of_work_ask_one_question() -> None:
    """One that was cut off may be heard after the next has asked, and even been answered."""

    @ez_tool(requires_approval=True)
    async def pay(cents: int) -> int:
        return cents

    async def may_begin() -> None:
        return None

    async def ask(**options: Any) -> str:
        run = Run(id="work").view(approvals=WorkStore(MemoryApprovalStore()), **options)
        outcome = await Pipeline(Toolset([pay])).run(ToolCall("pay", {"cents": 3}, "call_1"), run)
        assert isinstance(outcome, Suspended)
        return outcome.request.id

    assert await ask(fence=may_begin) == await ask(fence=may_begin)
    assert await ask() != await ask()


@pytest.mark.parametrize("grant", [None, Grant("pay", "ann", scope="tool")], ids=["once", "standing"])
async def test_two_executions_ask_one_question_about_a_call_in_doubt(grant: Grant | None) -> None:
    """The process that began it stands still while the first asks, and is gone when the next does."""
    entered, store = asyncio.Event(), MemoryApprovalStore([] if grant is None else [grant])

    @ez_tool(requires_approval=True)
    async def pay(cents: int) -> None:
        entered.set()
        await asyncio.Event().wait()

    async def may_begin() -> None:
        return None

    def run() -> Run:
        return Run(id="work").view(approvals=WorkStore(store, fence=may_begin), fence=may_begin)

    async def asked() -> ApprovalRequest:
        """Recover the call as a program does, whose journal kept that it was begun."""
        outcome = await pipeline.recover(call, run(), begun=1)
        assert isinstance(outcome, Suspended)
        return outcome.request

    pipeline, call = Pipeline(Toolset([pay])), ToolCall("pay", {"cents": 3}, "call_1")
    if grant is None:
        outcome = await pipeline.run(call, run())
        assert isinstance(outcome, Suspended)
        await store.answer(outcome.request.grant("ann"))
    first = asyncio.create_task(pipeline.run(call, run()))
    await entered.wait()
    while_it_stands_still = await asked()
    first.cancel()
    await asyncio.wait([first])
    once_it_is_gone = await asked()
    await store.answer(once_it_is_gone.done(None, "ann"))
    done = await pipeline.recover(call, run(), begun=1)
    assert is_call(done)
    outcome = await pipeline.run(done, run())

    assert once_it_is_gone.in_doubt
    assert once_it_is_gone.id == while_it_stands_still.id
    assert isinstance(outcome, Completed)
    assert await store.unended() == ()


async def test_a_call_that_was_denied_is_not_asked_about_though_its_journal_has_it_as_begun() -> None:
    """A program's journal has a call before it asks for approval."""
    store, call = MemoryApprovalStore(), ToolCall("pay", {"cents": 3}, "call_1")

    @ez_tool(requires_approval=True)
    async def pay(cents: int) -> None: ...

    async def may_begin() -> None:
        return None

    pipeline = Pipeline(Toolset([pay]))
    run = Run(id="work").view(approvals=WorkStore(store, fence=may_begin), fence=may_begin)
    asked = await pipeline.run(call, run)
    assert isinstance(asked, Suspended)
    await store.answer(asked.request.deny(message="no"))
    outcomes = [await pipeline.recover(call, run, begun=1) for _ in range(2)]

    assert [outcome.kind for outcome in outcomes if not is_call(outcome)] == ["rejected", "rejected"]
    assert len(await store.list()) == 1


@pytest.mark.parametrize("verb", ["fence", "take", "begin", "put"])
async def test_the_fence_of_a_turn_is_no_time_of_its_tool(verb: str) -> None:
    """It waits for a database that is away: a turn timed out before its tool's first line."""
    stood, store, grant = list[bool](), MemoryApprovalStore(), REQUEST.grant("ann")
    await store.use(REQUEST, grant)
    await store.begin(REQUEST, grant)  # in an execution that is cut off

    async def may_begin() -> None:
        deadline = current_deadline()
        assert deadline is not None
        deadline.expire()  # while the clock stands, nothing expires
        await asyncio.sleep(0)
        stood.append(True)

    run = held_run(Run(), TurnExecution("work_1", None), store, (), may_begin)
    assert run.durability.fence is not None
    assert run.approvals is not None
    asked = {"take": (REQUEST,), "begin": (REQUEST, grant), "put": (REQUEST,), "fence": ()}

    with Deadline(60, TimeoutError, "too late"):
        await getattr(run.durability if verb == "fence" else run.approvals, verb)(*asked[verb])

    assert stood
