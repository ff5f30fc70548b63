"""Two processes that reach for one grant at the same moment, whatever store it is in."""

from __future__ import annotations

import asyncio
import multiprocessing
from collections.abc import Callable, Generator
from concurrent.futures import ProcessPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from multiprocessing.synchronize import Barrier
from typing import TypeAlias

from toolcrib.approvals import ApprovalEntry, ApprovalStore
from toolcrib.calls import ApprovalRequest, Grant

ONE_BEGINS = ["begun", "running"]

Opened: TypeAlias = Callable[[str], AbstractContextManager[ApprovalStore]]

_barrier: Barrier


@contextmanager
def two_processes_at_once() -> Generator[ProcessPoolExecutor]:
    """Run two processes for `raced`, which starts them on each grant at the same moment."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(2, mp_context=context, initializer=_start, initargs=(context.Barrier(2),)) as pool:
        yield pool


async def grant(store: ApprovalStore, number: int) -> None:
    """Keep a request and the yes to it."""
    await store.put(_request(number))
    await store.answer(_request(number).grant())


def raced(pool: ProcessPoolExecutor, opened: Opened, database: str, number: int) -> list[str]:
    """Return what became of the two that open the store and begin the same call, sorted."""
    found = [pool.submit(_race, opened, database, number) for _ in range(2)]
    return sorted(one.result(100) for one in found)


def _start(barrier: Barrier) -> None:
    global _barrier
    _barrier = barrier


def _request(number: int) -> ApprovalRequest:
    return ApprovalRequest(f"ask_{number}", f"call_{number}", "refund", {"cents": 5}, "d5")


def _race(opened: Opened, database: str, number: int) -> str:
    _barrier.wait(60)
    with opened(database) as store:
        _barrier.wait(60)  # one that opens it later would come too late to a race
        began = asyncio.run(_begin(store, number))
        _barrier.wait(60)  # one that ends earlier would be gone, and its call in doubt
    return began


async def _begin(store: ApprovalStore, number: int) -> str:
    grant = await store.take(_request(number))
    if not isinstance(grant, Grant | ApprovalEntry):
        return "nothing"
    entry = grant if isinstance(grant, ApprovalEntry) else await store.begin(_request(number), grant)
    return "begun" if entry is None else str(entry.execution_state)
