"""Deadlines: many of them behind one timer, and a clock that can be stopped."""

import asyncio
from contextlib import suppress

import pytest

from tests.virtual_time import in_virtual_time
from toolcrib.tools import Deadline


class Late(Exception):
    pass


async def late(seconds: float, work: float) -> str:
    deadline = Deadline(seconds, Late, f"after {seconds}")
    try:
        with deadline:
            await asyncio.sleep(work)
        return "in time"
    except Late as error:
        return str(error)
    finally:
        deadline.close()


@in_virtual_time
async def test_of_many_each_passes_at_its_own_time() -> None:
    said = await asyncio.gather(late(60, 0.03), late(0.02, 5), late(0.01, 5), late(0.04, 0), late(0.03, 5))

    assert said == ["in time", "after 0.02", "after 0.01", "in time", "after 0.03"]


@in_virtual_time
async def test_later_ones_are_kept_when_an_early_one_was_met() -> None:
    assert await late(0.005, 0) == "in time"

    assert await late(0.02, 5) == "after 0.02"


def test_each_event_loop_has_its_own() -> None:
    assert [asyncio.run(late(0.005, 5)) for _ in range(2)] == ["after 0.005", "after 0.005"]


@in_virtual_time
async def test_the_clock_stands_while_it_is_stopped() -> None:
    deadline = Deadline(0.2, Late)

    with deadline:
        with deadline.stopped():
            await asyncio.sleep(0.25)
        await asyncio.sleep(0)
    with pytest.raises(Late), deadline:
        await asyncio.sleep(5)


@in_virtual_time
async def test_the_clock_stands_while_it_rests() -> None:
    deadline, steps = Deadline(0.2, Late), 0

    async def body() -> None:
        nonlocal steps
        with deadline:
            for _ in range(3):
                deadline.rest()
                await asyncio.sleep(0.25)  # the timer goes off meanwhile
                deadline.begin()
                await asyncio.sleep(0.001)
                steps += 1
            await asyncio.sleep(5)

    with pytest.raises(Late):
        await body()
    assert steps == 3


@in_virtual_time
async def test_a_step_that_outlasts_its_time_and_will_not_be_stopped_is_the_last() -> None:
    deadline, task = Deadline(0.005, Late), asyncio.current_task()

    async def body() -> None:
        with deadline:
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(5)
            deadline.rest()
            deadline.begin()

    with pytest.raises(Late):
        await body()
    assert task is not None
    assert task.cancelling() == 0


@in_virtual_time
async def test_the_task_that_begins_again_is_the_one_that_is_stopped() -> None:
    deadline = Deadline(0.02, Late)
    with deadline:
        deadline.rest()

        async def step() -> None:
            deadline.begin()
            with deadline:
                await asyncio.sleep(5)

        with pytest.raises(Late):
            await asyncio.create_task(step())


@in_virtual_time
async def test_the_bodys_own_cancellation_stays_one() -> None:
    async def body() -> None:
        with Deadline(60, Late):
            await asyncio.Event().wait()

    task = asyncio.create_task(body())
    await asyncio.sleep(0)
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
