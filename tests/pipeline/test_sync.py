"""The edge between plain code and async code."""

import asyncio
import signal
import sys
from collections.abc import Callable
from contextvars import ContextVar

import pytest

from toolcrib._run_sync import run_sync


async def answer() -> int:
    return 42


def test_plain_code_waits_for_async_work() -> None:
    assert run_sync(answer()) == 42


async def test_inside_a_running_loop_it_says_what_to_write() -> None:
    with pytest.raises(RuntimeError, match=r"await toolkit.execute_async\(code\)"):
        run_sync(answer(), "await toolkit.execute_async(code)")


def test_what_is_left_running_is_cancelled() -> None:
    left: list[str] = []

    async def linger() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            left.append("cancelled")

    async def work() -> None:
        tasks.add(asyncio.create_task(linger()))
        await asyncio.sleep(0)

    tasks: set[asyncio.Task[None]] = set()
    run_sync(work())

    assert left == ["cancelled"]


def test_an_interrupt_lets_the_work_clean_up_and_leaves_the_loop_of_use() -> None:
    cleaned: list[str] = []

    async def work() -> None:
        asyncio.get_running_loop().call_later(0.01, signal.raise_signal, signal.SIGINT)
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0)
            cleaned.append("up")

    with pytest.raises(KeyboardInterrupt):
        run_sync(work())

    assert cleaned == ["up"]
    assert run_sync(answer()) == 42


def test_it_sees_the_context_of_its_caller() -> None:
    name: ContextVar[str] = ContextVar("name")

    async def read() -> str:
        return name.get()

    name.set("ada")

    assert run_sync(read()) == "ada"


async def exits() -> None:
    sys.exit(2)


async def exits_when_cancelled() -> None:
    try:
        await asyncio.sleep(60)
    finally:
        sys.exit(2)


def in_a_callback() -> None:
    asyncio.get_running_loop().call_soon(sys.exit, 2)


def in_a_task() -> None:
    tasks.add(asyncio.create_task(exits()))


def in_a_task_that_is_cancelled() -> None:
    tasks.add(asyncio.create_task(exits_when_cancelled()))


tasks: set[asyncio.Task[None]] = set()


@pytest.mark.parametrize("steps", [0, 1, 2])
@pytest.mark.parametrize("begin", [in_a_callback, in_a_task, in_a_task_that_is_cancelled])
def test_what_exits_beside_the_work_ends_neither_this_run_nor_the_next(begin: Callable[[], None], steps: int) -> None:
    async def work() -> int:
        begin()
        for _ in range(steps):
            await asyncio.sleep(0)
        return 42

    assert [run_sync(work()), run_sync(answer())] == [42, 42]


def test_work_that_exits_itself_exits() -> None:
    with pytest.raises(SystemExit, match="2"):
        run_sync(exits())

    assert run_sync(answer()) == 42
