"""Step 6: what runs, what its errors become, deadlines, executors."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest

from tests.pipeline.calling import raising, run
from tests.virtual_time import in_virtual_time
from toolcrib.calls import Completed, Failed, ToolCall
from toolcrib.errors import InvalidArguments, ModelRetry, UnknownTool
from toolcrib.pipeline import Call, Pipeline, Run
from toolcrib.schema import RunContext
from toolcrib.testing import RecordingSink
from toolcrib.tools import Tool, ez_tool, tool
from toolcrib.toolsets import LiveTools, Toolset

# --- what a tool raises


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


class MuteRetry(ModelRetry):
    def __str__(self) -> str:
        raise RuntimeError("no words")


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (ValueError("wrong"), "tool_error", "wrong"),
        (ValueError(), "tool_error", "ValueError"),
        (Mute(), "tool_error", "Mute"),
        (MuteRetry("x"), "model_retry", "MuteRetry"),
        (ExceptionGroup("many", [ValueError("a")]), "tool_error", "many"),
        (StopAsyncIteration(), "tool_error", ""),
        (TimeoutError("slow"), "tool_error", "slow"),
        (KeyError("x"), "tool_error", "'x'"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else None,
)
async def test_what_a_tool_raises_becomes_a_failure(error: Exception, code: str, said: str) -> None:
    outcome = await run(raising(error))

    assert isinstance(outcome, Failed)
    assert outcome.code == code
    assert said in outcome.message


@pytest.mark.parametrize(("most", "length"), [(90, 200), (None, 100_100)])
async def test_a_very_long_message_is_cut_like_a_result(most: int | None, length: int) -> None:
    outcome = await run(raising(ValueError("x" * 1_000_000)), max_result_chars=most)

    assert isinstance(outcome, Failed)
    assert len(outcome.text()) < length
    assert "characters cut" in outcome.message


async def test_the_live_exception_is_kept_for_the_host() -> None:
    error = ValueError("wrong")

    outcome = await run(raising(error))

    assert isinstance(outcome, Failed)
    assert outcome.exception is error


async def test_arguments_that_another_tool_refused_are_not_the_models_to_mend() -> None:
    @tool
    async def inner(a: int) -> None: ...

    async def outer() -> None:
        await inner()  # type: ignore[call-arg]

    scope = Run()
    outcome = await run(outer, scope=scope)

    assert isinstance(outcome, Failed)
    assert (outcome.code, outcome.retryable, scope.retries) == ("tool_error", False, {})
    assert isinstance(outcome.exception, InvalidArguments)


class Quit(KeyboardInterrupt): ...


@pytest.mark.parametrize("stream", [False, True])
async def test_ctrl_c_goes_through_and_the_record_is_closed(stream: bool) -> None:
    async def fail() -> None:
        raise Quit

    async def failing() -> Any:
        yield 1
        raise Quit

    sink = RecordingSink()

    with pytest.raises(Quit):
        await run(failing if stream else fail, scope=Run(sinks=(sink,)))
    assert sink.record.outcome == {"kind": "cancelled"}


async def _await_cancelled() -> None:
    task = asyncio.create_task(asyncio.sleep(9))
    task.cancel()
    await task


@pytest.mark.parametrize("stream", [False, True])
async def test_a_tool_that_awaits_a_cancelled_task_has_failed(stream: bool) -> None:
    async def join() -> None:
        await _await_cancelled()

    async def joining() -> Any:
        yield 1
        await _await_cancelled()

    outcome = await run(joining if stream else join)

    assert isinstance(outcome, Failed)
    assert (outcome.code, outcome.retryable) == ("tool_cancelled", False)


@pytest.mark.parametrize("stream", [False, True])
async def test_a_call_that_is_cancelled_is_not_the_tools_failure(stream: bool) -> None:
    began, sink = asyncio.Event(), RecordingSink()

    async def wait() -> None:
        began.set()
        await asyncio.sleep(9)

    async def waiting() -> Any:
        yield 1
        await wait()

    task = asyncio.create_task(run(waiting if stream else wait, scope=Run(sinks=(sink,))))
    await began.wait()
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert sink.record.outcome == {"kind": "cancelled"}


# --- what a tool returns


@pytest.mark.parametrize(
    "value", [ValueError("kept"), object(), b"\xff", [print], (n for n in "ab"), Failed("a", "b", "c", "d"), None]
)
async def test_a_tool_may_return_anything(value: Any) -> None:
    async def find() -> Any:
        return value

    sink = RecordingSink()

    outcome = await run(find, scope=Run(sinks=(sink,)))

    assert isinstance(outcome, Completed)
    assert outcome.value is value
    assert sink.record.outcome["kind"] == "completed"


async def test_a_generator_that_was_returned_is_whole_after_recording() -> None:
    async def find() -> Any:
        return (n for n in "ab")

    outcome = await run(find, scope=Run(sinks=(RecordingSink(),)))

    assert isinstance(outcome, Completed)
    assert list(outcome.value) == ["a", "b"]


class Adder:
    def __init__(self, base: int) -> None:
        self.base = base

    async def add(self, n: int) -> int:
        return self.base + n

    def add_sync(self, n: int) -> int:
        return self.base + n

    async def __call__(self, n: int) -> int:
        return self.base + n


async def add(base: int, n: int) -> int:
    return base + n


@pytest.mark.parametrize(
    "fn",
    [
        Adder(1).add,
        Adder(1).add_sync,
        Adder(1),
        partial(add, 1),
        partial(Adder(1).add_sync),
        lambda n: 1 + n,
        lambda n: add(1, n),
    ],
    ids=["method", "sync method", "object", "partial", "partial method", "lambda", "lambda of a coroutine"],
)
async def test_whatever_can_be_called_runs(fn: Any) -> None:
    outcome = await run(fn, {"n": 2}, name="add")

    assert isinstance(outcome, Completed)
    assert int(outcome.value) == 3


async def test_positional_and_starred_parameters_are_filled() -> None:
    async def collect(first: int, /, second: int = 2, *rest: int, flag: bool = False, **extra: str) -> Any:
        return first, second, rest, flag, extra

    outcome = await run(collect, {"first": 1, "rest": [3, 4], "flag": True, "note": "x"})

    assert isinstance(outcome, Completed)
    assert outcome.value == (1, 2, (3, 4), True, {"note": "x"})


# --- deadlines


@in_virtual_time
async def test_a_deadline_counts_from_the_lock_on() -> None:
    release = asyncio.Event()

    async def wait(first: bool) -> str:
        if first:
            await release.wait()
        return "done"

    made = ez_tool(lock=True, name="wait")(wait)
    slow = asyncio.create_task(Pipeline([made]).run(ToolCall("wait", {"first": True})))
    await asyncio.sleep(0)
    quick = asyncio.create_task(Pipeline(Toolset([made], timeout=0.02)).run(ToolCall("wait", {"first": False})))
    await asyncio.sleep(0.05)
    release.set()

    assert [type(outcome) for outcome in await asyncio.gather(slow, quick)] == [Completed, Completed]


async def test_a_tools_own_deadline_goes_before_the_toolsets() -> None:
    made = [ez_tool(name=name, timeout=timeout)(raising(OSError())) for name, timeout in (("a", None), ("b", 2))]

    entries = Toolset(made, timeout=5).entries

    assert (entries["a"].timeout, entries["b"].timeout) == (5, 2)


async def test_a_deadline_is_told_from_a_cancellation() -> None:
    begun = asyncio.Event()

    async def hang() -> None:
        begun.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(run(hang, timeout=60))
    await begun.wait()
    task.cancel("from outside")

    with pytest.raises(asyncio.CancelledError, match="from outside"):
        await task


async def test_a_tool_that_answers_its_cancellation_is_believed() -> None:
    async def stubborn() -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "saved"
        return ""

    async def bitter() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise OSError("half written") from None

    saved = await run(stubborn, timeout=0.01)
    failed = await run(bitter, timeout=0.01)
    task = asyncio.current_task()

    assert isinstance(saved, Completed)
    assert isinstance(failed, Failed)
    assert failed.message == "half written"
    assert task is not None
    assert task.cancelling() == 0


async def test_a_deadline_inside_a_deadline() -> None:
    async def fetch() -> None:
        async with asyncio.timeout(0.01):
            await asyncio.Event().wait()

    outcome = await run(fetch, timeout=60)

    assert isinstance(outcome, Failed)
    assert (outcome.code, outcome.error_type) == ("tool_error", "TimeoutError")


@in_virtual_time
async def test_many_deadlines_at_a_time_stop_each_its_own() -> None:
    async def wait(seconds: float) -> float:
        await asyncio.sleep(seconds)
        return seconds

    made = ez_tool(timeout=0.2)(wait)
    pipeline = Pipeline([made])
    calls = [ToolCall("wait", {"seconds": seconds}) for seconds in (0, 60, 0.001, 60)]

    outcomes = await asyncio.gather(*map(pipeline.run, calls))

    assert [type(outcome) for outcome in outcomes] == [Completed, Failed, Completed, Failed]


# --- executors


class Twice:
    def __init__(self) -> None:
        self.seen: list[str] = []

    async def execute(self, call: Call, run: Callable[[], Any]) -> Any:
        self.seen.append(call.name)
        try:
            return await run()
        except OSError:
            return await run()


async def test_an_executor_wraps_the_execution_alone() -> None:
    ran: list[int] = []

    async def flaky(n: int) -> int:
        ran.append(n)
        if len(ran) == 1:
            raise OSError
        return n

    async def many(to: int) -> Any:
        for n in range(to):
            yield n

    pre: list[Any] = []
    executor = Twice()
    both = [ez_tool(idempotent=True)(flaky), ez_tool(many)]
    tools = Toolset(both, pre_hooks={"flaky": lambda ctx, args, metadata: pre.append(1) or args})
    pipeline = Pipeline(tools, executor=executor)

    outcome = await pipeline.run(ToolCall("flaky", {"n": 1}))
    stream = await pipeline.run(ToolCall("many", {"to": 2}))
    refused = await pipeline.run(ToolCall("flaky", {}))

    assert isinstance(outcome, Completed)
    assert isinstance(stream, Completed)
    assert isinstance(refused, Failed)
    assert (ran, pre, stream.value, executor.seen) == ([1, 1], [1], [0, 1], ["flaky", "many"])


async def test_an_executor_that_fails_is_the_tools_failure() -> None:
    class Down:
        async def execute(self, call: Call, run: Any) -> Any:
            raise ConnectionError("engine down")

    outcome = await Pipeline([ez_tool(raising(OSError()))], executor=Down()).run(ToolCall("fail"))

    assert isinstance(outcome, Failed)
    assert outcome.message == "engine down"


async def test_a_pipeline_takes_a_toolset_in_any_form() -> None:
    class Mine(Toolset):
        def __init__(self) -> None:
            super().__init__([ez_tool(raising(OSError()))])

    for tools in (Mine, Mine(), [ez_tool(raising(OSError()))]):
        outcome = await Pipeline(tools).run(ToolCall("nothing"))
        assert isinstance(outcome, Failed)
        assert isinstance(outcome.exception, UnknownTool)
        assert "`fail`" in outcome.message


async def test_a_tool_that_took_the_place_of_another_is_run_from_then_on() -> None:
    class Source:
        @asynccontextmanager
        async def open_source(self, ctx: RunContext[Any]) -> AsyncIterator[LiveTools]:
            yield live

    def saying(text: str) -> Tool[..., Any]:
        async def say() -> str:
            return text

        return ez_tool(say)

    live = LiveTools([saying("before")])
    async with Toolset([Source()]).open() as tools:
        pipeline = Pipeline(tools)
        before = await pipeline.run(ToolCall("say"))
        live.renew([saying("after")])
        after = await pipeline.run(ToolCall("say"))

    assert (before.text(), after.text()) == ("before", "after")
