"""run_sync: async code, run from plain code to its end."""

from __future__ import annotations

import asyncio
import atexit
import logging
import os
import signal
import threading
from collections.abc import Coroutine
from contextlib import suppress
from types import FrameType
from typing import Any, TypeVar

T = TypeVar("T")
_log = logging.getLogger("toolcrib")


class _ThreadLoop:
    """The event loop of one thread, kept between runs: making one costs more than most programs."""

    def __init__(self) -> None:
        self.runner = asyncio.Runner()
        self.loop = self.runner.get_loop()
        self.owner = os.getpid()

    def __del__(self) -> None:
        # The thread has ended. Another may be the one that clears it away, in the middle of a loop of its own, so that
        # nothing can be run here; a forked child must leave its parent's loop alone.
        if self.owner == os.getpid() and not self.loop.is_running():
            self.loop.close()


def _nothing() -> None: ...


class _Local(threading.local):
    loop_holder: _ThreadLoop | None = None


_local = _Local()


def _close() -> None:
    holder, _local.loop_holder = _local.loop_holder, None
    if holder is not None and holder.owner == os.getpid():
        with suppress(RuntimeError):  # the interpreter is shutting down in the middle of a run
            holder.runner.close()


atexit.register(_close)


def run_sync(work: Coroutine[Any, Any, T], instead: str = "await it") -> T:
    """Run `work` to its end from plain code, and return what it returns.

    The thread's event loop is kept for the next time; what `work` left running is cancelled. A SystemExit that a task
    other than that of `work` raises, or a callback, is logged, and ends nothing else.

    Raises:
        RuntimeError: An event loop is running already; `instead` says what to write there.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        pass
    else:
        work.close()
        raise RuntimeError(f"an event loop is running here, so this cannot block it: {instead}")
    return _run(_loop_of_this_thread(), work)


def _loop_of_this_thread() -> asyncio.AbstractEventLoop:
    """Return the loop itself: what holds it is in no frame, which an error could keep for longer than the thread."""
    holder = _local.loop_holder
    if holder is None or holder.owner != os.getpid():
        holder = _local.loop_holder = _ThreadLoop()
    return holder.loop


def _run(loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, T]) -> T:
    """Return the result of `work`, and cancel the tasks that it left running.

    The first Ctrl-C cancels `work`, which may clean up; a second one ends it. `asyncio.Runner.run` does the same,
    and keeps one context for all its runs.
    """
    task = loop.create_task(work)
    interrupts = 0

    def interrupt(number: int, frame: FrameType | None) -> None:
        nonlocal interrupts
        interrupts += 1
        if interrupts > 1 or task.done():
            raise KeyboardInterrupt
        task.cancel()
        loop.call_soon_threadsafe(_nothing)  # it may be asleep

    main = threading.current_thread() is threading.main_thread()
    watched = main and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if watched:
        signal.signal(signal.SIGINT, interrupt)
    try:
        _complete(loop, task)
        return task.result()
    except asyncio.CancelledError:
        if interrupts and task.uncancel() == 0:
            raise KeyboardInterrupt from None
        raise
    finally:
        if watched and signal.getsignal(signal.SIGINT) is interrupt:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        others = asyncio.all_tasks(loop)
        for other in others:
            other.cancel()
        if others:
            _complete(loop, asyncio.gather(*others, return_exceptions=True))


def _complete(loop: asyncio.AbstractEventLoop, future: asyncio.Future[Any]) -> None:
    """Run the loop until a future is done, also where another task or a callback exits, which ends the loop's run.

    `run_until_complete` is not used: what it schedules to end one run would end the next one, where the first was ended
    by an exit.
    """
    future.add_done_callback(lambda _: loop.stop())
    while not future.done():
        try:
            loop.run_forever()
        except SystemExit:
            if not future.done():  # what waits for the task that exited gets the error from it
                _log.exception("a task or a callback of a tool's own exited, which ends the event loop; it goes on")
