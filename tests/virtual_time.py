"""Event loop whose time passes only while nothing is to be done: a pause takes no time, and a busy machine takes none.

For tests of deadlines, in which what is in time and what is late has to be the same on any machine. The time stands
while a thread of the loop's own executor works. Nothing of such a test may happen in another thread or process: the
loop does not wait for them.
"""

from __future__ import annotations

import asyncio
import functools
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec

__all__ = ["VirtualTimeLoop", "in_virtual_time"]

P = ParamSpec("P")


class _Selector(selectors.SelectSelector):
    """Moves the time of its loop on by the seconds for which the loop would wait."""

    now = 0.0
    threads = 0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None or (timeout > 0 and self.threads):
            return super().select(None)
        found = super().select(0)
        if not found:
            self.now += max(0.0, timeout)
        return found


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """An event loop with a time of its own."""

    def __init__(self) -> None:
        self._virtual = _Selector()
        super().__init__(self._virtual)

    def time(self) -> float:
        """Return the seconds that have passed on this loop."""
        return self._virtual.now

    def run_in_executor(self, executor: Any, func: Any, *args: Any) -> asyncio.Future[Any]:
        """Run a function in a thread; the time stands until it has ended."""
        ended = super().run_in_executor(executor, func, *args)
        self._virtual.threads += 1
        ended.add_done_callback(self._thread_ended)
        return ended

    def _thread_ended(self, ended: asyncio.Future[Any]) -> None:
        self._virtual.threads -= 1


def in_virtual_time(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """Have a test run on an event loop with a time of its own."""

    @functools.wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
            runner.run(test(*args, **kwargs))

    return run
