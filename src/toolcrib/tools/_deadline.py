"""Deadlines, cheap enough to stand around every call and every step of a stream."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from contextlib import contextmanager
from math import inf
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

    def wake_at(self, when: float, loop: asyncio.AbstractEventLoop) -> None:
        """Look again then, which is sooner than planned."""
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
            self.wake_at(min(d.ends for d in self.open), loop)


_watches: WeakKeyDictionary[asyncio.AbstractEventLoop, _Watch] = WeakKeyDictionary()
_latest: tuple[Callable[[], asyncio.AbstractEventLoop | None], _Watch] = (lambda: None, _Watch())


def _watch_of(loop: asyncio.AbstractEventLoop) -> _Watch:
    global _latest
    watch = _watches.setdefault(loop, _Watch())
    _latest = (ref(loop), watch)  # of several loops in several threads each finds its own above
    return watch


class Deadline:
    """Stops the step that runs when `seconds` have passed since it was made, with `error(*fields)`.

    Enter it around each step (one await, or one `anext` of a stream). Between steps nothing is cancelled: the next
    step fails instead. A TimeoutError that the body raises itself passes through untouched. A stream enters it once,
    and around each of its yields says `rest()` and `begin()`, which is quicker.

    Attributes:
        ends: When it passes, on the clock of the event loop.
    """

    __slots__ = ("_cancelling", "_error", "_expired", "_fields", "_loop", "_task", "_watch", "ends")

    def __init__(self, seconds: float, error: Callable[..., Exception], *fields: Any) -> None:
        self._error, self._fields = error, fields
        self._task: asyncio.Task[Any] | None = None
        self._expired = False
        self._cancelling = 0
        self._loop = loop = asyncio.get_running_loop()
        latest, watch = _latest
        if latest() is not loop:
            watch = _watch_of(loop)
        self._watch = watch
        self.ends = ends = loop.time() + seconds
        watch.open.add(self)
        if ends < watch.next:
            watch.wake_at(ends, loop)

    def expire(self) -> None:
        """Stop the step that runs now, or else the next one."""
        self._expired = True
        if self._task is not None:
            self._cancelling = self._task.cancelling()
            self._task.cancel()

    def begin(self) -> None:
        """Say that a step begins; raises the error when the deadline has passed."""
        task = asyncio.current_task()
        if self._expired or task is None:
            raise self._error(*self._fields) if self._expired else RuntimeError("a deadline needs a running task")
        self._task = task

    def rest(self) -> None:
        """Say that a step is over, and others than the body run until the next one begins."""
        self._task = None

    def __enter__(self) -> Deadline:
        if self._expired or (task := asyncio.current_task()) is None:
            self.begin()  # which says what is wrong
        else:
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
        """Stop the clock for the body, as while a person is asked."""
        left = self.ends - self._loop.time()
        self._watch.open.discard(self)
        try:
            yield
        finally:
            if not self._expired:
                self.ends = self._loop.time() + left
                self._watch.open.add(self)
                if self.ends < self._watch.next:
                    self._watch.wake_at(self.ends, self._loop)

    def close(self) -> None:
        """Forget the deadline; it cannot pass any more."""
        self._watch.open.discard(self)
