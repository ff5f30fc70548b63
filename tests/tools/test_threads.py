"""Sync tools in worker threads."""

import asyncio
import contextvars
import gc
import threading
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Any
from weakref import ref

import pytest

from toolcrib.calls import Completed, Failed, Outcome, ToolCall
from toolcrib.pipeline import Pipeline, Run
from toolcrib.tools import Tool, current_deadline, ez_tool


async def outcome_of(made: Tool[..., Any], arguments: Any = "{}", scope: Run | None = None) -> Outcome:
    return await Pipeline([made]).run(ToolCall(made.name, arguments), scope)


def expiring() -> Callable[[], object]:
    """Return what a tool in a thread of this loop calls to have its deadline pass."""
    loop = asyncio.get_running_loop()

    def expire() -> None:
        deadline = current_deadline()
        assert deadline is not None
        loop.call_soon_threadsafe(deadline.expire)

    return expire


async def test_a_sync_tool_leaves_the_loop_free() -> None:
    gate = threading.Event()

    @ez_tool
    def wait() -> str:
        assert gate.wait(60)
        return threading.current_thread().name

    task = asyncio.create_task(outcome_of(wait))
    await asyncio.sleep(0)
    gate.set()
    outcome = await task

    assert isinstance(outcome, Completed)
    assert outcome.value.startswith("toolcrib")


async def test_a_quick_one_may_stay_on_the_loop() -> None:
    @ez_tool(thread=False)
    def where() -> str:
        return threading.current_thread().name

    outcome = await outcome_of(where)

    assert isinstance(outcome, Completed)
    assert outcome.value == threading.current_thread().name


async def test_many_threads_run_at_a_time() -> None:
    together = threading.Barrier(20, timeout=60)

    @ez_tool
    def meet() -> int:
        return together.wait()

    outcomes = await asyncio.gather(*(outcome_of(meet) for _ in range(20)))

    assert sorted(o.value for o in outcomes if isinstance(o, Completed)) == list(range(20))


async def test_a_sync_generator_streams_from_threads() -> None:
    @ez_tool
    def count(to: int) -> Any:
        yield from range(to)

    outcome = await outcome_of(count, {"to": 3})

    assert isinstance(outcome, Completed)
    assert outcome.value == [0, 1, 2]


async def test_the_steps_of_a_sync_generator_have_one_thread_and_one_context() -> None:
    seen: contextvars.ContextVar[int] = contextvars.ContextVar("seen", default=0)
    steps: list[tuple[int, int]] = []

    @ez_tool
    def count(to: int) -> Any:
        for number in range(to):
            steps.append((threading.get_ident(), seen.get()))
            seen.set(number + 1)
            yield number

    async with count.body.stream({"to": 3}) as values:
        async for _ in values:
            await asyncio.to_thread(threading.get_ident)

    assert len({thread for thread, _ in steps}) == 1
    assert [number for _, number in steps] == [0, 1, 2]


async def test_a_generator_that_is_left_is_closed_in_its_thread_which_ends() -> None:
    threads: list[threading.Thread] = []

    @ez_tool
    def count() -> Any:
        threads.append(threading.current_thread())
        try:
            yield 1
            yield 2
        finally:
            threads.append(threading.current_thread())

    async with count.body.stream({}) as values:
        await anext(values)
    await asyncio.to_thread(threads[0].join, 60)

    assert threads[0] is threads[1]
    assert not threads[0].is_alive()


async def test_streams_that_are_held_keep_no_thread_of_the_pool() -> None:
    @ez_tool
    def count() -> Any:
        yield 1
        yield 2

    @ez_tool
    def quick() -> str:
        return "done"

    async with AsyncExitStack() as stack:
        for _ in range(130):  # more than the pool has
            await anext(await stack.enter_async_context(count.body.stream({})))

        outcome = await asyncio.wait_for(outcome_of(quick), 60)

    assert isinstance(outcome, Completed)


async def test_context_variables_reach_the_thread() -> None:
    who: contextvars.ContextVar[str] = contextvars.ContextVar("who")

    @ez_tool
    def ask() -> str:
        return who.get()

    who.set("ann")
    outcome = await outcome_of(ask)

    assert isinstance(outcome, Completed)
    assert outcome.value == "ann"


async def test_a_thread_that_is_timed_out_is_said_to_go_on() -> None:
    gate, ended, expire = threading.Event(), threading.Event(), expiring()

    @ez_tool(timeout=600)
    def hang() -> None:
        expire()
        gate.wait(60)
        ended.set()

    outcome = await outcome_of(hang)
    gate.set()

    assert isinstance(outcome, Failed)
    assert outcome.code == "tool_timeout"
    assert "goes on" in outcome.message
    assert await asyncio.to_thread(ended.wait, 60)


async def test_a_generator_in_a_thread_that_is_timed_out_is_said_to_go_on() -> None:
    gate, expire = threading.Event(), expiring()

    @ez_tool(timeout=600)
    def hang() -> Any:
        yield 1
        expire()
        gate.wait(60)

    outcome = await outcome_of(hang)
    gate.set()

    assert isinstance(outcome, Failed)
    assert "goes on" in outcome.message


@pytest.mark.parametrize("error", [StopIteration("x"), ValueError("x")])
async def test_what_a_thread_raises_is_a_failure(error: Exception) -> None:
    @ez_tool
    def fail() -> None:
        raise error

    outcome = await outcome_of(fail)

    assert isinstance(outcome, Failed)
    assert outcome.code == "tool_error"


async def test_a_sync_function_may_hand_back_an_awaitable() -> None:
    async def later() -> str:
        return "later"

    @ez_tool
    def begin() -> Any:
        return later()

    outcome = await outcome_of(begin)

    assert isinstance(outcome, Completed)
    assert outcome.value == "later"


async def test_cancelling_the_wait_leaves_the_thread_to_itself() -> None:
    begun, gate, ended = threading.Event(), threading.Event(), threading.Event()

    @ez_tool
    def hang() -> None:
        begun.set()
        gate.wait(60)
        ended.set()

    task = asyncio.create_task(outcome_of(hang))
    await asyncio.to_thread(begun.wait, 60)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    gate.set()

    assert await asyncio.to_thread(ended.wait, 60)


def test_a_loop_that_is_closed_meanwhile_harms_nobody() -> None:
    begun, gate, ended = threading.Event(), threading.Event(), threading.Event()

    @ez_tool
    def hang() -> None:
        begun.set()
        gate.wait(60)
        ended.set()

    async def leave_it() -> None:
        task = asyncio.create_task(outcome_of(hang))
        await asyncio.to_thread(begun.wait, 60)
        task.cancel()
        await asyncio.wait([task])

    asyncio.run(leave_it())
    gate.set()

    assert ended.wait(60)


async def test_an_idle_thread_keeps_nothing_of_the_last_call() -> None:
    class Big: ...

    held: list[ref[Big]] = []

    @ez_tool
    def make(n: int) -> None:
        big = Big()
        held.append(ref(big))

    await outcome_of(make, {"n": 1})
    gc.collect()

    assert held[0]() is None
