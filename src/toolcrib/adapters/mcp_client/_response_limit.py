"""HTTP responses of MCP servers: repaired, and limited in size, as the SDK limits the events of a stream alone."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from typing import Any

import httpx2

from toolcrib.adapters.mcp_client._messages import off_loop, repair

__all__ = ["PLAIN", "limited_responses"]

PLAIN = {"accept-encoding": "identity"}
"""Headers of requests: a small packed response could be of any size when it is unpacked."""
_LINE_ENDS = re.compile(rb"(?<=[\r\n])")


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
            return
        problem = f"the server `{server}` sent a response of more than {most} bytes (max_message)"
        kind = response.headers.get("content-type", "").lower()
        is_json, is_stream = kind.startswith("application/json"), kind.startswith("text/event-stream")
        body = _Events if is_stream else _Message if is_json else _Counted
        response.stream = body(response.stream, most, problem)

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


class _Message(_Counted):
    """The body of a response that is one message, repaired."""

    async def __aiter__(self) -> AsyncGenerator[bytes]:
        yield await off_loop(repair, b"".join([chunk async for chunk in super().__aiter__()]))


class _Events(_Counted):
    """The body of a response that is a stream of events, each repaired; the SDK limits their size."""

    async def __aiter__(self) -> AsyncGenerator[bytes]:
        begun, size = list[bytes](), 0  # the parts of a line without its end
        async for chunk in self._stream:
            *lines, rest = _LINE_ENDS.split(chunk)
            if lines:
                lines[0] = b"".join([*begun, lines[0]])
                begun, size = [], 0
                yield b"".join([await off_loop(_repaired_line, line) for line in lines])
            begun.append(rest)
            size += len(rest)
            if size > self._most:
                yield b"".join(begun)
                begun, size = [], 0
        if begun:
            yield await off_loop(_repaired_line, b"".join(begun))


def _repaired_line(line: bytes) -> bytes:
    if not line.startswith(b"data:"):
        return line
    text = line.rstrip(b"\r\n")
    return b"data:" + repair(text[5:]) + line[len(text) :]
