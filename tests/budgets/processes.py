"""Processes that begin calls at the same moment, whatever store they are counted in."""

from __future__ import annotations

import asyncio
import multiprocessing
from collections.abc import Callable, Generator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing.synchronize import Barrier

from toolcrib.budgets import Budgets, Limit, UsageStore
from toolcrib.calls import Completed, ToolCall
from toolcrib.pipeline import Pipeline, Run
from toolcrib.testing import FakeClock
from toolcrib.tools import ez_tool
from toolcrib.toolsets import Toolset

PROCESSES = 3

_barrier: Barrier


@contextmanager
def processes_at_once() -> Generator[ProcessPoolExecutor]:
    """Run processes for `completed_at_once`, which starts them at the same moment."""
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(PROCESSES)
    with ProcessPoolExecutor(PROCESSES, mp_context=context, initializer=_start, initargs=(barrier,)) as pool:
        yield pool


def completed_at_once(pool: ProcessPoolExecutor, opened: Callable[[str], UsageStore], database: str) -> int:
    """Return how many of the calls that each process makes at once completed, of all of them."""
    return sum(one.result(100) for one in [pool.submit(_calls, opened, database) for _ in range(PROCESSES)])


def _start(barrier: Barrier) -> None:
    global _barrier
    _barrier = barrier


def _calls(opened: Callable[[str], UsageStore], database: str) -> int:
    store = opened(database)
    _barrier.wait(60)
    return asyncio.run(_completed(store))


async def _completed(store: UsageStore) -> int:
    @ez_tool
    async def refund() -> None:
        """Refund."""

    limit = Limit(calls=10, per="minute", by="principal")
    pipeline = Pipeline(Toolset([refund]).with_gates(Budgets([limit], store=store, clock=FakeClock())))
    calls = (pipeline.run(ToolCall("refund"), Run(principal="ann")) for _ in range(8))
    return sum(isinstance(outcome, Completed) for outcome in await asyncio.gather(*calls))
