"""Late values of a call: those that come when it has ended, after what its tool reported meanwhile."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine
from typing import Any, cast

from toolcrib.calls import Outcome
from toolcrib.pipeline._call import Call
from toolcrib.pipeline._live_call import LiveCall
from toolcrib.schema import RunContext

__all__ = ["LateValues"]

_END: Any = object()


class LateValues:
    """The values of a call that ended early, whose post hooks need the whole result, or whose tool returns.

    Args:
        made: The admitted call, or its outcome.
        complete: Takes the call to its outcome.
        streaming: Whether the tool streams.
        plain: What a tool returns is its last value, and what a decision hook gave in its place are values, too.

    Attributes:
        outcome: What came of the call, once the values are taken.
    """

    def __init__(
        self,
        made: Call | Outcome,
        complete: Callable[[LiveCall], Coroutine[Any, Any, Outcome]],
        *,
        streaming: bool,
        plain: bool,
    ) -> None:
        self._made, self._complete, self._streaming, self._plain = made, complete, streaming, plain
        self.outcome: Any = None

    async def values(self) -> AsyncGenerator[Any, None]:
        """Yield the values; leaving early stops the tool."""
        made, wanted = self._made, self._plain or self._streaming
        if type(made) is not LiveCall:
            self.outcome, wanted = cast("Outcome", made), self._plain
        elif made.ctx is None or self._streaming:
            self.outcome = await self._complete(made)
        else:
            reports = _Reports(made.ctx, self._complete(made))
            try:
                async for value in reports.values():
                    yield value
                self.outcome = await reports.result()
            finally:
                await reports.stop()
        if wanted and self.outcome.kind == "completed":
            whole: Any = self.outcome.value
            split = self._streaming and isinstance(whole, list)  # a post hook may make one value of them
            values = cast("list[Any]", whole if split else [whole])
            for value in values:
                yield value


class _Reports:
    """What a tool that returns gives to `ctx.report`, while `work` goes on in a task of its own."""

    def __init__(self, ctx: RunContext[Any], work: Coroutine[Any, Any, Outcome]) -> None:
        self._ctx, self._before = ctx, ctx.report
        self._values: asyncio.Queue[Any] = asyncio.Queue()
        self._loop, self._thread = asyncio.get_running_loop(), threading.get_ident()
        ctx.report = self._report
        self._task = asyncio.create_task(work)
        self._task.add_done_callback(lambda _: self._values.put_nowait(_END))

    async def values(self) -> AsyncGenerator[Any, None]:
        """Yield them as they come."""
        while (value := await self._values.get()) is not _END:
            yield value

    async def result(self) -> Outcome:
        """Return what the work came to, after the values; raises what it raised."""
        return await self._task

    async def stop(self) -> None:
        """Stop the work, where it goes on."""
        if not self._task.done():
            self._task.cancel()
            await asyncio.wait({self._task})

    def _report(self, value: Any) -> None:
        if self._before is not None:
            self._before(value)
        if threading.get_ident() == self._thread:
            self._values.put_nowait(value)
        else:  # of a tool that is executed in a thread
            self._loop.call_soon_threadsafe(self._values.put_nowait, value)
