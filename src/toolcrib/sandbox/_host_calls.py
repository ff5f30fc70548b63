"""The host's side of a program: calls and sleeps begun on the event loop, and their replies as they are ready."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from toolcrib.calls import calling_line
from toolcrib.sandbox._limit_messages import CANCELLED, returned_too_much
from toolcrib.sandbox._protocol import Host, Program, ProgramError, Raised, Reply, Value
from toolcrib.sandbox._values import json_size

__all__ = ["Call", "Ended", "HostCalls", "Pause", "Replies", "Request"]


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call of the program; `id` is the engine's own number for it."""

    id: int
    name: str
    args: list[Any]
    kwargs: dict[str, Any]
    line: int = 0


@dataclass(frozen=True, slots=True)
class Pause:
    """The program sleeps."""

    id: int
    seconds: float


Request: TypeAlias = Call | Pause
Replies: TypeAlias = list[tuple[int, Reply]]


class Ended(Exception):
    """The program has to end, for the reason in `error`; None when nobody is there to hear it."""

    def __init__(self, error: ProgramError | None) -> None:
        super().__init__(error)
        self.error = error


class HostCalls:
    """What a program has asked of its host.

    Args:
        program: Says how many calls run at a time, further ones wait, and what a streaming tool may return.
    """

    def __init__(self, host: Host, program: Program) -> None:
        self._host, self._program = host, program
        self._slots = asyncio.Semaphore(program.limits.calls_in_flight)
        self._tasks: dict[asyncio.Task[Reply], int] = {}

    async def answer(self, requests: Sequence[Request]) -> Replies:
        """Begin these requests, and return whatever replies are ready, at least one.

        Raises:
            Ended: A call was cancelled from inside, so that it has no reply.
            Exception: What the host raised.
        """
        if len(requests) == 1 and not self._tasks:  # the usual case needs no task
            try:
                return [(requests[0].id, await self._reply(requests[0]))]
            except asyncio.CancelledError:
                task = asyncio.current_task()
                if task is None or task.cancelling():
                    raise
                raise Ended(CANCELLED) from None
        for request in requests:
            self._tasks[asyncio.create_task(self._in_turn(request))] = request.id
        done, _ = await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)
        found = [(self._tasks.pop(task), task) for task in list(self._tasks) if task in done]  # in the order they began
        if any(task.cancelled() for _, task in found):
            raise Ended(CANCELLED)
        errors = [error for _, task in found if (error := task.exception()) is not None]
        if errors:
            raise errors[0]
        return [(request, task.result()) for request, task in found]

    async def _reply(self, request: Request) -> Reply:
        if isinstance(request, Pause):
            await asyncio.sleep(request.seconds)
            return Value(None)
        calling_line.set(request.line)
        if request.name in self._program.streams:
            return await self._all_of(request)
        return await self._host.call(request.name, request.args, request.kwargs)

    async def _all_of(self, call: Call) -> Reply:
        """Return all values of a streaming tool at once; one that does not come to its end in time is stopped."""
        values: list[Any] = []
        size = 0
        refused: Raised | None = None

        async def emit(value: Any) -> None:
            nonlocal size, refused
            values.append(value)
            size += json_size(value)
            if size > self._program.limits.reply_size:
                refused = returned_too_much(call.name, size, self._program.limits)
                raise asyncio.CancelledError  # the stream is over, for the tool as well

        try:
            reply = await self._host.call(call.name, call.args, call.kwargs, emit)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if refused is None or task is None or task.cancelling():
                raise
            return refused
        return Value(values) if isinstance(reply, Value) else reply

    async def _in_turn(self, request: Request) -> Reply:
        async with self._slots:
            return await self._reply(request)

    async def close(self) -> None:
        """Stop what still runs, and wait until it has stopped."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        for task in tasks:
            if not task.cancelled():
                task.exception()  # the program's own error is told already: this one is only marked as seen
