"""Ways in that need the extra `durable`: a turn and a program in a queue, run as workflows by an engine in a thread."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Coroutine
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar, TypeVar
from uuid import uuid4

from toolcrib.adapters.dbos import DurableAgent, DurableToolkit, Engine, Queue
from toolcrib.calls import Outcome
from toolcrib.code import ExecutionResult, Toolkit
from toolcrib.errors import UnknownTool
from toolcrib.testing._code_ways import outcome_of, program_of
from toolcrib.testing._fakes import RecordingSink
from toolcrib.testing._ways import Ability, Way, WayRequest, unknown_of
from toolcrib.turns import Agent

__all__ = ["close_engine", "durable_ways"]

R = TypeVar("R")
_QUEUE = Queue("ways", polling=0.005)


class _EngineThread:
    """An engine on a file of its own, in a thread with an event loop; started by the first request."""

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
                # a daemon: without `close` it ends with the process
                self._thread = threading.Thread(
                    target=self._run_engine, args=(ready,), name="toolcrib: ways", daemon=True
                )
                self._thread.start()
                ready.wait()
            if self._loop is None:
                raise RuntimeError("the engine of the durable ways in could not be started; its thread says why")
            return self._loop

    def _run_engine(self, ready: threading.Event) -> None:
        async def serve() -> None:
            with TemporaryDirectory() as folder:
                database = Path(folder) / "ways.db"
                async with Engine(database, worker_id=f"ways-{os.getpid()}", queues=[_QUEUE], grace=0.1):
                    self._loop, self._over = asyncio.get_running_loop(), asyncio.Event()
                    ready.set()
                    await self._over.wait()

        try:
            asyncio.run(serve())
        finally:
            ready.set()

    def close(self) -> None:
        """Stop the engine, if it runs; the next request starts another."""
        with self._lock:
            if self._thread is not None:
                if self._loop is not None and self._over is not None:
                    self._loop.call_soon_threadsafe(self._over.set)
                self._thread.join()
            self._thread = self._loop = self._over = None


_ENGINE = _EngineThread()


def close_engine() -> None:
    """Stop the engine of these ways in, for a process that is to run another."""
    _ENGINE.close()


class DurableWay(Way):
    """A turn of a durable agent."""

    title = "durable agent"
    abilities: ClassVar[frozenset[Ability]] = frozenset({"run", "media"})

    async def carry(self, request: WayRequest) -> Outcome:
        agent = Agent(f"way_{uuid4().hex}", "Makes one call.", request.toolset)
        durable = DurableAgent(agent, _QUEUE, run=request.run)
        return await _ENGINE.run(self._carried(durable, request))

    async def _carried(self, durable: DurableAgent, request: WayRequest) -> Outcome:
        try:
            turn = request.turn()
            handle = await durable.put(turn)
        except UnknownTool as error:
            return unknown_of(request, error)
        return request.ended(await handle.outcome())


class DurableProgramWay(Way):
    """A durable program of one line, which calls the tool."""

    title = "durable program"
    abilities: ClassVar[frozenset[Ability]] = frozenset({"model", "run"})

    async def carry(self, request: WayRequest) -> Outcome:
        watch = RecordingSink()
        run = request.run.with_sinks(watch)
        toolkit = DurableToolkit(Toolkit(request.toolset), _QUEUE, name=f"way_{uuid4().hex}", run=run)
        result = await _ENGINE.run(self._result(toolkit, program_of(request)))
        return outcome_of(request, watch, result)

    async def _result(self, toolkit: DurableToolkit, code: str) -> ExecutionResult:
        return await (await toolkit.start(code)).settled(polling=0.005)


durable_ways: tuple[Way, ...] = (DurableWay(), DurableProgramWay())
