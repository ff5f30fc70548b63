"""Calls that began before, as the run's approval store knows: executed now, ended, or in doubt."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tests.approvals.expired import has_expired
from toolcrib.approvals import MemoryApprovalStore, SqliteApprovalStore
from toolcrib.calls import Completed, Failed, Grant, Rejected, Suspended, ToolCall
from toolcrib.errors import ApprovalRequired, register_signal
from toolcrib.pipeline import Channel, Durability, Pipeline, Run
from toolcrib.tools import Tool, ez_tool


def paying(paid: list[int], **options: Any) -> Tool[..., Any]:
    @ez_tool(**{"requires_approval": True, **options})
    async def pay(cents: int) -> str:
        """Pay."""
        paid.append(cents)
        return f"paid {cents}"

    return pay


async def suspended(pipeline: Pipeline, store: MemoryApprovalStore, cents: int = 5) -> Suspended:
    outcome = await pipeline.run(ToolCall("pay", {"cents": cents}), Run(approvals=store))
    assert isinstance(outcome, Suspended)
    return outcome


async def cut_off(store: MemoryApprovalStore, call: Suspended) -> None:
    """Leave a call as a process does that dies while the tool runs."""
    grant = call.request.grant("ann")
    await store.use(call.request, grant)
    await store.begin(call.request, grant)
    await store.break_off(call.request, grant)


async def test_a_call_that_was_cut_off_is_asked_about_and_not_executed() -> None:
    paid: list[int] = []
    pipeline, store = Pipeline([paying(paid)]), MemoryApprovalStore()
    call = await suspended(pipeline, store)
    await cut_off(store, call)

    outcome = await pipeline.run(call, Run(approvals=store))

    assert isinstance(outcome, Suspended)
    assert outcome.request.in_doubt
    assert "may have been done" in outcome.text()
    assert paid == []


@pytest.mark.parametrize("asks", [False, True], ids=["plain", "approved"])
async def test_a_call_that_the_signal_of_an_engine_breaks_off_is_made_anew_where_no_approval_was_used(
    asks: bool,
) -> None:
    class InterruptError(Exception): ...

    register_signal(InterruptError)
    errors, store = [InterruptError()], MemoryApprovalStore()

    @ez_tool(requires_approval=asks)
    async def ask() -> str:
        """Ask."""
        if errors:
            raise errors.pop()
        return "so"

    pipeline, run = Pipeline([ask]), Run(id="one", durability=Durability(store=store))
    call: Any = ToolCall("ask", {}, "call_1")
    if asks:
        call = await pipeline.run(call, run)
        await store.answer(call.request.grant("ann"))
    with pytest.raises(InterruptError):
        await pipeline.run(call, run)

    outcome = await pipeline.run(call, run)

    assert isinstance(outcome, Suspended if asks else Completed)
    assert not isinstance(outcome, Suspended) or outcome.request.in_doubt


@pytest.mark.parametrize("again", [1, 2])
async def test_a_call_in_doubt_asks_the_same_in_each_process(again: int) -> None:
    pipeline, store = Pipeline([paying([])]), MemoryApprovalStore()
    call = await suspended(pipeline, store)
    await cut_off(store, call)

    outcomes: list[Any] = [call]
    for _ in range(again):
        outcomes.append(await pipeline.run(outcomes[-1].to_dict()["call"], Run(approvals=store)))
    from_the_first = await pipeline.run(call, Run(approvals=store))

    assert isinstance(from_the_first, Suspended)
    assert {outcome.request.id for outcome in outcomes[1:]} == {from_the_first.request.id}
    assert len(await store.list(pending=True)) == 1


async def test_the_yes_by_which_a_call_in_doubt_began_leaves_it_suspended_in_a_run_of_another_process() -> None:
    paid: list[int] = []
    pipeline, store = Pipeline([paying(paid)]), MemoryApprovalStore()
    call = await suspended(pipeline, store)
    await cut_off(store, call)
    doubt = await pipeline.run(call, Run(approvals=store))
    assert isinstance(doubt, Suspended)

    again = await pipeline.run(doubt, Run(approvals=store), grant=call.request.grant("ann"))

    assert isinstance(again, Suspended)
    assert again.request.id == doubt.request.id
    assert paid == []


async def test_the_three_answers_about_a_call_in_doubt() -> None:
    paid: list[int] = []
    pipeline, store = Pipeline([paying(paid)]), MemoryApprovalStore()
    outcomes: list[Any] = []
    for cents in (1, 2, 3):
        call = await suspended(pipeline, store, cents)
        await cut_off(store, call)
        doubt = await pipeline.run(call, Run(approvals=store))
        assert isinstance(doubt, Suspended)
        answer = [doubt.request.grant(), doubt.request.done("paid by hand"), doubt.request.deny(message="leave it")][
            cents - 1
        ]
        await store.answer(answer)
        outcomes.append(await pipeline.run(call, Run(approvals=store)))

    assert [type(outcome) for outcome in outcomes] == [Completed, Completed, Rejected]
    assert [outcome.text() for outcome in outcomes[:2]] == ["paid 1", "paid by hand"]
    assert paid == [1]
    assert await store.unended() == ()


async def test_a_call_that_is_cut_off_again_is_asked_about_again() -> None:
    pipeline, store = Pipeline([paying([])]), MemoryApprovalStore()
    call = await suspended(pipeline, store)
    await cut_off(store, call)
    first = await pipeline.run(call, Run(approvals=store))
    assert isinstance(first, Suspended)
    await cut_off(store, first)

    second = await pipeline.run(call, Run(approvals=store))

    assert isinstance(second, Suspended)
    assert second.request.in_doubt
    assert len({call.request.id, first.request.id, second.request.id}) == 3


async def test_an_idempotent_tool_is_executed_again_by_the_same_answer() -> None:
    paid: list[int] = []
    pipeline, store = Pipeline([paying(paid, idempotent=True)]), MemoryApprovalStore()
    call = await suspended(pipeline, store)
    await cut_off(store, call)

    outcome = await pipeline.run(call, Run(approvals=store))

    assert isinstance(outcome, Completed)
    assert paid == [5]


async def test_a_call_that_ended_before_its_host_kept_that_has_its_result() -> None:
    paid: list[int] = []
    pipeline, store = Pipeline([paying(paid)]), MemoryApprovalStore()
    call = await suspended(pipeline, store)
    await store.answer(call.request.grant("ann"))

    outcomes = [await pipeline.run(call, Run(approvals=store)) for _ in range(2)]

    assert [outcome.text() for outcome in outcomes] == ["paid 5", "paid 5"]
    assert paid == [5]


@pytest.mark.parametrize("has_ended", [True, False], ids=["ended", "in doubt"])
async def test_what_became_of_a_call_does_not_expire_with_its_grant(has_ended: bool) -> None:
    paid: list[int] = []
    pipeline, store = Pipeline([paying(paid)]), MemoryApprovalStore()
    call = await suspended(pipeline, store)

    async def execute(until: datetime) -> None:
        grant = call.request.grant("ann", expires_at=until)
        await store.answer(grant)
        await store.begin(call.request, grant)
        await (
            store.end(call.request, grant, {"value": "paid 5"}) if has_ended else store.break_off(call.request, grant)
        )

    await has_expired(execute)

    outcome = await pipeline.run(call, Run(approvals=store))

    assert isinstance(outcome, Completed if has_ended else Suspended)
    assert (outcome.text() == "paid 5", "may have been done" in outcome.text()) == (has_ended, not has_ended)
    assert paid == []


async def test_a_call_that_failed_has_its_error_when_it_comes_back() -> None:
    ran: list[int] = []

    @ez_tool(requires_approval=True)
    async def pay(cents: int) -> str:
        ran.append(cents)
        raise ValueError("the bank is closed")

    pipeline, store = Pipeline([pay]), MemoryApprovalStore()
    call = await suspended(pipeline, store)
    await store.answer(call.request.grant("ann"))

    outcomes = [await pipeline.run(call, Run(approvals=store)) for _ in range(2)]

    assert all(isinstance(outcome, Failed) for outcome in outcomes)
    assert ["the bank is closed" in outcome.text() for outcome in outcomes] == [True, True]
    assert ran == [5]


async def test_a_result_without_a_json_form_is_asked_for() -> None:
    @ez_tool(requires_approval=True)
    async def pay(cents: int) -> Any:
        return object()

    pipeline, store = Pipeline([pay]), MemoryApprovalStore()
    call = await suspended(pipeline, store)
    await store.answer(call.request.grant("ann"))
    await pipeline.run(call, Run(approvals=store))

    outcome = await pipeline.run(call, Run(approvals=store))

    assert isinstance(outcome, Suspended)
    assert "was executed, and its result was not stored" in outcome.request.reason


async def test_of_two_that_take_up_one_call_one_executes_it_and_the_other_is_told() -> None:
    entered, leave = asyncio.Event(), asyncio.Event()

    @ez_tool(requires_approval=True)
    async def pay(cents: int) -> str:
        entered.set()
        await leave.wait()
        return "paid"

    pipeline, store = Pipeline([pay]), MemoryApprovalStore()
    call = await suspended(pipeline, store)
    await store.answer(call.request.grant("ann"))

    first = asyncio.create_task(pipeline.run(call, Run(approvals=store)))
    await entered.wait()
    second = await pipeline.run(call, Run(approvals=store))
    leave.set()

    assert isinstance(second, Suspended)
    assert "is executed now, since" in second.text()
    assert second.request.reason.startswith("the call is executed now, since")
    assert (await first).text() == (await pipeline.run(call, Run(approvals=store))).text() == "paid"


async def test_a_cancelled_call_is_in_doubt() -> None:
    entered = asyncio.Event()

    @ez_tool(requires_approval=True)
    async def pay(cents: int) -> None:
        entered.set()
        await asyncio.Event().wait()

    pipeline, store = Pipeline([pay]), MemoryApprovalStore()
    call = await suspended(pipeline, store)
    await store.answer(call.request.grant("ann"))
    task = asyncio.create_task(pipeline.run(call, Run(approvals=store)))
    await entered.wait()
    task.cancel()
    await asyncio.wait([task])

    outcome = await pipeline.run(call, Run(approvals=store))

    assert isinstance(outcome, Suspended)
    assert outcome.request.in_doubt


async def test_a_stream_that_its_consumer_leaves_is_in_doubt() -> None:
    @ez_tool(requires_approval=True)
    async def pay(cents: int) -> AsyncIterator[int]:
        yield 1
        yield 2

    pipeline, store = Pipeline([pay]), MemoryApprovalStore()
    call = await suspended(pipeline, store)
    await store.answer(call.request.grant("ann"))
    values = pipeline.stream(call, Run(approvals=store))
    await anext(values)
    await values.aclose()

    [entry] = await store.list()

    assert entry.execution_state == "in doubt"


@pytest.mark.parametrize(("answer", "paid_then"), [("grant", [5]), ("done", []), ("deny", [])])
async def test_a_new_equal_call_is_in_doubt_itself(answer: str, paid_then: list[int]) -> None:
    paid: list[int] = []
    pipeline, store = Pipeline([paying(paid)]), MemoryApprovalStore()
    before = await suspended(pipeline, store)
    await cut_off(store, before)

    equal, other = await suspended(pipeline, store), await suspended(pipeline, store, cents=6)
    earlier = await pipeline.run(equal, Run(approvals=store), grant=before.request.grant("ann"))
    request = equal.request
    said = request.done("paid", "ann") if answer == "done" else getattr(request, answer)(by="ann")
    outcome = await pipeline.run(equal, Run(approvals=store), grant=said)

    assert equal.request.in_doubt
    assert (other.request.in_doubt, other.request.reason) == (False, "")
    assert isinstance(earlier, Suspended)
    assert outcome.kind == ("rejected" if answer == "deny" else "completed")
    assert paid == paid_then


async def test_an_approver_of_the_run_is_not_asked_about_an_equal_call_in_doubt() -> None:
    paid: list[int] = []
    pipeline, store = Pipeline([paying(paid)]), MemoryApprovalStore()
    await cut_off(store, await suspended(pipeline, store))

    outcome = await pipeline.run(
        ToolCall("pay", {"cents": 5}), Run(approvals=store, approver=lambda request: request.grant("ann"))
    )

    assert isinstance(outcome, Suspended)
    assert paid == []


@pytest.mark.parametrize("cause", [{"conversation_id": "friday"}, {}])
async def test_an_answer_goes_to_the_call_of_its_run_or_conversation(cause: dict[str, Any]) -> None:
    paid: list[int] = []
    pipeline, store = Pipeline([paying(paid)]), MemoryApprovalStore()
    runs = [Run(approvals=store, channel=Channel(**options)) for options in ({"conversation_id": "monday"}, cause)]
    calls = [await pipeline.run(ToolCall("pay", {"cents": 5}, "call_1"), run) for run in runs]
    assert isinstance(calls[0], Suspended)
    await store.answer(calls[0].request.grant("ann"))

    outcomes = [await pipeline.run(call, run) for call, run in zip(calls[::-1], runs[::-1], strict=True)]

    assert [type(outcome) for outcome in outcomes] == [Suspended, Completed]


# --- calls that need no approval, in a run with a store


async def test_a_store_of_the_run_knows_of_a_call_that_needs_no_approval() -> None:
    pipeline, store = Pipeline([paying([], requires_approval=False)]), MemoryApprovalStore()

    await pipeline.run(ToolCall("pay", {"cents": 5}), Run(durability=Durability(store=store)))

    [entry] = await store.list()
    assert (entry.execution_state, entry.answer) == ("ended", None)


@pytest.mark.parametrize("options", [{"effect": "none"}, {"effect": "fetch"}, {"idempotent": True}])
async def test_a_call_without_an_effect_is_not_noted(options: dict[str, Any]) -> None:
    pipeline, store = Pipeline([paying([], requires_approval=False, **options)]), MemoryApprovalStore()

    await pipeline.run(ToolCall("pay", {"cents": 5}), Run(durability=Durability(store=store)))

    assert await store.list() == ()


@pytest.mark.parametrize(("answer", "paid_then"), [("grant", [5]), ("done", []), ("deny", [])])
async def test_an_equal_call_is_asked_about_while_one_is_in_doubt(answer: str, paid_then: list[int]) -> None:
    paid: list[int] = []
    pipeline, store = Pipeline([paying(paid, requires_approval=False)]), MemoryApprovalStore()
    await leave_in_doubt(store)

    asked = [
        await pipeline.run(ToolCall("pay", {"cents": 5}), Run(durability=Durability(store=store))) for _ in range(2)
    ]
    request = asked[0].request if isinstance(asked[0], Suspended) else None
    assert request is not None
    await store.answer(request.done("paid") if answer == "done" else getattr(request, answer)())
    outcome = await pipeline.run(asked[1].to_dict()["call"], Run(durability=Durability(store=store)))

    assert outcome.kind == ("rejected" if answer == "deny" else "completed")
    assert paid == paid_then
    assert await store.unended() == ()


async def leave_in_doubt(store: MemoryApprovalStore) -> None:
    """Leave an equal call as a process does that dies while the tool runs."""
    entered = asyncio.Event()

    @ez_tool
    async def pay(cents: int) -> None:
        entered.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(
        Pipeline([pay]).run(ToolCall("pay", {"cents": 5}), Run(durability=Durability(store=store)))
    )
    await entered.wait()
    task.cancel()
    await asyncio.wait([task])


async def test_a_tool_that_asks_for_approval_itself_has_not_begun() -> None:
    @ez_tool
    async def pay(cents: int) -> None:
        raise ApprovalRequired({"bank": "Oslo"})

    pipeline, store = Pipeline([pay]), MemoryApprovalStore()

    outcome = await pipeline.run(ToolCall("pay", {"cents": 5}), Run(durability=Durability(store=store)))

    assert isinstance(outcome, Suspended)
    assert [entry.execution for entry in await store.list()] == [None]


async def test_a_standing_grant_is_noted_for_each_call() -> None:
    paid: list[int] = []
    pipeline, store = Pipeline([paying(paid)]), MemoryApprovalStore([Grant("pay", "ann", scope="tool")])

    for _ in range(2):
        await pipeline.run(ToolCall("pay", {"cents": 5}), Run(approvals=store))

    assert [entry.execution_state for entry in await store.list()] == ["ended", "ended"]
    assert paid == [5, 5]


@pytest.mark.parametrize(
    ("timeout", "error"), [(0.01, "goes on in the background"), (None, "the bank closed the line")]
)
async def test_a_question_says_that_an_equal_call_failed_and_may_have_been_done(
    timeout: float | None, error: str
) -> None:
    over = threading.Event()

    @ez_tool(requires_approval=True, timeout=timeout)
    def pay(cents: int) -> None:
        if timeout is not None:
            over.wait(60)
        raise RuntimeError("the bank closed the line")

    pipeline, store = Pipeline([pay]), MemoryApprovalStore()
    first = await suspended(pipeline, store)
    failed = await pipeline.run(first, Run(approvals=store), grant=first.request.grant("ann"))

    again = await suspended(pipeline, store)
    over.set()

    assert failed.kind == "failed"
    assert f"an equal call (request {first.request.id}) was begun, and failed at " in again.request.reason
    assert error in again.request.reason
    assert "it may have been done in part" in again.request.reason


def pay_in_a_process(folder: Path) -> None:
    """Make a call in a process that ends after it, with a store in the folder."""
    program = (
        "import asyncio\n"
        "from toolcrib import Durability, Pipeline, Run, SqliteApprovalStore, ToolCall, tool\n"
        "@tool\n"
        "async def pay(cents: int) -> str:\n"
        "    return 'paid'\n"
        "run = Run(durability=Durability(SqliteApprovalStore('a.db')))\n"
        "asyncio.run(Pipeline([pay]).run(ToolCall('pay', {'cents': 5}), run))\n"
    )
    subprocess.run([sys.executable, "-c", program], cwd=folder, check=True)


@pytest.mark.processes
async def test_an_equal_call_is_asked_about_where_the_process_of_the_last_one_is_gone(tmp_path: Path) -> None:
    pay_in_a_process(tmp_path)
    paid: list[int] = []
    pipeline, run = (
        Pipeline([paying(paid, requires_approval=False)]),
        Run(durability=Durability(store=SqliteApprovalStore(tmp_path / "a.db"))),
    )

    asked = await pipeline.run(ToolCall("pay", {"cents": 5}), run)
    assert isinstance(asked, Suspended)
    again = [await pipeline.run(asked, run, grant=asked.request.grant()) for _ in range(2)]
    next_one = await pipeline.run(ToolCall("pay", {"cents": 5}), run)

    assert "was executed already" in asked.request.reason
    assert not asked.request.in_doubt
    assert [outcome.kind for outcome in (*again, next_one)] == ["completed"] * 3
    assert paid == [5, 5]


async def test_a_standing_grant_says_nothing_of_an_equal_call_in_doubt() -> None:
    paid: list[int] = []
    pipeline = Pipeline([paying(paid)])
    store = MemoryApprovalStore([Grant("pay", "ann", scope="tool")])
    await leave_in_doubt(store)

    doubt = await pipeline.run(ToolCall("pay", {"cents": 5}), Run(approvals=store))
    other = await pipeline.run(ToolCall("pay", {"cents": 6}), Run(approvals=store))

    assert isinstance(doubt, Suspended)
    assert doubt.request.in_doubt
    assert isinstance(other, Completed)
    assert paid == [6]


class AwayAtTheEnd(MemoryApprovalStore):
    """A store that fails where a call has ended."""

    async def end(self, *arguments: Any, **options: Any) -> None:
        raise OSError("the disk is full")


async def test_a_call_that_was_done_is_not_failed_by_its_store() -> None:
    pipeline, store = Pipeline([paying([])]), AwayAtTheEnd()
    call = await suspended(pipeline, store)
    await store.answer(call.request.grant("ann"))

    outcome = await pipeline.run(call, Run(approvals=store))

    assert isinstance(outcome, Completed)


class AwayAtTheBegin(MemoryApprovalStore):
    """A store that fails where a call begins, the first time."""

    is_back = False

    async def begin(self, *arguments: Any, **options: Any) -> Any:
        if self.is_back:
            return await super().begin(*arguments, **options)
        self.is_back = True
        raise OSError("the disk is full")


async def test_an_answer_is_not_used_up_where_its_call_could_not_begin() -> None:
    paid: list[int] = []
    pipeline, store = Pipeline([paying(paid)]), AwayAtTheBegin()
    call = await suspended(pipeline, store)
    await store.answer(call.request.grant("ann"))

    outcomes = [await pipeline.run(call, Run(approvals=store)) for _ in range(2)]

    assert [type(outcome) for outcome in outcomes] == [Failed, Completed]
    assert paid == [5]


async def test_what_is_asked_about_a_call_in_doubt_is_what_its_approver_made_of_it() -> None:
    paid: list[int] = []
    pipeline, store = Pipeline([paying(paid)]), MemoryApprovalStore()
    call = await suspended(pipeline, store, 500)
    grant = call.request.grant("ann", override_args={"cents": 5})
    await store.use(call.request, grant)
    await store.begin(call.request, grant)
    await store.break_off(call.request, grant)

    outcomes: list[Any] = [await pipeline.run(call.to_dict()["call"], Run(approvals=store)) for _ in range(2)]

    assert [outcome.request.arguments for outcome in outcomes] == [{"cents": 5}] * 2
    assert len({outcome.request.id for outcome in outcomes}) == 1
    await store.answer(outcomes[0].request.grant("ann"))
    assert isinstance(await pipeline.run(call.to_dict()["call"], Run(approvals=store)), Completed)
    assert paid == [5]


async def test_a_new_equal_call_is_asked_about_with_the_arguments_that_the_approver_gave() -> None:
    pipeline, store = Pipeline([paying([])]), MemoryApprovalStore()
    call = await suspended(pipeline, store, 500)
    grant = call.request.grant("ann", override_args={"cents": 5})
    await store.use(call.request, grant)
    await store.begin(call.request, grant)
    await store.break_off(call.request, grant)

    outcome = await suspended(pipeline, store, 500)

    assert outcome.request.arguments == {"cents": 5}


async def test_a_call_that_was_asked_about_and_not_saved_waits_by_the_first_request() -> None:
    paid: list[int] = []
    pipeline, store, call = Pipeline([paying(paid)]), MemoryApprovalStore(), ToolCall("pay", {"cents": 5}, "call_1")

    first = await pipeline.run(call, Run(channel=Channel(conversation_id="trip"), approvals=store))
    again = await pipeline.run(
        call, Run(channel=Channel(conversation_id="trip"), approvals=store)
    )  # its process died before the save
    other = await pipeline.run(call, Run(channel=Channel(conversation_id="another trip"), approvals=store))

    assert isinstance(first, Suspended)
    assert isinstance(again, Suspended)
    assert isinstance(other, Suspended)
    assert again.request.id == first.request.id != other.request.id
    assert len(await store.list(pending=True)) == 2


async def test_a_journal_need_not_ask_about_a_call_whose_result_the_store_has() -> None:
    paid: list[int] = []
    pipeline, store, kept = Pipeline([paying(paid, requires_approval=False)]), MemoryApprovalStore(), list[Any]()

    class Recorder:
        async def begin(self, call: Any) -> None:
            kept.append(call.to_dict())

    await pipeline.run(
        ToolCall("pay", {"cents": 5}, "call_1"), Run(durability=Durability(store=store, recorder=Recorder()))
    )
    outcome = await pipeline.run(kept[0], Run(durability=Durability(store=store)))

    assert (outcome.text(), paid) == ("paid 5", [5])
    assert not await store.list(pending=True)
