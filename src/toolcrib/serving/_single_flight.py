"""Calls that are alike and come at the same moment: one of them asks, and the others find that it has."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from weakref import WeakValueDictionary

from toolcrib.calls import CallEvent

__all__ = ["SingleFlight", "Starting"]


class SingleFlight:
    """Lets calls with one key through one after another, as far as the point where it is known whether they wait."""

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    @asynccontextmanager
    async def one(self, key: str) -> AsyncGenerator[Callable[[], None]]:
        """Hold back the others with this key while the body runs; or until it calls what it is given."""
        lock = self._locks.setdefault(key, asyncio.Lock())
        await lock.acquire()
        held = True

        def leave() -> None:
            nonlocal held
            if held:
                held = False
                lock.release()

        try:
            yield leave
        finally:
            leave()


class Starting:
    """A sink that says when a tool starts: its call does not wait for anybody.

    Args:
        leave: Called then.
    """

    def __init__(self, leave: Callable[[], None]) -> None:
        self._leave = leave

    def emit(self, event: CallEvent) -> None:
        if event.kind == "started":
            self._leave()
