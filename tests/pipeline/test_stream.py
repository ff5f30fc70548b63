"""Streams: values as they come, what holds them back, and how they end."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import pytest

from tests.virtual_time import in_virtual_time
from toolcrib.calls import Completed, Failed, Outcome, Rejected, Suspended, ToolCall, Yielded
from toolcrib.hooks import GlobalHooks, per_value
from toolcrib.pipeline import CallLimits, Channel, Pipeline, Run
from toolcrib.testing import RecordingSink
from toolcrib.tools import Tool, ez_tool
from toolcrib.toolsets import Toolset


def counting(seen: list[str], **options: Any) -> Tool[..., Any]:
    """Return a stream of numbers that notes what it does; the sixth fails."""

    @ez_tool(**options)
    async def count(to: int) -> Any:
        try:
            for n in range(to):
                if n == 5:
                    raise ValueError("five")
                seen.append(f"make {n}")
                yield n
        finally:
            seen.append("closed")

    return count


async def items(pipeline: Pipeline, to: int = 2, scope: Run | None = None) -> tuple[list[Any], Outcome]:
    found: list[Any] = []
    async for item in pipeline.stream(ToolCall("count", {"to": to}), scope):
        if not isinstance(item, Yielded):
            return found, item
        found.append(item.value)
    raise AssertionError


async def test_values_come_one_by_one_and_the_outcome_last() -> None:
    seen: list[str] = []

    async for item in Pipeline([counting(seen)]).stream(ToolCall("count", {"to": 2})):  # the order of both is the point
        seen.append(f"got {item.value}" if isinstance(item, Yielded) else f"end {item.text()}")  # noqa: PERF401

    assert seen == ["make 0", "got 0", "make 1", "got 1", "closed", "end [0, 1]"]


@in_virtual_time
async def test_the_time_in_which_a_consumer_holds_a_value_is_not_the_tools() -> None:
    @ez_tool(timeout=0.2)
    async def count() -> Any:
        for number in range(3):
            await asyncio.sleep(0.001)
            yield number

    got: list[Any] = []
    async for item in Pipeline([count]).stream(ToolCall("count")):
        await asyncio.sleep(0.15)
        got.append(item)

    assert [type(item) for item in got] == [Yielded, Yielded, Yielded, Completed]


@in_virtual_time
async def test_the_time_of_all_steps_together_is_the_tools() -> None:
    @ez_tool(timeout=0.2)
    async def count(to: int) -> Any:
        for number in range(to):
            await asyncio.sleep(0.08)
            yield number

    values, outcome = await items(Pipeline([count]), to=60)

    assert isinstance(outcome, Failed)
    assert outcome.code == "tool_timeout"
    assert 0 < len(values) < 5


async def test_a_tool_that_returns_has_only_an_outcome() -> None:
    @ez_tool
    async def count(to: int) -> int:
        return to

    values, outcome = await items(Pipeline([count]))

    assert values == []
    assert isinstance(outcome, Completed)
    assert outcome.value == 2


async def test_an_error_comes_after_the_values() -> None:
    values, outcome = await items(Pipeline([counting([])]), 9)

    assert values == [0, 1, 2, 3, 4]
    assert isinstance(outcome, Failed)
    assert outcome.message == "five"


@pytest.mark.parametrize(
    ("options", "scope", "kind"),
    [
        ({"default": False}, {}, Failed),
        ({"requires_approval": True}, {}, Suspended),
        ({}, {"limits": CallLimits(total=0)}, Rejected),
    ],
)
async def test_a_gate_that_is_shut_gives_the_outcome_alone(options: Any, scope: Any, kind: type) -> None:
    seen: list[str] = []

    values, outcome = await items(Pipeline([counting(seen, **options)]), 2, Run(**scope))

    assert (values, seen) == ([], [])
    assert isinstance(outcome, kind)


async def test_closing_early_stops_the_tool_and_the_record() -> None:
    seen: list[str] = []
    told: list[Any] = []
    count, sink = counting(seen), RecordingSink()

    @count.after_invoke
    async def after(result: Any) -> None:
        told.append(result)

    async with aclosing(Pipeline([count], sinks=[sink]).stream(ToolCall("count", {"to": 9}))) as values:
        async for item in values:
            if item == Yielded(1):
                break

    assert (seen[-1], told) == ("closed", [[0, 1]])
    assert sink.record.outcome == {"kind": "cancelled"}


async def test_what_a_consumer_throws_is_not_the_tools_failure() -> None:
    seen: list[str] = []
    sink = RecordingSink()
    stream = Pipeline([counting(seen)], sinks=[sink]).stream(ToolCall("count", {"to": 9}))
    await anext(stream)

    with pytest.raises(LookupError, match="the consumer's"):
        await stream.athrow(LookupError("the consumer's"))

    assert seen == ["make 0", "closed"]
    assert sink.record.outcome == {"kind": "cancelled"}


async def test_a_tool_that_fails_while_it_is_stopped_is_stopped() -> None:
    @ez_tool
    async def count() -> Any:
        try:
            yield 1
        finally:
            raise LookupError("on the way out")

    sink = RecordingSink()
    stream = Pipeline([count], sinks=[sink]).stream(ToolCall("count", {}))
    await anext(stream)

    await stream.aclose()

    assert sink.record.outcome == {"kind": "cancelled"}


async def test_cancelling_the_consumer_stops_the_tool() -> None:
    seen: list[str] = []
    sink, waiting = RecordingSink(), asyncio.Event()

    @ez_tool
    async def count(to: int) -> Any:
        try:
            yield 1
            waiting.set()
            await asyncio.Event().wait()
        finally:
            seen.append("closed")

    task = asyncio.create_task(items(Pipeline([count], sinks=[sink])))
    await waiting.wait()
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert seen == ["closed"]
    assert sink.record.outcome == {"kind": "cancelled"}


# --- post hooks


async def test_a_post_hook_holds_the_values_back() -> None:
    seen: list[str] = []
    post = {"count": lambda ctx, result, metadata: seen.append("post") or [n * 10 for n in result]}

    values, outcome = await items(Pipeline(Toolset([counting(seen)], post_hooks=post)))

    assert seen == ["make 0", "make 1", "closed", "post"]
    assert values == [0, 10]
    assert isinstance(outcome, Completed)
    assert outcome.value == [0, 10]


async def test_a_post_hook_may_make_one_value_of_a_stream() -> None:
    post = {"count": lambda ctx, result, metadata: sum(result)}

    values, outcome = await items(Pipeline(Toolset([counting([])], post_hooks=post)), 4)

    assert values == [6]
    assert isinstance(outcome, Completed)
    assert outcome.value == 6


@pytest.mark.parametrize("how", ["stream", "run"])
async def test_a_hook_for_each_value_lets_them_come(how: str) -> None:
    seen: list[str] = []

    async def double(ctx: Any, value: int, metadata: Any) -> int:
        seen.append(f"post {value}")
        return value * 10

    pipeline = Pipeline(Toolset([counting(seen)], post_hooks={"count": per_value(double)}))

    if how == "stream":
        values, outcome = await items(pipeline)
        assert values == [0, 10]
    else:
        outcome = await pipeline.run(ToolCall("count", {"to": 2}))

    assert seen == ["make 0", "post 0", "make 1", "post 1", "closed"]
    assert isinstance(outcome, Completed)
    assert outcome.value == [0, 10]


@pytest.mark.parametrize("how", ["stream", "run"])
async def test_a_hook_for_each_value_that_fails_shuts_the_stream(how: str) -> None:
    seen: list[str] = []

    def fail(ctx: Any, value: int, metadata: Any) -> None:
        raise LookupError("no")

    pipeline = Pipeline(Toolset([counting(seen)], post_hooks={"count": per_value(fail)}))

    outcome = (await items(pipeline))[1] if how == "stream" else await pipeline.run(ToolCall("count", {"to": 2}))

    assert isinstance(outcome, Failed)
    assert (outcome.code, seen) == ("hook_error", ["make 0", "closed"])


async def test_a_hook_for_each_value_is_an_ordinary_one_for_a_tool_that_returns() -> None:
    @ez_tool
    async def count(to: int) -> int:
        return to

    post = {"count": per_value(lambda ctx, value, metadata: value * 10)}

    _, outcome = await items(Pipeline(Toolset([count], post_hooks=post)))

    assert isinstance(outcome, Completed)
    assert outcome.value == 20


async def test_a_global_hook_may_see_each_value() -> None:
    post = GlobalHooks(post=[per_value(lambda ctx, name, value, metadata: f"{name} {value}")])

    values, _ = await items(Pipeline(Toolset([counting([])], global_hooks=post)))

    assert values == ["count 0", "count 1"]


# --- observers


@pytest.mark.parametrize("moment", ["before_invoke", "on_yield", "after_invoke"])
@pytest.mark.parametrize("how", ["stream", "run"])
async def test_what_an_observer_raises_fails_the_call_of_a_way_in_that_cannot_raise(moment: str, how: str) -> None:
    count, sink = counting([]), RecordingSink()

    @getattr(count, moment)
    async def fail() -> None:
        raise LookupError("hook")

    pipeline, scope = Pipeline([count], sinks=[sink]), Run(channel=Channel(hook_errors="fail"))

    outcome = (
        (await items(pipeline, 2, scope))[1]
        if how == "stream"
        else await pipeline.run(ToolCall("count", {"to": 2}), scope)
    )

    assert isinstance(outcome, Failed)
    assert (outcome.code, sink.record.outcome["code"]) == ("hook_error", "hook_error")
    assert "`fail`" in str(outcome.exception)


@pytest.mark.parametrize("how", ["stream", "run"])
async def test_what_an_observer_raises_reaches_the_host(how: str) -> None:
    count, sink = counting([]), RecordingSink()

    @count.on_yield
    async def fail() -> None:
        raise LookupError("hook")

    pipeline = Pipeline([count], sinks=[sink])

    with pytest.raises(LookupError, match="hook"):
        await (items(pipeline) if how == "stream" else pipeline.run(ToolCall("count", {"to": 2})))
    assert sink.record.outcome["code"] == "hook_error"


@pytest.mark.parametrize("errors", ["raise", "fail"])
async def test_an_observer_that_fails_while_a_stream_is_left(errors: Any) -> None:
    count, sink = counting([]), RecordingSink()

    @count.after_invoke
    async def fail() -> None:
        raise LookupError("hook")

    stream = Pipeline([count], sinks=[sink]).stream(
        ToolCall("count", {"to": 9}), Run(channel=Channel(hook_errors=errors))
    )
    await anext(stream)

    if errors == "raise":
        with pytest.raises(LookupError, match="hook"):
            await stream.aclose()
    else:
        await stream.aclose()
    assert sink.record.outcome["code"] == "hook_error"


async def test_a_stream_holds_no_slot_while_its_consumer_works() -> None:
    pipeline, run = Pipeline([counting([])]), Run(limits=CallLimits(concurrency=1))
    stream = pipeline.stream(ToolCall("count", {"to": 1}), run)
    await anext(stream)

    async with asyncio.timeout(60):
        inside = await pipeline.run(ToolCall("count", {"to": 1}), run)
    outcome = [item async for item in stream][-1]

    assert isinstance(inside, Completed)
    assert isinstance(outcome, Completed)


async def test_each_step_of_a_stream_holds_a_slot() -> None:
    inside, most = 0, 0

    @ez_tool
    async def steps() -> AsyncIterator[int]:
        nonlocal inside, most
        for number in range(3):
            inside += 1
            most = max(most, inside)
            await asyncio.sleep(0)
            inside -= 1
            yield number

    pipeline, run = Pipeline([steps]), Run(limits=CallLimits(concurrency=1))

    async def taken() -> None:
        async for _ in pipeline.stream(ToolCall("steps"), run):
            pass

    await asyncio.gather(*(taken() for _ in range(3)))

    assert most == 1


async def test_a_lock_keeps_others_out_of_a_stream_also_while_its_consumer_holds_a_value() -> None:
    seen: list[str] = []
    pipeline = Pipeline([counting(seen, lock=True)])
    stream = pipeline.stream(ToolCall("count", {"to": 2}))
    await anext(stream)

    other = asyncio.create_task(pipeline.run(ToolCall("count", {"to": 1})))
    for _ in range(20):
        await asyncio.sleep(0)
    before = list(seen)
    await stream.aclose()
    await other

    assert before == ["make 0"]
    assert seen == ["make 0", "closed", "make 0", "closed"]
