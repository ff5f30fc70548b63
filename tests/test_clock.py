"""Clocks: the one of this computer, a fake one that is advanced, and a wait that either ends."""

from __future__ import annotations

import asyncio

import pytest

from tests.virtual_time import in_virtual_time
from toolcrib.clock import SYSTEM_CLOCK, Clock, first_of, wait_until_set
from toolcrib.testing import FakeClock


async def slept(clock: Clock, seconds: float, said: list[float]) -> None:
    await clock.sleep(seconds)
    said.append(seconds)


async def turns(clock: FakeClock, sleepers: int) -> None:
    """Return once so many sleep on a clock."""
    while len(clock.waiting) != sleepers:  # noqa: ASYNC110 -- a clock has no event for it
        await asyncio.sleep(0)


async def test_a_fake_clock_stands_until_it_is_advanced_and_wakes_those_whose_time_has_come() -> None:
    clock, said = FakeClock(), list[float]()

    async with asyncio.TaskGroup() as group:
        for seconds in (5.0, 60.0):
            group.create_task(slept(clock, seconds, said))
        await turns(clock, 2)
        clock.advance(5)
        await turns(clock, 1)
        first = [*said]
        skipped = clock.skip()

    assert (first, said, skipped) == ([5.0], [5.0, 60.0], True)
    assert clock.monotonic() == 60
    assert not clock.skip()


async def test_a_fake_clock_with_a_speed_goes_on_by_itself() -> None:
    clock = FakeClock(1_000_000)

    await clock.sleep(600)

    assert clock.monotonic() >= 600


async def test_a_sleep_that_is_cancelled_is_waited_for_no_more() -> None:
    clock = FakeClock()
    sleeping = asyncio.create_task(clock.sleep(5))
    await turns(clock, 1)

    sleeping.cancel()
    await asyncio.wait((sleeping,))

    assert clock.waiting == []


@in_virtual_time
async def test_a_wait_for_an_event_ends_with_it_or_with_its_time() -> None:
    clock, event = FakeClock(), asyncio.Event()

    waiting = asyncio.create_task(wait_until_set(event, 5, clock))
    await turns(clock, 1)
    clock.advance(5)
    late = await waiting
    asyncio.get_running_loop().call_later(1, event.set)
    in_time = await wait_until_set(event, 5, SYSTEM_CLOCK)

    assert (late, in_time, clock.waiting) == (False, True, [])
    assert asyncio.get_running_loop().time() == 1


async def test_the_first_of_some_waits_ends_the_others() -> None:
    clock = FakeClock()

    async def done() -> int:
        await turns(clock, 1)
        return 5

    assert await first_of(clock.sleep(60), done()) == [5]
    assert clock.waiting == []


async def test_the_error_of_the_first_of_some_waits_is_raised() -> None:
    clock = FakeClock()

    async def wrong() -> None:
        await turns(clock, 1)
        raise LookupError("away")

    with pytest.raises(LookupError, match="away"):
        await first_of(clock.sleep(60), wrong())
    assert clock.waiting == []
