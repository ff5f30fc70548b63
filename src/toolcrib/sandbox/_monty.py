"""MontySandbox: programs in Monty, a small Python of its own, each in a worker process of a pool that is kept warm.

Monty's sync client is driven snapshot by snapshot: each step of a program runs in a thread, and each call on the event
loop that asked. One pool may be used from several loops and threads, and ends with the process.
"""

from __future__ import annotations

import asyncio
import atexit
import ctypes
import logging
import os
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import Any
from weakref import WeakSet

from pydantic_monty import Monty

from toolcrib.errors import CodeError, SandboxError
from toolcrib.sandbox._host_calls import Ended, HostCalls, Replies, Request
from toolcrib.sandbox._limit_messages import CLOSED, late
from toolcrib.sandbox._monty_drive import ISOLATION, Drive, Steps
from toolcrib.sandbox._monty_state import ENGINE, MontyState
from toolcrib.sandbox._monty_subset import MODULES, NOTES, Checked, check
from toolcrib.sandbox._monty_type_checker import type_problems
from toolcrib.sandbox._protocol import Dialect, Host, OutputStream, Program, ProgramError, SandboxResult, TypeProblem
from toolcrib.sandbox._threads import Worker, Workers

__all__ = ["MontySandbox"]

_SESSIONS_PER_WORKER = 1_000  # then the worker is replaced, so that nothing can pile up in it
_FAREWELL = 2.0  # seconds that running programs are given to notice that they were ended
_log = logging.getLogger("toolcrib.code")


class MontySandbox:
    """Runs programs in Monty, without file, network, environment, or any object of the host's.

    What is not in this Python is said before anything runs, with the way to write it instead. No state is kept from one
    program to the next.

    Args:
        workers: The most programs at a time; each has a process of about 18 MB, kept for the next.
        patience: Seconds a program waits for a worker when all are busy.
    """

    def __init__(self, *, workers: int = 32, patience: float = 60.0) -> None:
        self._workers, self._patience = workers, patience
        self._lock = threading.Lock()
        self._pool: Monty | None = None
        self._threads = Workers()
        self._running: set[_Run] = set()
        self._closed = False
        _made.add(self)

    async def run(self, program: Program, host: Host) -> SandboxResult:
        """Run a program to its end.

        Raises:
            SandboxError: There is no worker for it: all are busy, or the sandbox is closed.
        """
        try:
            checked = check(program)
        except CodeError as error:
            refused = ProgramError("syntax", error.kind, error.problem, error.line)
            return SandboxResult(error=refused, isolation=ISOLATION)
        return await self._run(program, _Run(program, checked, host))

    async def resume(self, program: Program, state: Mapping[str, Any], host: Host) -> SandboxResult:
        """Take up a paused program from Monty's snapshot of it.

        Nothing of a snapshot is checked by Monty: take it from your own safe keeping, or from a signed `PausedProgram`.

        Raises:
            SandboxError: The state is of another version of Monty, or none; or there is no worker for it.
        """
        left = MontyState.from_dict(state)
        return await self._run(program, _Run(program, left.checked, host, left))

    @property
    def engine(self) -> str:
        """Monty and its version: another one cannot read a snapshot."""
        return ENGINE

    @property
    def replays(self) -> bool:
        """Programs go on where they paused."""
        return False

    async def _run(self, program: Program, run: _Run) -> SandboxResult:
        with self._lock:
            self._running.add(run)
        thread = None if program.may_block else self._threads.take()
        try:
            return await run.to_its_end(run.drive.steps(self._ready), thread)
        finally:
            with self._lock:
                self._running.discard(run)
            if thread is not None:
                self._threads.give_back(thread)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a model should know before it writes for Monty."""
        return NOTES

    @property
    def dialect(self) -> Dialect:
        """What programs find in Monty."""
        return Dialect(MODULES)

    async def type_check(self, code: str, stubs: str) -> list[TypeProblem]:
        """Return what Monty's type checker says of a program, by line; nothing of it runs.

        Raises:
            SandboxError: There is no worker for it.
        """
        thread = self._threads.take()
        try:
            return await thread.run(lambda: type_problems(self._ready(), code, stubs))
        except TimeoutError:
            raise SandboxError("every worker was busy, for as long as a type check was to wait for one") from None
        finally:
            self._threads.give_back(thread)

    def close(self) -> None:
        """End what runs, and the workers with it; the sandbox cannot be used again."""
        with self._lock:
            self._closed = True
            pool, self._pool = self._pool, None
            running = list(self._running)
        for run in running:
            run.abort()
        until = time.monotonic() + _FAREWELL
        while any(run.drive.computing for run in running) and time.monotonic() < until:
            time.sleep(0.001)
        if pool is not None:
            pool.__exit__(None, None, None)
        self._threads.close()

    def __enter__(self) -> MontySandbox:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _ready(self) -> Monty:
        """Return the pool, started when it is first needed; called where programs compute."""
        global _used_by
        with self._lock:
            if self._closed:
                raise SandboxError("this sandbox was closed. Make another MontySandbox()")
            if self._pool is not None:
                return self._pool
            if _used_by not in (None, os.getpid()):
                raise SandboxError(
                    "this process was forked from one that had run programs in Monty, whose threads do not live on in "
                    "it. Start it with the `spawn` or `forkserver` method, or fork before the first program"
                )
            _used_by = os.getpid()
            pool = Monty(
                max_processes=self._workers,
                checkout_timeout=self._patience,
                max_checkouts_per_worker=_SESSIONS_PER_WORKER,
            )
            self._pool = pool.__enter__()
            return self._pool

    def forked(self) -> None:
        """Forget the parent's workers, in a forked child; for the fork hook alone."""
        if self._pool is not None:
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._pool))  # its end here would end the parent's workers
        self._lock, self._pool, self._threads, self._running = threading.Lock(), None, Workers(), set()


class _Run:
    """One program between its steps and its host; lives on the event loop that asked for it."""

    def __init__(self, program: Program, checked: Checked, host: Host, left: MontyState | None = None) -> None:
        self._program, self._host = program, host
        self._loop = asyncio.get_running_loop()
        self._deadline: asyncio.Timeout | None = None
        self.drive = Drive(program, checked, self._hear, left)

    async def to_its_end(self, steps: Steps[SandboxResult], thread: Worker | None) -> SandboxResult:
        """Take turns between the program's steps and the host's calls, until the program is done."""
        limits = self._program.limits
        calls = HostCalls(self._host, self._program)
        self._deadline = deadline = asyncio.timeout(limits.wall_time)
        done = False
        try:
            async with deadline:
                asked = await self._next(steps, None, thread)
                while not isinstance(asked, SandboxResult):
                    asked = await self._next(steps, await calls.answer(asked), thread)
                done = True
                return asked
        except Ended as ended:
            return self.drive.result(error=ended.error)
        except TimeoutError:
            if not deadline.expired():
                raise
            return self._late()
        finally:
            if not done:
                self.drive.end(None)
                _close(steps) if thread is None else thread.post(partial(_close, steps))
            await calls.close()

    async def _next(
        self, steps: Steps[SandboxResult], replies: Replies | None, thread: Worker | None
    ) -> list[Request] | SandboxResult:
        if thread is None:
            return _step(steps, replies)
        return await thread.run(partial(_step, steps, replies))

    def _hear(self, text: str, stream: OutputStream) -> None:
        if self._program.may_block:
            self._host.output(text, stream)
        else:
            with suppress(RuntimeError):  # the loop was closed under the program: nobody listens any more
                self._loop.call_soon_threadsafe(self._host.output, text, stream)

    def _late(self) -> SandboxResult:
        self.drive.end(late(self._program.limits))
        return self.drive.result(error=self.drive.ended.error if self.drive.ended is not None else None)

    def abort(self) -> None:
        """End the program because the sandbox is closed; called from any thread."""
        self.drive.end(CLOSED)
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        with suppress(RuntimeError):  # it is done meanwhile
            if self._deadline is not None:
                self._deadline.reschedule(self._loop.time())


_made: WeakSet[MontySandbox] = WeakSet()
_used_by: int | None = None  # the process in which Monty started its threads


def _step(steps: Steps[SandboxResult], replies: Replies | None) -> list[Request] | SandboxResult:
    """Let the program compute, and return what it asks for, or how it ended."""
    try:
        return next(steps) if replies is None else steps.send(replies)
    except StopIteration as stop:
        return stop.value
    except (SandboxError, KeyboardInterrupt, SystemExit):
        raise
    except BaseException as broken:  # Monty's own code, panics included: nothing of it may pass for the program's
        raise SandboxError(f"Monty failed: {type(broken).__name__}: {broken}") from broken


def _close(steps: Steps[SandboxResult]) -> None:
    try:
        steps.close()
    except Exception as broken:  # Monty's own code, in a session that is thrown away
        _log.debug("a Monty session did not close: %s", broken)


def _forked() -> None:
    for sandbox in list(_made):
        sandbox.forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


@atexit.register
def _close_all() -> None:
    for sandbox in list(_made):
        sandbox.close()
