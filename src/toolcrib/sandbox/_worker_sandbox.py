"""WorkerSandbox: runs programs in workers behind any wall, and has sessions.

This module finds a worker for each program; the program's conversation is in `_conversation`, the seal in `_worker`.
"""

from __future__ import annotations

import asyncio
import importlib.util
import logging
import math
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from types import TracebackType
from typing import Any, Final, Self

from pydantic_core import from_json

from toolcrib._numbers import require_seconds
from toolcrib.errors import CodeError, SandboxError, explain_options
from toolcrib.sandbox._conversation import Conversation
from toolcrib.sandbox._endings import CLOSED, LIMITS
from toolcrib.sandbox._frames import frame_limit
from toolcrib.sandbox._program_queue import ProgramQueue, queue_of
from toolcrib.sandbox._protocol import Dialect, Host, Program, ProgramError, SandboxResult, SessionValues
from toolcrib.sandbox._replay_inputs import ReplayInputs
from toolcrib.sandbox._socket import Wire
from toolcrib.sandbox._source import normalized
from toolcrib.sandbox._values import json_bytes
from toolcrib.sandbox._worker.imports import MODULE_NAMES, UNLISTED
from toolcrib.sandbox._workers import SpeakingWorkers, StoppableWorker, Worker, Workers

_log = logging.getLogger("toolcrib.sandbox")
_VERSION: Final = f"{sys.version_info.major}.{sys.version_info.minor}"
_SESSION_CPU: Final = 24 * 3600  # seconds: the conversation of each program counts what that program computes
IDLE: Final = 1800.0  # seconds after which a session ends by itself
_NAMES_SHOWN: Final = 20
_NOTES: Final = (
    "`parallel((f, a), (g, b, c))` calls `f(a)` and `g(b, c)` at once and returns the list of their results.",
    "The standard library can be imported, as far as it needs no file and no network.",
)
_ARTIFACTS: Final = "What a program writes to the folder `artifacts/` is handed to the user; it can write nowhere else."
_FIGURES: Final = "`plt.show()` shows a figure to you and to the user."


@cache
def worker_dialect(packages: tuple[str, ...] = ()) -> Dialect:
    """Return the dialect of a worker's Python with these packages, found without asking a worker."""
    modules = frozenset(name for name in MODULE_NAMES.split() if _is_installed(name))
    notes = (*_NOTES, *((_ARTIFACTS,) if packages else ()), *((_FIGURES,) if "matplotlib" in packages else ()))
    names = frozenset({"parallel"})
    return Dialect(modules.union(packages), UNLISTED, names, streams=True, notes=notes, packages=packages, files=True)


def _is_installed(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:  # its parent is no package in this Python
        return False


@dataclass(frozen=True, slots=True)
class Ended:
    """A program that has ended in its worker.

    Attributes:
        is_reusable: Whether the worker can run another.
        names: The data that it left, where it is wanted.
        left_out: The kinds of the other values that it left, by name, where the data is wanted.
    """

    result: SandboxResult
    is_reusable: bool
    names: Mapping[str, Any] | None
    left_out: Mapping[str, str]


@explain_options()
class WorkerSandbox:
    """Runs programs in full Python, each in a worker behind the wall that `workers` puts up.

    Args:
        workers: Gives the workers, which it starts, and ends when the sandbox is closed.
        name: The name of the wall, which `SandboxResult.isolation` begins with.
        packages: Packages that the workers have loaded, which programs may import.
        queue: The places for programs, by default 64 of its own; several sandboxes may share one.
        session_idle: Seconds after which a session that runs no program ends; None for no such limit.
        keep_values: Keep the plain values that the programs of a session leave, for the case that its process is lost.
    """

    _notes: tuple[str, ...] = ()
    _takes_at_once = False  # whether to take a worker is a matter of microseconds

    def __init__(
        self,
        workers: Workers,
        name: str,
        *,
        packages: Iterable[str] = (),
        queue: ProgramQueue | None = None,
        session_idle: float | None = IDLE,
        keep_values: bool = False,
    ) -> None:
        require_seconds("a sandbox", "session_idle", session_idle)
        self._workers, self._packages = workers, tuple(packages)
        self.queue = queue_of(queue)
        self.session_idle, self.keep_values = session_idle, keep_values
        self._sessions: weakref.WeakSet[ProcessSession] = weakref.WeakSet()
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
        self._workers.start()
        return self._workers.layers

    async def run(self, program: Program, host: Host) -> SandboxResult:
        """Run a program to its end.

        Raises:
            SandboxError: The sandbox is closed, or its processes cannot be started.
            SandboxUnavailable: A layer that is required cannot be had; the message names the remedy.
        """
        return await self._run(program, host, ReplayInputs(self._engine))

    async def resume(self, program: Program, state: Mapping[str, Any], host: Host) -> SandboxResult:
        """Run a paused program again from its start, with the same clock and random numbers, up to where it paused.

        The host is asked for every call once more, and has to answer those that were made with what they gave. A
        program that does something else than it did is ended before anything new is begun, as `ReplayDiverged`.

        Raises:
            SandboxError: The state is not of this engine; or see `run`.
        """
        return await self._run(program, host, ReplayInputs.from_state(state, self._engine))

    @property
    def dialect(self) -> Dialect:
        """The modules and names that programs find."""
        return worker_dialect(self._packages)

    def session(self) -> ProcessSession:
        """Return a session, whose programs share one worker and find the names that the last one left."""
        return self.restored_session({})

    def restored_session(self, data: Mapping[str, Any]) -> ProcessSession:
        """Return a session whose first program finds the data of another one, `SessionValues.data`."""
        session = ProcessSession(self, data)
        with self._lock:
            self._sessions.add(session)
        return session

    def end_idle(self) -> None:
        """End the sessions that have been idle for too long."""
        if self.session_idle is not None:
            with self._lock:
                sessions = list(self._sessions)
            for session in sessions:
                session.end_if_idle(self.session_idle)

    def close(self) -> None:
        """End all programs and every process; the sandbox cannot be used again."""
        with self._lock:
            running = list(self._running)
        for conversation in running:
            conversation.abort(CLOSED)
        self._workers.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # --- shared with sessions

    async def _run(self, program: Program, host: Host, inputs: ReplayInputs) -> SandboxResult:
        try:
            program = _normalized(program)
        except CodeError as error:
            return self.refused(error)
        async with self.queue.place(program.limits.memory):
            worker = await self.take(program, cpu=math.ceil(program.limits.program_time) + 1)
            try:
                return (await self.converse(program, host, inputs, worker)).result
            finally:
                worker.close()

    def refused(self, error: CodeError) -> SandboxResult:
        """Return the result of a program that cannot run."""
        refused = ProgramError("syntax", error.kind, error.problem, error.line)
        return SandboxResult(error=refused, isolation=self._isolation())

    async def take(self, program: Program, cpu: int) -> Worker:
        """Return a worker; the first program starts them."""
        take = partial(self._take, cpu, program.limits.memory)
        if program.may_block or (self._is_started and self._takes_at_once):
            return take()
        worker = asyncio.get_running_loop().run_in_executor(None, take)
        try:
            return await asyncio.shield(worker)
        except asyncio.CancelledError:
            worker.add_done_callback(_close_unused)
            raise

    def _take(self, cpu: int, memory: int) -> Worker:
        if not self._is_started:
            self._workers.start()
            self._is_started = True
        return self._workers.take(cpu, memory)

    async def converse(
        self,
        program: Program,
        host: Host,
        inputs: ReplayInputs,
        worker: Worker,
        *,
        keep: bool = False,
        names: Mapping[str, Any] | None = None,
    ) -> Ended:
        """Run a program in a worker; `names` are the plain values that it finds, None where none are wanted of it."""
        wire = partial(Wire, worker.socket, frame_limit(program.limits.value_size), 2 * program.limits.bytes_out)
        conversation = Conversation(program, host, inputs, wire, worker, names)
        with self._lock:
            self._running.add(conversation)
        try:
            result = await conversation.run(self._isolation(), keep=keep)
            if result.error is not None and result.error.kind == "sandbox":
                words = self._workers.last_words() if isinstance(self._workers, SpeakingWorkers) else ""
                if words:
                    _log.warning("a worker of %s died, and its wall said: %r", self._engine, words)
            return Ended(result, conversation.is_reusable, conversation.names, conversation.left_out)
        finally:
            with self._lock:
                self._running.discard(conversation)

    def _isolation(self) -> tuple[str, ...]:
        return (self._engine, *self._notes, *self._workers.layers, *LIMITS)


class ProcessSession:
    """Programs of one user, one after another in the same worker, with the names that the last one left.

    Between its programs the worker is stopped, with all its threads. A program that is ended from outside, for instance
    at a limit, ends the session; with `keep_values` of the sandbox the session goes on in another worker, with the
    plain values that were there before that program. The memory limit of the first program in a worker holds for all
    programs in it together.
    """

    def __init__(self, sandbox: WorkerSandbox, data: Mapping[str, Any]) -> None:
        self._sandbox = sandbox
        self._worker: Worker | None = None
        self._begin = json_bytes(data)  # as JSON, which takes least memory; so does what is kept
        self._data: bytes | None = self._begin if sandbox.keep_values else None
        self._memory = 0  # that is kept for its worker
        self._is_busy = self._is_counted = False
        self._end_reason: str | None = None
        self._idle_since = math.inf
        self._timer: asyncio.TimerHandle | None = None

    async def run(self, program: Program, host: Host) -> SandboxResult:
        """Run the next program.

        Raises:
            SandboxError: Another one is running, the session is over, or there are too many sessions.
        """
        result, _ = await self._run(program, host, wanted=self._data is not None)
        return result

    async def values(self, program: Program, host: Host) -> SessionValues:
        """Return the data that its programs left, and the kinds of the other values; see `HasSessionValues`.

        Raises:
            SandboxError: A program is running, the session is over, or the process was lost.
        """
        if self._worker is None and self._end_reason is None:
            return SessionValues(self._values)
        result, values = await self._run(program, host, wanted=True)
        if result.error is not None:
            raise SandboxError(f"the data of this session cannot be had: {result.error}")
        return values

    async def _run(self, program: Program, host: Host, *, wanted: bool) -> tuple[SandboxResult, SessionValues]:
        """Run a program; what it left is returned, too, where it is wanted."""
        self._sandbox.end_idle()
        if self._end_reason is not None:
            raise SandboxError(f"this session is over: {self._end_reason}. Begin another one, with session()")
        if self._is_busy:
            raise SandboxError("a program is running in this session, which runs one at a time")
        try:
            program = _normalized(program)
        except CodeError as error:
            return self._sandbox.refused(error), SessionValues()
        if not self._is_counted:
            self._sandbox.queue.open_session()
            self._is_counted = True
        self._is_busy = True
        is_reusable = False
        why = "a program of it was ended from outside"
        try:
            async with self._sandbox.queue.place(program.limits.memory if self._worker is None else 0):
                names = self._values if self._worker is None else {}
                worker = await self._ready(program)
                inputs = ReplayInputs(self._sandbox.engine)
                begin_names = names if names or wanted else None
                ended = await self._sandbox.converse(program, host, inputs, worker, keep=True, names=begin_names)
                result, is_reusable = ended.result, ended.is_reusable
                values = SessionValues(ended.names or {}, ended.left_out)
                if is_reusable:
                    self._data = None if self._data is None else json_bytes(values.data)
                    if isinstance(worker, StoppableWorker):
                        worker.stop()
                    return result, values
                why = f"its last program was ended ({result.error})"
                return self._with_loss(result), values
        finally:
            self._is_busy = False
            if is_reusable:
                self._wait()
            elif self._data is None:
                self._end(why)
            else:
                self._leave_worker()

    @property
    def _values(self) -> dict[str, Any]:
        """The data that a new worker of the session begins with, by name."""
        return from_json(self._begin if self._data is None else self._data)

    async def _ready(self, program: Program) -> Worker:
        """Return the worker, which goes on or is new."""
        if self._worker is not None:
            if isinstance(self._worker, StoppableWorker):
                self._worker.go_on()
            return self._worker
        self._worker = await self._sandbox.take(program, _SESSION_CPU)
        self._memory = program.limits.memory
        self._sandbox.queue.keep(self._memory)
        return self._worker

    def _with_loss(self, result: SandboxResult) -> SandboxResult:
        """Return the result of a program that was ended from outside, with what the session lost by that."""
        error = result.error
        if error is None or error.kind == "paused":
            return result
        lost = "The session ended with it: all that its programs left is gone."
        if self._data is not None:
            names = ", ".join(list(self._values)[:_NAMES_SHOWN]) or "none"
            lost = (
                "Of what the programs of this session left, only plain values are there as they were before this "
                f"program ({names}); functions, imports and other objects are gone."
            )
        return replace(result, error=replace(error, message=f"{error.message.rstrip('.')}. {lost}"))

    # --- idle

    def _wait(self) -> None:
        """Wait for the next program, for as long as the sandbox lets a session."""
        idle = self._sandbox.session_idle
        if self._timer is not None:
            self._timer.cancel()
        if idle is not None:
            self._idle_since = time.monotonic()
            self._timer = asyncio.get_running_loop().call_later(idle, _end_idle, weakref.ref(self._sandbox))

    def end_if_idle(self, seconds: float) -> None:
        """End the session if no program of it has run for so long."""
        if not self._is_busy and time.monotonic() - self._idle_since >= seconds:
            self._end(f"it was idle for {seconds:g} s (session_idle)")

    def close(self) -> None:
        """End the session; the names that its programs left are gone."""
        self._end("it was closed")

    def __del__(self, is_finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        if not is_finalizing():
            self.close()

    def _end(self, why: str) -> None:
        self._end_reason = self._end_reason or why
        self._leave_worker()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _leave_worker(self) -> None:
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.close()
        memory, self._memory = self._memory, 0
        if self._is_counted:
            self._is_counted = False
            self._sandbox.queue.close_session(memory)


def _close_unused(worker: asyncio.Future[Worker]) -> None:
    if not worker.cancelled() and worker.exception() is None:
        worker.result().close()


def _end_idle(sandbox: weakref.ref[WorkerSandbox]) -> None:
    found = sandbox()
    if found is not None:
        found.end_idle()


def _normalized(program: Program) -> Program:
    """Return a program whose text can be sent; raises CodeError."""
    code = normalized(program.code, program.limits.source_size)
    return program if code == program.code else replace(program, code=code)
