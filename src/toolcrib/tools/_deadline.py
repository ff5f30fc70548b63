"""A deadline for one execution, cheap enough to stand around every step of a stream."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Any

from toolcrib.errors import ToolTimeoutError

__all__ = ["Deadline"]


class Deadline:
    """Stops the step that runs when `seconds` have passed since it was made, as a `ToolTimeoutError`.

    Enter it around each step (one await, or one `anext` of a stream). Between steps nothing is cancelled: the next
    step fails instead. A TimeoutError that the tool raises itself passes through untouched.
    """

    __slots__ = ("_cancelling", "_expired", "_goes_on", "_seconds", "_task", "_timer", "_tool")

    def __init__(self, tool: str, seconds: float, goes_on: bool = False) -> None:
        self._tool, self._seconds, self._goes_on = tool, seconds, goes_on
        self._task: asyncio.Task[Any] | None = None
        self._expired = False
        self._cancelling = 0
        loop = asyncio.get_running_loop()
        self._timer = loop.call_at(loop.time() + seconds, self._expire)

    def _expire(self) -> None:
        self._expired = True
        if self._task is not None:
            self._task.cancel()

    def __enter__(self) -> None:
        if self._expired:
            raise self.error()
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("a deadline needs a running task")
        self._cancelling = task.cancelling()
        self._task = task

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        task, self._task = self._task, None
        if not self._expired or task is None:
            return
        ours = task.uncancel() <= self._cancelling
        if ours and isinstance(error, asyncio.CancelledError):
            raise self.error() from error

    def error(self) -> ToolTimeoutError:
        """Return the error that says which tool did not finish, and in what time."""
        return ToolTimeoutError(self._tool, self._seconds, self._goes_on)

    def close(self) -> None:
        """Stop the clock."""
        self._timer.cancel()
