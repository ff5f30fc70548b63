"""Clock that goes on when a test says so."""

from __future__ import annotations

import asyncio
import time

from toolcrib._numbers import require_seconds


class FakeClock:
    """A clock of one event loop: it goes on when `advance` is called, and by itself at `speed`.

    Args:
        speed: The seconds that pass on it with each second; 0 for a clock that stands until it is advanced.

    Attributes:
        waiting: The times until which something sleeps now.
    """

    def __init__(self, speed: float = 0.0) -> None:
        require_seconds("FakeClock", "speed", speed, from_zero=True)
        self._speed, self._began, self._advanced = speed, time.monotonic(), 0.0
        self._changed = asyncio.Event()
        self.waiting: list[float] = []

    def monotonic(self) -> float:
        """Return the seconds since the clock was made."""
        return self._advanced + (time.monotonic() - self._began) * self._speed

    def advance(self, seconds: float) -> None:
        """Advance the time by this number of seconds; what sleeps until then goes on."""
        self._advanced += seconds
        self._changed.set()
        self._changed = asyncio.Event()

    def skip(self) -> bool:
        """Advance to the earliest time until which something sleeps; return whether anything does."""
        if self.waiting:
            self.advance(max(0.0, min(self.waiting) - self.monotonic()))
        return bool(self.waiting)

    async def sleep(self, seconds: float) -> None:
        """Return after this number of seconds of the clock."""
        until = self.monotonic() + seconds
        self.waiting.append(until)
        try:
            while (remaining := until - self.monotonic()) > 0:
                await self._pass(remaining)
            await asyncio.sleep(0)
        finally:
            self.waiting.remove(until)

    async def _pass(self, seconds: float) -> None:
        """Return when the clock is advanced, or has gone on by this number of seconds."""
        try:
            async with asyncio.timeout(seconds / self._speed if self._speed else None):
                await self._changed.wait()
        except TimeoutError:
            pass
