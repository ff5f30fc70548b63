"""Locks and caps of tools, one for each event loop that needs it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Hashable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any
from weakref import WeakKeyDictionary, WeakValueDictionary

from toolcrib.errors import LockHeldError
from toolcrib.tools._options import LockOption


class OwnedLock(asyncio.Lock):
    """An asyncio lock that knows the task that holds it."""

    owner: asyncio.Task[Any] | None = None


class _LockTable:
    """Locks by loop and key; a lock lives as long as a task holds it or waits for it."""

    def __init__(self) -> None:
        self._loops: WeakKeyDictionary[asyncio.AbstractEventLoop, WeakValueDictionary[Hashable, OwnedLock]]
        self._loops = WeakKeyDictionary()

    def get(self, key: Hashable) -> OwnedLock:
        loop = asyncio.get_running_loop()
        locks = self._loops.get(loop)
        if locks is None:
            locks = self._loops[loop] = WeakValueDictionary()
        lock = locks.get(key)
        if lock is None:
            lock = locks[key] = OwnedLock()
        return lock


def _forget_closed(by_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, Any]) -> None:
    """Drop what belongs to closed loops: a lock that a task waited for holds its loop, and would keep it alive."""
    for loop in [loop for loop in by_loop if loop.is_closed()]:
        del by_loop[loop]


_shared = _LockTable()  # a lock with a name belongs to all tools that name it


class Gate:
    """The lock and the concurrency cap that one tool's executions pass."""

    __slots__ = ("_cap", "_caps", "_idle", "_key", "_locks", "_of", "_table", "_tool")

    def __init__(self, tool: str, lock: LockOption, cap: int | None) -> None:
        self._tool, self._cap = tool, cap
        self._key: Hashable = lock if isinstance(lock, str) else None
        self._of: Callable[[dict[str, Any]], Hashable] | None = lock if callable(lock) else None
        self._table = _shared if isinstance(lock, str) else _LockTable() if lock else None
        self._locks: WeakKeyDictionary[asyncio.AbstractEventLoop, OwnedLock] = WeakKeyDictionary()
        self._idle = OwnedLock()
        self._caps: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()

    @property
    def lock(self) -> asyncio.Lock | None:
        """The lock of the running event loop; None without a lock, and with one for each key."""
        if self._table is None or self._of is not None:
            return None
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return self._idle
        lock = self._locks.get(loop)
        if lock is None:
            _forget_closed(self._locks)
            lock = self._locks[loop] = self._table.get(self._key)
        return lock

    def _lock_for(self, arguments: dict[str, Any]) -> OwnedLock | None:
        if self._table is None:
            return None
        if self._of is not None:
            return self._table.get(("key", self._of(arguments)))
        lock = self.lock
        return lock if isinstance(lock, OwnedLock) else None

    def _semaphore(self) -> asyncio.Semaphore | None:
        if self._cap is None:
            return None
        loop = asyncio.get_running_loop()
        semaphore = self._caps.get(loop)
        if semaphore is None:
            _forget_closed(self._caps)
            semaphore = self._caps[loop] = asyncio.Semaphore(self._cap)
        return semaphore

    @asynccontextmanager
    async def passing(self, arguments: dict[str, Any], *, streaming: bool = False) -> AsyncGenerator[None]:
        """Hold the cap and the lock for the body.

        Raises:
            LockHeldError: The lock is held by the task that asks for it, which would wait for itself.
        """
        lock = self._lock_for(arguments)
        task = asyncio.current_task()
        if lock is not None and lock.owner is not None and lock.owner is task:
            raise LockHeldError(self._tool, f"the lock {self._key!r}" if self._key else "its lock")
        async with AsyncExitStack() as stack:
            semaphore = self._semaphore()
            if semaphore is not None:
                await stack.enter_async_context(semaphore)
            if lock is None:
                yield
                return
            async with lock:
                lock.owner = (
                    None if streaming else task
                )  # a stream may be handed to another task while it holds the lock
                try:
                    yield
                finally:
                    lock.owner = None
