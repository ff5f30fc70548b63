"""CallQueue: the calls of a program that wait to be begun, so that those of one program keep no other waiting."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(slots=True, eq=False)
class QueuedCall:
    """A call that waits to be begun, by calling `begin`; None once it was begun or removed."""

    begin: Callable[[], None] | None
    is_urgent: bool


def _room() -> bool:
    return True


def _no_room() -> bool:
    return False


class CallQueue:
    """Begins calls in the order they came: so many at a time, and one in a turn of the event loop.

    A call that is begun computes at once until it waits for something, and 4,000 of them in one turn would keep the
    event loop, and with it every other program, for most of a second.

    Args:
        most: The most calls that are begun and have not released their place.
        has_room: Returns whether calls that are not urgent may begin now.
    """

    def __init__(self, most: int, has_room: Callable[[], bool] | None = None) -> None:
        self._free, self._has_room = most, has_room or _room
        self._waiting: deque[QueuedCall] = deque()
        self._loop = asyncio.get_running_loop()
        self._turn: asyncio.Handle | None = None  # in which no other call begins

    def add(self, begin: Callable[[], None], *, urgent: bool = True) -> QueuedCall:
        """Begin a call: at once, or when its turn comes; it has a place from then on."""
        call = QueuedCall(begin, urgent)
        self._waiting.append(call)
        if self._turn is None:
            self._begin_next()
        return call

    async def place(self) -> None:
        """Wait for a place, behind the calls that wait already."""
        granted: asyncio.Future[None] = self._loop.create_future()
        call = self.add(lambda: granted.set_result(None))
        try:
            await granted
        except asyncio.CancelledError:
            if not self.remove(call):
                self.release()
            raise

    def remove(self, call: QueuedCall) -> bool:
        """Remove a call; return whether it was not begun."""
        was_waiting, call.begin = call.begin is not None, None
        return was_waiting

    def release(self) -> None:
        """Release the place of a call that has ended, or waits for its program."""
        self._free += 1
        self.look()

    def look(self) -> None:
        """Begin the next call, in the next turn, if there is room for it now."""
        if self._waiting and self._turn is None:
            self._turn = self._loop.call_soon(self._begin_next)

    def close(self) -> None:
        """Begin no further call, and refer to the owner no more."""
        self._has_room = _no_room
        self._waiting.clear()
        if self._turn is not None:
            self._turn.cancel()

    def _begin_next(self) -> None:
        self._turn = None
        call = self._next() if self._free else None
        if call is not None and call.begin is not None:
            begin, call.begin = call.begin, None
            self._free -= 1
            self._turn = self._loop.call_soon(self._begin_next)
            begin()

    def _next(self) -> QueuedCall | None:
        """Return the first call that was not removed and may begin, and remove it."""
        while self._waiting and self._waiting[0].begin is None:
            self._waiting.popleft()
        if not self._waiting or self._has_room():
            return self._waiting.popleft() if self._waiting else None
        urgent = next((call for call in self._waiting if call.is_urgent and call.begin is not None), None)
        if urgent is not None:
            self._waiting.remove(urgent)
        return urgent
