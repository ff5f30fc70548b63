"""Event loop for the calls of an agent, which come from the threads that it runs in."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Generator
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import copy_context
from typing import Any, TypeVar
from weakref import finalize

T = TypeVar("T")


class CallLoop:
    """One event loop for all calls of an agent, so that locks and limits hold between the threads that they come from.

    It is the host's own while that waits for the agent, or else one that a thread with a call turns: the first that
    has one, and after it the next that still waits for its own.
    """

    def __init__(self) -> None:
        self._host: asyncio.AbstractEventLoop | None = None
        self._own: asyncio.AbstractEventLoop | None = None
        self._free = threading.Condition()
        self._is_turned = False
        self._running: set[asyncio.Task[Any]] = set()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run `work` from plain code, and return what it returns."""
        if self._host is None and asyncio._get_running_loop() is not None:  # as in a notebook
            return self._in_a_thread(work)
        if self._host is None and self._takes_turn():
            return self._alone(self._opened(), work)
        host = self._host
        loop = host or self._opened()
        future = asyncio.run_coroutine_threadsafe(self._run(work), loop)
        try:
            if host is None:
                self._turn(loop, future)
            return future.result()
        finally:  # also at Ctrl-C
            future.cancel()

    async def cancel(self) -> None:
        """Cancel what runs in the host's event loop, and wait until it has ended."""
        running = [*self._running]
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    @contextmanager
    def hosted(self, loop: asyncio.AbstractEventLoop) -> Generator[None]:
        """Run the calls in this loop while the body runs."""
        before, self._host = self._host, loop
        try:
            yield
        finally:
            self._host = before

    # --- inside

    async def _run(self, work: Coroutine[Any, Any, T]) -> T:
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("there is no task here")
        self._running.add(task)
        try:
            return await work
        finally:
            self._running.discard(task)

    def _takes_turn(self) -> bool:
        with self._free:
            if self._is_turned:
                return False
            self._is_turned = True
            return True

    def _alone(self, loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, T]) -> T:
        """Turn the loop with a call of this thread, which other threads' calls may join."""
        task = loop.create_task(work)
        try:
            return loop.run_until_complete(task)
        finally:
            if not task.done():  # at Ctrl-C
                task.cancel()
                loop.run_until_complete(asyncio.wait([task]))
            self._is_turned = False
            self._wake()

    def _turn(self, loop: asyncio.AbstractEventLoop, future: Future[Any]) -> None:
        """Turn the loop until a call has ended, or wait while another thread does."""
        future.add_done_callback(self._wake)
        with self._free:
            self._free.wait_for(lambda: future.done() or not self._is_turned)
            if future.done():
                return
            self._is_turned = True  # the thread that turned it has left
        try:
            loop.run_until_complete(_ended(future))
        finally:
            self._is_turned = False
            self._wake()

    def _wake(self, future: object = None) -> None:
        with self._free:
            self._free.notify_all()

    def _in_a_thread(self, work: Coroutine[Any, Any, T]) -> T:
        future: Future[T] = Future()

        def call() -> None:
            try:
                future.set_result(self.run(work))
            except BaseException as error:  # of a tool, for the thread that waits
                future.set_exception(error)

        thread = threading.Thread(target=copy_context().run, args=(call,), daemon=True)
        thread.start()
        return future.result()

    def _opened(self) -> asyncio.AbstractEventLoop:
        with self._free:
            if self._own is None:
                self._own = asyncio.new_event_loop()
                finalize(self, self._own.close)
            return self._own


async def _ended(future: Future[Any]) -> None:
    waiter = asyncio.wrap_future(future)
    await asyncio.wait([waiter])
    if not waiter.cancelled():
        waiter.exception()
