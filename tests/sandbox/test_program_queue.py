"""Programs wait for their place in order, and none waits for what waits for it."""

from __future__ import annotations

import asyncio
import contextvars
import sys
from typing import Any

import pytest

from tests.code.hosts import TableHost
from toolcrib.errors import SandboxError
from toolcrib.sandbox import ProcessSandbox, Program, ProgramQueue, SandboxLimits, Value

ON_LINUX = pytest.mark.skipif(sys.platform != "linux", reason="its processes need Linux")
MB = 1 << 20


async def entered(queue: ProgramQueue, memories: list[int], leave: asyncio.Event) -> tuple[list[int], list[Any]]:
    """Return the programs that got a place, in order, and their tasks; each keeps its place until `leave`."""
    order: list[int] = []

    async def program(number: int, memory: int) -> None:
        async with queue.place(memory):
            order.append(number)
            await leave.wait()

    tasks = [asyncio.create_task(program(number, memory)) for number, memory in enumerate(memories)]
    for _ in range(10):
        await asyncio.sleep(0)
    return order, tasks


@pytest.mark.parametrize(
    ("queue", "first"),
    [(ProgramQueue(2), [0, 1]), (ProgramQueue(most_memory=50), [0, 1]), (ProgramQueue(most_memory=49), [0])],
    ids=["programs", "memory", "less memory"],
)
async def test_programs_wait_in_order(queue: ProgramQueue, first: list[int]) -> None:
    leave = asyncio.Event()
    order, tasks = await entered(queue, [20, 30, 10, 10], leave)

    assert order == first
    assert (queue.running, queue.waiting) == (len(first), 4 - len(first))
    leave.set()
    await asyncio.gather(*tasks)
    assert order == [0, 1, 2, 3]
    assert (queue.running, queue.waiting) == (0, 0)


async def test_a_program_that_waits_no_longer_leaves_its_place_to_the_next() -> None:
    queue, leave = ProgramQueue(1), asyncio.Event()
    order, tasks = await entered(queue, [1, 1, 1], leave)

    tasks[1].cancel()
    leave.set()
    await asyncio.gather(*tasks, return_exceptions=True)

    assert order == [0, 2]
    assert (queue.running, queue.waiting) == (0, 0)


async def test_one_that_is_cancelled_when_it_has_just_got_its_place_gives_it_back() -> None:
    queue, leave = ProgramQueue(1), asyncio.Event()
    _, tasks = await entered(queue, [1, 1], leave)

    leave.set()
    await tasks[0]
    tasks[1].cancel()
    await asyncio.gather(*tasks, return_exceptions=True)

    assert (queue.running, queue.waiting) == (0, 0)


async def test_a_program_that_a_tool_of_another_one_runs_does_not_wait_for_that_one() -> None:
    queue = ProgramQueue(1)

    async with queue.place(1), asyncio.timeout(20), queue.place(1):
        assert queue.running == 2


async def test_programs_of_other_threads_wait_in_the_same_queue() -> None:
    queue, order = ProgramQueue(1), list[str]()

    async def other() -> None:
        async with queue.place(1):
            order.append("other")

    async with queue.place(1):
        thread = asyncio.create_task(asyncio.to_thread(lambda: contextvars_free(other)))
        await until_one_waits(queue)
        order.append("first")
    await thread

    assert order == ["first", "other"]


async def until_one_waits(queue: ProgramQueue) -> None:
    """Return when a program waits for its place; the test is ended where none ever does."""
    while not queue.waiting:  # noqa: ASYNC110 -- it may be of another thread
        await asyncio.sleep(0.001)


def contextvars_free(run: Any) -> None:
    """Run in an event loop of this thread, outside of what runs in the other."""
    contextvars.Context().run(asyncio.run, run())


async def test_a_program_that_never_fits_is_refused_at_once() -> None:
    queue = ProgramQueue(most_memory=100 * MB)

    with pytest.raises(
        SandboxError, match=r"may take 256 MB \(SandboxLimits.memory\), and all .* 100 MB \(most_memory"
    ):
        async with queue.place(256 * MB):
            pass


@pytest.mark.parametrize("option", ["most_programs", "most_memory", "most_sessions"])
def test_no_place_at_all_is_no_queue(option: str) -> None:
    with pytest.raises(ValueError, match=f"{option} must be at least 1, and is 0"):
        ProgramQueue(**{option: 0})


@ON_LINUX
async def test_programs_of_sandboxes_that_share_a_queue_run_in_turn() -> None:
    queue, at_once = ProgramQueue(1), list[int]()

    async def seen() -> Value:
        at_once.append(queue.running)
        await asyncio.sleep(0)
        return Value(None)

    limits = SandboxLimits(wall_time=20)
    with ProcessSandbox(queue=queue) as one, ProcessSandbox(queue=queue) as other:
        runs = [box.run(Program("seen()\nseen()", ("seen",), limits), TableHost(seen=seen)) for box in (one, other) * 3]
        ended = await asyncio.gather(*runs)

    assert [result.error for result in ended] == [None] * 6
    assert at_once == [1] * 12


@ON_LINUX
async def test_sessions_take_memory_until_they_end() -> None:
    with ProcessSandbox(queue=ProgramQueue(most_memory=300 * MB)) as sandbox:
        session = sandbox.session()
        small = Program("1", limits=SandboxLimits(memory=200 * MB))
        await session.run(small, TableHost())
        waiting = asyncio.create_task(sandbox.run(small, TableHost()))
        await until_one_waits(sandbox.queue)

        assert (await session.run(small, TableHost())).value == 1
        session.close()

        assert (await waiting).value == 1


@ON_LINUX
async def test_a_session_too_many_is_refused_until_another_one_has_ended() -> None:
    with ProcessSandbox(queue=ProgramQueue(most_sessions=1)) as sandbox:
        one, other = sandbox.session(), sandbox.session()
        await one.run(Program("1"), TableHost())

        with pytest.raises(SandboxError, match="it has 1 session already"):
            await other.run(Program("1"), TableHost())
        one.close()

        assert (await other.run(Program("2"), TableHost())).value == 2
