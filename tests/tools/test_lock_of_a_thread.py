"""A thread cannot be stopped: what it holds is let go when it ends, and what has not begun does not begin."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from tests.tools.test_threads import expiring
from toolcrib.calls import Completed, Failed, ToolCall
from toolcrib.pipeline import Pipeline, Run
from toolcrib.tools import ez_tool
from toolcrib.tools._threads import ThreadCall


async def test_a_timed_out_thread_keeps_its_lock_until_it_ends() -> None:
    inside: list[str] = []
    go_on, expire = threading.Event(), expiring()

    @ez_tool(lock=True, timeout=600)
    def write(name: str) -> list[str]:
        inside.append(name)
        if name == "first":
            expire()
            go_on.wait(60)
        inside.append(f"{name} ends")
        return list(inside)

    pipeline, scope = Pipeline([write]), Run()
    first = await pipeline.run(ToolCall("write", {"name": "first"}), scope)
    second = asyncio.create_task(pipeline.run(ToolCall("write", {"name": "second"}), scope))
    await asyncio.sleep(0.05)
    waiting = list(inside)
    go_on.set()
    outcome = await second

    assert isinstance(first, Failed)
    assert first.code == "tool_timeout"
    assert waiting == ["first"]
    assert isinstance(outcome, Completed)
    assert outcome.value == ["first", "first ends", "second"] or outcome.value[-1] == "second ends"


async def test_a_timed_out_generator_keeps_its_lock_until_its_step_ends_and_it_is_closed() -> None:
    go_on, did, expire = threading.Event(), list[str](), expiring()

    @ez_tool(lock=True, timeout=600)
    def rows() -> Any:
        try:
            yield 1
            expire()
            go_on.wait(60)
            did.append("stepped")
            yield 2
        finally:
            did.append("closed")

    outcome = await Pipeline([rows]).run(ToolCall("rows"))
    lock = rows.lock
    assert lock is not None
    held = lock.locked()
    go_on.set()
    async with lock:
        in_order = list(did)

    assert isinstance(outcome, Failed)
    assert (held, in_order) == (True, ["stepped", "closed"])


async def test_a_cancelled_thread_keeps_its_lock_until_it_ends() -> None:
    begun, go_on = threading.Event(), threading.Event()

    @ez_tool(lock=True)
    def write() -> str:
        begun.set()
        go_on.wait(60)
        return "done"

    pipeline = Pipeline([write])
    task = asyncio.create_task(pipeline.run(ToolCall("write"), Run()))
    await asyncio.to_thread(begun.wait, 60)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    lock = write.lock
    assert lock is not None
    held = lock.locked()
    go_on.set()
    again = await pipeline.run(ToolCall("write"), Run())

    assert held
    assert isinstance(again, Completed)
    assert not lock.locked()


async def test_a_call_given_up_before_its_thread_began_never_runs() -> None:
    ran: list[int] = []
    go_on = threading.Event()
    busy = [
        asyncio.create_task(ThreadCall().run(lambda: go_on.wait(60))) for _ in range(128)
    ]  # every thread of the pool
    await asyncio.sleep(0.05)

    late = asyncio.create_task(ThreadCall().run(lambda: ran.append(1)))
    await asyncio.sleep(0)
    late.cancel()
    with pytest.raises(asyncio.CancelledError):
        await late
    go_on.set()
    await asyncio.gather(*busy)
    await ThreadCall().run(lambda: None)

    assert ran == []
