"""Locks and caps: what they hold apart, what they cover, and what they let go of."""

import asyncio
import gc
from collections.abc import Callable
from typing import Any
from weakref import ref

import pytest

from toolcrib.errors import LockHeldError
from toolcrib.tools import Tool, tool


class Room:
    """Notes how many are inside at a time."""

    def __init__(self) -> None:
        self.inside = self.most = 0

    async def visit(self) -> None:
        self.inside += 1
        self.most = max(self.most, self.inside)
        for _ in range(3):
            await asyncio.sleep(0)
        self.inside -= 1


def entering(room: Room, name: str = "enter", **options: Any) -> Tool[..., Any]:
    @tool(name=name, **options)
    async def enter(key: str = "") -> None:
        await room.visit()

    return enter


def streaming(room: Room, **options: Any) -> Tool[..., Any]:
    @tool(**options)
    async def stream() -> Any:
        for n in range(2):
            await room.visit()
            yield n

    return stream


async def all_of(values: Any) -> list[Any]:
    return [value async for value in values]


async def test_without_a_lock_calls_run_at_a_time() -> None:
    room = Room()
    enter = entering(room)

    await asyncio.gather(*(enter() for _ in range(3)))

    assert (room.most, enter.lock) == (3, None)


async def test_a_lock_holds_calls_apart() -> None:
    room = Room()
    enter = entering(room, lock=True)

    await asyncio.gather(*(enter() for _ in range(3)))

    assert room.most == 1
    assert isinstance(enter.lock, asyncio.Lock)
    assert not enter.lock.locked()


async def test_two_tools_have_two_locks() -> None:
    room = Room()
    tools = [entering(room, name, lock=True) for name in ("a", "b")]

    await asyncio.gather(*(t() for t in tools))

    assert room.most == 2


async def test_a_lock_with_a_name_is_shared() -> None:
    room = Room()
    tools = [entering(room, name, lock="door") for name in ("a", "b")]

    await asyncio.gather(*(t() for t in tools))

    assert room.most == 1
    assert tools[0].lock is tools[1].lock


async def test_a_lock_by_argument_holds_equal_ones_apart() -> None:
    same, different = Room(), Room()
    one = entering(same, "one", lock=lambda args: args["key"])
    other = entering(different, "other", lock=lambda args: args["key"])

    await asyncio.gather(*(one(key="a") for _ in range(3)), *(other(key=key) for key in "abc"))

    assert (same.most, different.most) == (1, 3)


async def test_a_key_that_cannot_be_had_fails_the_call_before_it_runs() -> None:
    room = Room()
    enter = entering(room, lock=lambda args: args["nothing"])

    with pytest.raises(KeyError):
        await enter()

    assert room.most == 0


async def test_a_cap_lets_so_many_in() -> None:
    room = Room()
    enter = entering(room, max_concurrency=2)

    await asyncio.gather(*(enter() for _ in range(5)))

    assert room.most == 2


async def test_a_stream_holds_its_lock_while_it_is_iterated() -> None:
    room = Room()
    stream = streaming(room, lock=True)

    await asyncio.gather(*(all_of(stream()) for _ in range(3)))

    assert room.most == 1


async def test_a_stream_that_is_left_lets_go_of_its_lock() -> None:
    stream = streaming(Room(), lock=True)

    values = stream()
    await anext(values)
    held = stream.lock is not None and stream.lock.locked()
    await values.aclose()

    assert held
    assert await all_of(stream()) == [0, 1]


@pytest.mark.parametrize("moment", ["before_invoke", "after_invoke", "on_error"])
async def test_hooks_run_outside_the_lock(moment: str) -> None:
    seen: list[bool] = []

    @tool(lock=True)
    async def enter(fail: bool) -> None:
        assert enter.lock is not None
        assert enter.lock.locked()
        if fail:
            raise OSError

    @getattr(enter, moment)
    async def look() -> None:
        assert enter.lock is not None
        seen.append(enter.lock.locked())

    await asyncio.gather(enter(fail=moment == "on_error"), return_exceptions=True)

    assert seen == [False]


async def test_the_hook_of_each_value_runs_inside_the_lock() -> None:
    seen: list[bool] = []
    stream = streaming(Room(), lock=True)

    @stream.on_yield
    async def look() -> None:
        assert stream.lock is not None
        seen.append(stream.lock.locked())

    await all_of(stream())

    assert seen == [True, True]


@pytest.mark.parametrize("how", ["fails", "cancelled"])
async def test_a_lock_is_let_go_of_however_the_call_ends(how: str) -> None:
    begun = asyncio.Event()

    @tool(lock=True, max_concurrency=1)
    async def enter() -> None:
        begun.set()
        if how == "fails":
            raise OSError
        await asyncio.Event().wait()

    task = asyncio.create_task(enter())
    await begun.wait()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    begun.clear()
    again = asyncio.create_task(enter())
    await begun.wait()
    again.cancel()
    await asyncio.gather(again, return_exceptions=True)

    assert enter.lock is not None
    assert not enter.lock.locked()


async def test_waiting_for_oneself_is_an_error() -> None:
    @tool(lock=True)
    async def outer(depth: int) -> int:
        return depth if depth else await outer(1)

    @tool(lock="door")
    async def one() -> None:
        await other()

    @tool(lock="door")
    async def other() -> None: ...

    with pytest.raises(LockHeldError, match="outer"):
        await outer(0)
    with pytest.raises(LockHeldError, match="'door'"):
        await one()
    assert await outer(1) == 1


def test_each_event_loop_has_its_own_lock() -> None:
    room = Room()
    enter = entering(room, lock=True, max_concurrency=1)

    async def crowd() -> None:
        await asyncio.gather(*(enter() for _ in range(3)))

    for _ in range(2):
        asyncio.run(crowd())

    assert room.most == 1


def waited_for(make: Callable[[], Tool[..., Any]]) -> int:
    """Return how many of five loops, in which tools waited for each other, are still alive."""
    made = make()
    loops: list[ref[Any]] = []

    async def crowd() -> None:
        await asyncio.gather(*(made() for _ in range(3)))

    for _ in range(5):
        loop = asyncio.new_event_loop()
        loops.append(ref(loop))
        loop.run_until_complete(crowd())
        loop.close()
        del loop
    gc.collect()
    return sum(loop() is not None for loop in loops)


@pytest.mark.parametrize("options", [{"lock": True}, {"lock": "door"}, {"max_concurrency": 1}])
def test_closed_loops_are_let_go_of(options: dict[str, Any]) -> None:
    assert waited_for(lambda: entering(Room(), **options)) <= 1
