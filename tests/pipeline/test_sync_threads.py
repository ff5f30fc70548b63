"""A thread's loop is closed when the thread has ended, whoever clears it away."""

from __future__ import annotations

import asyncio
import gc
import threading

from toolcrib._run_sync import run_sync


async def answer() -> int:
    await asyncio.sleep(0)
    return 42


def test_a_loop_is_kept_between_runs_of_a_thread() -> None:
    loops: list[asyncio.AbstractEventLoop] = []

    async def which() -> None:
        loops.append(asyncio.get_running_loop())

    run_sync(which())
    run_sync(which())

    assert loops[0] is loops[1]


async def test_threads_that_end_beside_a_running_loop_leave_no_warning() -> None:
    found: list[int] = []
    threads = [threading.Thread(target=lambda: found.append(run_sync(answer()))) for _ in range(3)]

    for thread in threads:
        thread.start()
    for thread in threads:
        await asyncio.to_thread(thread.join)
    del threads, thread
    gc.collect()

    assert found == [42, 42, 42]


def test_what_a_run_leaves_behind_is_cancelled() -> None:
    ended: list[str] = []

    async def linger() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.append("cancelled")

    async def work() -> str:
        task = asyncio.create_task(linger())
        await asyncio.sleep(0)
        return f"left {'running' if not task.done() else 'ended'}"

    assert run_sync(work()) == "left running"
    assert ended == ["cancelled"]


def test_an_error_that_is_kept_does_not_keep_the_loop_of_its_thread() -> None:
    loops: list[asyncio.AbstractEventLoop] = []
    errors: list[ValueError] = []

    async def fail() -> None:
        loops.append(asyncio.get_running_loop())
        raise ValueError("broken")

    def work() -> None:
        try:
            run_sync(fail())
        except ValueError as error:
            errors.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()

    assert len(errors) == 1
    assert loops[0].is_closed()
