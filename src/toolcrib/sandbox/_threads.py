"""Threads in which programs compute, so that the event loop does not wait for them; each is used again."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from queue import SimpleQueue
from typing import TypeVar

T = TypeVar("T")
_IDLE = 8  # threads that wait for the next program


class ProgramThread:
    """A daemon thread that runs one function after another."""

    def __init__(self) -> None:
        self._inbox: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        threading.Thread(target=self._run_jobs, name="toolcrib-program", daemon=True).start()

    async def run(self, step: Callable[[], T]) -> T:
        """Run `step` in the thread and return its result; cancelling the wait does not stop a step that has begun."""
        done: Future[T] = Future()
        self._inbox.put(partial(_run_step, done, step))
        return await asyncio.wrap_future(done)

    def post(self, step: Callable[[], None]) -> None:
        """Run `step` after what is running, without waiting for it."""
        self._inbox.put(step)

    def stop(self) -> None:
        """End the thread when it has run what it was given."""
        self._inbox.put(None)

    def _run_jobs(self) -> None:
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


def _run_step(done: Future[T], step: Callable[[], T]) -> None:
    if not done.set_running_or_notify_cancel():
        return
    try:
        done.set_result(step())
    except BaseException as error:
        done.set_exception(error)
        del done, step  # else the error would refer to itself, through its traceback
