"""What a tool that returns tells while it runs, for those who take a call as a stream."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Coroutine
from typing import Any, Generic, TypeVar

from toolcrib.schema import RunContext

__all__ = ["Reports"]

R = TypeVar("R")
_END: Any = object()


class Reports(Generic[R]):
    """The values that a tool gives to `ctx.report`, while `work` goes on in a task of its own."""

    def __init__(self, ctx: RunContext[Any], work: Coroutine[Any, Any, R]) -> None:
        self._ctx, self._work, self._before = ctx, work, ctx.report
        self._told: asyncio.Queue[Any] = asyncio.Queue()
        self._task: asyncio.Task[R] | None = None

    async def values(self) -> AsyncGenerator[Any, None]:
        """Yield them as they come; leaving early stops the work."""
        self._ctx.report = self._report
        self._task = task = asyncio.create_task(self._work)
        task.add_done_callback(lambda _: self._told.put_nowait(_END))
        try:
            while (value := await self._told.get()) is not _END:
                yield value
        finally:
            if not task.done():
                task.cancel()
                await asyncio.wait({task})

    async def result(self) -> R:
        """Return what the work came to, after the values; raises what it raised."""
        return await (self._work if self._task is None else self._task)

    def _report(self, value: Any) -> None:
        if self._before is not None:
            self._before(value)
        self._told.put_nowait(value)
