"""Calls and sleeps of programs in Monty, begun on the event loop, and their replies as they are ready."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextvars import copy_context
from dataclasses import dataclass
from typing import Any, TypeAlias

from toolcrib.calls import calling_line
from toolcrib.sandbox._call_queue import CallQueue
from toolcrib.sandbox._endings import CALL_CANCELLED, ProgramEnded, result_too_large
from toolcrib.sandbox._protocol import Host, Program, Raised, Reply, Value
from toolcrib.sandbox._values import json_size


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
        self._queue = CallQueue(program.limits.calls_in_flight)
        self._numbers: dict[int, int] = {}  # of the requests without a reply, in the order they came
        self._tasks: dict[int, asyncio.Task[Reply]] = {}
        self._ended: list[int] = []
        self._last_number = 0
        self._news: asyncio.Future[None] | None = None

    async def answer(self, requests: Sequence[MontyRequest]) -> MontyReplies:
        """Begin these requests, and return the replies that are ready, at least one.

        Raises:
            ProgramEnded: A call was cancelled from inside, so that it has no reply.
            Exception: An exception of the host.
        """
        if len(requests) == 1 and not self._numbers:  # the usual case needs no task
            try:
                return [(requests[0].id, await self._reply(requests[0]))]
            except asyncio.CancelledError:
                task = asyncio.current_task()
                if task is None or task.cancelling():
                    raise
                raise ProgramEnded(CALL_CANCELLED) from None
        for request in requests:
            self._begin(request)
        if not self._ended:
            self._news = asyncio.get_running_loop().create_future()
            await self._news
        ended, self._ended = sorted(self._ended, key=self._numbers.__getitem__), []
        found = [(number, self._tasks.pop(number)) for number in ended]
        for number in ended:
            del self._numbers[number]
        if any(task.cancelled() for _, task in found):
            raise ProgramEnded(CALL_CANCELLED)
        errors = [error for _, task in found if (error := task.exception()) is not None]
        if errors:
            raise errors[0]
        return [(request, task.result()) for request, task in found]

    def _begin(self, request: MontyRequest) -> None:
        self._numbers[request.id] = self._last_number = self._last_number + 1
        context = copy_context()

        def start() -> None:
            task = self._tasks[request.id] = asyncio.create_task(self._reply(request), context=context)
            task.add_done_callback(lambda task: self._end(request.id))

        self._queue.add(start)

    def _end(self, number: int) -> None:
        self._queue.release()
        self._ended.append(number)
        if self._news is not None and not self._news.done():
            self._news.set_result(None)

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

    async def finish(self) -> None:
        """Begin no further call, and wait until those that run have ended."""
        self._queue.close()
        if self._tasks:
            await asyncio.wait(self._tasks.values())

    async def close(self) -> None:
        """Stop the calls that still run, and wait until they have stopped."""
        self._queue.close()
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        for task in tasks:
            if not task.cancelled():
                task.exception()  # the program has an error already: this one is only marked as seen
