"""Recovery: the one way back of a stored call. Gates are asked again, hooks are not, and nothing is done twice."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import BaseModel, SecretStr

from toolcrib.approvals import MemoryApprovalStore, approve_all, deny_all, used_answers
from toolcrib.calls import (
    ApprovalRequest,
    Completed,
    Done,
    Failed,
    Grant,
    Outcome,
    Rejected,
    RunNormally,
    Suspended,
    ToolCall,
)
from toolcrib.errors import ApprovalError, ApprovalRequired, CallStateError, InvalidOutput, ModelRetry
from toolcrib.hooks import HookSet
from toolcrib.pipeline import Call, CallLimits, Durability, Pipeline, Run, is_call
from toolcrib.schema import RunContext
from toolcrib.testing import RecordingSink
from toolcrib.tools import BaseTool, Tool, ez_tool
from toolcrib.toolsets import Toolset


class Killed(KeyboardInterrupt):
    """The process dies where this is raised."""


class DiesAt:
    """A recorder of a process that dies when a call was kept."""

    state: dict[str, Any]

    async def begin(self, call: Call) -> None:
        self.state = json.loads(json.dumps(call.to_dict()))
        raise Killed


def paying(paid: list[int], **options: Any) -> Tool[..., Any]:
    @ez_tool(**options)
    async def pay(amount: int, code: SecretStr | None = None) -> str:
        paid.append(amount)
        return f"paid {amount}"

    return pay


async def begun(pipeline: Pipeline, run: Run | None = None, **arguments: Any) -> dict[str, Any]:
    """Return what is kept of a call whose process died after it was kept that the call began."""
    recorder = DiesAt()
    with pytest.raises(Killed):
        await pipeline.run(ToolCall("pay", {"amount": 5, **arguments}, "c1"), (run or Run()).view(recorder=recorder))
    return recorder.state


async def test_a_call_in_doubt_is_suspended_and_its_request_says_so() -> None:
    paid: list[int] = []
    store = MemoryApprovalStore()
    pipeline = Pipeline([paying(paid)])
    state = await begun(pipeline, Run(principal="ann"), code="sesame")

    outcome = await pipeline.run(state, Run(approvals=store, approver=approve_all, principal="ann"))

    assert isinstance(outcome, Suspended)
    assert (outcome.request.in_doubt, outcome.request.principal, paid) == (True, "ann", [])
    assert "sesame" not in json.dumps(outcome.request.to_dict())
    assert [entry.request.id for entry in await store.list(pending=True)] == [outcome.request.id]


@pytest.mark.parametrize(
    ("known", "said"),
    [
        ({}, "was begun and is not known to have ended, so it may have been done. The answers"),
        ({"failed with": "no line"}, 'was begun and failed: "no line". It may have been done in part. The answers'),
    ],
)
async def test_a_request_about_a_call_that_was_begun_says_how_it_went(known: dict[str, str], said: str) -> None:
    pipeline = Pipeline([paying([])])

    outcome = await pipeline.run(await begun(pipeline), Run(durability=Durability(begun={"c1": known})))

    assert isinstance(outcome, Suspended)
    assert said in outcome.request.reason


async def test_a_call_in_doubt_is_one_request_however_often_it_is_recovered() -> None:
    store = MemoryApprovalStore()
    pipeline = Pipeline([paying([])])
    state = await begun(pipeline)

    first = await pipeline.run(state, Run(approvals=store))
    again = await pipeline.run(state, Run(approvals=store))

    assert isinstance(first, Suspended)
    assert isinstance(again, Suspended)
    assert first.request.id == again.request.id


async def test_a_suspended_call_in_doubt_keeps_its_request_where_no_store_has_it() -> None:
    pipeline, run = Pipeline([paying([])]), Run()
    first = await pipeline.run(await begun(pipeline), run)

    again = await pipeline.run(first, run)

    assert isinstance(first, Suspended)
    assert isinstance(again, Suspended)
    assert again.request == first.request


@pytest.mark.parametrize(
    ("answer", "kind", "expected"),
    [
        (lambda request: request.grant("ann"), Completed, [5]),
        (lambda request: request.done("paid by hand", "ann"), Completed, []),
        (lambda request: request.deny(message="it must not be"), Rejected, []),
    ],
    ids=["do it", "it was done", "it must not be done"],
)
async def test_a_call_in_doubt_has_three_answers(answer: Any, kind: type[Outcome], expected: list[int]) -> None:
    paid: list[int] = []
    pipeline = Pipeline([paying(paid)])
    suspended = await pipeline.run(await begun(pipeline))
    assert isinstance(suspended, Suspended)

    outcome = await pipeline.run(suspended, grant=answer(suspended.request))

    assert isinstance(outcome, kind)
    assert paid == expected


async def test_a_given_result_takes_the_way_of_every_result() -> None:
    tools = Toolset(
        [paying([], max_result_chars=20)], post_hooks={"pay": lambda ctx, result, metadata: f"post: {result}"}
    )
    sink = RecordingSink()
    pipeline = Pipeline(tools, sinks=[sink])
    suspended = await pipeline.run(await begun(pipeline))
    assert isinstance(suspended, Suspended)

    outcome = await pipeline.run(suspended, grant=suspended.request.done("S" * 500))

    assert isinstance(outcome, Completed)
    assert outcome.value == "post: " + "S" * 500
    assert len(outcome.text()) < 100
    assert sink.records[-1].outcome["kind"] == "completed"


class Receipt(BaseModel):
    """What a payment leaves."""

    number: int


def receipted(*, post: list[Any] | None = None) -> Pipeline:
    """A pipeline of one tool, `pay`, whose result is a receipt; `post` collects what its post hook is given."""
    seen: list[Any] = [] if post is None else post

    @ez_tool
    async def pay(amount: int) -> Receipt:
        return Receipt(number=amount)

    def note(ctx: Any, result: Any, metadata: Any) -> Any:
        seen.append(result)
        return result

    return Pipeline(Toolset([pay], post_hooks={"pay": note}))


async def test_a_given_result_is_of_the_type_that_the_tool_declares() -> None:
    post: list[Any] = []
    pipeline = receipted(post=post)
    suspended = await pipeline.run(await begun(pipeline))
    assert isinstance(suspended, Suspended)

    outcome = await pipeline.run(suspended, grant=suspended.request.done({"number": 12}))

    assert isinstance(outcome, Completed)
    assert post == [Receipt(number=12)]


async def test_a_call_that_was_done_is_run_to_its_end_without_its_tool() -> None:
    paid: list[int] = []
    pipeline = Pipeline([paying(paid)])
    suspended = await pipeline.run(await begun(pipeline))
    assert isinstance(suspended, Suspended)
    call = await pipeline.recover(suspended, grant=suspended.request.done("paid by hand"))
    assert is_call(call)

    outcome = await pipeline.run(call)

    assert isinstance(outcome, Completed)
    assert (outcome.value, paid) == ("paid by hand", [])


async def test_a_result_of_another_type_is_an_error_and_its_request_stays_pending() -> None:
    pipeline = receipted()
    run = Run(approvals=MemoryApprovalStore())
    suspended = await pipeline.run(await begun(pipeline), run)
    assert isinstance(suspended, Suspended)

    with pytest.raises(InvalidOutput, match="`pay` cannot be completed with this output: number: ") as refused:
        await pipeline.run(suspended, run, grant=suspended.request.done({"number": "twelve"}))
    outcome = await pipeline.run(suspended, run, grant=suspended.request.done({"number": 12}))

    assert refused.value.problems[0].field == "number"
    assert isinstance(outcome, Completed)


async def test_a_request_about_a_call_in_doubt_says_what_its_tool_returns() -> None:
    pipeline = receipted()

    suspended = await pipeline.run(await begun(pipeline))

    assert isinstance(suspended, Suspended)
    assert suspended.request.returns is not None
    assert suspended.request.returns["properties"]["number"]["type"] == "integer"
    assert ApprovalRequest.from_dict(suspended.request.to_dict()) == suspended.request


async def test_a_result_of_another_type_is_refused_where_it_is_given() -> None:
    pipeline, store = receipted(), MemoryApprovalStore()
    asked = await pipeline.run(await begun(pipeline), Run(approvals=store))
    assert isinstance(asked, Suspended)

    with pytest.raises(ApprovalError, match="the result does not fit the tool: number: "):
        await store.answer(asked.request.done({"number": "twelve"}))
    await store.answer(asked.request.done({"number": 12}))
    outcome = await pipeline.run(asked, Run(approvals=store))

    assert isinstance(outcome, Completed)


async def test_a_stored_result_of_another_type_is_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolcrib.approvals._answers.find_spec", lambda name: None)  # without the extra `schema`
    pipeline = receipted()
    store = MemoryApprovalStore()
    run = Run(approvals=store)
    first = await pipeline.run(await begun(pipeline), run)
    assert isinstance(first, Suspended)

    await store.answer(first.request.done({"number": "twelve"}))
    second = await pipeline.run(first, run)
    third = await pipeline.run(second, run)  # nothing was answered meanwhile
    assert isinstance(second, Suspended)
    assert isinstance(third, Suspended)
    await store.answer(second.request.done({"number": 12}))
    outcome = await pipeline.run(third, run)

    assert "number: " in second.request.reason
    assert second.request.id == third.request.id != first.request.id
    assert isinstance(outcome, Completed)


async def test_the_result_of_a_stream_in_doubt_is_the_list_of_its_values() -> None:
    @ez_tool
    async def pay(amount: int) -> AsyncIterator[int]:
        yield amount

    pipeline = Pipeline([pay])
    suspended = await pipeline.run(await begun(pipeline))
    assert isinstance(suspended, Suspended)

    with pytest.raises(InvalidOutput):
        await pipeline.run(suspended, grant=suspended.request.done(5))
    outcome = await pipeline.run(suspended, grant=suspended.request.done([5, 6]))

    assert suspended.request.returns == {"type": "array", "items": {"type": "integer"}}
    assert isinstance(outcome, Completed)
    assert outcome.value == [5, 6]


async def test_a_given_result_of_a_class_of_its_own_goes_on_as_it_is() -> None:
    class Ticket:
        """What pydantic knows nothing of, as of a Turn."""

    @ez_tool
    async def pay(amount: int) -> str | Ticket:
        return Ticket()

    pipeline, given = Pipeline([pay]), Ticket()
    suspended = await pipeline.run(await begun(pipeline))
    assert isinstance(suspended, Suspended)

    outcome = await pipeline.run(suspended, grant=suspended.request.done(given))

    assert isinstance(outcome, Completed)
    assert outcome.value is given


async def test_a_standing_grant_does_not_answer_for_a_call_in_doubt() -> None:
    paid: list[int] = []
    always = Grant("pay", "ann", scope="tool")
    pipeline = Pipeline([paying(paid, requires_approval=True)])
    run = Run(approvals=MemoryApprovalStore([always]))
    state = await begun(pipeline, run)

    outcome = await pipeline.run(state, run)

    assert isinstance(outcome, Suspended)
    assert (outcome.request.in_doubt, paid) == (True, [])


async def test_a_result_is_taken_for_a_call_in_doubt_alone() -> None:
    paid: list[int] = []
    pipeline = Pipeline([paying(paid, requires_approval=True)])
    suspended = await pipeline.run(ToolCall("pay", {"amount": 5}))
    assert isinstance(suspended, Suspended)

    outcome = await pipeline.run(suspended, grant=suspended.request.grant(done=Done("paid by hand")))

    assert isinstance(outcome, Failed)
    assert (outcome.code, paid) == (ApprovalError.code, [])


async def test_an_idempotent_call_is_executed_again_with_its_key() -> None:
    keys: list[str] = []

    class Pay(BaseTool):
        """Pay."""

        name = "pay"

        async def call(self, ctx: Any, amount: int) -> str:
            keys.append(ctx.idempotency_key)
            return "paid"

    tools = Toolset([Pay()])
    pipeline = Pipeline([_idempotent(tools)])
    state = await begun(pipeline)

    outcome = await pipeline.run(state)

    assert isinstance(outcome, Completed)
    assert keys == ["c1"]


def _idempotent(tools: Toolset) -> Tool[..., Any]:
    tool = tools["pay"].tool
    tool.options = replace(tool.options, idempotent=True)
    return tool


async def test_availability_is_asked_again() -> None:
    paid: list[int] = []
    open_now = [True]

    class Pay(BaseTool):
        """Pay."""

        name = "pay"

        def is_available(self, ctx: Any) -> bool:
            return open_now[0]

        async def call(self, ctx: Any, amount: int) -> str:
            paid.append(amount)
            return "paid"

    pipeline = Pipeline([_idempotent(Toolset([Pay()]))])
    state = await begun(pipeline)
    open_now[0] = False

    withdrawn = await pipeline.run(state)
    open_now[0] = True
    not_offered = await pipeline.run(state, Run(available=frozenset()))

    assert [isinstance(one, Failed) and one.code for one in (withdrawn, not_offered)] == ["not_available"] * 2
    assert paid == []


async def test_limits_are_asked_again_and_the_same_run_counts_a_call_once() -> None:
    paid: list[int] = []
    pipeline = Pipeline([paying(paid, idempotent=True)])
    run = Run(limits=CallLimits(total=1))
    state = await begun(pipeline, run)

    same = await pipeline.run(state, run)
    spent = await pipeline.run(state, Run(limits=CallLimits(total=0)))

    assert isinstance(same, Completed)
    assert isinstance(spent, Rejected)
    assert (spent.source, paid, run.calls) == ("limit", [5], {"pay": 1})


async def test_approval_is_asked_again() -> None:
    paid: list[int] = []
    pipeline = Pipeline([paying(paid, requires_approval=True, idempotent=True)])
    state = await begun(pipeline, Run(approver=approve_all))

    outcome = await pipeline.run(state, Run(approver=deny_all))

    assert isinstance(outcome, Rejected)
    assert paid == []


async def test_other_arguments_than_were_stored_are_refused() -> None:
    paid: list[int] = []
    pipeline = Pipeline([paying(paid, idempotent=True)])
    state = await begun(pipeline, Run())

    outcome = await pipeline.run({**state, "arguments": {**state["arguments"], "amount": 500}})

    assert isinstance(outcome, Failed)
    assert "they come back as others than were seen" in outcome.message
    assert paid == []


async def test_hooks_are_not_run_again() -> None:
    asked: list[str] = []
    hooks = HookSet()

    @hooks.on("pay")
    async def decide(call: Any, given: Any) -> RunNormally:
        asked.append(call.id)
        return RunNormally(given)

    pipeline = Pipeline([paying([], idempotent=True)], hooks=hooks)
    state = await begun(pipeline)

    await pipeline.run(state)

    assert asked == ["c1"]


async def test_a_call_of_which_only_its_arguments_are_known_passes_its_gates_and_is_in_doubt() -> None:
    paid: list[int] = []
    pipeline = Pipeline([paying(paid)])

    wrong = await pipeline.recover(ToolCall("pay", {"amount": "x"}, "c1"))
    doubtful = await pipeline.recover(ToolCall("pay", {"amount": 5}, "c1"))

    assert isinstance(wrong, Failed)
    assert isinstance(doubtful, Suspended)
    assert (doubtful.request.in_doubt, paid) == (True, [])


async def test_a_call_is_executed_once_whoever_asks() -> None:
    paid: list[int] = []
    pipeline, run = Pipeline([paying(paid, requires_approval=True)]), Run(approver=approve_all)
    call = await pipeline.admit(ToolCall("pay", {"amount": 5}), run)
    assert is_call(call)
    first = await pipeline.execute(call)
    assert is_call(first)

    with pytest.raises(CallStateError, match="executed once"):
        await pipeline.execute(call)

    assert (await pipeline.finish(first)).kind == "completed"
    assert paid == [5]


@pytest.mark.parametrize("approver", [None, deny_all])
async def test_a_call_that_was_suspended_or_has_ended_is_not_admitted_again(approver: Any) -> None:
    paid: list[int] = []
    pipeline, run = Pipeline([paying(paid, requires_approval=True)]), Run(approver=approver)
    call = pipeline.receive(ToolCall("pay", {"amount": 5}), run)
    assert is_call(call)
    await pipeline.admit(call)

    with pytest.raises(CallStateError):
        await pipeline.run(call)

    assert (call.begun, paid) == (False, [])


async def test_a_call_that_has_ended_is_not_recovered() -> None:
    paid: list[int] = []
    pipeline = Pipeline([paying(paid)])
    call = await pipeline.admit(ToolCall("pay", {"amount": 5}))
    assert is_call(call)
    await pipeline.execute(call)
    await pipeline.finish(call)

    with pytest.raises(CallStateError, match="closed"):
        await pipeline.run(json.loads(json.dumps(call.to_dict())))

    assert paid == [5]


@pytest.mark.parametrize("raised", [None, OSError("no disk"), ModelRetry("try again")])
async def test_a_call_that_was_executed_is_recovered_with_its_result(raised: Exception | None) -> None:
    paid: list[int] = []
    pipeline = Pipeline([paying(paid, requires_approval=True)])
    call = await pipeline.admit(ToolCall("pay", {"amount": 5}), Run(approver=approve_all))
    assert is_call(call)
    pipeline.executed(call, "paid by hand", raised)
    state = json.loads(json.dumps(call.to_dict()))

    restored = await pipeline.recover(state, Run(approver=deny_all))
    assert is_call(restored)
    assert await pipeline.execute(restored) is restored
    outcome, before = await pipeline.finish(restored), await pipeline.finish(call)

    assert (outcome.text(), restored.begun, paid) == (before.text(), True, [])


def changed(paid: list[Any], kind: str) -> Tool[..., Any]:
    """Return the tool of a later version, which takes another type for the amount."""

    async def pay(amount: Any, code: SecretStr | None = None) -> str:
        paid.append(amount)
        return f"paid {amount}"

    pay.__annotations__["amount"] = {"text": str, "float": float, "int": int}[kind]
    return ez_tool(pay)


@pytest.mark.parametrize("kind", ["text", "float"])
async def test_a_call_that_was_executed_keeps_its_result_though_the_tool_has_changed(kind: str) -> None:
    paid: list[Any] = []
    pipeline = Pipeline([paying(paid)])
    call = await pipeline.admit(ToolCall("pay", {"amount": 5, "code": "1234"}))
    assert is_call(call)
    await pipeline.execute(call)
    sink = RecordingSink()

    outcome = await Pipeline([changed(paid, kind)]).run(json.loads(json.dumps(call.to_dict())), Run(sinks=(sink,)))

    assert isinstance(outcome, Completed), outcome
    assert (outcome.value, paid) == ("paid 5", [5])
    assert sink.records[0].arguments is None
    assert "1234" not in json.dumps([event.to_dict() for event in sink.events])


@pytest.mark.parametrize("kind", ["text", "float"])
@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (lambda request, _: request.done("paid 5", "ann"), "paid 5"),
        (lambda request, edited: request.grant("ann", override_args={"amount": edited}), "paid 7"),
        (lambda request, _: request.grant("ann"), "ApprovalError: "),
        (lambda request, _: request.deny(message="never"), "Rejected: never"),
    ],
    ids=["done", "edited", "as it is", "denied"],
)
async def test_a_call_in_doubt_is_asked_about_though_the_tool_takes_its_arguments_no_more(
    kind: str, answer: Any, expected: str
) -> None:
    paid: list[Any] = []
    state = await begun(Pipeline([paying(paid)]))
    pipeline = Pipeline([changed(paid, kind)])

    asked = await pipeline.run(state)
    assert isinstance(asked, Suspended), asked
    outcome = await pipeline.run(asked, grant=answer(asked.request, "7" if kind == "text" else 7))

    assert (asked.request.in_doubt, asked.request.arguments["amount"]) == (True, 5)
    assert "no longer takes the arguments" in asked.request.reason
    assert outcome.text().replace("7.0", "7").startswith(expected)
    assert paid == ([] if "7" not in expected else ["7"] if kind == "text" else [7.0])


async def test_a_call_in_doubt_whose_tool_has_changed_is_asked_about_again_where_it_was_written() -> None:
    paid: list[Any] = []
    pipeline = Pipeline([changed(paid, "text")])
    asked = await pipeline.run(await begun(Pipeline([paying(paid)])))
    assert isinstance(asked, Suspended)

    again = await pipeline.run(json.loads(json.dumps(asked.to_dict()["call"])))
    assert isinstance(again, Suspended)
    outcome = await pipeline.run(again, grant=again.request.grant("ann"))

    assert again.request.id == asked.request.id
    assert isinstance(outcome, Failed)
    assert (outcome.code, paid) == ("approval_error", [])


async def test_of_two_copies_of_a_suspended_call_one_is_executed() -> None:
    paid: list[int] = []
    pipeline = Pipeline([paying(paid, requires_approval=True)])
    suspended = await pipeline.run(ToolCall("pay", {"amount": 5}))
    assert isinstance(suspended, Suspended)
    always = suspended.request.always("ann")

    outcomes = [await pipeline.run(suspended, Run(), grant=always) for _ in range(2)]

    assert [outcome.kind for outcome in outcomes] == ["completed", "failed"]
    assert paid == [5]


@pytest.mark.parametrize("stored", [lambda call: call, lambda call: call.to_dict()["call"]], ids=["copy", "JSON"])
async def test_of_two_copies_that_a_standing_grant_of_the_run_opens_one_is_executed(stored: Any) -> None:
    paid: list[int] = []
    pipeline, run = Pipeline([paying(paid, requires_approval=True)]), Run()
    waiting, other = [await pipeline.run(ToolCall("pay", {"amount": amount}), run) for amount in (5, 6)]
    assert isinstance(waiting, Suspended)
    assert isinstance(other, Suspended)
    await pipeline.run(other, run, grant=other.request.always("ann"))

    outcomes = [await pipeline.run(stored(waiting), run) for _ in range(2)]

    assert [outcome.kind for outcome in outcomes] == ["completed", "failed"]
    assert paid == [6, 5]


async def test_of_two_copies_that_a_store_opens_which_never_saw_the_request_one_is_executed() -> None:
    paid: list[int] = []
    pipeline = Pipeline([paying(paid, requires_approval=True)])
    waiting = await pipeline.run(ToolCall("pay", {"amount": 5}))
    assert isinstance(waiting, Suspended)
    run = Run(approvals=MemoryApprovalStore([Grant("pay", "ann", scope="tool")]))

    first, second = [await pipeline.run(waiting, run) for _ in range(2)]

    assert isinstance(first, Completed)
    assert (second, paid) == (first, [5])


async def test_of_two_copies_one_is_executed_though_the_answer_that_was_used_is_forgotten() -> None:
    paid: list[int] = []
    pipeline, run = Pipeline([paying(paid, requires_approval=True)]), Run()
    waiting = await pipeline.run(ToolCall("pay", {"amount": 5}), run)
    assert isinstance(waiting, Suspended)

    first = await pipeline.run(waiting, run, grant=waiting.request.grant("ann"))
    for number in range(50_000):  # as many as are kept
        used_answers.add(f"another {number}", "used")
    with pytest.raises(CallStateError):
        await pipeline.run(waiting, run, grant=waiting.request.grant("ann"))

    assert isinstance(first, Completed)
    assert paid == [5]


async def test_a_call_that_was_done_is_executed_by_no_step() -> None:
    paid: list[int] = []
    pipeline = Pipeline([paying(paid)])
    suspended = await pipeline.run(await begun(pipeline))
    assert isinstance(suspended, Suspended)

    call = await pipeline.recover(suspended, grant=suspended.request.done("paid by hand"))
    assert is_call(call)
    executed = await pipeline.execute(call)
    assert is_call(executed)
    outcome = await pipeline.finish(executed)

    assert (outcome.text(), paid) == ("paid by hand", [])


async def test_a_call_that_did_not_pass_its_gates_is_not_executed() -> None:
    paid: list[int] = []
    pipeline = Pipeline([paying(paid, requires_approval=True)])
    received = pipeline.receive(ToolCall("pay", {"amount": 5}), Run())
    assert is_call(received)

    with pytest.raises(CallStateError):
        await pipeline.execute(received)

    assert paid == []


async def test_a_stream_is_kept_before_its_tool_runs() -> None:
    ran: list[int] = []

    @ez_tool
    async def count() -> AsyncIterator[int]:
        ran.append(1)
        yield 1

    recorder = DiesAt()
    with pytest.raises(Killed):
        await anext(
            Pipeline([count]).stream(ToolCall("count", {}, "c1"), Run(durability=Durability(recorder=recorder)))
        )

    assert (recorder.state["id"], recorder.state["state"], ran) == ("c1", "executing", [])


async def test_a_call_comes_back_from_json_as_it_was() -> None:
    pipeline = Pipeline([paying([], requires_approval=True)])
    suspended = await pipeline.run(ToolCall("pay", {"amount": 5, "code": "sesame"}, "c1"))
    assert isinstance(suspended, Suspended)
    state = json.loads(json.dumps(suspended.to_dict()["call"]))

    call = pipeline.restore(state, Run())

    assert is_call(call)
    assert (call.id, call.name, call.state) == ("c1", "pay", "suspended")
    assert call.arguments == {"amount": 5, "code": SecretStr("sesame")}


@pytest.mark.parametrize(
    ("arguments", "change", "tools", "repeated"),
    [
        ({}, {}, {}, True),
        ({"amount": 6}, {}, {}, False),
        ({}, {"call_id": "c2"}, {}, False),
        ({}, {"definition": "other"}, {}, False),
        ({}, {"principal": "bob"}, {}, False),
        ({}, {"expires_at": datetime(2020, 1, 1, tzinfo=UTC)}, {}, False),
        ({}, {}, {"idempotent": False}, False),
    ],
)
async def test_the_grant_by_which_a_call_was_begun_serves_the_same_call_of_an_idempotent_tool(
    arguments: dict[str, Any], change: dict[str, Any], tools: dict[str, Any], repeated: bool
) -> None:
    pipeline = Pipeline([paying([], **{"requires_approval": True, "idempotent": True, **tools})])
    run = Run(principal="ann")
    asked = await pipeline.run(ToolCall("pay", {"amount": 5}, "c1"), run)
    assert isinstance(asked, Suspended)
    used = replace(asked.request.grant("eve"), **change)

    made = await pipeline.recover(ToolCall("pay", {"amount": 5, **arguments}, "c1"), run, used=used)

    assert is_call(made) == repeated
    assert not repeated or made.grant == used


async def test_each_time_a_call_may_have_been_made_is_asked_about_by_itself() -> None:
    pipeline, call = Pipeline([paying([])]), ToolCall("pay", {"amount": 5}, "c1")

    async def asked(begun: int) -> str:
        made = await pipeline.recover(call, Run(id="r1"), begun=begun)
        assert isinstance(made, Suspended)
        assert made.request.in_doubt
        return made.request.id

    assert await asked(1) == await asked(1)
    assert await asked(1) != await asked(2)


async def test_a_call_that_has_ended_is_not_admitted_again() -> None:
    pipeline = Pipeline([paying([])])
    call = await pipeline.admit(ToolCall("pay", {"amount": 5}))
    assert is_call(call)
    await pipeline.run(call)

    with pytest.raises(CallStateError):
        await pipeline.readmit(call, arguments={"amount": 6})

    assert call.arguments["amount"] == 5


# --- one JSON, taken up twice


def allowed() -> Run:
    """A run in which every call of `pay` is approved."""
    run = Run()
    run.add_standing_grant(Grant("pay", "ann", scope="tool"))
    return run


async def written(pipeline: Pipeline, run: Run) -> dict[str, Any]:
    """Return the JSON of a call of `pay` that passed its gates."""
    call = await pipeline.admit(ToolCall("pay", {"amount": 5}, "c1"), run)
    assert is_call(call)
    return json.loads(json.dumps(call.to_dict()))


async def test_a_call_that_is_restored_twice_is_executed_once_in_a_run() -> None:
    paid: list[int] = []
    pipeline, run = Pipeline([paying(paid, requires_approval=True)]), allowed()
    state = await written(pipeline, run)

    await pipeline.run(state, run)
    with pytest.raises(CallStateError, match="executed before"):
        await pipeline.run(state, run)

    assert paid == [5]


async def test_a_call_and_its_json_are_executed_once_in_a_run() -> None:
    paid: list[int] = []
    pipeline = Pipeline([paying(paid)])
    run = Run()
    call = await pipeline.admit(ToolCall("pay", {"amount": 5}, "c1"), run)
    assert is_call(call)
    state = json.loads(json.dumps(call.to_dict()))

    await pipeline.run(call)
    with pytest.raises(CallStateError, match="executed before"):
        await pipeline.run(state, run)

    assert paid == [5]


async def test_what_a_run_has_executed_is_known_where_it_goes_on() -> None:
    paid: list[int] = []
    pipeline, run, later = Pipeline([paying(paid, requires_approval=True)]), allowed(), allowed()
    state = await written(pipeline, run)

    await pipeline.run(state, run)
    later.restore(json.loads(json.dumps(run.counted())))
    with pytest.raises(CallStateError, match="executed before"):
        await pipeline.run(state, later)

    assert paid == [5]


async def test_two_calls_of_one_id_are_two_calls() -> None:
    paid: list[int] = []
    pipeline, run = Pipeline([paying(paid, requires_approval=True)]), allowed()
    first, second = await written(pipeline, run), await written(pipeline, run)

    await pipeline.run(first, run)
    await pipeline.run(second, run)

    assert paid == [5, 5]


async def test_a_tool_that_asks_first_may_be_executed_again_after_it_was_restored() -> None:
    asked: list[bool] = []

    @ez_tool
    async def pay(ctx: RunContext[Any], amount: int) -> str:
        asked.append(ctx.approved)
        if not ctx.approved:
            raise ApprovalRequired
        return "paid"

    pipeline, run = Pipeline([pay]), Run()
    suspended = await pipeline.run(await written(pipeline, run), run)
    assert isinstance(suspended, Suspended)

    outcome = await pipeline.run(suspended, run, grant=suspended.request.grant())

    assert isinstance(outcome, Completed)
    assert asked == [False, True]


@pytest.mark.parametrize("field", ["name", "id", "arguments", "origin", "metadata", "decisions", "asks"])
async def test_a_state_that_lacks_a_field_is_refused_by_its_name(field: str) -> None:
    pipeline = Pipeline([paying([])])
    state = await begun(pipeline)
    del state[field]

    with pytest.raises(ValueError, match=f"this is not a valid Call: the field `{field}` is missing"):
        await pipeline.recover(state)


async def test_a_new_call_that_is_given_as_a_dict_is_told_what_to_write() -> None:
    with pytest.raises(ValueError, match=r"its `state` is missing. A new call is ToolCall\(name, arguments\)"):
        await Pipeline([paying([])]).run({"name": "pay", "arguments": {"cents": 1}})


async def test_a_suspended_call_that_was_stored_without_its_state_is_refused() -> None:
    paid: list[int] = []
    pipeline = Pipeline([paying(paid, requires_approval=True)])
    outcome = await pipeline.run(ToolCall("pay", {"amount": 5}))
    assert isinstance(outcome, Suspended)

    with pytest.raises(ValueError, match="a Call is read from a dict"):
        await pipeline.run(replace(outcome, call=None), grant=outcome.request.grant(by="ann"))
    assert paid == []


async def test_standing_grants_do_not_come_along_with_what_a_run_counted() -> None:
    paid: list[int] = []
    pipeline, run, later = Pipeline([paying(paid, requires_approval=True)]), allowed(), Run()

    later.restore(json.loads(json.dumps(run.counted())))
    outcome = await pipeline.run(ToolCall("pay", {"amount": 5}), later)

    assert isinstance(outcome, Suspended)
    assert paid == []


async def test_a_call_in_doubt_that_was_begun_with_other_arguments_is_asked_about_with_these() -> None:
    paid: list[int] = []
    pipeline, call = Pipeline([paying(paid, requires_approval=True)]), ToolCall("pay", {"amount": 500}, "c1")
    asked = await pipeline.run(call, Run(id="r1"))
    assert isinstance(asked, Suspended)
    used = asked.request.grant("eve", override_args={"amount": 5})

    doubtful = await pipeline.recover(call, Run(id="r1"), used=used)
    assert isinstance(doubtful, Suspended)
    again = await pipeline.recover(call, Run(id="r1"), used=used, grant=doubtful.request.grant("eve"))

    assert (doubtful.request.in_doubt, doubtful.request.arguments["amount"]) == (True, 5)
    assert is_call(again)
    assert again.arguments["amount"] == 5
