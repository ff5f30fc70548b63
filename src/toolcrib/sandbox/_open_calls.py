"""The open calls of a program: begun on the event loop, their frames kept until the program waits for them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import copy_context
from typing import Any

from toolcrib.calls import calling_line, charge_time
from toolcrib.sandbox._call_queue import CallQueue, QueuedCall
from toolcrib.sandbox._endings import (
    CALL_CANCELLED,
    ProgramEnded,
    arguments_too_large,
    result_too_large,
    tables_too_large,
)
from toolcrib.sandbox._frames import CallFrame, ProtocolError, do_nothing
from toolcrib.sandbox._host_frames import HostFrame, error_frame, item_frame, value_frame
from toolcrib.sandbox._protocol import Host, Program, Raised, Reply, SuspendedReply, Value

_ARGUMENT_BYTES = 128 * 1024 * 1024  # of memory, about, that the arguments of all open calls may take
_REPLY_BYTES = 64 * 1024 * 1024  # of frames and blobs that wait for the program, from which on no further call begins


class OpenCall:
    """One call, from the worker's frame to the last frame that answers it.

    Attributes:
        line: Where the program made it; 0 when unknown.
        memory: Bytes, about, that its arguments take.
        suspended: The reply of a call that waits for a person.
        frame: The next frame for the program.
        is_over: Whether that frame is the last one.
        is_wanted: Whether the program waits for a frame, now or later.
        is_idle: Whether the tool waits for the program to want another value.
    """

    __slots__ = (
        *("args", "frame", "has_place", "id", "is_dropped", "is_idle", "is_over", "is_stream", "is_wanted", "kwargs"),
        *("line", "memory", "name", "queued", "suspended", "task", "wanted"),
    )

    def __init__(self, asked: CallFrame, *, is_stream: bool) -> None:
        self.id, self.name, self.line, self.memory = asked.id, asked.name, asked.line, asked.memory
        self.args, self.kwargs, self.is_stream = asked.args, asked.kwargs, is_stream
        self.suspended: SuspendedReply | None = None
        self.queued: QueuedCall | None = None
        self.task: asyncio.Task[None] | None = None
        self.frame: HostFrame | None = None
        self.is_wanted = not is_stream
        self.is_over = self.is_dropped = self.is_idle = self.has_place = False
        self.wanted: asyncio.Future[None] | None = None


class OpenCalls:
    """The calls that a program has made of its host.

    Args:
        on_change: Called when a frame is ready, or a call failed.
        charge: Takes the seconds that the host computes to read the calls.

    Attributes:
        count: Calls so far.
        running: Of them, those that the host executes now, or begins later.
        failed: The host's exception, or why a call has no reply.
    """

    def __init__(
        self, program: Program, host: Host, on_change: Callable[[], None], charge: Callable[[float], None]
    ) -> None:
        self._charge = charge
        self._limits, self._host, self._on_change = program.limits, host, on_change
        self._streams = program.streams
        self._queue = CallQueue(program.limits.calls_in_flight, self._has_room)
        self._open: dict[int, OpenCall] = {}
        self._memory = 0  # of their arguments
        self._tasks: set[asyncio.Task[None]] = set()
        self._ready: dict[int, None] = {}  # in the order they became so
        self._ready_bytes = 0
        self.count = 0
        self.running = 0
        self.failed: BaseException | None = None

    # --- what the program asks for

    def add(self, asked: CallFrame) -> OpenCall:
        """Add a call, which is not begun yet.

        Raises:
            ProgramEnded: The arguments of all open calls are too large.
        """
        call = self._open[asked.id] = OpenCall(asked, is_stream=asked.name in self._streams)
        self._memory += call.memory
        if self._memory > _ARGUMENT_BYTES:
            raise ProgramEnded(arguments_too_large(asked.name, _ARGUMENT_BYTES, asked.line))
        return call

    def _remove(self, number: int) -> OpenCall | None:
        call = self._open.pop(number, None)
        if call is not None:
            self._memory -= call.memory
        return call

    def begin(self, call: OpenCall, *, urgent: bool = False) -> None:
        """Begin a call: now, or when it is its turn and, unless it is `urgent`, the program has taken earlier replies.

        A call is urgent when the program takes no other reply before this one.
        """
        self.running += 1
        context = copy_context()

        def start() -> None:
            call.has_place = True
            call.task = asyncio.create_task(self._answer(call), context=context)
            self._tasks.add(call.task)
            call.task.add_done_callback(lambda task: self._done(call, task))

        call.queued = self._queue.add(start, urgent=urgent)

    def _has_room(self) -> bool:
        return self._ready_bytes <= _REPLY_BYTES

    def want(self, number: int) -> OpenCall:
        """Record that the program wants the next value of a stream.

        Raises:
            ProtocolError: There is no such stream, or its next value is wanted already.
        """
        call = self._open.get(number)
        if call is None or not call.is_stream or call.is_wanted:
            raise ProtocolError(f"a value is wanted of {number}, which is not an open stream")
        call.is_wanted = True
        if call.wanted is not None:
            self._set_idle(call, False)
            call.wanted.set_result(None)
            call.wanted = None
        return call

    def drop(self, number: int) -> None:
        """Cancel a call of which the program wants nothing more, unless it has ended."""
        call = self._remove(number)
        if call is None:
            if not 0 < number <= self.count:
                raise ProtocolError(f"{number} is dropped, which is not a call")
            return
        call.is_dropped = True
        if number in self._ready:
            self._take_frame(call)
        if call.task is not None:
            call.task.cancel()
        elif call.queued is not None and self._queue.remove(call.queued):
            self.running -= 1

    # --- what the program is given

    @property
    def ready(self) -> list[int]:
        """The calls that have a frame for the program, in the order they got it."""
        return list(self._ready)

    def is_open(self, number: int) -> bool:
        """Return whether the program has yet to be given the last frame of a call."""
        return number in self._open

    def is_ready(self, number: int) -> bool:
        """Return whether a call has a frame for the program."""
        return number in self._ready

    def take(self, number: int) -> HostFrame:
        """Return the frame of a call, which the program is given now."""
        call = self._open[number]
        frame = self._take_frame(call)
        call.is_wanted = False
        if call.is_over:
            self._remove(number)
        return frame

    def _take_frame(self, call: OpenCall) -> HostFrame:
        frame, call.frame = call.frame or HostFrame(b""), None
        del self._ready[call.id]
        self._ready_bytes -= frame.size
        self._queue.look()
        return frame

    @property
    def suspended(self) -> list[OpenCall]:
        """The calls that wait for a person, in the order they were made."""
        return [call for _, call in sorted(self._open.items()) if call.suspended is not None]

    # --- the host's side

    async def _answer(self, call: OpenCall) -> None:
        calling_line.set(call.line)
        charge_time.set(self._charge)
        if call.is_stream:
            reply = await self._host.call(call.name, call.args, call.kwargs, lambda value: self._emit(call, value))
            if isinstance(reply, Value):
                reply = Value(None)  # the program has its values: all of them once more might be too much
        else:
            reply = await self._host.call(call.name, call.args, call.kwargs)
        if not call.is_dropped:
            self.set_reply(call, reply)

    def set_reply(self, call: OpenCall, reply: Reply) -> None:
        """Set the reply that ends a call or suspends it."""
        if isinstance(reply, SuspendedReply):
            call.suspended = reply
        else:
            call.is_over = True
            self._set_frame(call, self.frame(call, reply))

    def frame(self, call: OpenCall | CallFrame, reply: Value | Raised) -> HostFrame:
        """Return the frame that ends a call."""
        if isinstance(reply, Raised):
            return error_frame(call.id, reply)
        frame, size = value_frame(call.id, reply.value, reply.tables)
        bytes_in = sum(map(len, reply.tables))
        if bytes_in > self._limits.bytes_in:
            return error_frame(call.id, tables_too_large(call.name, bytes_in, self._limits))
        return frame if size <= self._limits.reply_size else error_frame(call.id, self._too_large(call, size))

    async def _emit(self, call: OpenCall, value: Any) -> None:
        frame, size = item_frame(call.id, value)
        if size > self._limits.reply_size:
            self.set_reply(call, self._too_large(call, size))
            call.is_dropped = True
            raise asyncio.CancelledError  # the stream is over, for the tool as well
        self._set_frame(call, frame)
        call.has_place = False
        self._queue.release()
        self._set_idle(call, True)
        call.wanted = asyncio.get_running_loop().create_future()
        self._on_change()
        await call.wanted
        await self._queue.place()
        call.has_place = True

    def _too_large(self, call: OpenCall | CallFrame, size: int) -> Raised:
        return result_too_large(call.name, size, self._limits)

    def _set_frame(self, call: OpenCall, frame: HostFrame) -> None:
        call.frame = frame
        self._ready[call.id] = None
        self._ready_bytes += frame.size

    def _set_idle(self, call: OpenCall, idle: bool) -> None:
        call.is_idle = idle
        self.running += -1 if idle else 1

    def _done(self, call: OpenCall, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if call.has_place:
            self._queue.release()
        if call.is_dropped:
            call.task = None  # as in close
        if not call.is_idle:
            self.running -= 1
        if task.cancelled():
            if not call.is_dropped and self.failed is None:
                self.failed = ProgramEnded(CALL_CANCELLED)
        elif (error := task.exception()) is not None and self.failed is None:
            self.failed = error
        self._on_change()

    def finish(self) -> bool:
        """Begin no further call; return whether one still runs, and is not a stream that waits for its program."""
        self._queue.close()
        return any(call.task is not None and not (call.task.done() or call.is_idle) for call in self._open.values())

    async def close(self) -> None:
        """Stop the calls that still run, and wait until they have stopped."""
        self.failed = self.failed or ProgramEnded(None)  # failures from here on are not reported
        self._queue.close()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        for call in self._open.values():
            call.task = None  # its error refers to the call: both would stay until garbage is collected
        self._open.clear()
        self._ready.clear()
        self._on_change = do_nothing
