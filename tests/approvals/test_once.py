"""One answer sends one call on: in any scope, any pipeline, any process that shares a store."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from toolcrib.approvals import ApprovalStore, MemoryApprovalStore, SqliteApprovalStore
from toolcrib.calls import (
    ApprovalRequest,
    Completed,
    Denial,
    Failed,
    Grant,
    Outcome,
    Suspended,
    ToolCall,
    outcome_from_dict,
)
from toolcrib.pipeline import Pipeline, Run
from toolcrib.record import ListSink
from toolcrib.tools import ez_tool

CALL = ToolCall("refund", {"cents": 5}, id="call_1")


class Counter:
    """A counter whose one tool counts how often it ran."""

    def __init__(self) -> None:
        self.ran: list[int] = []
        self.pipeline = self.another()

    def another(self) -> Pipeline:
        @ez_tool(requires_approval=True)
        async def refund(cents: int) -> str:
            await asyncio.sleep(0)
            self.ran.append(cents)
            return "done"

        return Pipeline([refund])

    async def suspended(self, **options: Any) -> Suspended:
        outcome = await self.pipeline.run(CALL, Run(**options))
        assert isinstance(outcome, Suspended)
        return outcome


def problem(outcome: Outcome) -> str:
    assert isinstance(outcome, Failed)
    assert outcome.code == "approval_error"
    return outcome.message


@pytest.mark.parametrize(
    "copied",
    [lambda s: s, lambda s: pickle.loads(pickle.dumps(s)), lambda s: outcome_from_dict(s.to_dict())],
    ids=["itself", "pickled", "json"],
)
async def test_resumed_twice_at_once_it_runs_once(copied: Callable[[Suspended], Suspended]) -> None:
    counter = Counter()
    waiting = await counter.suspended()
    grant = waiting.request.grant("ann")

    outcomes = await asyncio.gather(
        *(counter.another().run(copied(waiting), Run(), grant=grant) for _ in range(3)),
    )

    assert counter.ran == [5]
    assert sum(isinstance(outcome, Completed) for outcome in outcomes) == 1
    assert {problem(o) for o in outcomes if not isinstance(o, Completed)} == {
        "the approval for `refund` cannot be used: it was used before; ask again"
    }


async def test_a_standing_grant_resumes_a_call_once() -> None:
    counter = Counter()
    waiting = await counter.suspended()

    outcomes = [await counter.pipeline.run(waiting, grant=waiting.request.always()) for _ in range(2)]

    assert counter.ran == [5]
    assert "used before" in problem(outcomes[1])


async def test_after_a_denial_a_grant_comes_too_late() -> None:
    counter = Counter()
    waiting = await counter.suspended()

    await counter.pipeline.run(waiting, grant=waiting.request.deny(message="no"))
    outcome = await counter.pipeline.run(waiting, grant=waiting.request.grant())

    assert counter.ran == []
    assert "it was denied before" in problem(outcome)


async def test_each_resumption_has_its_own_record() -> None:
    counter = Counter()
    waiting = await counter.suspended()
    sinks = [ListSink(), ListSink()]

    await asyncio.gather(
        *(
            counter.pipeline.run(waiting, Run(sinks=(sink,)), grant=waiting.request.grant(f"person {n}"))
            for n, sink in enumerate(sinks)
        )
    )

    records = [record for sink in sinks for record in sink.records]
    assert sorted(str(record.outcome["kind"]) for record in records) == ["completed", "failed"]
    assert [record.approval["approver"] for record in records if record.approval] == ["person 0", "person 1"]


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> MemoryApprovalStore | SqliteApprovalStore:
    return MemoryApprovalStore() if request.param == "memory" else SqliteApprovalStore(tmp_path / "approvals.db")


async def test_a_store_gives_its_answer_to_one_of_several(store: MemoryApprovalStore | SqliteApprovalStore) -> None:
    counter = Counter()
    waiting = await counter.suspended(approvals=store)
    await store.answer(waiting.request.grant("ann"))

    outcomes = await asyncio.gather(*(counter.pipeline.run(waiting, Run(approvals=store)) for _ in range(3)))

    assert counter.ran == [5]
    assert {outcome.kind for outcome in outcomes} <= {"completed", "suspended"}
    assert [entry.state for entry in await store.list()] == ["used"]


async def test_a_call_that_is_looked_at_again_asks_the_same_question(
    store: MemoryApprovalStore | SqliteApprovalStore,
) -> None:
    counter = Counter()
    waiting = await counter.suspended(approvals=store)

    still = await counter.pipeline.run(waiting, Run(approvals=store))

    assert isinstance(still, Suspended)
    assert still.request == ApprovalRequest.from_dict({**waiting.request.to_dict(), "run_id": still.request.run_id})
    assert len(await store.list(pending=True)) == 1


async def test_an_answer_that_comes_with_the_call_is_in_the_history(
    store: MemoryApprovalStore | SqliteApprovalStore,
) -> None:
    counter = Counter()
    waiting = await counter.suspended(approvals=store)
    grant = waiting.request.grant("ann")

    await counter.pipeline.run(waiting, Run(approvals=store), grant=grant)

    assert (await store.show(waiting.request.id)).answer == grant


async def test_always_holds_in_the_store(store: MemoryApprovalStore | SqliteApprovalStore) -> None:
    counter = Counter()

    async def ann(request: ApprovalRequest) -> Grant:
        return request.always("ann")

    await counter.pipeline.run(CALL, Run(approvals=store, approver=ann))
    outcome = await counter.pipeline.run(ToolCall("refund", {"cents": 7}), Run(approvals=store))

    assert isinstance(outcome, Completed)
    assert counter.ran == [5, 7]


async def test_always_without_a_store_holds_for_the_run() -> None:
    counter = Counter()
    asked: list[str] = []

    async def ann(request: ApprovalRequest) -> Grant:
        asked.append(request.id)
        return request.always("ann")

    run = Run(approver=ann)
    for _ in range(3):
        await counter.pipeline.run(ToolCall("refund", {"cents": 5}), run)
    elsewhere = await counter.pipeline.run(ToolCall("refund", {"cents": 5}), Run())

    assert counter.ran == [5, 5, 5]
    assert len(asked) == 1
    assert isinstance(elsewhere, Suspended)


async def test_a_standing_grant_of_one_principal_does_not_serve_another(
    store: MemoryApprovalStore | SqliteApprovalStore,
) -> None:
    counter = Counter()
    waiting = await counter.suspended(approvals=store, principal="bob")
    await store.answer(waiting.request.always("ann"))

    bobs = await counter.pipeline.run(ToolCall("refund", {"cents": 1}), Run(approvals=store, principal="bob"))
    eves = await counter.pipeline.run(ToolCall("refund", {"cents": 2}), Run(approvals=store, principal="eve"))

    assert isinstance(bobs, Completed)
    assert isinstance(eves, Suspended)
    assert counter.ran == [1]


async def test_a_call_suspended_for_one_principal_is_not_resumed_for_another() -> None:
    counter = Counter()
    waiting = await counter.suspended(principal="bob")

    outcome = await counter.pipeline.run(waiting, Run(principal="eve"), grant=waiting.request.grant())

    assert "on behalf of bob, and this call is on behalf of eve" in problem(outcome)
    assert counter.ran == []


async def test_an_approver_can_wait_for_another_process() -> None:
    counter, store, asked = Counter(), MemoryApprovalStore(), asyncio.Event()

    async def wait(request: ApprovalRequest) -> Grant | Denial | None:
        await store.put(request)
        asked.set()
        return await store.wait(request.id, timeout=60)

    running = asyncio.create_task(counter.pipeline.run(CALL, Run(approvals=store, approver=wait)))
    await asked.wait()
    (entry,) = await store.list(pending=True)
    await store.answer(entry.request.grant("ann"))

    assert isinstance(await running, Completed)
    assert (await store.show(entry.request.id)).state == "used"


async def test_a_store_that_fails_shuts_the_gate() -> None:
    counter = Counter()

    class Broken(MemoryApprovalStore):
        async def use(self, request: ApprovalRequest, answer: Grant | Denial) -> None:
            raise OSError("disk full")

    broken: ApprovalStore = Broken()
    waiting = await counter.suspended()
    outcome = await counter.pipeline.run(waiting, Run(approvals=broken), grant=waiting.request.grant())

    assert isinstance(outcome, Failed)
    assert "disk full" in str(outcome.exception)
    assert counter.ran == []
