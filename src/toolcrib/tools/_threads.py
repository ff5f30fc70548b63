"""Worker threads for sync tools: daemons, so that a tool that never returns does not keep the process alive."""

from __future__ import annotations

import asyncio
import contextvars
import os
import threading
from collections import deque
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

__all__ = ["ThreadCall", "in_thread"]

T = TypeVar("T")
_MOST = 128  # threads; further calls wait for one


class _Job:
    __slots__ = ("context", "fn", "future", "loop", "over")

    def __init__(self, fn: Callable[[], Any], loop: asyncio.AbstractEventLoop, over: Callable[[], None]) -> None:
        self.fn, self.loop, self.over = fn, loop, over
        self.future: asyncio.Future[Any] = loop.create_future()
        self.context = contextvars.copy_context()

    def run(self) -> None:
        if self.future.done():  # given up while it waited for a thread: it must not run after all
            self._settle(None, None)
            return
        try:
            value = self.context.run(self.fn)
        except BaseException as error:
            self._settle(None, error)
        else:
            self._settle(value, None)

    def _settle(self, value: Any, error: BaseException | None) -> None:
        with suppress(RuntimeError):  # the loop closed meanwhile: nobody waits any more
            self.loop.call_soon_threadsafe(self._deliver, value, error)

    def _deliver(self, value: Any, error: BaseException | None) -> None:
        self.over()
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
                threading.Thread(target=self._work, name="toolcrib-tool", daemon=True).start()

    def _work(self) -> None:
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
    """One call in a worker thread, which may go on after nobody waits for it any more.

    Attributes:
        running: Whether the thread is still at it, or has yet to begin.
    """

    __slots__ = ("_ended", "running")

    def __init__(self) -> None:
        self.running = False
        self._ended: asyncio.Event | None = None

    async def run(self, fn: Callable[[], T]) -> T:
        """Run `fn` with the caller's context variables, and return what it returns; cancelling does not stop it."""
        self.running, self._ended = True, asyncio.Event()
        job = _Job(fn, asyncio.get_running_loop(), self._over)
        _pool.submit(job)
        return await job.future

    def _over(self) -> None:
        self.running = False
        if self._ended is not None:
            self._ended.set()

    def afterwards(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Do `work` when the thread has ended, or the event loop does."""
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


async def in_thread(fn: Callable[[], T]) -> T:
    """Run `fn` in a worker thread, with the caller's context variables, and return what it returns.

    Cancelling the wait does not stop the thread.
    """
    return await ThreadCall().run(fn)
