"""The time that a program computes, and what it printed: what its host keeps account of beside the conversation."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from toolcrib.sandbox._frames import do_nothing
from toolcrib.sandbox._host_calls import Ended
from toolcrib.sandbox._limit_messages import printed_too_much
from toolcrib.sandbox._output import Kept
from toolcrib.sandbox._protocol import Host, OutputStream, SandboxLimits

__all__ = ["OutputMeter", "Stopwatch"]

_GRACE = 0.05  # seconds: the program's last frame may be here already, and the loop have been busy with other things


class Stopwatch:
    """Counts the seconds that a program computes.

    Args:
        over: Called when it has computed for `most` seconds and goes on.
    """

    __slots__ = ("_is_late", "_left", "_loop", "_over", "_since", "_timer")

    def __init__(self, most: float, over: Callable[[], None]) -> None:
        self._left, self._over = most, over
        self._since: float | None = None
        self._is_late = False
        self._loop = asyncio.get_running_loop()
        self._timer = self._loop.call_later(most, self._look)

    def go(self) -> None:
        """The program computes from now on."""
        if self._since is None:
            self._since = time.monotonic()

    def rest(self) -> None:
        """The program waits from now on."""
        if self._since is not None:
            self._left -= time.monotonic() - self._since
            self._since = None
            if self._left > 0:  # else it would gain time by a call now and then
                self._is_late = False

    def stop(self) -> None:
        """Count no more."""
        self._timer.cancel()
        self._over = do_nothing

    def _look(self) -> None:
        left = self._left if self._since is None else self._left - (time.monotonic() - self._since)
        if self._since is not None and left <= 0:
            if self._is_late:
                self._over()
                return
            self._is_late = True
        self._timer = self._loop.call_later(max(left, _GRACE), self._look)


class OutputMeter:
    """Takes what a program prints, and tells its host what is new.

    Args:
        told: Characters of stdout and stderr that the host has heard when the program ran before.
    """

    def __init__(self, host: Host, limits: SandboxLimits, told: list[int]) -> None:
        self._host, self._limits = host, limits
        self._skipped = {"stdout": told[0], "stderr": told[1]}
        self.out, self.err = Kept(limits.output_kept), Kept(limits.output_kept)

    def hear(self, text: str, stream: OutputStream) -> None:
        """Take text.

        Raises:
            Ended: It is too much.
        """
        kept = self.out if stream == "stdout" else self.err
        kept.add(text)
        if self.out.size + self.err.size > self._limits.output_killed_at:
            raise Ended(printed_too_much(self._limits))
        skipped = self._skipped[stream]
        if skipped:
            self._skipped[stream] = max(skipped - len(text), 0)
            text = text[skipped:]
        if text:
            self._host.output(text, stream)

    @property
    def told(self) -> list[int]:
        """Characters of stdout and stderr so far."""
        return [self.out.size, self.err.size]
