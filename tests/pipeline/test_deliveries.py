"""Deliveries: no value or result leaves the pipeline without passing them, whoever gave it."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from typing import Any

import pytest

from toolcrib.approvals import MemoryApprovalStore
from toolcrib.calls import Complete, Completed, Failed, Outcome, Suspended, ToolCall, Yielded
from toolcrib.hooks import HookSet, per_value
from toolcrib.pipeline import Pipeline, Run
from toolcrib.record import ListSink
from toolcrib.results import MemoryResultStore
from toolcrib.schema import RunContext
from toolcrib.tools import ez_tool, tool
from toolcrib.toolsets import Toolset

SECRET = "ann@example.org"


def mask(call: Any, value: Any) -> Any:
    """Mask the address in texts; what has passed twice is seen."""
    return value.replace(SECRET, "<masked>").replace("passed", "passed twice") if isinstance(value, str) else value


async def mask_later(call: Any, value: Any) -> Any:
    await asyncio.sleep(0)
    return mask(call, value)


class Broken:
    """A delivery that fails for texts."""

    name = "filter of addresses"

    def deliver(self, call: Any, value: Any) -> Any:
        if isinstance(value, str):
            raise RuntimeError("no list of addresses")
        return value


@ez_tool
async def read(path: str = "") -> str:
    """Read a file."""
    return f"{SECRET} passed"


@ez_tool
async def rows() -> AsyncIterator[str]:
    """Give rows."""
    yield f"1 {SECRET} passed"
    yield f"2 {SECRET} passed"


@ez_tool
def lines() -> Iterator[str]:
    """Give lines."""
    yield f"1 {SECRET} passed"
    yield f"2 {SECRET} passed"


def recorded(sink: ListSink) -> list[dict[str, Any]]:
    """Return all that a sink has: the short form of an event leaves its values out."""
    return [event.to_dict() for event in sink.events]


ROWS = ["1 <masked> passed twice", "2 <masked> passed twice"]


def options(of_run: bool, delivery: Any) -> tuple[Any, Run]:
    """Return tools and a run, one of which has the delivery."""
    tools = Toolset([read, rows, lines])
    return (tools, Run(deliveries=[delivery])) if of_run else (tools.with_deliveries(delivery), Run())


async def streamed(pipeline: Pipeline, call: Any, run: Run | None = None) -> tuple[list[Any], Outcome]:
    async with aclosing(pipeline.stream(call, run)) as items:
        found = [item async for item in items]
    values = [item.value for item in found if isinstance(item, Yielded)]
    [outcome] = [item for item in found if not isinstance(item, Yielded)]
    return values, outcome


@pytest.mark.parametrize("of_run", [False, True])
@pytest.mark.parametrize("delivery", [mask, mask_later])
async def test_a_result_passes_a_delivery_once(of_run: bool, delivery: Any) -> None:
    tools, run = options(of_run, delivery)

    outcome = await Pipeline(tools).run(ToolCall("read"), run)

    assert isinstance(outcome, Completed)
    assert outcome.value == "<masked> passed twice"


@pytest.mark.parametrize("of_run", [False, True])
@pytest.mark.parametrize("delivery", [mask, mask_later])
@pytest.mark.parametrize("name", ["rows", "lines"])
@pytest.mark.parametrize("live", [False, True])
async def test_each_value_of_a_stream_passes_a_delivery_once(
    of_run: bool, delivery: Any, name: str, live: bool
) -> None:
    tools, run = options(of_run, delivery)
    sink, pipeline, values = ListSink(), Pipeline(tools), ROWS

    if live:
        values, outcome = await streamed(pipeline, ToolCall(name), run.with_sinks(sink))
    else:
        outcome = await pipeline.run(ToolCall(name), run.with_sinks(sink))

    assert isinstance(outcome, Completed)
    assert values == outcome.value == ROWS
    assert [event.data["value"] for event in sink.events if event.kind == "yielded"] == ROWS
    assert SECRET not in json.dumps([record.to_dict() for record in sink.records])


async def test_deliveries_come_in_order_those_of_the_run_last() -> None:
    tools = Toolset([read]).with_deliveries(lambda call, value: "1", lambda call, value: value + "2")

    outcome = await Pipeline(Toolset([tools]).with_deliveries(lambda call, value: value + "3")).run(
        ToolCall("read"), Run(deliveries=[lambda call, value: value + "4"])
    )

    assert outcome.text() == "1234"


# --- behind other code of the host


def unmask(ctx: Any, result: Any, metadata: Any) -> Any:
    """Look the address up, as a post hook may."""
    return [f"{SECRET} passed"] * len(result) if isinstance(result, list) else f"{SECRET} passed"


@pytest.mark.parametrize("live", [False, True])
@pytest.mark.parametrize("hook", [unmask, per_value(unmask)])
@pytest.mark.parametrize("name", ["read", "rows"])
async def test_what_a_post_hook_makes_passes_deliveries(live: bool, hook: Any, name: str) -> None:
    pipeline = Pipeline(Toolset([read, rows], post_hooks={name: hook}).with_deliveries(mask))
    sink, values = ListSink(), []

    if live:
        values, outcome = await streamed(pipeline, ToolCall(name), Run(sinks=[sink]))
    else:
        outcome = await pipeline.run(ToolCall(name), Run(sinks=[sink]))

    assert isinstance(outcome, Completed)
    masked = "<masked> passed twice"
    assert outcome.value == ([masked, masked] if name == "rows" else masked)
    assert SECRET not in repr((values, recorded(sink)))


class Unmasking(Toolset):
    """A toolset whose tools run in the place of their own functions."""

    async def _call_tool_func(self, tool_args: Any, ctx: Any, tool: Any) -> Any:
        result = await tool.call_func(tool_args, ctx)
        return [f"{SECRET} passed"] * 2 if isinstance(result, list) else f"{SECRET} passed"


@pytest.mark.parametrize("live", [False, True])
@pytest.mark.parametrize("name", ["read", "rows"])
async def test_what_a_runner_around_the_tool_returns_passes_deliveries(live: bool, name: str) -> None:
    pipeline = Pipeline(Unmasking([read, rows]).with_deliveries(mask))
    sink = ListSink()

    if live:
        _, outcome = await streamed(pipeline, ToolCall(name), Run(sinks=[sink]))
    else:
        outcome = await pipeline.run(ToolCall(name), Run(sinks=[sink]))

    assert isinstance(outcome, Completed)
    masked = "<masked> passed twice"
    assert outcome.value == ([masked, masked] if name == "rows" else masked)
    assert SECRET not in repr(recorded(sink))


@pytest.mark.parametrize("of_gate", [False, True])
async def test_a_result_that_a_hook_or_a_gate_gives_passes_deliveries(of_gate: bool) -> None:
    hooks = HookSet()

    @hooks.on("read")
    async def decide(call: Any, given: Any) -> Any:
        return Complete(f"{SECRET} passed")

    tools = Toolset([read]).with_deliveries(mask)
    tools = tools.with_gates(lambda call: Complete(f"{SECRET} passed")) if of_gate else tools.with_hooks(hooks)

    outcome = await Pipeline(tools).run(ToolCall("read"))

    assert outcome.text() == "<masked> passed twice"


async def test_a_result_that_the_host_gives_passes_deliveries() -> None:
    pipeline = Pipeline(Toolset([read]).with_deliveries(mask))

    given = await pipeline.completed("read", "c1", f"{SECRET} passed", Run())
    call: Any = await pipeline.admit(ToolCall("read"))
    finished = await pipeline.finish(pipeline.executed(call, f"{SECRET} passed"))

    assert (given.text(), finished.text()) == ("<masked> passed twice", "<masked> passed twice")


@pytest.mark.parametrize("name", ["read", "rows"])
async def test_a_result_that_the_host_gives_in_the_place_of_another_passes_deliveries(name: str) -> None:
    pipeline, run = Pipeline(Toolset([read, rows]).with_deliveries(mask)), Run(sinks=[ListSink()])
    call: Any = await pipeline.execute(await pipeline.admit(ToolCall(name), run))  # pyright: ignore[reportArgumentType]

    outcome = await pipeline.finish(pipeline.executed(call, f"{SECRET} passed"))

    assert outcome.text() == "<masked> passed twice"


async def test_a_result_that_an_approver_gives_passes_deliveries() -> None:
    pipeline = Pipeline(Toolset([read]).with_deliveries(mask))
    suspended: Any = await pipeline.recover(ToolCall("read", {}, "c1"))
    assert isinstance(suspended, Suspended)

    outcome = await pipeline.run(suspended, grant=suspended.request.done(f"{SECRET} passed"))

    assert outcome.text() == "<masked> passed twice"


@pytest.mark.parametrize("name", ["read", "rows"])
async def test_a_call_that_comes_back_with_its_result_passes_deliveries_once(name: str) -> None:
    pipeline, run = Pipeline(Toolset([read, rows]).with_deliveries(mask)), Run(sinks=[ListSink()])
    call: Any = await pipeline.execute(await pipeline.admit(ToolCall(name), run))  # pyright: ignore[reportArgumentType]

    outcome = await pipeline.run(json.loads(json.dumps(call.to_dict())))

    assert isinstance(outcome, Completed)
    assert outcome.value == (ROWS if name == "rows" else "<masked> passed twice")


async def test_a_result_that_a_store_has_passes_deliveries() -> None:
    store = MemoryApprovalStore()
    pipeline = Pipeline(Toolset([read]).with_approval().with_deliveries(mask))
    suspended: Any = await pipeline.run(ToolCall("read", {}, "c1"), Run(approvals=store))
    grant = suspended.request.grant()
    first = await pipeline.run(suspended, Run(approvals=store), grant=grant)

    second = await pipeline.run(json.loads(json.dumps(suspended.call.to_dict())), Run(approvals=store), grant=grant)

    assert (first.text(), second.text()) == ("<masked> passed twice", "<masked> passed twice")


async def test_a_long_result_is_kept_as_it_was_delivered() -> None:
    @ez_tool
    async def report() -> str:
        """Write a report."""
        return f"{SECRET} passed " * 100

    store = MemoryResultStore(max_result_chars=200)
    pipeline = Pipeline(Toolset([report], results=store).with_deliveries(mask))
    run = Run()

    outcome: Any = await pipeline.run(ToolCall("report"), run)
    assert outcome.kept is not None
    rest = await pipeline.run(ToolCall("read_result", {"handle": outcome.kept.handle}), run)

    assert "<masked> passed twice" in outcome.text()
    assert "<masked> passed twice" in rest.text()
    assert SECRET not in outcome.text() + rest.text()


# --- errors


async def test_an_error_is_not_a_value() -> None:
    @ez_tool
    async def fail() -> None:
        raise ValueError(SECRET)

    seen: list[Any] = []
    pipeline = Pipeline(Toolset([fail]).with_deliveries(lambda call, value: seen.append(value)))
    outcome = await pipeline.run(ToolCall("fail"))

    assert isinstance(outcome, Failed)
    assert (outcome.code, outcome.message, seen) == ("tool_error", SECRET, [])


@pytest.mark.parametrize("live", [False, True])
@pytest.mark.parametrize("name", ["read", "rows"])
async def test_a_delivery_that_fails_fails_the_call_and_the_value_goes_nowhere(live: bool, name: str) -> None:
    pipeline = Pipeline(Toolset([read, rows], results=MemoryResultStore()).with_deliveries(Broken()))
    sink, values = ListSink(), []

    if live:
        values, outcome = await streamed(pipeline, ToolCall(name), Run(sinks=[sink]))
    else:
        outcome = await pipeline.run(ToolCall(name), Run(sinks=[sink]))

    assert isinstance(outcome, Failed)
    assert outcome.error_type == "HookError"
    assert "filter of addresses" in str(outcome.exception)
    assert "no list of addresses" in str(outcome.exception)
    assert SECRET not in repr((values, outcome, recorded(sink)))


async def test_a_delivery_that_is_cancelled_cancels_the_call() -> None:
    async def endless(call: Any, value: Any) -> Any:
        return await asyncio.Event().wait()

    task = asyncio.create_task(Pipeline(Toolset([read]).with_deliveries(endless)).run(ToolCall("read")))
    await asyncio.sleep(0.01)
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task


# --- reports


@tool()
async def count_aloud(ctx: RunContext[Any]) -> str:
    """Count."""
    for number in range(2):
        if ctx.report is not None:
            ctx.report(f"{number} {SECRET} passed")
    return "done"


@ez_tool
def count_in_a_thread(ctx: RunContext[Any]) -> str:
    """Count, in a thread."""
    assert threading.current_thread() is not threading.main_thread()
    for number in range(2):
        if ctx.report is not None:
            ctx.report(f"{number} {SECRET} passed")
    return "done"


REPORTS = ["0 <masked> passed twice", "1 <masked> passed twice"]


@pytest.mark.parametrize("live", [False, True])
@pytest.mark.parametrize("delivery", [mask, mask_later])
@pytest.mark.parametrize("counting", [count_aloud, count_in_a_thread])
async def test_what_a_tool_reports_passes_deliveries(live: bool, delivery: Any, counting: Any) -> None:
    pipeline, sink, values = Pipeline(Toolset([counting]).with_deliveries(delivery)), ListSink(), REPORTS

    if live:
        values, outcome = await streamed(pipeline, ToolCall(counting.name), Run(sinks=[sink]))
    else:
        outcome = await pipeline.run(ToolCall(counting.name), Run(sinks=[sink]))

    assert outcome.text() == "done"
    assert values == REPORTS
    kinds = [event.data["value"] if event.kind == "yielded" else event.kind for event in sink.events]
    assert kinds == ["received", "started", *REPORTS, "ended"]


@pytest.mark.parametrize("live", [False, True])
async def test_a_delivery_that_fails_for_a_report_fails_the_call(live: bool) -> None:
    pipeline, sink, values = Pipeline(Toolset([count_aloud]).with_deliveries(Broken())), ListSink(), []

    if live:
        values, outcome = await streamed(pipeline, ToolCall("count_aloud"), Run(sinks=[sink]))
    else:
        outcome = await pipeline.run(ToolCall("count_aloud"), Run(sinks=[sink]))

    assert isinstance(outcome, Failed)
    assert "filter of addresses" in str(outcome.exception)
    assert SECRET not in repr((values, outcome, recorded(sink)))
