"""For a door that keeps calls between the steps: one is read early, asked about again, executed by the host."""

from typing import Any

import pytest

from toolcrib.calls import Ask, Completed, Failed, Reject, Rejected, RunNormally, Suspended, ToolCall
from toolcrib.errors import InvalidArguments
from toolcrib.hooks import HookSet
from toolcrib.pipeline import CallLimits, Pipeline, Prepared, Run
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


async def prepared(pipeline: Pipeline, scope: Run) -> Prepared:
    made = await pipeline.prepare(ToolCall("pay", {"amount": 3}), scope)
    assert isinstance(made, Prepared)
    return made


async def test_receiving_a_call_counts_and_tells_nothing() -> None:
    sink, scope = RecordingSink(), Run(limits=CallLimits(total=1))
    pipeline = Pipeline([pay()], sinks=[sink])

    fits, misfit = (pipeline.receive(ToolCall("pay", {"amount": given}), scope) for given in (3, "x"))

    assert isinstance(fits, Prepared)
    assert isinstance(misfit, Failed)
    assert (misfit.code, sink.events, scope.calls, scope.retries) == ("invalid_arguments", [], {}, {})


async def test_a_received_call_is_prepared_like_any_other() -> None:
    sink, scope = RecordingSink(), Run(limits=CallLimits(total=1))
    pipeline = Pipeline([pay()], sinks=[sink])
    calls = [pipeline.receive(ToolCall("pay", {"amount": n}), scope) for n in (1, 2)]

    first, second = [await pipeline.prepare(call, scope) for call in calls if isinstance(call, Prepared)]

    assert isinstance(first, Prepared)
    assert isinstance(second, Rejected)
    assert (second.source, sink.kinds()) == ("limit", ["received", "ended"])


async def test_hooks_for_one_call_are_asked_before_the_pipelines() -> None:
    pipeline = Pipeline([pay()], hooks=deciding(Reject("the pipeline's")))

    outcome = await pipeline.prepare(ToolCall("pay", {"amount": 3}), Run(), hooks=deciding(Reject("its own")))

    assert isinstance(outcome, Rejected)
    assert outcome.reason == "its own"


@pytest.mark.parametrize(
    ("decision", "kind"),
    [
        (Reject("no"), Rejected),
        (Ask("sure?"), Suspended),
        (RunNormally({"amount": 4}), Suspended),
        (RunNormally, Prepared),
    ],
)
async def test_another_pass_asks_for_approval_again_where_it_changed_something(decision: Any, kind: type) -> None:
    pipeline, scope = Pipeline([pay(requires_approval=True)]), Run()
    waiting = await pipeline.prepare(ToolCall("pay", {"amount": 3}), scope)
    assert isinstance(waiting, Suspended)
    granted = await pipeline.prepare(waiting, scope, waiting.request.grant())
    assert isinstance(granted, Prepared)

    assert isinstance(await pipeline.again(granted, scope, hooks=deciding(decision)), kind)


async def test_edited_arguments_are_validated() -> None:
    pipeline, scope = Pipeline([pay()]), Run()
    call = await prepared(pipeline, scope)

    with pytest.raises(InvalidArguments):
        await pipeline.again(call, scope, arguments={"amount": "x"})
    edited = await pipeline.again(call, scope, arguments={"amount": 4})

    assert isinstance(edited, Prepared)
    assert edited.arguments == {"amount": 4}


async def test_what_the_host_executed_is_finished_and_recorded() -> None:
    sink, scope = RecordingSink(), Run()
    pipeline = Pipeline([pay()], sinks=[sink])
    call = await prepared(pipeline, scope)

    outcome = await pipeline.finish(pipeline.performed(call, 30), scope)

    assert isinstance(outcome, Completed)
    assert (outcome.value, sink.kinds()) == (30, ["received", "started", "ended"])
