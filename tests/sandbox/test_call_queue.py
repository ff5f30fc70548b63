"""CallQueue: order, places, turns of the event loop, and calls that have to wait for room."""

from __future__ import annotations

import asyncio

import pytest

from toolcrib.sandbox._call_queue import CallQueue


class Begun:
    """Calls of a queue, and which of them were begun."""

    def __init__(self, most: int) -> None:
        self.names: list[str] = []
        self.room = True
        self.queue = CallQueue(most, lambda: self.room)

    def add(self, name: str, *, urgent: bool = False) -> None:
        self.queue.add(lambda: self.names.append(name), urgent=urgent)


async def turns(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def test_the_first_call_begins_at_once_and_each_other_in_a_turn_of_its_own() -> None:
    begun = Begun(10)

    for name in "abc":
        begun.add(name)

    assert begun.names == ["a"]
    await turns(1)
    assert begun.names == ["a", "b"]
    await turns(1)
    assert begun.names == ["a", "b", "c"]


async def test_no_more_are_begun_than_there_are_places() -> None:
    begun = Begun(2)

    for name in "abcd":
        begun.add(name)
    await turns(9)
    first = list(begun.names)
    begun.queue.release()
    await turns(9)

    assert first == ["a", "b"]
    assert begun.names == ["a", "b", "c"]


async def test_without_room_only_urgent_calls_begin() -> None:
    begun = Begun(10)
    begun.room = False

    for name, urgent in (("a", False), ("b", True), ("c", False), ("d", True)):
        begun.add(name, urgent=urgent)
    await turns(9)
    before = list(begun.names)
    begun.room = True
    begun.queue.look()
    await turns(9)

    assert before == ["b", "d"]
    assert begun.names == ["b", "d", "a", "c"]


async def test_a_call_that_is_removed_does_not_begin() -> None:
    begun = Begun(1)
    begun.add("a")
    call = begun.queue.add(lambda: begun.names.append("b"))
    begun.add("c")

    removed = begun.queue.remove(call)
    begun.queue.release()
    await turns(9)

    assert (removed, begun.queue.remove(call)) == (True, False)
    assert begun.names == ["a", "c"]


async def test_nothing_begins_after_the_end() -> None:
    begun = Begun(10)
    for name in "abc":
        begun.add(name)

    begun.queue.close()
    await turns(9)

    assert begun.names == ["a"]


@pytest.mark.parametrize("granted", [False, True])
async def test_a_place_is_not_lost_when_its_wait_is_cancelled(granted: bool) -> None:
    begun = Begun(1)
    begun.add("a")
    waiting = asyncio.create_task(begun.queue.place())
    await turns(3)
    if granted:
        begun.queue.release()
        await turns(1)

    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    if not granted:
        begun.queue.release()
    begun.add("b")
    await turns(3)

    assert begun.names == ["a", "b"]
