"""Ways in that need the extra `durable`: a turn and a program in a queue, run as workflows by an engine in a thread."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar, TypeVar
from uuid import uuid4

from toolcrib.adapters.dbos import Client, DurableAgent, DurableProgram, DurableToolkit, Engine, Queue
from toolcrib.calls import Denial, Failed, Grant, Outcome, Suspended
from toolcrib.code import ExecutionResult, Toolkit
from toolcrib.errors import ApprovalError, UnknownTool
from toolcrib.testing import RecordingSink
from toolcrib.testing._ways import Ability, Way, WayRequest, outcome_of, program_of, unknown_of
from toolcrib.turns import Agent

__all__ = ["close_engine", "durable_ways"]

R = TypeVar("R")
_POLLING = 0.005  # seconds
_PATIENCE = 60.0  # seconds in which a worker goes on with work whose request was answered
_QUEUE = Queue("ways", polling=_POLLING)


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
                worker = f"ways-{os.getpid()}"
                async with Engine(database, worker_id=worker, queues=[_QUEUE], grace=0.1, answers=0.05):
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


async def _answered(client: Client, answer: Grant | Denial, ended: Callable[[], Awaitable[R | None]]) -> R:
    """Answer a request of suspended work, and return what came of the work as soon as it has gone on.

    Raises:
        ApprovalError: The store does not take the answer.
    """
    await client.approvals.answer(answer)
    async with asyncio.timeout(_PATIENCE):
        while (result := await ended()) is None:  # noqa: ASYNC110 -- the worker sets no event of ours
            await asyncio.sleep(_POLLING)
    return result


def _not_taken(waiting: Suspended, error: ApprovalError) -> Failed:
    return Failed(waiting.tool, waiting.call_id, error.code, str(error), "ApprovalError", exception=error)


class DurableWay(Way):
    """A turn of a durable agent, answered in the store of its workers, one of which goes on with it."""

    title = "durable agent"
    abilities: ClassVar[frozenset[Ability]] = frozenset({"run", "answer", "concurrent", "media"})

    def __init__(self) -> None:
        self._stopped: dict[str, tuple[str, str]] = {}  # by request: the names of agent and turn

    async def carry(self, request: WayRequest) -> Outcome:
        new = f"way_{uuid4().hex}", ""
        waiting = request.call if isinstance(request.call, Suspended) else None
        name, turn_id = new if waiting is None else self._stopped[waiting.request.id]
        agent = Agent(name, "Makes one call.", request.toolset, register=False)
        durable = DurableAgent(agent, _QUEUE, run=request.run)
        if waiting is not None:
            return await _ENGINE.run(self._taken_up(durable, turn_id, request, waiting))
        return await _ENGINE.run(self._put(durable, request))

    async def _put(self, durable: DurableAgent, request: WayRequest) -> Outcome:
        try:
            turn = request.turn()
            handle = await durable.put(turn)
        except UnknownTool as error:
            return unknown_of(request, error)
        outcome = await handle.outcome()
        if isinstance(outcome, Suspended):
            self._stopped[outcome.request.id] = durable.name, handle.id
        return request.ended(outcome)

    async def _taken_up(self, durable: DurableAgent, turn_id: str, request: WayRequest, waiting: Suspended) -> Outcome:
        handle = durable.handle(turn_id)

        async def ended() -> Outcome | None:
            outcome = await handle.outcome()
            goes_on = isinstance(outcome, Suspended) and outcome.request.id == waiting.request.id
            return None if goes_on else outcome

        if request.answer is None:
            return await handle.outcome()
        try:
            outcome = request.ended(await _answered(durable.client, request.answer, ended))
            if isinstance(outcome, Suspended):
                self._stopped[outcome.request.id] = durable.name, turn_id
            return outcome
        except ApprovalError as error:
            return _not_taken(waiting, error)


@dataclass(frozen=True, slots=True)
class _Paused:
    """A program that is paused: the name of its toolkit, the request that made it, and the records of its calls."""

    toolkit: str
    program: DurableProgram
    first: WayRequest
    watch: RecordingSink


class DurableProgramWay(Way):
    """A durable program of one line, which calls the tool; answered like a turn."""

    title = "durable program"
    abilities: ClassVar[frozenset[Ability]] = frozenset({"model", "run", "answer", "concurrent"})

    def __init__(self) -> None:
        self._paused: dict[str, _Paused] = {}  # by request

    async def carry(self, request: WayRequest) -> Outcome:
        if isinstance(request.call, Suspended):
            paused = self._paused[request.call.request.id]
            toolkit = self._toolkit(request, paused.toolkit, paused.watch)
            return await _ENGINE.run(self._taken_up(toolkit, request, request.call, paused))
        watch, name = RecordingSink(), f"way_{uuid4().hex}"
        program, result = await _ENGINE.run(self._result(self._toolkit(request, name, watch), program_of(request)))
        outcome = outcome_of(request, watch, result)
        if isinstance(outcome, Suspended):
            self._paused[outcome.request.id] = _Paused(name, program, request, watch)
        return outcome

    def _toolkit(self, request: WayRequest, name: str, watch: RecordingSink) -> DurableToolkit:
        run = request.run.with_sinks(watch)
        return DurableToolkit(Toolkit(request.toolset), _QUEUE, name=name, run=run, replace=True)

    async def _result(self, toolkit: DurableToolkit, code: str) -> tuple[DurableProgram, ExecutionResult]:
        program = await toolkit.start(code)
        return program, await program.settled(polling=_POLLING)

    async def _taken_up(
        self, toolkit: DurableToolkit, request: WayRequest, waiting: Suspended, paused: _Paused
    ) -> Outcome:
        async def ended() -> ExecutionResult | None:
            result = await paused.program.settled(polling=_POLLING)
            return None if any(call.request.id == waiting.request.id for call in result.suspended_calls) else result

        if request.answer is None:
            [call] = (await paused.program.settled(polling=_POLLING)).suspended_calls
            return replace(waiting, request=call.request)
        try:
            result = await _answered(toolkit.client, request.answer, ended)
        except ApprovalError as error:
            return _not_taken(waiting, error)
        outcome = outcome_of(replace(request, call=paused.first.new), paused.watch, result)
        if isinstance(outcome, Suspended):
            self._paused[outcome.request.id] = paused
        return outcome


durable_ways: tuple[Way, ...] = (DurableWay(), DurableProgramWay())
