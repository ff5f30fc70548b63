"""Threads in which programs compute, so that the event loop does not wait for them; kept for the next program."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import TypeVar

__all__ = ["ProgramThread", "ProgramThreads"]

T = TypeVar("T")
_IDLE = 8  # threads that are kept


class ProgramThread:
    """A daemon thread that runs one function after another."""

    def __init__(self) -> None:
        self._inbox: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        threading.Thread(target=self._work, name="toolcrib-program", daemon=True).start()

    async def run(self, step: Callable[[], T]) -> T:
        """Return what `step` returns; cancelling the wait does not stop it."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[T] = loop.create_future()

        def job() -> None:
            try:
                value = step()
            except BaseException as error:
                post(_fail, error)
            else:
                post(_settle, value)

        def post(settle: Callable[..., None], outcome: object) -> None:
            with suppress(RuntimeError):  # the loop was closed meanwhile, and no task waits
                loop.call_soon_threadsafe(settle, done, outcome)

        self._inbox.put(job)
        return await done

    def post(self, step: Callable[[], None]) -> None:
        """Run `step` after what is running, without waiting for it."""
        self._inbox.put(step)

    def stop(self) -> None:
        """End the thread when it has run what it was given."""
        self._inbox.put(None)

    def _work(self) -> None:
        while (job := self._inbox.get()) is not None:
            job()
            del job  # an idle thread keeps nothing of the last program alive


class ProgramThreads:
    """Threads that wait for the next program."""

    def __init__(self) -> None:
        self._idle: list[ProgramThread] = []

    def take(self) -> ProgramThread:
        """Return a thread for one program."""
        try:
            return self._idle.pop()
        except IndexError:
            return ProgramThread()

    def give_back(self, thread: ProgramThread) -> None:
        """Keep a thread for the next program, or end it."""
        if len(self._idle) < _IDLE:
            self._idle.append(thread)
        else:
            thread.stop()

    def close(self) -> None:
        """End the threads that wait."""
        while self._idle:
            self._idle.pop().stop()


def _settle(done: asyncio.Future[object], value: object) -> None:
    if not done.done():
        done.set_result(value)


def _fail(done: asyncio.Future[object], error: BaseException) -> None:
    if not done.done():
        done.set_exception(error)
