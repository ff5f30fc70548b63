"""The edge between plain code and async code."""

import asyncio
import signal
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
