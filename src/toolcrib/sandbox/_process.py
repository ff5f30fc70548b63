"""Sandboxes of processes: full Python, each program in a worker that the kernel keeps from everything else.

This module finds a worker for each program; the program's conversation is in `_conversation`, the seal in `_worker`.
"""

from __future__ import annotations

import asyncio
import importlib.util
import math
import sys
import threading
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache, partial
from types import TracebackType
from typing import Any, Final, Self

from toolcrib.errors import CodeError, SandboxError
from toolcrib.sandbox._conversation import Conversation
from toolcrib.sandbox._endings import CLOSED, LIMITS
from toolcrib.sandbox._frames import frame_limit
from toolcrib.sandbox._protocol import Dialect, Host, Program, ProgramError, SandboxResult
from toolcrib.sandbox._replay import ReplayLog
from toolcrib.sandbox._socket import Wire
from toolcrib.sandbox._source import normalized
from toolcrib.sandbox._worker.imports import MODULE_NAMES, UNLISTED
from toolcrib.sandbox._worker_pool import LAYERS, WorkerPool
from toolcrib.sandbox._zygote import WorkerProcess

__all__ = ["ProcessSandbox", "ProcessSession", "SubprocessSandbox", "WorkerSandbox", "worker_dialect"]

_VERSION: Final = f"{sys.version_info.major}.{sys.version_info.minor}"
_SESSION_CPU: Final = 24 * 3600  # seconds: the conversation of each program counts what that program computes
_NO_ISOLATION: Final = "no-isolation: files and network can be reached"
_NOTES: Final = (
    "`parallel((f, a), (g, b, c))` calls `f(a)` and `g(b, c)` at once and returns the list of their results.",
    "The standard library can be imported, as far as it needs no file and no network.",
)


@cache
def worker_dialect() -> Dialect:
    """Return the dialect of a worker's Python, found without asking a worker."""
    modules = frozenset(name for name in MODULE_NAMES.split() if _is_installed(name))
    return Dialect(modules, UNLISTED, frozenset({"parallel"}), streams=True, notes=_NOTES)


def _is_installed(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:  # its parent is no package in this Python
        return False


class WorkerSandbox:
    """Runs programs in workers; see the classes below."""

    def __init__(self, pool: WorkerPool, name: str, isolation: tuple[str, ...] = ()) -> None:
        self._pool, self._isolation_notes = pool, isolation
        self._engine = f"{name}-{_VERSION}"
        self._lock = threading.Lock()
        self._running: set[Conversation] = set()
        self._is_started = False

    @property
    def engine(self) -> str:
        """The name and the version of Python: a paused program goes on in the same only."""
        return self._engine

    @property
    def replays(self) -> bool:
        """True: a paused program is run again from its start, and every call it made is asked for once more."""
        return True

    @property
    def layers(self) -> tuple[str, ...]:
        """The layers that keep programs in; starts the sandbox to find out.

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
            SandboxError: The state is not of this engine; or see `run`.
        """
        return await self._run(program, host, ReplayLog.from_state(state, self._engine))

    @property
    def dialect(self) -> Dialect:
        """The modules and names that programs find."""
        return worker_dialect()

    def session(self) -> ProcessSession:
        """Return a session, whose programs share one worker and find the names that the last one left."""
        return ProcessSession(self)

    def close(self) -> None:
        """End all programs and every process; the sandbox cannot be used again."""
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

    # --- shared with sessions

    async def _run(self, program: Program, host: Host, log: ReplayLog) -> SandboxResult:
        try:
            program = _normalized(program)
        except CodeError as error:
            return self.refused(error)
        worker = await self.take(program, cpu=math.ceil(program.limits.program_time) + 1)
        try:
            result, _ = await self.converse(program, host, log, worker)
            return result
        finally:
            worker.close()

    def refused(self, error: CodeError) -> SandboxResult:
        """Return the result of a program that cannot run."""
        refused = ProgramError("syntax", error.kind, error.problem, error.line)
        return SandboxResult(error=refused, isolation=self._isolation())

    async def take(self, program: Program, cpu: int) -> WorkerProcess:
        """Return a worker of the pool, which is started for the first program."""
        if not self._is_started:
            if program.may_block:
                self._pool.start()
            else:
                await asyncio.to_thread(self._pool.start)
            self._is_started = True
        return self._pool.take(cpu, program.limits.memory)

    async def converse(
        self, program: Program, host: Host, log: ReplayLog, worker: WorkerProcess, *, keep: bool = False
    ) -> tuple[SandboxResult, bool]:
        """Run a program in a worker; return its result, and whether the worker can run another."""
        wire = partial(Wire, worker.socket, frame_limit(program.limits.value_size))
        conversation = Conversation(program, host, log, wire, worker.kill)
        with self._lock:
            self._running.add(conversation)
        try:
            result = await conversation.run(self._isolation(), keep=keep)
            return result, conversation.is_reusable
        finally:
            with self._lock:
                self._running.discard(conversation)

    def _isolation(self) -> tuple[str, ...]:
        return (self._engine, *self._isolation_notes, *self._pool.layers, *LIMITS)


class ProcessSandbox(WorkerSandbox):
    """Runs programs in full Python, each in a process that cannot reach files, network, or other processes.

    It needs Linux, and no privilege. The processes are forked from one that is kept warm, so that a program begins in
    about a millisecond. The kernel limits a program, and nothing that it finds in the interpreter changes that;
    `SandboxResult.isolation` names the layers in force.

    Args:
        require: The layers without which nothing runs; `a|b` is either. None for no_new_privs, seccomp, rlimits, and
            one of landlock and empty_root.
        skip: Layers to leave off, to try the others alone.
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
        super().__init__(pool, "subprocess", (_NO_ISOLATION,))


class ProcessSession:
    """Programs of one user, one after another in the same worker, with the names that the last one left.

    A program that is ended from outside, for instance at a limit, ends the session. The memory limit of the first
    program holds for all of them together.
    """

    def __init__(self, sandbox: WorkerSandbox) -> None:
        self._sandbox = sandbox
        self._worker: WorkerProcess | None = None
        self._is_busy = False
        self._end_reason: str | None = None

    async def run(self, program: Program, host: Host) -> SandboxResult:
        """Run the next program.

        Raises:
            SandboxError: Another one is running, or the session is over.
        """
        if self._end_reason is not None:
            raise SandboxError(f"this session is over: {self._end_reason}. Begin another one, with session()")
        if self._is_busy:
            raise SandboxError("a program is running in this session, which runs one at a time")
        try:
            program = _normalized(program)
        except CodeError as error:
            return self._sandbox.refused(error)
        self._is_busy = True
        is_reusable = False
        why = "a program of it was ended from outside"
        try:
            if self._worker is None:
                self._worker = await self._sandbox.take(program, _SESSION_CPU)
            log = ReplayLog(self._sandbox.engine)
            result, is_reusable = await self._sandbox.converse(program, host, log, self._worker, keep=True)
            why = f"its last program was ended ({result.error})"
            return result
        finally:
            self._is_busy = False
            if not is_reusable:
                self._end(why)

    def close(self) -> None:
        """End the session; the names that its programs left are gone."""
        self._end("it was closed")

    def _end(self, why: str) -> None:
        self._end_reason = self._end_reason or why
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.close()


def _normalized(program: Program) -> Program:
    """Return a program whose text can be sent; raises CodeError."""
    code = normalized(program.code, program.limits.source_size)
    return program if code == program.code else replace(program, code=code)
