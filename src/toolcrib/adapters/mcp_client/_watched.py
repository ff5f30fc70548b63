"""A transport whose end is noticed: what a process that dies leaves behind is a stream without a word."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from types import TracebackType
from typing import Any, Self

__all__ = ["watched"]


@asynccontextmanager
async def watched(transport: AbstractAsyncContextManager[Any], ended: Callable[[], None]) -> AsyncGenerator[Any]:
    """Give a transport's streams; `ended` is called when nothing will be read from it any more."""
    async with transport as (reading, writing):
        yield _Reading(reading, ended), writing


class _Reading:
    """A stream of messages that tells when it ends."""

    def __init__(self, stream: Any, ended: Callable[[], None]) -> None:
        self._stream, self._ended = stream, ended

    @property
    def last_context(self) -> Any:
        return getattr(self._stream, "last_context", None)

    async def receive(self) -> Any:
        return await self._stream.receive()

    async def aclose(self) -> None:
        await self._stream.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        try:
            return await self._stream.__anext__()
        except StopAsyncIteration:
            self._ended()
            raise

    async def __aenter__(self) -> Self:
        await self._stream.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> Any:
        return await self._stream.__aexit__(kind, error, trace)
