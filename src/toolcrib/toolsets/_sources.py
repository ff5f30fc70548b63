"""Sources of tools that are known only when a run opens, and what hears of a change of them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import Any, Protocol, runtime_checkable

from toolcrib.schema import RunContext
from toolcrib.toolsets._entry import ToolEntry


@runtime_checkable
class ToolSource(Protocol):
    """A member whose tools are known only when a run opens: an MCP server, another framework's toolset."""

    def open_source(self, ctx: RunContext[Any]) -> AbstractAsyncContextManager[Iterable[ToolEntry]]:
        """Return a context manager that gives the tools while it is open: a toolset."""
        ...


@runtime_checkable
class ConcurrentSource(ToolSource, Protocol):
    """A source that is opened at the same time as others: opened in one task, it may be closed in another."""

    is_concurrent: bool


class RenewalListener(Protocol):
    """An object that was made of a toolset's tools, such as a pipeline."""

    def renewed(self) -> None:
        """Forget the tools: they are others now."""
        ...


async def open_sources(
    stack: AsyncExitStack, sources: Sequence[ToolSource], ctx: RunContext[Any]
) -> list[Iterable[ToolEntry]]:
    """Open sources: those that can be together, each other one by itself and in this task."""
    contexts = [source.open_source(ctx) for source in sources]
    tasks = {
        at: asyncio.ensure_future(stack.enter_async_context(contexts[at]))
        for at, source in enumerate(sources)
        if isinstance(source, ConcurrentSource)
    }
    try:
        return [await (tasks.get(at) or stack.enter_async_context(context)) for at, context in enumerate(contexts)]
    except BaseException:
        for task in tasks.values():
            task.cancel()
        await asyncio.gather(*tasks.values(), return_exceptions=True)
        raise
