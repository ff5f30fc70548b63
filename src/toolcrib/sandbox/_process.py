"""ProcessSandbox: programs in full Python, each in a process of its own that the kernel keeps from everything else.

Here a worker is found for each program; its conversation is in `_process_drive`, its seal in `worker`.
"""

from __future__ import annotations

import asyncio
import math
import sys
import threading
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from socket import socket
from types import TracebackType
from typing import Any, Final, Protocol, Self

from toolcrib.errors import CodeError, SandboxError
from toolcrib.sandbox._conversation import Conversation
from toolcrib.sandbox._dialect import NOTES, worker_dialect
from toolcrib.sandbox._frames import frame_limit
from toolcrib.sandbox._limit_messages import CLOSED, LIMITS
from toolcrib.sandbox._protocol import Dialect, Host, Program, ProgramError, SandboxResult
from toolcrib.sandbox._replay import ReplayLog
from toolcrib.sandbox._socket import Wire
from toolcrib.sandbox._source import normalized
from toolcrib.sandbox._worker_pool import LAYERS, WorkerPool

__all__ = ["ProcessSandbox", "ProcessSession", "SubprocessSandbox", "WorkerSandbox"]

_VERSION: Final = f"{sys.version_info.major}.{sys.version_info.minor}"
_SESSION_CPU: Final = 24 * 3600  # seconds: what each of its programs may compute is counted here
_OPEN: Final = "no-isolation: files and network can be reached"


class Worker(Protocol):
    """A process that runs programs, for as long as somebody holds it."""

    @property
    def socket(self) -> socket:
        """The host's end of its one channel."""
        ...

    def kill(self) -> None:
        """End it, whatever it does."""
        ...

    def close(self) -> None:
        """End it, and give back what it held."""
        ...


class Workers(Protocol):
    """Where workers come from; see `WorkerPool`."""

    @property
    def layers(self) -> tuple[str, ...]:
        """What keeps them in."""
        ...

    def start(self) -> None:
        """Start, unless it has been started."""
        ...

    def take(self, cpu: int, memory: int) -> Worker:
        """Return a worker that may compute for `cpu` seconds, and take so many bytes."""
        ...

    def close(self) -> None:
        """End all of them."""
        ...


class WorkerSandbox:
    """Runs programs in workers; see the classes below."""

    def __init__(self, pool: Workers, name: str, words: tuple[str, ...] = ()) -> None:
        self._pool, self._words = pool, words
        self._engine = f"{name}-{_VERSION}"
        self._lock = threading.Lock()
        self._running: set[Conversation] = set()
        self._is_started = False

    @property
    def engine(self) -> str:
        """Its name and the version of Python: a paused program goes on in the same only."""
        return self._engine

    @property
    def replays(self) -> bool:
        """True: a paused program is run again from its start, and every call it made is asked for once more."""
        return True

    @property
    def layers(self) -> tuple[str, ...]:
        """What keeps programs in here; starts the sandbox to find out.

        Raises:
            SandboxUnavailable: A layer that is required cannot be had.
        """
        self._pool.start()
        return self._pool.layers

    async def run(self, program: Program, host: Host) -> SandboxResult:
        """Run a program to its end.

        Raises:
            SandboxError: The sandbox is closed, or its processes cannot be started.
            SandboxUnavailable: A layer that is required cannot be had; the message names the remedy.
        """
        return await self._run(program, host, ReplayLog(self._engine))

    async def resume(self, program: Program, state: Mapping[str, Any], host: Host) -> SandboxResult:
        """Run a paused program again from its start, with the same clock and random numbers, up to where it paused.

        The host is asked for every call once more, and has to answer those that were made with what they gave. A
        program that does something else than it did is ended before anything new is begun, as `ReplayDiverged`.

        Raises:
            SandboxError: The state is none of this engine's; or see `run`.
        """
        return await self._run(program, host, ReplayLog.of(state, self._engine))

    @property
    def dialect(self) -> Dialect:
        """What programs find here."""
        return worker_dialect()

    @property
    def notes(self) -> tuple[str, ...]:
        """What a model should know before it writes for it."""
        return NOTES

    def session(self) -> ProcessSession:
        """Return a session, whose programs share one worker and find the names that the last one left."""
        return ProcessSession(self)

    def close(self) -> None:
        """End what runs, and every process; the sandbox cannot be used again."""
        with self._lock:
            running = list(self._running)
        for conversation in running:
            conversation.abort(CLOSED)
        self._pool.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # --- for sessions, too

    async def _run(self, program: Program, host: Host, course: ReplayLog) -> SandboxResult:
        try:
            program = checked(program)
        except CodeError as error:
            return self.refused(error)
        worker = await self.take(program, cpu=math.ceil(program.limits.program_time) + 1)
        try:
            result, _ = await self.converse(program, host, course, worker)
            return result
        finally:
            worker.close()

    def refused(self, error: CodeError) -> SandboxResult:
        """Return how a program went that cannot run."""
        told = ProgramError("syntax", error.kind, error.problem, error.line)
        return SandboxResult(error=told, isolation=self._isolation())

    async def take(self, program: Program, cpu: int) -> Worker:
        """Return a worker of the pool, which is started when it is first needed."""
        if not self._is_started:
            if program.may_block:
                self._pool.start()
            else:
                await asyncio.to_thread(self._pool.start)
            self._is_started = True
        return self._pool.take(cpu, program.limits.memory)

    async def converse(
        self, program: Program, host: Host, course: ReplayLog, worker: Worker, *, keep: bool = False
    ) -> tuple[SandboxResult, bool]:
        """Run a program in a worker; return how it went, and whether the worker can run another."""
        wire = partial(Wire, worker.socket, frame_limit(program.limits.value_size))
        conversation = Conversation(program, host, course, wire, worker.kill)
        with self._lock:
            self._running.add(conversation)
        try:
            result = await conversation.run(self._isolation(), keep=keep)
            return result, conversation.is_whole
        finally:
            with self._lock:
                self._running.discard(conversation)

    def _isolation(self) -> tuple[str, ...]:
        return (self._engine, *self._words, *self._pool.layers, *LIMITS)


class ProcessSandbox(WorkerSandbox):
    """Runs programs in full Python, each in a process that cannot reach files, network, or other processes.

    It needs Linux, and no privilege. The processes are forked from one that is kept warm, so that a program begins in
    about a millisecond. What a program may do is what the kernel lets it, whatever it finds in the interpreter;
    `SandboxResult.isolation` says what was in force.

    Args:
        require: The layers without which nothing runs; `a|b` is either. None for no_new_privs, seccomp, rlimits, and
            one of landlock and empty_root.
        skip: Layers to leave off, to see what the others hold.
        spares: Processes that are forked ahead.
    """

    def __init__(self, *, require: Iterable[str] | None = None, skip: Iterable[str] = (), spares: int = 2) -> None:
        required = None if require is None else frozenset(require)
        super().__init__(WorkerPool(require=required, skip=frozenset(skip), spares=spares), "process")


class SubprocessSandbox(WorkerSandbox):
    """Runs programs in a process of their own that is NOT kept in: for programs as trusted as your own code.

    A program that computes too long, needs too much memory, or crashes takes nothing else with it. But it can read and
    write every file that you can, use the network, and start and end processes. It is chosen by name only, and each
    result says so.

    Args:
        spares: Processes that are forked ahead.
    """

    def __init__(self, *, spares: int = 2) -> None:
        pool = WorkerPool(require=frozenset(), skip=frozenset(LAYERS) - {"rlimits"}, spares=spares)
        super().__init__(pool, "subprocess", (_OPEN,))


class ProcessSession:
    """Programs of one user, one after another in the same worker, with the names that the last one left.

    A program that is ended from outside, at a limit for one, takes the session with it. The memory that all of them
    may take is what the first one may.
    """

    def __init__(self, sandbox: WorkerSandbox) -> None:
        self._sandbox = sandbox
        self._worker: Worker | None = None
        self._is_busy = False
        self._over: str | None = None

    async def run(self, program: Program, host: Host) -> SandboxResult:
        """Run the next program.

        Raises:
            SandboxError: Another one is running, or the session is over.
        """
        if self._over is not None:
            raise SandboxError(f"this session is over: {self._over}. Begin another one, with session()")
        if self._is_busy:
            raise SandboxError("a program is running in this session, which runs one at a time")
        try:
            program = checked(program)
        except CodeError as error:
            return self._sandbox.refused(error)
        self._is_busy = True
        is_whole = False
        why = "a program of it was ended from outside"
        try:
            if self._worker is None:
                self._worker = await self._sandbox.take(program, _SESSION_CPU)
            course = ReplayLog(self._sandbox.engine)
            result, is_whole = await self._sandbox.converse(program, host, course, self._worker, keep=True)
            why = f"its last program was ended ({result.error})"
            return result
        finally:
            self._is_busy = False
            if not is_whole:
                self._end(why)

    def close(self) -> None:
        """End it; what its programs left is gone."""
        self._end("it was closed")

    def _end(self, why: str) -> None:
        self._over = self._over or why
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.close()


def checked(program: Program) -> Program:
    """Return a program whose text can be sent; raises CodeError."""
    code = normalized(program.code, program.limits.source_size)
    return program if code == program.code else replace(program, code=code)
