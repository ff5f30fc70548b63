"""Run of an agent: its turns in order, or several at a time."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterable
from contextlib import AbstractContextManager, asynccontextmanager
from typing import Any, Protocol, TypeAlias

from toolcrib.calls import Completed, Failed, Outcome, Suspended, error_of
from toolcrib.errors import CompletionCheckReturnError, ToolcribError
from toolcrib.hooks import AgentHook, Observers, ambient
from toolcrib.pipeline import Run
from toolcrib.tools import ToolType
from toolcrib.turns._binding import Clock, Table, TurnBinding, fire_event
from toolcrib.turns._context import ContextItem, ContextPool, ContextQueue
from toolcrib.turns._locked import Locked
from toolcrib.turns._queue import END, TurnQueue
from toolcrib.turns._turn import Turn

Results: TypeAlias = AsyncGenerator[tuple[Turn[Any], Any], None]
_ROUTED: tuple[type[Any], ...] = (Turn, ContextItem)
NOTHING: Any = object()  # a turn has no value for the caller


class RunnableAgent(Protocol):
    """An agent, as far as a run of it is concerned."""

    context_queue: Locked[ContextQueue]
    context_pool: Locked[ContextPool]

    @property
    def name(self) -> str: ...
    @property
    def is_paused(self) -> bool: ...
    @property
    def observers(self) -> Observers: ...
    async def put(self, turn: Turn[Any]) -> None: ...
    def occupied(self, run: Run) -> AbstractContextManager[TurnBinding]: ...


class AgentRun:
    """A run: takes turns from the agent's work, routes what they give, and yields the rest.

    Attributes:
        finished: Whether a completion check said so.
    """

    def __init__(self, agent: RunnableAgent, work: TurnQueue, run: Run, *, wait: bool) -> None:
        self._agent, self._queue, self._run, self._wait = agent, work, run, wait
        self.finished = False
        self._most = 1
        self._workers: set[asyncio.Task[None]] = set()
        self._stopping = False
        self._error: Exception | None = None
        self._full: deque[asyncio.Future[None]] = deque()

    # --- in order

    async def in_order(self) -> Results:
        """Run one turn after the other."""
        work, turn = self._queue, None
        with self._agent.occupied(self._run) as binding:
            try:
                while True:
                    while work.undelivered:  # left over by a run that was left early
                        turn, value = self._next_value()
                        if value is not END:
                            yield turn, value
                    turn = work.take() if self._open() else None
                    if turn is None:
                        if not await self._more():
                            return
                    elif turn.tool.is_watched:
                        async with self._streaming(turn, binding) as (values, clock, table):
                            keep = turn.output.append
                            async for value in values:  # no generator in between: each costs as much as a value
                                keep(value)
                                if not (table or isinstance(value, _ROUTED)) or await self._is_for_caller(
                                    turn, value, binding
                                ):
                                    clock.rest()
                                    yield turn, value
                                    clock.begin()
                        work.done(turn)
                    else:
                        value = await self._returned(turn, binding)
                        work.done(turn)
                        if value is not NOTHING:
                            yield turn, value
            except GeneratorExit:
                if turn is not None:  # the caller has seen something of it, and wants no more
                    work.done(turn)
                raise
            finally:
                work.settle()

    def _open(self) -> bool:
        return not (self.finished or self._error is not None or self._agent.is_paused)

    async def _more(self) -> bool:
        """Wait until there may be something to do; False when there will not."""
        waiting = self._queue.waiting
        if self.finished or not (self._wait or waiting):
            return False
        if self._agent.is_paused or not waiting:
            await self._queue.changed()
        return True

    def _next_value(self) -> tuple[Turn[Any], Any]:
        item = turn, value = self._queue.undelivered.popleft()
        if value is END:
            self._queue.done(turn)
        else:
            self._queue.delivered(turn)
        return item

    # --- several at a time

    async def concurrently(self, most: int) -> Results:
        """Run up to `most` turns at a time, and yield values as they come."""
        work, was_left = self._queue, False
        self._most = most
        with self._agent.occupied(self._run) as binding:
            try:
                while True:
                    self._start_workers(binding)
                    if work.undelivered:
                        turn, value = self._next_value()
                        if len(work.undelivered) * 2 <= most:  # all at once: waking a task costs as much as a turn
                            while self._full:
                                if not (waiter := self._full.popleft()).done():
                                    waiter.set_result(None)
                        if value is not END:
                            yield turn, value
                    elif self._error is not None:
                        raise self._error
                    elif self._workers:
                        await work.changed()
                    elif not await self._more():
                        return
            except GeneratorExit:
                was_left = True
                raise
            finally:
                self._stopping = True
                workers = list(self._workers)
                for worker in workers:
                    worker.cancel()
                await asyncio.gather(*workers, return_exceptions=True)
                work.settle(left=was_left)

    def _start_workers(self, binding: TurnBinding) -> None:
        if len(self._workers) >= self._most or not self._queue.waiting or not self._open():
            return
        for _ in range(min(self._most - len(self._workers), len(self._queue.waiting))):
            worker = asyncio.create_task(self._work_off(binding), name=f"{self._agent.name}: turns")
            worker.add_done_callback(self._worker_ended)
            self._workers.add(worker)

    def _worker_ended(self, worker: asyncio.Task[None]) -> None:
        self._workers.discard(worker)
        if worker.cancelled() and not self._stopping and self._error is None:
            self._error = ToolcribError(f"{self._agent!r}: a turn was cancelled, and nothing had asked for that")
        self._queue.wake()

    async def _work_off(self, binding: TurnBinding) -> None:
        """Run turns as long as there are any, for `concurrently`."""
        work = self._queue
        try:
            while self._open() and (turn := work.take()) is not None:
                if turn.tool.is_watched:
                    await self._run_stream(turn, binding)
                elif (value := await self._returned(turn, binding)) is NOTHING:
                    work.done(turn)
                else:
                    await self._deliver(turn, value)
        except Exception as error:  # the turn's own, for the caller that iterates over the run
            self._error = self._error or error

    async def _run_stream(self, turn: Turn[Any], binding: TurnBinding) -> None:
        async with self._streaming(turn, binding) as (values, clock, _):
            async for value in values:
                turn.output.append(value)
                if await self._is_for_caller(turn, value, binding):
                    clock.rest()
                    await self._deliver(turn, value)
                    clock.begin()
        await self._deliver(turn, END)

    async def _deliver(self, turn: Turn[Any], value: Any) -> None:
        """Leave a value for the caller, and wait while there are many that it has not taken."""
        undelivered = self._queue.undelivered
        undelivered.append((turn, value))
        self._queue.wake()
        while len(undelivered) > self._most:  # only now: who is stopped while it waits has nothing in its hands
            room = asyncio.get_running_loop().create_future()
            self._full.append(room)
            await room

    # --- one turn

    async def run_turn(self, turn: Turn[Any], binding: TurnBinding) -> AsyncGenerator[Any, None]:
        """Run one turn, which the agent need not have waiting, and yield what it gives the caller."""
        if turn.tool.is_watched:
            async with self._streaming(turn, binding) as (values, clock, _):
                async for value in values:
                    turn.output.append(value)
                    if await self._is_for_caller(turn, value, binding):
                        clock.rest()
                        yield value
                        clock.begin()
        elif (value := await self._returned(turn, binding)) is not NOTHING:
            yield value

    @asynccontextmanager
    async def _streaming(
        self, turn: Turn[Any], binding: TurnBinding
    ) -> AsyncGenerator[tuple[AsyncIterable[Any], Clock, Table]]:
        """Run a turn whose tool streams, while the body takes what comes."""
        table = await self._fire_before(turn, binding)
        try:
            async with turn.streaming(binding, self._queue.answers.get(turn)) as (values, clock):
                yield values, clock, table
            self._ended(turn, turn.outcome)
        except Exception:  # it ended with an error: it is not run again, and the error goes to the caller of `run()`
            self._queue.ended(turn)
            raise
        await fire_event(table, AgentHook.AFTER_TURN, self._agent, turn, ctx=binding.ctx)

    async def _returned(self, turn: Turn[Any], binding: TurnBinding) -> Any:
        """Run a turn whose tool returns, and give the value that is for the caller, or `NOTHING`."""
        table, answers = self._agent.observers.table(), self._queue.answers
        if table:
            await self._fire_before(turn, binding)
        value = NOTHING
        try:
            outcome = await turn.run_within(binding, answers.get(turn) if answers else None)
            if type(outcome) is Completed:
                value = outcome.value
                if turn.tool.options.type is ToolType.COMPLETION_CHECK:
                    self._check(turn, value)
                if (table or isinstance(value, _ROUTED)) and not await self._is_for_caller(turn, value, binding):
                    value = NOTHING
                self._queue.ended(turn)
            else:
                self._ended(turn, outcome)
        except Exception:  # as above
            self._queue.ended(turn)
            raise
        if table:
            await fire_event(table, AgentHook.AFTER_TURN, self._agent, turn, ctx=binding.ctx)
        return value

    async def _fire_before(self, turn: Turn[Any], binding: TurnBinding) -> Table:
        table = self._agent.observers.table()
        if not binding.taken_up:
            await fire_event(table, AgentHook.BEFORE_TURN, self._agent, turn, ctx=binding.ctx)
        return table

    def _check(self, turn: Turn[Any], value: Any) -> None:
        if not isinstance(value, bool):
            raise CompletionCheckReturnError(turn.tool_name, type(value).__name__)
        self.finished = self.finished or value

    def _ended(self, turn: Turn[Any], outcome: Outcome | None) -> None:
        self._queue.ended(turn)
        if type(outcome) is Completed:
            return
        if isinstance(outcome, Suspended):
            self._queue.suspend(turn, outcome)
        elif isinstance(outcome, Failed):
            raise error_of(outcome)

    async def _is_for_caller(self, turn: Turn[Any], value: Any, binding: TurnBinding) -> bool:
        """Return whether a value is for the caller; hooks are called with it, and one for the agent is routed."""
        await fire_event(
            self._agent.observers.table(), AgentHook.ON_TURN_VALUE, self._agent, turn, value, ctx=binding.ctx
        )
        if not isinstance(value, _ROUTED):
            return True
        await self._route(value, binding)
        return False

    async def _route(self, value: Turn[Any] | ContextItem[Any], binding: TurnBinding) -> None:
        agent = self._agent
        if isinstance(value, Turn):
            await agent.put(value)
            return
        token = ambient.set(binding.ctx)  # so that the hooks of queue and pool are supplied like any other
        try:
            if value.id is None:
                await agent.context_queue.append(value)
            else:
                await agent.context_pool.add(value)
        finally:
            ambient.reset(token)
