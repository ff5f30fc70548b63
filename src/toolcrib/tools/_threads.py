"""Worker threads for sync tools: daemons, so that a tool that never returns does not keep the process alive."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import os
import threading
import traceback
from collections import deque
from collections.abc import Callable, Coroutine
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, TypeVar

T = TypeVar("T")
_MOST = 128  # threads; further calls wait for one

_log = logging.getLogger("toolcrib.tools")


class _Job:
    __slots__ = ("context", "ended", "fn", "future", "loop")

    def __init__(self, fn: Callable[[], Any], context: contextvars.Context, ended: Callable[[], None]) -> None:
        self.fn, self.context, self.ended = fn, context, ended
        self.loop = asyncio.get_running_loop()
        self.future: asyncio.Future[Any] = self.loop.create_future()

    def run(self) -> None:
        if self.future.done():  # given up while it waited for a thread: it must not run after all
            self._set_result(None, None)
            return
        try:
            value = self.context.run(self.fn)
        except BaseException as error:
            self._set_result(None, error)
        else:
            self._set_result(value, None)

    def _set_result(self, value: Any, error: BaseException | None) -> None:
        with suppress(RuntimeError):  # the loop closed meanwhile, and with it all that waited
            self.loop.call_soon_threadsafe(self._deliver, value, error)

    def _deliver(self, value: Any, error: BaseException | None) -> None:
        self.ended()
        if self.future.done():
            return
        if isinstance(error, StopIteration):  # a future cannot carry one
            error = RuntimeError("the tool raised StopIteration")
        if error is None:
            self.future.set_result(value)
        else:
            self.future.set_exception(error)


class _Pool:
    def __init__(self) -> None:
        self._jobs: deque[_Job] = deque()
        self._wake = threading.Condition()
        self._idle = self._threads = 0

    def submit(self, job: _Job) -> None:
        with self._wake:
            self._jobs.append(job)
            if self._idle >= len(self._jobs):
                self._wake.notify()
            elif self._threads < _MOST:
                self._threads += 1
                threading.Thread(target=self._run_jobs, name="toolcrib-tool", daemon=True).start()

    def _run_jobs(self) -> None:
        while True:
            with self._wake:
                self._idle += 1
                while not self._jobs:
                    self._wake.wait()
                self._idle -= 1
                job = self._jobs.popleft()
            job.run()
            del job  # an idle thread keeps nothing of the last call alive


_pool = _Pool()


def _renew() -> None:
    global _pool
    _pool = _Pool()


if hasattr(os, "register_at_fork"):  # a forked child has none of its parent's threads
    os.register_at_fork(after_in_child=_renew)


class ThreadCall:
    """One call in a thread of the pool, which goes on when its caller gives it up."""

    __slots__ = ("_ended", "_jobs_left")

    def __init__(self) -> None:
        self._jobs_left = 0
        self._ended: asyncio.Event | None = None

    @property
    def running(self) -> bool:
        """True if the thread still works, or has yet to begin."""
        return self._jobs_left > 0

    async def run(self, fn: Callable[[], T]) -> T:
        """Run `fn` with the caller's context variables, and return what it returns; cancelling does not stop it."""
        return await self._submit(fn)

    def _submit(self, fn: Callable[[], T]) -> asyncio.Future[T]:
        job = self._job(fn, contextvars.copy_context())
        _pool.submit(job)
        return job.future

    def _job(self, fn: Callable[[], Any], context: contextvars.Context) -> _Job:
        if self._ended is None or not self._jobs_left:
            self._ended = asyncio.Event()
        self._jobs_left += 1
        return _Job(fn, context, self._over)

    def _over(self) -> None:
        self._jobs_left -= 1
        if self._ended is not None and not self._jobs_left:
            self._ended.set()

    def afterwards(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run `work` when the thread has ended, or the event loop does."""
        task = asyncio.get_running_loop().create_task(self._then(work))
        _waiting.add(task)
        task.add_done_callback(_waiting.discard)

    async def _then(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        try:
            if self._ended is not None:
                await self._ended.wait()
        finally:
            await work()


_waiting: set[asyncio.Task[None]] = set()  # the loop itself holds its tasks only weakly


class StreamThread(ThreadCall):
    """A thread of its own for the steps of one sync generator, all of them in the context of the first.

    It is not one of the pool's: it stands still while a consumer holds a value.
    """

    __slots__ = ("_context", "_jobs")

    def __init__(self) -> None:
        super().__init__()
        self._jobs: SimpleQueue[_Job | None] | None = None
        self._context: contextvars.Context | None = None

    def _submit(self, fn: Callable[[], T]) -> asyncio.Future[T]:
        if self._jobs is None or self._context is None:
            self._jobs, self._context = SimpleQueue(), contextvars.copy_context()
            threading.Thread(target=_work_off, args=(self._jobs,), name="toolcrib-stream", daemon=True).start()
        job = self._job(fn, self._context)
        self._jobs.put(job)
        return job.future

    async def end(self, close: Callable[[], object]) -> None:
        """Close the generator in its thread, and end that; waits for it, unless a step is running."""
        if self._jobs is None:  # it never began
            return
        waits, closed = not self.running, self._submit(close)
        self._jobs.put(None)
        if waits:
            await closed
        else:
            closed.add_done_callback(_log_failure)

    def __del__(self) -> None:
        if self._jobs is not None:
            self._jobs.put(None)


def _work_off(jobs: SimpleQueue[_Job | None]) -> None:
    while (job := jobs.get()) is not None:
        job.run()
        del job  # as above


def _log_failure(closed: asyncio.Future[object]) -> None:
    if not closed.cancelled() and (error := closed.exception()) is not None:
        place = "".join(traceback.format_tb(error.__traceback__))  # without its text, which may quote a secret argument
        name = type(error).__name__
        _log.error("a generator that was stopped failed when it was closed: %s, raised at\n%s", name, place)
