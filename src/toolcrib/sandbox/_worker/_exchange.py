"""The exchange of a program with its host: calls, values of streams, waits, printed text, and the host's answers.

The program reads only after a frame for a wait, and then one batch of the host's frames, so that a program that runs
again gets the same answers at the same places. With threads, one of them reads for all.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading
import types
from collections.abc import Callable, Sequence
from typing import Any

from ._clock import CLOCK
from ._frames import Blob, Frame, Wire, encoded
from ._output import OutputBuffer
from .export import exported_arguments

_MARGIN = 64_000  # bytes that a frame may have beyond a value
_ROUNDING = 1_000  # ns


class Exchange:
    """The exchange of one program, or of one session, with its host.

    Attributes:
        fd: The descriptor from which the host's frames are read.
        printed: Buffers what the program prints.
        waiting: How many answers are awaited in an event loop.
        on_reader_left: Called when a thread stops reading for all, so that a loop may take its place.
    """

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self.fd = wire.fd
        self.printed = OutputBuffer(self._print, self._is_writing)
        self.on_reader_left: Callable[[], None] | None = None
        self._value_size = 0
        self._last = self._batches = 0
        self._arrived: dict[int, Frame] = {}
        self._futures: dict[int, asyncio.Future[Frame]] = {}
        self._dropped: list[int] = []
        self._forgotten: set[int] = set()
        self._woken = False
        self._until = 0
        self._is_sending = False
        self._writing = _CountedLock()
        self._turn = threading.Condition()
        self._read_by: int | None = None

    def start(self, value_size: int) -> None:
        """Begin another program; its values may take `value_size` characters, and its calls are counted from 1."""
        self._value_size = value_size
        self._last = self._batches = 0
        self._arrived.clear()
        self._futures.clear()
        self._dropped.clear()
        self._forgotten.clear()

    @property
    def waiting(self) -> int:
        return len(self._futures)

    # --- calls

    def call(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], *, wait: bool, line: int = 0) -> int:
        """Ask the host for a call, and return its id.

        Args:
            line: Where the program makes it; when 0, where it is now.

        Raises:
            ValueError: An argument cannot leave the program.
        """
        positional, named = exported_arguments(name, args, kwargs, self._value_size)
        with self._writing:
            call = self._last + 1
            frame: Frame = {"t": "call", "id": call, "name": name, "args": positional, "kwargs": named, "wait": wait}
            frame["line"] = line or _line()
            body = encoded(frame)
            if len(body) > self._value_size + _MARGIN:
                most = self._value_size
                raise ValueError(
                    f"the arguments of `{name}` cannot be passed to it: they take {len(body)} bytes as JSON, "
                    f"larger than {most} bytes (SandboxLimits.value_size)"
                )
            self._last = call
            self._send(body, more=not wait)
        return call

    def call_and_wait(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Frame:
        """Call, wait for the end of the call, and return its frame."""
        alone = not has_threads()
        return self.answer(self.call(name, args, kwargs, wait=alone), asked=alone)

    async def call_async(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], line: int) -> Frame:
        """Call, and return the last frame of the call; the loop goes on meanwhile."""
        return await self._future(self.call(name, args, kwargs, wait=False, line=line))

    def next(self, call: int) -> Frame:
        """Wait for the next value of a streaming call, or its end."""
        alone = not has_threads()
        self._ask_next(call, wait=alone)
        return self.answer(call, asked=alone)

    async def next_async(self, call: int) -> Frame:
        """Return the next value of a streaming call, or its end; the loop goes on meanwhile."""
        self._ask_next(call, wait=False)
        return await self._future(call)

    def _ask_next(self, call: int, *, wait: bool) -> None:
        with self._writing:
            self._send(encoded({"t": "next", "id": call, "wait": wait}), more=not wait)

    def drop(self, call: int) -> None:
        """Stop a streaming call; may be called from anywhere, a destructor included."""
        self._dropped.append(call)

    def answer(self, call: int, *, asked: bool = False) -> Frame:
        """Wait for the frame that answers a call; `asked` when the host knows already that the program waits."""
        if has_threads():
            return self._answer_in_threads(call)
        while call not in self._arrived:
            if not asked:
                self.wait(None)
            asked = False
            self.read_batch()
        return self._arrived.pop(call)

    def _answer_in_threads(self, call: int) -> Frame:
        with self._turn:
            while call not in self._arrived:
                if self._read_by is not None:
                    self._turn.wait()
                    continue
                self._read_by = threading.get_ident()
                self._turn.release()
                try:
                    self.wait(None)
                    self.read_batch()
                finally:
                    self._turn.acquire()
                    self.stop_reading()
            return self._arrived.pop(call)

    async def _future(self, call: int) -> Frame:
        future: asyncio.Future[Frame] = asyncio.get_running_loop().create_future()
        self._futures[call] = future
        return await future

    # --- waiting and reading

    def start_reading(self) -> bool:
        """Read for all threads from now on; return False where another thread does."""
        with self._turn:
            if self._read_by is None:
                self._read_by = threading.get_ident()
                return True
            return False

    def stop_reading(self) -> None:
        """Stop reading, so that another thread reads."""
        with self._turn:
            self._read_by = None
            self._turn.notify_all()
        if self.on_reader_left is not None:
            self.on_reader_left()

    def wait(self, seconds: float | None) -> None:
        """Send that the program does nothing until an answer comes, or until `seconds` are over."""
        if seconds is not None:
            self._until = CLOCK.last + int(seconds * 1e9) + _ROUNDING
        with self._writing:
            line = {"line": _line()} if seconds else {}
            after = {"after": self._batches} if has_threads() else {}
            self._send(encoded({"t": "wait", "for": seconds} | line | after))

    def read_batch(self) -> bool:
        """Read one batch and deliver it; return whether the time of a wait is over."""
        self._woken = False
        more = True
        while more:
            try:
                frame = self._wire.read()
            except (EOFError, OSError):
                os._exit(0)  # the host is gone
            more = frame.get("more", False)
            self._batches += not more
            self._deliver(frame)
        return self._woken

    def sleep(self, seconds: float) -> None:
        """Sleep, with the whole program."""
        until = CLOCK.monotonic() + int(seconds * 1e9)
        self.wait(seconds)
        while not self.read_batch():
            self.wait(max(0.0, (until - CLOCK.monotonic()) / 1e9))

    def _deliver(self, frame: Frame) -> None:
        if frame["t"] == "wake":
            self._woken = True
            CLOCK.reach(self._until)
            return
        call: int = frame["id"]
        if call in self._forgotten:
            return
        future = self._futures.pop(call, None)
        if future is None:
            self._arrived[call] = frame
        elif self._read_by is None or not has_threads():
            _resolve(future, frame)
        else:
            future.get_loop().call_soon_threadsafe(_resolve, future, frame)

    # --- writing

    def end(self, frame: Frame) -> None:
        """Send the last frame of a program, in which `blobs` are the blobs themselves."""
        blobs = frame.pop("blobs", ())
        if blobs:
            frame["blobs"] = [memoryview(blob).nbytes for blob in blobs]
        with self._writing:
            self._send(encoded(frame), blobs)

    def too_large(self, frame: Frame) -> bool:
        """Return whether a frame is more than the host takes."""
        return self.size(frame) > self._value_size + _MARGIN

    def size(self, frame: Frame) -> int:
        """Return the bytes of a frame, its blobs left out."""
        return len(encoded({name: part for name, part in frame.items() if name != "blobs"}))

    def _send(self, body: bytes, blobs: Sequence[Blob] = (), *, more: bool = False) -> None:
        self._is_sending = True  # what is printed goes along
        self.printed.flush()
        self._is_sending = False
        while self._dropped:
            call = self._dropped.pop(0)
            self._forgotten.add(call)
            self._wire.write(encoded({"t": "drop", "id": call}), more=True)
        readings = CLOCK.take()
        if readings:
            body = b'%b,"clock":%b}' % (body[:-1], json.dumps(readings, separators=(",", ":")).encode())
        self._wire.write(body, blobs, more=more)

    def _is_writing(self) -> bool:
        return self._writing.holders > 0

    def _print(self, text: str, error: bool) -> None:
        with self._writing:
            body = encoded({"t": "out", "s": text, "err": error})
            if len(body) > _MARGIN and len(text) > 1:
                half = len(text) // 2
                self._print(text[:half], error)
                self._print(text[half:], error)
            else:
                self._wire.write(body, more=self._is_sending)


class _CountedLock:
    """A lock that one thread may take several times, with a count that a signal's handler can read."""

    __slots__ = ("_lock", "holders")

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self.holders = 0

    def __enter__(self) -> None:
        self.holders += 1  # before the lock, so that a handler in between holds back
        self._lock.acquire()

    def __exit__(self, *error: object) -> None:
        self._lock.release()
        self.holders -= 1


def has_threads() -> bool:
    """Return whether anything runs beside the main thread."""
    return threading.active_count() > 1


def _line() -> int:
    """Return the program's line that runs now; 0 when no line of it runs."""
    frame: types.FrameType | None = sys._getframe(2)  # pyright: ignore[reportPrivateUsage] -- costs a tenth of inspect
    while frame is not None and not _is_of_program(frame):
        frame = frame.f_back
    return 0 if frame is None else frame.f_lineno


def _is_of_program(frame: types.FrameType) -> bool:
    return frame.f_globals.get("__name__") == "__main__" and frame.f_code.co_filename != "<string>"  # how we started


def _resolve(future: asyncio.Future[Frame], frame: Frame) -> None:
    if not future.done():
        future.set_result(frame)
