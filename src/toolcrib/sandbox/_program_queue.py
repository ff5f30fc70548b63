"""The queue of programs for a place in a sandbox: first come, first served, from any thread and event loop."""

from __future__ import annotations

import asyncio
import os
import threading
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final

from toolcrib._numbers import count_text, require_number
from toolcrib.errors import SandboxError, explain_options
from toolcrib.sandbox._control_group import ControlGroup, own_group

PROGRAMS: Final = 64
"""The programs that run at once by default."""

SESSIONS: Final = 100
"""The sessions that are kept at once by default."""

_is_inside: ContextVar[bool] = ContextVar("toolcrib_is_inside_program", default=False)


@dataclass(eq=False, slots=True)
class _Waiting:
    """A program that waits for its place."""

    memory: int
    loop: asyncio.AbstractEventLoop
    turn: asyncio.Future[None]
    has_place: bool = False


@explain_options()
class ProgramQueue:
    """The places for programs of one sandbox, or of several that are given the same queue.

    A program that finds no place waits until the ones before it have had theirs; `wall_time` counts from when it has
    its place. A program that a tool of another program runs does not wait: the other one would wait for it.

    Args:
        most_programs: The most programs that run at once.
        most_memory: The most bytes that programs and sessions may take together, each counted with the whole
            `SandboxLimits.memory` that it may take; None for no such limit.
        most_sessions: The most sessions that are kept at once, from their first program on; a further one is refused.

    Raises:
        ValueError: One of them is less than 1.
    """

    def __init__(
        self, most_programs: int = PROGRAMS, most_memory: int | None = None, most_sessions: int = SESSIONS
    ) -> None:
        limits = {"most_programs": most_programs, "most_memory": most_memory, "most_sessions": most_sessions}
        for name, most in limits.items():
            require_number("ProgramQueue", name, most, least=1)
        self._most_programs, self._most_memory, self._most_sessions = most_programs, most_memory, most_sessions
        self._begin()

    def _begin(self) -> None:
        self._process = os.getpid()
        self._lock = threading.RLock()  # a session may end while garbage is collected, at any place
        self._waiting: deque[_Waiting] = deque()
        self._programs = self._memory = self._sessions = 0
        self._group: ControlGroup | None = None

    @property
    def running(self) -> int:
        """The number of programs that have a place now."""
        return self._programs

    @property
    def waiting(self) -> int:
        """The number of programs that wait for one."""
        return len(self._waiting)

    def group(self) -> ControlGroup:
        """Return the control group of all programs, which bounds their memory as the queue does."""
        with self._lock:
            if self._group is None and self._most_memory is not None:
                self._group = own_group(self._most_memory)
            return self._group or ControlGroup(problem="skipped")

    @asynccontextmanager
    async def place(self, memory: int) -> AsyncGenerator[None]:
        """Wait for a place, and keep it while the body runs.

        Args:
            memory: Bytes that the program may take on top of what is kept for it already.

        Raises:
            SandboxError: The program may take more than all programs together.
        """
        if self._process != os.getpid():  # it was forked: the programs are of the other process
            self._begin()
        self._check(memory)
        await self._enter(memory)
        inside = _is_inside.set(True)
        try:
            yield
        finally:
            _is_inside.reset(inside)
            self._leave(1, memory)

    def open_session(self) -> None:
        """Count a session more; `close_session` ends that.

        Raises:
            SandboxError: There are as many as may be.
        """
        with self._lock:
            if self._sessions >= self._most_sessions:
                raise SandboxError(
                    f"it has {count_text(self._sessions, 'session')} already, which is the most (most_sessions of the "
                    "queue): close those that are not needed, or let them end sooner (session_idle of the sandbox)"
                )
            self._sessions += 1

    def keep(self, memory: int) -> None:
        """Count the memory of a session, which it keeps between its programs."""
        with self._lock:
            self._memory += memory

    def close_session(self, memory: int) -> None:
        """Count a session less, and the memory that was kept for it."""
        with self._lock:
            self._sessions -= 1
        self._leave(0, memory)

    def _check(self, memory: int) -> None:
        if self._most_memory is not None and memory > self._most_memory:
            raise SandboxError(
                f"the program may take {memory >> 20} MB (SandboxLimits.memory), and all programs together "
                f"{self._most_memory >> 20} MB (most_memory of the queue): give programs less, or the queue more"
            )

    async def _enter(self, memory: int) -> None:
        with self._lock:
            if _is_inside.get() or (self._has_room(memory) and not (self._waiting and memory)):
                self._take(memory)
                return
            loop = asyncio.get_running_loop()
            mine = _Waiting(memory, loop, loop.create_future())
            self._waiting.append(mine)
        try:
            await mine.turn
        except asyncio.CancelledError:
            with self._lock:
                if not mine.has_place:
                    self._waiting.remove(mine)
                    self._admit()
                    raise
            self._leave(1, memory)
            raise

    def _has_room(self, memory: int) -> bool:
        fits = self._most_memory is None or self._memory + memory <= self._most_memory
        return fits and self._programs < self._most_programs

    def _take(self, memory: int) -> None:
        self._programs += 1
        self._memory += memory

    def _leave(self, programs: int, memory: int) -> None:
        with self._lock:
            self._programs -= programs
            self._memory -= memory
            self._admit()

    def _next(self) -> _Waiting | None:
        """Return the program that may begin: the first one, or one of a session, which needs no more memory."""
        for place, program in enumerate(self._waiting):
            if (place == 0 or not program.memory) and self._has_room(program.memory):
                return program
        return None

    def _admit(self) -> None:
        """Admit those that wait, as far as there are places."""
        while (first := self._next()) is not None:
            self._waiting.remove(first)
            first.has_place = True
            self._take(first.memory)
            with suppress(RuntimeError):  # its loop was closed, and it is not going to run
                first.loop.call_soon_threadsafe(_wake, first.turn)
                continue
            self._programs -= 1
            self._memory -= first.memory


def _wake(turn: asyncio.Future[None]) -> None:
    if not turn.done():
        turn.set_result(None)


def queue_of(queue: ProgramQueue | None) -> ProgramQueue:
    """Return the queue that a sandbox is given, or a new one; raise TypeError for another type."""
    if not isinstance(queue, ProgramQueue | None):  # pyright: ignore[reportUnnecessaryIsInstance] -- what a user gives
        raise TypeError(
            f"`queue` of a sandbox must be a ProgramQueue, as ProgramQueue(most_programs=8), and not {queue!r}"
        )
    return queue or ProgramQueue()
