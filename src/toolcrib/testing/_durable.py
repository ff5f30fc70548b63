"""The door that needs the extra `durable`: a turn in a queue, run as a workflow by an engine in a thread."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Coroutine
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar, TypeVar
from uuid import uuid4

from toolcrib.adapters.dbos import DurableAgent, Engine, Queue
from toolcrib.calls import Outcome
from toolcrib.errors import UnknownTool
from toolcrib.testing._doors import Ability, Door, Visit, unknown_of
from toolcrib.turns import Agent

__all__ = ["DurableDoor", "close_visits", "durable_doors"]

R = TypeVar("R")
VISITS = Queue("visits", polling=0.005)


class _Office:
    """An engine on a file of its own, in a thread with an event loop; started by the first visit."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._over: asyncio.Event | None = None

    async def run(self, work: Coroutine[Any, Any, R]) -> R:
        """Run something where the engine runs."""
        loop = await asyncio.to_thread(self._started)
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, loop))

    def _started(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._thread is None:
                ready = threading.Event()
                # a daemon: where nobody closes the office it ends with the process
                self._thread = threading.Thread(target=self._work, args=(ready,), name="toolcrib: visits", daemon=True)
                self._thread.start()
                ready.wait()
            if self._loop is None:
                raise RuntimeError("the engine for visits could not be started; its thread says why")
            return self._loop

    def _work(self, ready: threading.Event) -> None:
        async def serve() -> None:
            with TemporaryDirectory() as folder:
                database = Path(folder) / "visits.db"
                async with Engine(database, worker_id=f"visits-{os.getpid()}", queues=[VISITS], grace=0.1):
                    self._loop, self._over = asyncio.get_running_loop(), asyncio.Event()
                    ready.set()
                    await self._over.wait()

        try:
            asyncio.run(serve())
        finally:
            ready.set()

    def close(self) -> None:
        """Stop the engine, if it runs; the next visit starts another."""
        with self._lock:
            if self._thread is not None:
                if self._loop is not None and self._over is not None:
                    self._loop.call_soon_threadsafe(self._over.set)
                self._thread.join()
            self._thread = self._loop = self._over = None


OFFICE = _Office()


def close_visits() -> None:
    """Stop the engine behind `DurableDoor`, for a process that wants to run another."""
    OFFICE.close()


class DurableDoor(Door):
    """A turn of a durable agent."""

    title = "durable agent"
    abilities: ClassVar[frozenset[Ability]] = frozenset({"run", "media"})

    async def carry(self, visit: Visit) -> Outcome:
        agent = Agent(f"visit_{uuid4().hex}", "Makes one call.", visit.toolset)
        durable = DurableAgent(agent, VISITS, run=visit.run)
        return await OFFICE.run(self._carried(durable, visit))

    async def _carried(self, durable: DurableAgent, visit: Visit) -> Outcome:
        try:
            turn = visit.turn()
            handle = await durable.put(turn)
        except UnknownTool as error:
            return unknown_of(visit, error)
        return visit.ended(await handle.outcome())


durable_doors: tuple[Door, ...] = (DurableDoor(),)
