"""The calls that a program has open: begun on the event loop, their replies kept until the program waits for them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from toolcrib.calls import calling_line
from toolcrib.sandbox._frames import Breach, CallAsked, do_nothing, item_of, raised_of, value_of
from toolcrib.sandbox._host_calls import Ended
from toolcrib.sandbox._limit_messages import CANCELLED, asked_too_much, returned_too_much
from toolcrib.sandbox._protocol import Host, Program, Raised, Reply, SuspendedReply, Value

__all__ = ["OpenCall", "OpenCalls"]

_OPEN = 128 * 1024 * 1024  # bytes of memory, about, that the arguments of all open calls may take


class OpenCall:
    """One call between its frame and the end of its reply.

    Attributes:
        line: Where the program made it; 0 when unknown.
        pending: What it waits for, when it waits for a person.
    """

    __slots__ = (
        *("args", "has_slot", "id", "is_dropped", "is_idle", "is_over", "is_stream", "is_wanted", "kwargs", "line"),
        *("name", "pending", "ready", "task", "wanted", "weight"),
    )

    def __init__(self, asked: CallAsked, *, is_stream: bool) -> None:
        self.id, self.name, self.line = asked.id, asked.name, asked.line
        self.args, self.kwargs, self.is_stream = asked.args, asked.kwargs, is_stream
        self.weight = asked.weight
        self.pending: SuspendedReply | None = None
        self.task: asyncio.Task[None] | None = None
        self.ready: bytes | None = None  # the frame to deliver
        self.is_over = False  # that frame is the last one
        self.is_wanted = not is_stream  # the program waits for a frame, now or later
        self.is_dropped = self.is_idle = self.has_slot = False
        self.wanted: asyncio.Future[None] | None = None  # the tool waits for the program to want more


class OpenCalls:
    """What a program has asked of its host.

    Args:
        woken: Told that a reply is ready, or that something failed.

    Attributes:
        made: Calls so far.
        running: Of them, those that the host is at now.
        failed: What the host raised, or why a call has no reply.
    """

    def __init__(self, program: Program, host: Host, woken: Callable[[], None]) -> None:
        self._limits, self._host, self._woken = program.limits, host, woken
        self._streams = program.streams
        self._slots = asyncio.Semaphore(program.limits.calls_in_flight)
        self._open: dict[int, OpenCall] = {}
        self._weight = 0  # of their arguments
        self._tasks: set[asyncio.Task[None]] = set()
        self._ready: dict[int, None] = {}  # in the order they became so
        self.made = 0
        self.running = 0
        self.failed: BaseException | None = None

    # --- what the program asks for

    def add(self, asked: CallAsked) -> OpenCall:
        """Take a call, which is not begun yet.

        Raises:
            Ended: All that are open have too many arguments.
        """
        call = self._open[asked.id] = OpenCall(asked, is_stream=asked.name in self._streams)
        self._weight += call.weight
        if self._weight > _OPEN:
            raise Ended(asked_too_much(asked.name, _OPEN, asked.line))
        return call

    def _close(self, number: int) -> OpenCall | None:
        call = self._open.pop(number, None)
        if call is not None:
            self._weight -= call.weight
        return call

    def begin(self, call: OpenCall) -> None:
        """Begin a call: now, or when it is its turn."""
        self.running += 1
        call.task = asyncio.create_task(self._answer(call))
        self._tasks.add(call.task)
        call.task.add_done_callback(lambda task: self._ended(call, task))

    def want(self, number: int) -> OpenCall:
        """Note that the program wants the next value of a stream.

        Raises:
            Breach: There is no such stream, or it is asked already.
        """
        call = self._open.get(number)
        if call is None or not call.is_stream or call.is_wanted:
            raise Breach(f"a value is wanted of {number}, which is no stream that could give one")
        call.is_wanted = True
        if call.wanted is not None:
            self._set_idle(call, False)
            call.wanted.set_result(None)
            call.wanted = None
        return call

    def drop(self, number: int) -> None:
        """Cancel a call of which the program wants nothing more; one that has ended is none to cancel."""
        call = self._close(number)
        if call is None:
            if not 0 < number <= self.made:
                raise Breach(f"{number} is dropped, which is no call")
            return
        call.is_dropped = True
        self._ready.pop(number, None)
        if call.task is not None:
            call.task.cancel()

    # --- what it is given

    @property
    def ready(self) -> list[int]:
        """The calls that have something for the program, in the order they got it."""
        return list(self._ready)

    def is_open(self, number: int) -> bool:
        """Whether the call has not had its last frame yet."""
        return number in self._open

    def is_ready(self, number: int) -> bool:
        """Whether the call has something for the program."""
        return number in self._ready

    def take(self, number: int) -> bytes:
        """Return what a call has for the program, which then has it."""
        call = self._open[number]
        frame = call.ready or b""
        del self._ready[number]
        call.ready, call.is_wanted = None, False
        if call.is_over:
            self._close(number)
        return frame

    @property
    def pending(self) -> list[OpenCall]:
        """The calls that wait for a person, in the order they were made."""
        return [call for _, call in sorted(self._open.items()) if call.pending is not None]

    # --- the host's side

    async def _answer(self, call: OpenCall) -> None:
        try:
            await self._slots.acquire()
            call.has_slot = True
            calling_line.set(call.line)
            if call.is_stream:
                reply = await self._host.call(call.name, call.args, call.kwargs, lambda value: self._emit(call, value))
                if isinstance(reply, Value):
                    reply = Value(None)  # the program has its values: all of them once more might be too much
            else:
                reply = await self._host.call(call.name, call.args, call.kwargs)
        finally:
            if call.has_slot:
                self._slots.release()
        if not call.is_dropped:
            self.settle(call, reply)

    def settle(self, call: OpenCall, reply: Reply) -> None:
        """Take the reply that ends a call, or that it waits for a person."""
        if isinstance(reply, SuspendedReply):
            call.pending = reply
        else:
            call.is_over = True
            self._give(call, self.frame(call, reply))

    def frame(self, call: OpenCall | CallAsked, reply: Value | Raised) -> bytes:
        """Return the frame that ends a call."""
        if isinstance(reply, Raised):
            return raised_of(call.id, reply)
        frame, size = value_of(call.id, reply.value)
        return frame if size <= self._limits.reply_size else raised_of(call.id, self._refused(call, size))

    async def _emit(self, call: OpenCall, value: Any) -> None:
        frame, size = item_of(call.id, value)
        if size > self._limits.reply_size:
            self.settle(call, self._refused(call, size))
            call.is_dropped = True
            raise asyncio.CancelledError  # the stream is over, for the tool as well
        self._give(call, frame)
        call.has_slot = False
        self._slots.release()
        self._set_idle(call, True)
        call.wanted = asyncio.get_running_loop().create_future()
        self._woken()
        await call.wanted
        await self._slots.acquire()
        call.has_slot = True

    def _refused(self, call: OpenCall | CallAsked, size: int) -> Raised:
        return returned_too_much(call.name, size, self._limits)

    def _give(self, call: OpenCall, frame: bytes) -> None:
        call.ready = frame
        self._ready[call.id] = None

    def _set_idle(self, call: OpenCall, idle: bool) -> None:
        call.is_idle = idle
        self.running += -1 if idle else 1

    def _ended(self, call: OpenCall, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if call.is_dropped:
            call.task = None  # as in close
        if not call.is_idle:
            self.running -= 1
        if task.cancelled():
            if not call.is_dropped and self.failed is None:
                self.failed = Ended(CANCELLED)
        elif (error := task.exception()) is not None and self.failed is None:
            self.failed = error
        self._woken()

    async def close(self) -> None:
        """Stop what still runs, and wait until it has stopped."""
        self.failed = self.failed or Ended(None)  # of what happens from here on, nothing is told
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        for call in self._open.values():
            call.task = None  # its error knows the call: what both hold would stay until garbage is collected
        self._open.clear()
        self._ready.clear()
        self._woken = do_nothing
