"""HTTP responses of MCP servers: repaired, and limited in size, as the SDK limits the events of a stream alone."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from http import HTTPStatus
from typing import Any

import httpx2
import mcp_types as types

from toolcrib._json_rpc import is_answer
from toolcrib.adapters.mcp_client._messages import RepeatedKeys, may_answer, off_loop, readable, repair

PLAIN = {"accept-encoding": "identity"}
"""Headers of requests: a small packed response could be of any size when it is unpacked."""
UNKNOWN_SESSION = f"unknown session {secrets.token_hex(16)}"
"""Message of the error for a request that the server refused, unread, as it does not know the session.

No server knows it: one that could send such an error after a call would have the call made twice.
"""
REFUSED = f"refused {secrets.token_hex(16)}"
"""Data of the error for a request of which nothing ran, by the status of the response; no server knows it."""
_NOTHING_RAN = {*range(401, 408), *range(410, 416), 417, 421, 425, 426, 428, 429}
"""Statuses of HTTP by which a server has not begun what was asked for: of others, such as 400 and 409, it may have."""
_IS_CONTINUED = re.compile(rb'"(inputResponses|requestState)"|"method": *"tasks/')  # parts of the call have run
_LINE_ENDS = re.compile(rb"(?<=\n)|(?<=\r)(?=[^\n])")
_SHORTEST, _LONGEST = 100, 60_000  # milliseconds until a stream that ended is opened again, whatever the server says
_SESSION_ID = "mcp-session-id"
_NO_SESSION = re.compile(
    r"(bad request: )?(session( id)? (not found|terminated|expired)|(no valid|invalid|unknown|missing) session( id)?"
    r"( provided)?)\.?",
    re.IGNORECASE,
)
"""The whole message of servers that answer 400 for an unknown session; the protocol wants 404."""


class _TooLongError(httpx2.StreamError):
    """A response is longer than the limit, or packed."""


def limited_responses(server: str, most: int) -> Callable[[httpx2.Response], Awaitable[None]]:
    """Return a hook for the responses of a client, which are read up to so many bytes."""
    repeated = RepeatedKeys(server)

    async def bound(response: httpx2.Response) -> None:
        packed = response.headers.get("content-encoding", "identity").strip().lower() != "identity"
        if packed:
            response.stream = _Refused(
                response.stream, f"the server `{server}` packed a response that was requested unpacked"
            )
            return
        problem = f"the server `{server}` sent a response of more than {most} bytes (max_message)"
        has_session = response.status_code in (400, 404) and _SESSION_ID in response.request.headers
        if has_session or _ran_not(response):
            response.headers["content-type"] = "application/json"  # of other responses the SDK does not read the body
            response.stream = _Refusal(response.stream, most, problem, response.status_code, has_session=has_session)
            return
        kind = response.headers.get("content-type", "").lower()
        is_json, is_stream = kind.startswith("application/json"), kind.startswith("text/event-stream")
        if is_stream:
            response.stream = _Events(response.stream, most, problem, response.request, repeated)
            return
        if is_json:
            response.stream = _Message(response.stream, most, problem, response.request, repeated)
        else:
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


class _Messages(_Counted):
    """The body of a response, of which some messages are wanted: no answers to other requests than its own."""

    def __init__(self, stream: Any, most: int, problem: str, request: httpx2.Request, repeated: RepeatedKeys) -> None:
        super().__init__(stream, most, problem)
        self._asked = request.content if request.method == "POST" else b""
        self._repeated = repeated

    def _wanted(self, text: bytes) -> list[bytes]:
        self._repeated.check(text)
        return [part for part in readable(text) if not self._asked or may_answer(part, self._asked)]


class _Message(_Messages):
    """The body of a response that is one message, repaired; of a list of them the one that answers its request."""

    async def __aiter__(self) -> AsyncGenerator[bytes]:
        yield await off_loop(self._repaired, b"".join([chunk async for chunk in super().__aiter__()]))

    def _repaired(self, body: bytes) -> bytes:
        text = repair(body)
        self._repeated.check(text)
        if not text.lstrip().startswith(b"["):
            return text
        return next((part for part in self._wanted(text) if is_answer(part)), text)


class _Refusal(_Counted):
    """The body of a response to a request of which nothing ran, or whose session the server may not know."""

    def __init__(self, stream: Any, most: int, problem: str, status: int, *, has_session: bool) -> None:
        super().__init__(stream, most, problem)
        self._status, self._has_session = status, has_session

    async def __aiter__(self) -> AsyncGenerator[bytes]:
        body = await off_loop(repair, b"".join([chunk async for chunk in super().__aiter__()]))
        if self._has_session:
            yield _UNKNOWN if _is_unknown_session(self._status, body) else body
        else:
            yield body if _message_of(body) is not None else _refusal(self._status)


def _ran_not(response: httpx2.Response) -> bool:
    """Return whether nothing of a request for MCP ran, by the status of its response."""
    request = response.request
    is_message = request.method == "POST" and "text/event-stream" in request.headers.get("accept", "")
    return is_message and response.status_code in _NOTHING_RAN and _IS_CONTINUED.search(request.content) is None


def _refusal(status: int) -> bytes:
    """Return the error for a request of which nothing ran, with the code that the SDK has for the status."""
    code = types.METHOD_NOT_FOUND if status == 404 else types.INTERNAL_ERROR
    error = {"code": code, "message": f"{status} {HTTPStatus(status).phrase}", "data": REFUSED}
    return json.dumps({"jsonrpc": "2.0", "id": None, "error": error}).encode()


_UNKNOWN = json.dumps(
    {"jsonrpc": "2.0", "id": None, "error": {"code": types.INVALID_REQUEST, "message": UNKNOWN_SESSION}}
).encode()


def _is_unknown_session(status: int, body: bytes) -> bool:
    if (message := _message_of(body)) is None:
        return status == 404
    return "session" in message.lower() if status == 404 else _NO_SESSION.fullmatch(message.strip()) is not None


def _message_of(body: bytes) -> str | None:
    """Return the message of an error; None for another body."""
    try:
        return types.JSONRPCError.model_validate_json(body, by_name=False).error.message
    except ValueError:
        return None


class _Events(_Messages):
    """The body of a response that is a stream of events, each repaired; the SDK limits their size.

    The SDK takes for the answer whatever is not a notification or a request. So an event that cannot be the answer to
    the request has no data. One without data, with an id, tells where the stream goes on after it broke off.
    """

    async def __aiter__(self) -> AsyncGenerator[bytes]:
        event, size = list[bytes](), 0  # the lines of an event without its end
        async for line in self._lines():
            event.append(line)
            size += len(line)
            if size > self._most or not line.rstrip(b"\r\n"):
                yield await off_loop(self._wanted_of, b"".join(event))
                event, size = [], 0
        yield b"".join(event)

    async def _lines(self) -> AsyncGenerator[bytes]:
        begun, size = list[bytes](), 0  # the parts of a line without its end
        async for chunk in self._stream:
            if begun and begun[-1].endswith(b"\r"):  # of which the line feed may be in this chunk
                chunk = begun.pop() + chunk
            *lines, rest = _LINE_ENDS.split(chunk)
            if lines:
                lines[0] = b"".join([*begun, lines[0]])
                begun, size = [], 0
                for line in lines:
                    yield await off_loop(_repaired_line, line)
            begun.append(rest)
            size += len(rest)
            if size > self._most:
                yield b"".join(begun)
                begun, size = [], 0
        if begun:
            yield await off_loop(_repaired_line, b"".join(begun))

    def _wanted_of(self, event: bytes) -> bytes:
        """Return an event with what is wanted of its data, an event for each message; its id and pause hold."""
        lines = event.splitlines(keepends=True)
        data = b"\n".join(line[5:].strip() for line in lines if line.startswith(b"data:"))
        wanted = self._wanted(data) if data else []
        if not data or wanted == [data]:
            return event
        others = [line for line in lines if not line.startswith(b"data:")]
        data_lines = [
            b"data: " + part + b"\n" for part in sorted(wanted, key=is_answer)
        ]  # after an answer nothing is read
        return b"".join(b"".join([*others[:-1], data_line, *others[-1:]]) for data_line in data_lines or [b""])


def _repaired_line(line: bytes) -> bytes:
    """Return a line with its data repaired, or with a pause until the next try that is neither none nor endless."""
    text = line.rstrip(b"\r\n")
    if line.startswith(b"retry:"):
        pause = text[6:].strip()
        milliseconds = int(pause[:10]) if pause.isdigit() else _SHORTEST  # the client's reader takes less than 0, too
        return b"retry: %d" % min(max(milliseconds, _SHORTEST), _LONGEST) + line[len(text) :]
    if not line.startswith(b"data:"):
        return line
    return b"data: " + repair(text[5:].removeprefix(b" ")) + line[len(text) :]
