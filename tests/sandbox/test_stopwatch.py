"""The time that a program computes and takes, however it parts it."""

from __future__ import annotations

import asyncio
import time

import pytest

from toolcrib.sandbox import Program, SandboxLimits
from toolcrib.sandbox._stopwatch import Stopwatch, WallClock


async def test_a_program_that_calls_now_and_then_gains_no_time() -> None:
    over = asyncio.Event()
    watch = Stopwatch(0.01, over.set)

    async with asyncio.timeout(60):
        while not over.is_set():
            watch.pause()
            watch.start()
            await asyncio.sleep(0.001)
    watch.stop()


async def test_what_the_host_computes_for_a_program_is_time_of_the_program() -> None:
    watch = Stopwatch(10.0, lambda: None)

    watch.charge(6.0)
    assert not watch.is_over
    watch.charge(6.0)
    watch.stop()

    assert watch.is_over


async def test_a_program_that_had_no_processor_has_the_rest_of_its_time() -> None:
    watch = Stopwatch(0.2, lambda: None, used=lambda: 0.05)

    watch.start()
    time.sleep(0.3)  # noqa: ASYNC251 -- as a host that is busy with others
    watch.pause()
    late = watch.is_over
    watch.charge(0.2)
    watch.stop()

    assert not late
    assert watch.is_over


async def test_a_program_that_has_no_processor_does_not_go_on_without_end() -> None:
    over = asyncio.Event()
    watch = Stopwatch(0.01, over.set, used=lambda: 0.0)

    watch.start()
    async with asyncio.timeout(60):
        await over.wait()
    watch.stop()


async def test_a_program_of_which_nothing_is_known_has_its_time_by_the_clock() -> None:
    watch = Stopwatch(0.2, lambda: None, used=lambda: None)

    watch.start()
    time.sleep(0.3)  # noqa: ASYNC251 -- as a program that computes
    watch.pause()
    watch.stop()

    assert watch.is_over


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


async def test_the_time_in_which_its_host_waits_is_no_time_of_the_program() -> None:
    over = asyncio.Event()
    watch = Stopwatch(0.01, over.set, time.monotonic)  # the host waits all the time

    watch.start()
    await asyncio.sleep(0.15)
    watch.stop()

    assert not over.is_set()


@pytest.mark.parametrize("seconds", [0.01, None])
async def test_a_body_is_left_when_its_time_is_over_or_on_demand(seconds: float | None) -> None:
    clock = WallClock(Program("", limits=SandboxLimits(wall_time=seconds)))
    clock.end()  # it has not begun

    async def body() -> None:
        async with clock:
            if seconds is None:
                clock.end()
            await asyncio.Event().wait()

    with pytest.raises(TimeoutError):
        await body()

    assert clock.is_over
