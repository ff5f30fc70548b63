"""Size limit of HTTP responses of MCP servers; the SDK limits the events of a stream, and not whole bodies."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from typing import Any

import httpx2

__all__ = ["PLAIN", "limited_responses"]

PLAIN = {"accept-encoding": "identity"}
"""Headers of requests: a small packed response could be of any size when it is unpacked."""


class _TooLongError(httpx2.StreamError):
    """A response is longer than the limit, or packed."""


def limited_responses(server: str, most: int) -> Callable[[httpx2.Response], Awaitable[None]]:
    """Return a hook for the responses of a client, which are read up to so many bytes."""

    async def bound(response: httpx2.Response) -> None:
        packed = response.headers.get("content-encoding", "identity").strip().lower() != "identity"
        if packed:
            response.stream = _Refused(
                response.stream, f"the server `{server}` packed a response that was requested unpacked"
            )
        elif not response.headers.get("content-type", "").lower().startswith("text/event-stream"):
            problem = f"the server `{server}` sent a response of more than {most} bytes (max_message)"
            response.stream = _Counted(response.stream, most, problem)

    return bound


class _Refused(httpx2.AsyncByteStream):
    """The body of a response, which is not read."""

    def __init__(self, stream: Any, problem: str) -> None:
        self._stream, self._problem = stream, problem

    def __aiter__(self) -> AsyncIterator[bytes]:
        raise _TooLongError(self._problem)

    async def aclose(self) -> None:
        await self._stream.aclose()


class _Counted(_Refused):
    """The body of a response, up to the limit."""

    def __init__(self, stream: Any, most: int, problem: str) -> None:
        super().__init__(stream, problem)
        self._most = most

    async def __aiter__(self) -> AsyncGenerator[bytes]:
        left = self._most
        async for chunk in self._stream:
            left -= len(chunk)
            if left < 0:
                raise _TooLongError(self._problem)
            yield chunk
