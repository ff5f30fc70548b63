"""Calls and sleeps of programs in Monty, begun on the event loop, and their replies as they are ready."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from toolcrib.calls import calling_line
from toolcrib.sandbox._endings import CALL_CANCELLED, ProgramEnded, result_too_large
from toolcrib.sandbox._protocol import Host, Program, Raised, Reply, Value
from toolcrib.sandbox._values import json_size

__all__ = ["MontyCall", "MontyCalls", "MontyReplies", "MontyRequest", "MontySleep"]


@dataclass(frozen=True, slots=True)
class MontyCall:
    """A tool call of the program; `id` is Monty's own number for it."""

    id: int
    name: str
    args: list[Any]
    kwargs: dict[str, Any]
    line: int = 0


@dataclass(frozen=True, slots=True)
class MontySleep:
    """A sleep of the program."""

    id: int
    seconds: float


MontyRequest: TypeAlias = MontyCall | MontySleep
MontyReplies: TypeAlias = list[tuple[int, Reply]]


class MontyCalls:
    """The requests of one program that its host is at.

    Args:
        program: Its limits: how many calls run at a time, and what a streaming tool may return.
    """

    def __init__(self, host: Host, program: Program) -> None:
        self._host, self._program = host, program
        self._slots = asyncio.Semaphore(program.limits.calls_in_flight)
        self._tasks: dict[asyncio.Task[Reply], int] = {}

    async def answer(self, requests: Sequence[MontyRequest]) -> MontyReplies:
        """Begin these requests, and return the replies that are ready, at least one.

        Raises:
            ProgramEnded: A call was cancelled from inside, so that it has no reply.
            Exception: An exception of the host.
        """
        if len(requests) == 1 and not self._tasks:  # the usual case needs no task
            try:
                return [(requests[0].id, await self._reply(requests[0]))]
            except asyncio.CancelledError:
                task = asyncio.current_task()
                if task is None or task.cancelling():
                    raise
                raise ProgramEnded(CALL_CANCELLED) from None
        for request in requests:
            self._tasks[asyncio.create_task(self._reply_in_slot(request))] = request.id
        done, _ = await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)
        found = [(self._tasks.pop(task), task) for task in list(self._tasks) if task in done]  # in the order they began
        if any(task.cancelled() for _, task in found):
            raise ProgramEnded(CALL_CANCELLED)
        errors = [error for _, task in found if (error := task.exception()) is not None]
        if errors:
            raise errors[0]
        return [(request, task.result()) for request, task in found]

    async def _reply(self, request: MontyRequest) -> Reply:
        if isinstance(request, MontySleep):
            await asyncio.sleep(request.seconds)
            return Value(None)
        calling_line.set(request.line)
        if request.name in self._program.streams:
            return await self._finished_reply(request)
        return await self._host.call(request.name, request.args, request.kwargs)

    async def _finished_reply(self, call: MontyCall) -> Reply:
        """Return all values of a streaming tool at once; a stream that is too long is stopped."""
        values: list[Any] = []
        size = 0
        refused: Raised | None = None

        async def emit(value: Any) -> None:
            nonlocal size, refused
            values.append(value)
            size += json_size(value)
            if size > self._program.limits.reply_size:
                refused = result_too_large(call.name, size, self._program.limits)
                raise asyncio.CancelledError  # the stream is over, for the tool as well

        try:
            reply = await self._host.call(call.name, call.args, call.kwargs, emit)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if refused is None or task is None or task.cancelling():
                raise
            return refused
        return Value(values) if isinstance(reply, Value) else reply

    async def _reply_in_slot(self, request: MontyRequest) -> Reply:
        async with self._slots:
            return await self._reply(request)

    async def close(self) -> None:
        """Stop the calls that still run, and wait until they have stopped."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        for task in tasks:
            if not task.cancelled():
                task.exception()  # the program has an error already: this one is only marked as seen
