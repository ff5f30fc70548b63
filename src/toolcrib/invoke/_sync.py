"""The edge between plain code and async code."""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, TypeVar

__all__ = ["run_sync"]

T = TypeVar("T")


class _Kept:
    """The event loop of one thread, kept between runs: making one costs more than most programs."""

    def __init__(self) -> None:
        self.runner = asyncio.Runner()
        self.owner = os.getpid()

    def close(self) -> None:
        if self.owner == os.getpid():  # a forked child shares its parent's loop, and must leave it alone
            with suppress(RuntimeError):  # the interpreter is shutting down
                self.runner.close()

    def __del__(self) -> None:
        self.close()  # the thread has ended


class _Local(threading.local):
    kept: _Kept | None = None


_local = _Local()


def _close() -> None:
    if _local.kept is not None:
        _local.kept.close()
        _local.kept = None


atexit.register(_close)


def run_sync(work: Coroutine[Any, Any, T], instead: str = "await it") -> T:
    """Run `work` to its end from plain code, and return what it returns.

    The thread's event loop is kept for the next time; what `work` left running is cancelled.

    Raises:
        RuntimeError: An event loop is running already; `instead` says what to write there.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        pass
    else:
        work.close()
        raise RuntimeError(f"an event loop is running here, so this cannot block it: {instead}")
    kept = _local.kept
    if kept is None or kept.owner != os.getpid():
        kept = _local.kept = _Kept()
    results: list[T] = []
    kept.runner.run(_collect(work, results))
    return results[0]


async def _collect(work: Coroutine[Any, Any, T], results: list[T]) -> None:
    """Keep what comes back beside the task: the runner writes out the repr of a task's result, however long it is."""
    try:
        results.append(await work)
    finally:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        if others:
            await asyncio.gather(*others, return_exceptions=True)
