"""Deadlines, cheap enough to stand around every call and every step of a stream."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from math import inf
from types import TracebackType
from typing import Any
from weakref import WeakKeyDictionary, ref


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


_innermost: ContextVar[Deadline | None] = ContextVar("toolcrib_deadline", default=None)


class Deadline:
    """Stops the step that runs when its seconds have passed, with `error(*fields)`.

    Entered around one await, or around the steps of a stream. `rest()` and `begin()` stand around what the step does
    not wait for, such as the time in which a consumer holds a value: the clock stands, and nothing is stopped. A
    TimeoutError that the body raises itself passes through untouched. Each knows the one around it, also of another
    tool or turn: `stopped_clocks()` lets all of them stand.

    Attributes:
        ends: When it passes, on the clock of the event loop, if it does not stand again.
    """

    __slots__ = (
        "_cancelling",
        "_error",
        "_expired",
        "_fields",
        "_loop",
        "_outer",
        "_parked",
        "_since",
        "_standing",
        "_task",
        "_watch",
        "ends",
    )

    def __init__(self, seconds: float, error: Callable[..., Exception], *fields: Any) -> None:
        self._error, self._fields = error, fields
        self._task: asyncio.Task[Any] | None = None
        self._outer: Deadline | None = None
        self._expired = self._parked = False
        self._standing, self._since = 0, 0.0  # for how many reasons the clock stands, and since when
        self._cancelling = 0
        self._loop = loop = asyncio.get_running_loop()
        latest, watch = _latest
        if latest() is not loop:
            watch = _watch_of(loop)
        self._watch = watch
        self.ends = loop.time() + seconds
        watch.add(self, loop)

    def expire(self) -> None:
        """Stop the step that runs now, or else the next one; a clock that stands is looked at when it goes on."""
        if self._standing:
            self._parked = True
            return
        self._expired = True
        if self._task is not None:
            self._cancelling = self._task.cancelling()
            self._task.cancel()

    def rest(self) -> None:
        """Pause the deadline until `begin`; what runs meanwhile is not stopped."""
        if self._expired:
            self.__exit__(None, None, None)
        self._task = None
        self._leave()
        self._stand()

    def begin(self) -> None:
        """Resume the deadline, in the task that calls this; raises the error when the step before took too long."""
        if self._expired:
            raise self._error(*self._fields)
        self._task = asyncio.current_task(self._loop)
        self._enter()
        if self._standing:
            self._go_on()

    def __enter__(self) -> Deadline:
        task = asyncio.current_task(self._loop)
        if self._expired or task is None:
            raise self._error(*self._fields) if self._expired else RuntimeError("a deadline needs a running task")
        self._task = task
        self._enter()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._leave()
        task, self._task = self._task, None
        if not self._expired or task is None:
            return
        ours = task.uncancel() <= self._cancelling
        if ours and isinstance(error, asyncio.CancelledError):
            raise self._error(*self._fields) from error

    @contextmanager
    def stopped(self) -> Generator[None]:
        """Pause the deadline for the body, as while a person is asked; also in several tasks at once."""
        self._stand()
        try:
            yield
        finally:
            self._go_on()

    def close(self) -> None:
        """Forget the deadline; it cannot pass any more."""
        self._parked = False
        self._watch.open.discard(self)

    # --- inside

    def around(self) -> Generator[Deadline]:
        """Yield this deadline and those that it is entered in, from the inside out."""
        found: Deadline | None = self
        while found is not None:
            yield found
            found = found._outer

    def _enter(self) -> None:
        inner = _innermost.get()
        if inner is None or self not in inner.around():  # a step may begin where the one before has not left
            self._outer = inner
            _innermost.set(self)

    def _leave(self) -> None:
        if _innermost.get() is self:  # a stream may be closed by another task
            _innermost.set(self._outer)

    def _stand(self) -> None:
        if not self._standing:
            self._since = self._loop.time()
        self._standing += 1

    def _go_on(self) -> None:
        self._standing -= 1
        if self._standing:
            return
        self.ends += self._loop.time() - self._since
        if self._parked:
            self._parked = False
            with suppress(RuntimeError):  # the loop is closed; a tool's thread may ask, too
                self._loop.call_soon_threadsafe(self._watch.add, self, self._loop)


def current_deadline() -> Deadline | None:
    """Return the innermost deadline around the current code, or None."""
    return _innermost.get()


@contextmanager
def stopped_clocks(innermost: Deadline | None = None) -> Generator[None]:
    """Pause all deadlines around the current code for the body, as while a person is asked.

    Args:
        innermost: The deadline whose clock stands, with those around it, for code that answers in a task of its own.
    """
    first = _innermost.get() if innermost is None else innermost
    deadlines = [] if first is None else list(first.around())
    for deadline in deadlines:
        deadline._stand()  # pyright: ignore[reportPrivateUsage] -- of this file
    try:
        yield
    finally:
        for deadline in deadlines:
            deadline._go_on()  # pyright: ignore[reportPrivateUsage] -- of this file
