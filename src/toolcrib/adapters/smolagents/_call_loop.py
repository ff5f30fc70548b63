"""Event loop for the calls of an agent, which come from the threads that it runs in."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Generator
from concurrent.futures import wait
from contextlib import contextmanager
from typing import Any, TypeVar
from weakref import finalize

T = TypeVar("T")

_END_SECONDS = 5.0  # for a call to end that is broken off by Ctrl-C


class CallLoop:
    """One event loop for all calls of an agent, so that locks and limits hold between the threads that they come from.

    It is the host's own while that waits for the agent, or else one that runs in a thread of its own.
    """

    def __init__(self) -> None:
        self._host: asyncio.AbstractEventLoop | None = None
        self._own: asyncio.AbstractEventLoop | None = None
        self._opening = threading.Lock()
        self._running: dict[object, asyncio.Task[Any]] = {}  # by what is made for each call

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run `work` from plain code, and return what it returns."""
        loop, call = self._host or self._opened(), object()
        future = None
        try:
            future = asyncio.run_coroutine_threadsafe(self._run(work, call), loop)
            return future.result()
        finally:
            if future is None or not future.done():  # at Ctrl-C, which may come before there is a future
                wait([asyncio.run_coroutine_threadsafe(self._break_off(call), loop)], _END_SECONDS)

    async def cancel(self) -> None:
        """Cancel what runs in the host's event loop, and wait until it has ended."""
        running = [*self._running.values()]
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

    async def _run(self, work: Coroutine[Any, Any, T], call: object) -> T:
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("there is no task here")
        self._running[call] = task
        try:
            return await work
        finally:
            del self._running[call]

    async def _break_off(self, call: object) -> None:
        """Cancel a call, and wait until it has ended; one that was given to the loop before has begun."""
        if (task := self._running.get(call)) is not None:
            task.cancel()
            await asyncio.wait([task])

    def _opened(self) -> asyncio.AbstractEventLoop:
        with self._opening:
            if self._own is None:
                loop = self._own = asyncio.new_event_loop()
                threading.Thread(target=_turn, args=(loop,), name="smolagents: calls", daemon=True).start()
                finalize(self, loop.call_soon_threadsafe, loop.stop)
            return self._own


def _turn(loop: asyncio.AbstractEventLoop) -> None:
    try:
        loop.run_forever()
    finally:
        loop.close()
