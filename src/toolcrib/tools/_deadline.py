"""Deadlines, cheap enough to stand around every call and every step of a stream."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from contextlib import contextmanager
from math import inf
from time import monotonic
from types import TracebackType
from typing import Any
from weakref import WeakKeyDictionary, ref

__all__ = ["Deadline"]


class _Watch:
    """The deadlines of one event loop behind one timer: most are met, and a timer for each costs as much as a call."""

    __slots__ = ("next", "open")

    def __init__(self) -> None:
        self.open: set[Deadline] = set()
        self.next = inf  # when the timer goes off that counts; others that are still set find nothing to do

    def add(self, deadline: Deadline, loop: asyncio.AbstractEventLoop) -> None:
        """Stop `deadline` when it passes."""
        self.open.add(deadline)
        if deadline.ends < self.next:
            self._wake_at(deadline.ends, loop)

    def _wake_at(self, when: float, loop: asyncio.AbstractEventLoop) -> None:
        self.next = when
        loop.call_at(when, self._look, when, loop)

    def _look(self, due: float, loop: asyncio.AbstractEventLoop) -> None:
        if due != self.next:
            return
        self.next = inf
        for deadline in [d for d in self.open if d.ends <= due]:
            self.open.discard(deadline)
            deadline.expire()
        if self.open:
            self._wake_at(min(d.ends for d in self.open), loop)


_watches: WeakKeyDictionary[asyncio.AbstractEventLoop, _Watch] = WeakKeyDictionary()
_latest: tuple[Callable[[], asyncio.AbstractEventLoop | None], _Watch] = (lambda: None, _Watch())


def _watch_of(loop: asyncio.AbstractEventLoop) -> _Watch:
    global _latest
    watch = _watches.setdefault(loop, _Watch())
    _latest = (ref(loop), watch)  # of several loops in several threads each finds its own above
    return watch


class Deadline:
    """Stops the step that runs when its seconds have passed, with `error(*fields)`.

    Entered around one await, or around the steps of a stream. `rest()` and `begin()` stand around what the step does
    not wait for, such as the time in which a consumer holds a value: the clock stands, and nothing is stopped. A
    TimeoutError that the body raises itself passes through untouched.

    Attributes:
        ends: When it passes, on the clock of the event loop, if it does not rest again.
    """

    __slots__ = (
        "_cancelling",
        "_error",
        "_expired",
        "_fields",
        "_loop",
        "_parked",
        "_rested",
        "_task",
        "_watch",
        "ends",
    )

    def __init__(self, seconds: float, error: Callable[..., Exception], *fields: Any) -> None:
        self._error, self._fields = error, fields
        self._task: asyncio.Task[Any] | None = None
        self._expired = self._parked = False
        self._rested = 0.0  # since when it rests; 0 when it does not
        self._cancelling = 0
        self._loop = loop = asyncio.get_running_loop()
        latest, watch = _latest
        if latest() is not loop:
            watch = _watch_of(loop)
        self._watch = watch
        self.ends = loop.time() + seconds
        watch.add(self, loop)

    def expire(self) -> None:
        """Stop the step that runs now, or else the next one; a deadline that rests is looked at when it begins."""
        if self._rested:
            self._parked = True
            return
        self._expired = True
        if self._task is not None:
            self._cancelling = self._task.cancelling()
            self._task.cancel()

    def rest(self) -> None:
        """Let the clock stand until `begin`; what runs meanwhile is not stopped."""
        if self._expired:
            self.__exit__(None, None, None)
        self._task = None
        self._rested = monotonic()

    def begin(self) -> None:
        """Let the clock go on, in the task that says so; raises the error when the step before outlasted its time."""
        if self._expired:
            raise self._error(*self._fields)
        self.ends += monotonic() - self._rested
        self._rested = 0.0
        self._task = asyncio.current_task(self._loop)
        if self._parked:
            self._parked = False
            self._watch.add(self, self._loop)

    def __enter__(self) -> Deadline:
        task = asyncio.current_task(self._loop)
        if self._expired or task is None:
            raise self._error(*self._fields) if self._expired else RuntimeError("a deadline needs a running task")
        self._task = task
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        task, self._task = self._task, None
        if not self._expired or task is None:
            return
        ours = task.uncancel() <= self._cancelling
        if ours and isinstance(error, asyncio.CancelledError):
            raise self._error(*self._fields) from error

    @contextmanager
    def stopped(self) -> Generator[None]:
        """Let the clock stand for the body, as while a person is asked."""
        task = self._task
        self.rest()
        try:
            yield
        finally:
            self.begin()
            self._task = task

    def close(self) -> None:
        """Forget the deadline; it cannot pass any more."""
        self._watch.open.discard(self)
