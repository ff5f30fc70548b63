"""Entries of a toolset that a client of a run is shown; calls whose values are reported, or results passed on."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import Any

from toolcrib.calls import Denial, Grant, Outcome, Suspended, ToolCall, Yielded
from toolcrib.errors import exception_of
from toolcrib.pipeline import Pipeline, Run
from toolcrib.schema import RunContext
from toolcrib.toolsets import ToolEntry, Toolset, is_available

_log = logging.getLogger("toolcrib.adapters")


async def shown_entries(toolset: Toolset, run: Run, *, broken: bool = True) -> list[ToolEntry]:
    """Return the tools that a client is shown now, those that it found in the run last.

    Whether one may be called is asked again by the pipeline.

    Args:
        broken: With the tools whose condition fails: a call of one is refused with the error, and that is recorded.
    """
    entries, ctx = toolset.entries, run.context()
    allowed = toolset.offered() if run.available is None else run.available
    names = [name for name in entries if name in allowed]
    found = [name for name in run.revealed if name in entries and name not in names]
    return [entries[name] for name in (*names, *found) if await is_shown(entries[name], ctx, broken=broken)]


async def is_shown(entry: ToolEntry, ctx: RunContext[Any], *, broken: bool = True) -> bool:
    """Return whether a tool is available now; `broken` when its condition fails."""
    try:
        return await is_available(entry, ctx) or not entry.skip_unavailable
    except BaseException as error:  # the condition is the user's code
        cause = exception_of(error)
        _log.error("the condition of %s failed; a call of it will be refused", entry.name, exc_info=cause)
        return broken


async def run_reporting(
    pipeline: Pipeline,
    call: ToolCall | Suspended,
    run: Run,
    report: Callable[[Any], Awaitable[object]],
    *,
    grant: Grant | Denial | None = None,
) -> Outcome:
    """Run a call, and return its outcome; `report` receives the values that its tool yields or reports."""
    entry = pipeline.toolset.entries.get(call.tool if isinstance(call, Suspended) else call.name)
    if entry is None or not (entry.tool.is_watched or entry.tool.spec.injected):
        return await pipeline.run(call, run, grant=grant)  # without the task that a listener needs
    async with aclosing(pipeline.stream(call, run, grant=grant)) as items:
        async for item in items:
            if not isinstance(item, Yielded):
                return item
            await report(item.value)
    raise RuntimeError("the pipeline gave no outcome")


class OriginalResults:
    """The results of the calls of one request as other servers sent them, beside the values that were made of them.

    An adapter puts it in `Run.provide` under its class; a tool of another server fills it in.
    """

    __slots__ = ("_kept",)

    def __init__(self) -> None:
        self._kept: dict[str, tuple[Any, Any]] = {}

    def keep(self, call_id: str, value: Any, original: Any) -> None:
        """Keep the result that the value of a call was made from."""
        self._kept[call_id] = value, original

    def of(self, call_id: str, value: Any) -> Any:
        """Return the result that a call's value was delivered of; None where it is another value by now."""
        delivered, original = self._kept.get(call_id, (None, None))
        return original if delivered is value else None
