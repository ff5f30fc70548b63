"""Single flight: equal calls that arrive at the same time are let through one after another."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from weakref import WeakValueDictionary

from toolcrib.calls import CallEvent


class Flight:
    """One of several equal calls, which holds the others back; a sink that lets them through when its tool starts."""

    def __init__(self, lock: asyncio.Lock) -> None:
        self._lock: asyncio.Lock | None = lock

    def emit(self, event: CallEvent) -> None:
        """Land when the tool starts: its call waits for no approval."""
        if event.kind == "started":
            self.land()

    def land(self) -> None:
        """Release the next of the equal calls."""
        lock, self._lock = self._lock, None
        if lock is not None:
            lock.release()


class SingleFlight:
    """Holds equal calls back while it is not known whether the one before them is suspended."""

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    @asynccontextmanager
    async def one(self, key: str) -> AsyncGenerator[Flight]:
        """Hold the other calls with this key back until the body ends or the flight lands."""
        lock = self._locks.setdefault(key, asyncio.Lock())
        await lock.acquire()
        flight = Flight(lock)
        try:
            yield flight
        finally:
            flight.land()
