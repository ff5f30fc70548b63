"""The time that a program computes, however it parts it."""

from __future__ import annotations

import asyncio
import time

from toolcrib.sandbox._stopwatch import Stopwatch


async def test_a_program_that_calls_now_and_then_gains_no_time() -> None:
    over = asyncio.Event()
    watch = Stopwatch(0.01, over.set)

    async with asyncio.timeout(5):
        while not over.is_set():
            watch.pause()
            watch.start()
            await asyncio.sleep(0.001)
    watch.stop()


async def test_a_program_that_waits_has_all_its_time() -> None:
    over = asyncio.Event()
    watch = Stopwatch(0.01, over.set)

    watch.start()
    watch.pause()
    await asyncio.sleep(0.15)
    watch.stop()

    assert not over.is_set()


async def test_a_process_that_stood_still_takes_no_time_from_its_program() -> None:
    over = asyncio.Event()
    watch = Stopwatch(1.0, over.set)

    watch.start()
    time.sleep(1.5)  # noqa: ASYNC251 -- as SIGSTOP, or a machine that sleeps
    await asyncio.sleep(0.1)
    watch.pause()
    watch.stop()

    assert not over.is_set()
