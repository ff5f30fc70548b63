"""For a way in that keeps calls between the steps: one is read early, asked about again, executed by the host."""

from typing import Any

import pytest

from toolcrib.calls import Ask, Completed, Failed, Reject, Rejected, RunNormally, Suspended, ToolCall
from toolcrib.errors import InvalidArguments
from toolcrib.hooks import HookSet
from toolcrib.pipeline import Call, CallLimits, Pipeline, Run, is_call
from toolcrib.testing import RecordingSink
from toolcrib.tools import Tool, ez_tool


def pay(**options: Any) -> Tool[..., Any]:
    @ez_tool(name="pay", **options)
    async def make(amount: int) -> int:
        return amount

    return make


def deciding(decision: Any) -> HookSet:
    hooks = HookSet()

    @hooks.register
    async def decide(call: Any, given: Any) -> Any:
        return decision(given) if callable(decision) else decision

    return hooks


async def prepared(pipeline: Pipeline, scope: Run) -> Call:
    made = await pipeline.admit(ToolCall("pay", {"amount": 3}), scope)
    assert is_call(made)
    return made


async def test_receiving_a_call_counts_and_tells_nothing() -> None:
    sink, scope = RecordingSink(), Run(limits=CallLimits(total=1))
    pipeline = Pipeline([pay()], sinks=[sink])

    fits, misfit = (pipeline.receive(ToolCall("pay", {"amount": given}), scope) for given in (3, "x"))

    assert is_call(fits)
    assert isinstance(misfit, Failed)
    assert (misfit.code, sink.events, scope.calls, scope.retries) == ("invalid_arguments", [], {}, {})


async def test_a_received_call_is_prepared_like_any_other() -> None:
    sink, scope = RecordingSink(), Run(limits=CallLimits(total=1))
    pipeline = Pipeline([pay()], sinks=[sink])
    calls = [pipeline.receive(ToolCall("pay", {"amount": n}), scope) for n in (1, 2)]

    first, second = [await pipeline.admit(call, scope) for call in calls if is_call(call)]

    assert is_call(first)
    assert isinstance(second, Rejected)
    assert (second.source, sink.kinds()) == ("limit", ["received", "received", "ended"])


async def test_hooks_for_one_call_are_asked_before_the_pipelines() -> None:
    pipeline = Pipeline([pay()], hooks=deciding(Reject("the pipeline's")))

    outcome = await pipeline.admit(ToolCall("pay", {"amount": 3}), Run(), hooks=deciding(Reject("its own")))

    assert isinstance(outcome, Rejected)
    assert outcome.reason == "its own"


@pytest.mark.parametrize(
    ("decision", "kind"),
    [
        (Reject("no"), Rejected),
        (Ask("sure?"), Suspended),
        (RunNormally({"amount": 4}), Suspended),
        (RunNormally, None),
    ],
)
async def test_another_pass_asks_for_approval_again_where_it_changed_something(
    decision: Any, kind: type | None
) -> None:
    pipeline, scope = Pipeline([pay(requires_approval=True)]), Run()
    waiting = await pipeline.admit(ToolCall("pay", {"amount": 3}), scope)
    assert isinstance(waiting, Suspended)
    granted = await pipeline.admit(waiting, scope, grant=waiting.request.grant())
    assert is_call(granted)

    made = await pipeline.readmit(granted, hooks=deciding(decision))

    assert is_call(made) if kind is None else isinstance(made, kind)


async def test_hooks_for_an_admitted_call_are_not_left_out_by_admit() -> None:
    pipeline, scope = Pipeline([pay()]), Run()
    call = await prepared(pipeline, scope)

    with pytest.raises(TypeError, match=r"pipeline\.readmit\(call, hooks=hooks\)"):
        await pipeline.admit(call, hooks=deciding(Reject("no")))


async def test_edited_arguments_are_validated() -> None:
    pipeline, scope = Pipeline([pay()]), Run()
    call = await prepared(pipeline, scope)

    with pytest.raises(InvalidArguments):
        await pipeline.readmit(call, arguments={"amount": "x"})
    edited = await pipeline.readmit(call, arguments={"amount": 4})

    assert is_call(edited)
    assert edited.arguments == {"amount": 4}


async def test_what_the_host_executed_is_finished_and_recorded() -> None:
    sink, scope = RecordingSink(), Run()
    pipeline = Pipeline([pay()], sinks=[sink])
    call = await prepared(pipeline, scope)

    outcome = await pipeline.finish(pipeline.executed(call, 30))

    assert isinstance(outcome, Completed)
    assert (outcome.value, sink.kinds()) == (30, ["received", "started", "ended"])
