"""Restate as the host of one turn: its journal, its streams, and its word on whether the attempt still counts."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, NoReturn, TypeVar

from restate import RunOptions, WorkflowContext
from restate.exceptions import RetryableError
from restate.serde import JsonSerde

from toolcrib.calls import Failed
from toolcrib.clock import UPTIME_CLOCK, Clock
from toolcrib.durable import RetryPolicy, UnknownHereError
from toolcrib.errors import EngineError

R = TypeVar("R")

_log = logging.getLogger("toolcrib.durable")
_JSON = RunOptions[Any](serde=JsonSerde())
_AGAIN = timedelta(seconds=5)  # until another worker may have what is missing here
_RESULT, _NUMBER, _VALUE, _FAILED = "result", "n", "value", "failed"
_ADMIT = "admit"  # the kind of the step in which a turn passes its gates
_COUNTS_SECONDS = 3.0  # for which an attempt counts after Restate has said so
_PAUSE = 0.5  # seconds until Restate is asked again that does not answer


def value_key(number: int) -> str:
    """Return where the state of a turn has a value of its stream."""
    return f"value {number:09d}"


def left_here(missing: object) -> NoReturn:
    """Leave a turn to a worker that has what is missing here: Restate tries it again."""
    raise RetryableError(f"waits for a worker that has {missing}", retry_after=_AGAIN)


class TryAgain(Exception):
    """The call of a turn failed, and is made again: Restate has that, and the error, before it is raised."""


class RestateHost:
    """One attempt of a turn: what it did in earlier ones is in the journal, which Restate has before it is acted on.

    A step is written in parts: each value of a stream is one, and the result is the last. An attempt after one that was
    cut off finds the parts before, and runs the step where there is no result.

    Args:
        number: How often the turn waited for a person before.
        ask: Asks a handler of the turn, by its name and this number; it raises EngineError while Restate is away.
        retry: How often its call is made that fails; None for one that may not be made again.
        before: The host of the try before this one, whose call has passed its gates.
        clock: The clock of the seconds for which the attempt counts.

    Attributes:
        tries: The tries before this one.
    """

    def __init__(
        self,
        ctx: WorkflowContext,
        number: int,
        ask: Callable[[str, int], Awaitable[Any]],
        retry: RetryPolicy | None = None,
        before: RestateHost | None = None,
        clock: Clock = UPTIME_CLOCK,
    ) -> None:
        self._ctx, self._number, self._ask, self._retry = ctx, number, ask, retry
        self._clock, self._counted_at = clock, clock.monotonic()
        self.tries = 0 if before is None else before.tries + 1
        self._admitted: Any = None if before is None else before._admitted
        self._has_taken_over = before is not None and before._has_taken_over
        self._values: deque[tuple[int, Any]] = deque()
        self._more = asyncio.Event()

    async def step(self, name: str, run: Callable[[], Awaitable[R]]) -> R:
        """Run a step, and return its result, once Restate has it.

        Raises:
            TryAgain: It is the call of the turn, which failed, and is made again.
        """
        is_admission = name.startswith(_ADMIT)
        if is_admission and self._admitted is not None:
            return self._admitted
        task: asyncio.Task[R] | None = None

        async def part() -> dict[str, Any]:
            nonlocal task
            task = task or asyncio.create_task(_run(run))
            while not (self._values or task.done()):
                self._more.clear()
                more = asyncio.create_task(self._more.wait())
                await asyncio.wait({task, more}, return_when=asyncio.FIRST_COMPLETED)
                more.cancel()
            if self._values:
                number, value = self._values.popleft()
                return {_NUMBER: number, _VALUE: value}
            self._counted_at = self._clock.monotonic()  # at the earliest, as what follows waits until Restate has it
            try:
                return {_RESULT: task.result()}
            except TryAgain as failed:
                return {_FAILED: str(failed)}

        try:
            parts = 0
            while _NUMBER in (found := await self._ctx.run_typed(self._part(name, parts), part, _JSON)):
                self._ctx.set(value_key(found[_NUMBER]), found[_VALUE])
                parts += 1
            if _FAILED in found:
                raise TryAgain(found[_FAILED])
            self._admitted = found[_RESULT] if is_admission else self._admitted
            return found[_RESULT]
        finally:
            if task is not None and not task.done():
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)

    async def end(self, name: str, run: Callable[[], Awaitable[dict[str, Any]]]) -> dict[str, Any]:
        """Run what the turn ends with, as a step: Restate stops it when the turn is cancelled."""
        return await self.step(name, run)

    async def hold(self) -> None:
        """Return while this attempt is the one that counts."""
        if self._ctx.request().attempt_finished_event.is_set():
            await asyncio.Event().wait()  # its task is cancelled

    async def may_begin(self) -> None:
        """Return if this attempt counts, as Restate has said within the last few seconds; else it does not return.

        One that stood still, or heard from Restate late, does not know yet that another attempt has the turn.
        """
        await self.hold()
        while not self._has_taken_over and self._clock.monotonic() - self._counted_at > _COUNTS_SECONDS:
            asked_at = self._clock.monotonic()
            if await self._answer("taken"):
                await asyncio.Event().wait()  # its task is cancelled
            self._counted_at = asked_at

    async def begun_before(self, known: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, str]]:
        """Return, of calls that were begun before, when and by which worker that was.

        No attempt before this one begins them any more: each asks whether the turn was taken over, or has done so less
        than the seconds ago that are waited here.
        """
        await self._answer("take")
        await self._clock.sleep(_COUNTS_SECONDS)
        self._has_taken_over = True
        return {
            call_id: {
                "begun": f"{datetime.fromtimestamp(began['at'], UTC).isoformat(timespec='seconds')} "
                f"by the worker {began['worker']}"
            }
            for call_id, began in known.items()
        }

    async def _answer(self, handler: str) -> Any:
        """Return the answer of a handler of the turn, as soon as Restate is there."""
        while True:
            try:
                return await self._ask(handler, self._number)
            except EngineError as error:
                _log.debug("%s waits for Restate: %s", handler, error)
            await self._clock.sleep(_PAUSE)

    async def failed_before(self) -> bool:
        """Return whether the call failed in a try before this one."""
        return self.tries > 0

    async def stream(self, number: int, value: Any) -> None:
        """Hand over a value, which becomes a part of the step that runs."""
        self._values.append((number, value))
        self._more.set()

    async def watch_cancel(self, task: asyncio.Task[Any]) -> None:
        """Wait for a task; the step that it is part of is stopped when the turn is cancelled."""
        try:
            await asyncio.wait({task})
        finally:
            if not task.done():
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
        task.result()

    async def requeue(self, outcome: Failed) -> None:
        """Raise TryAgain where a call that failed is made again."""
        retry = self._retry
        if retry is None or isinstance(outcome.exception, retry.unless) or self.tries + 1 >= retry.attempts:
            return
        raise TryAgain(outcome.message)

    def _part(self, name: str, number: int) -> str:
        """Return the name of a part of a step, in which no argument of the turn is: those may be edited meanwhile."""
        kind = name.partition(" ")[0]
        return f"{kind} {self._number}.{number}"


async def _run(run: Callable[[], Awaitable[R]]) -> R:
    try:
        return await run()
    except UnknownHereError as error:
        left_here(error)
