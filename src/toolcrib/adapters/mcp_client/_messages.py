"""Messages of a server as bytes, and its responses over HTTP: repaired, and limited in size.

An answer that cannot be read ends its request. Of HTTP, the SDK limits the events of a stream alone.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import secrets
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from http import HTTPStatus
from typing import Any, Final, TypeVar, cast

import httpx2
import mcp_types as types
from pydantic import ValidationError

from toolcrib._json_rpc import id_of, is_answer, with_whole_id
from toolcrib._json_writer import repeated_key, valid_json

T = TypeVar("T")
_log = logging.getLogger("toolcrib.mcp")

UNREADABLE: Final = ("Failed to parse JSON response", "Failed to parse SSE message", "Failed to parse a message")
"""Prefixes of errors for an answer that cannot be read: those of the SDK over HTTP, and that of `read_line`."""

_UNREADABLE_REQUEST: Final = "a request that cannot be read"  # as a method, which no session knows
_NUMBER: Final = re.compile(r"[+-]?\d{1,10}(\.0*)?", re.ASCII)
_LARGE: Final = 1 << 18  # bytes of a message that are repaired and read on the event loop
_MOST_KEYS: Final = 10  # of one server that are logged
_MOST_OF_ID: Final = 200  # characters of an id
Message = types.JSONRPCMessage


async def off_loop(work: Callable[[bytes], T], text: bytes) -> T:
    """Return the result of a function of a message; for a large one it runs in a worker thread."""
    return await asyncio.to_thread(work, text) if len(text) > _LARGE else work(text)


def repair(message: bytes) -> bytes:
    """Return a message with U+FFFD for what is not a character, and integers for its id and the code of an error."""
    text = with_whole_id(valid_json(message))
    if b'"error"' in text and b'"code"' in text:
        text = _with_number_as_code(text)
    return text


def _with_number_as_code(text: bytes) -> bytes:
    try:
        read: Any = json.loads(text)
    except (ValueError, RecursionError):
        return text
    error: Any = cast("dict[str, Any]", read).get("error") if isinstance(read, dict) else None
    if not isinstance(error, dict) or "method" in read:
        return text
    fields = cast("dict[str, Any]", error)
    code, stated = fields.get("code"), fields.get("message")
    if type(code) is int and isinstance(stated, str):
        return text
    words = (
        stated if isinstance(stated, str) else str(code) if stated is None else json.dumps(stated, ensure_ascii=False)
    )
    message: dict[str, Any] = {**read, "error": {**fields, "code": _code(code), "message": words}}
    return json.dumps({name: message[name] for name in ("jsonrpc", "id", "error") if name in message}).encode()


def _code(value: object) -> int:
    """Return the code of an error that is written as `-32601`, `-32601.0` or `"-32601"`; else that of any error."""
    is_number = not isinstance(value, bool) and _NUMBER.fullmatch(str(value))
    return int(float(str(value))) if is_number else types.INTERNAL_ERROR


class RepeatedKeys:
    """Log of the keys that a server sends twice in one object: the last value counts, as for each reader of JSON."""

    def __init__(self, server: str) -> None:
        self._server, self._known = server, set[str]()

    def check(self, text: bytes) -> None:
        """Log a key that a message has twice, once."""
        key = repeated_key(text) if len(self._known) < _MOST_KEYS else ""
        if key and key not in self._known:
            self._known.add(key)
            _log.warning(
                "%s: it sent the key `%s` more than once in one object; the last value counts", self._server, key
            )


def read_line(line: bytes, repeated: RepeatedKeys) -> list[Message | ValueError]:
    """Return the message of a line, or those of a list; an error for one that cannot be read and is not an answer."""
    text = repair(line)
    repeated.check(text)
    parts = _parts_of(text)
    return [_message_of(part) for part in ([text] if parts is None else parts)]


def _parts_of(text: bytes) -> list[bytes] | None:
    """Return the messages of a list, which servers of some versions may send, each as text; None for another text."""
    if not text.lstrip().startswith(b"["):
        return None
    try:
        return [json.dumps(part).encode() for part in json.loads(text)]
    except (ValueError, RecursionError):
        return None


def _message_of(text: bytes) -> Message | ValueError:
    try:
        message = types.jsonrpc_message_adapter.validate_json(text, by_name=False)
        if isinstance(message, types.JSONRPCNotification) and not message.method.startswith("notifications/"):
            read: dict[str, Any] = json.loads(text)
            if "id" in read:  # the SDK takes it for a notification, and the server would wait
                id = json.dumps(read["id"])[:_MOST_OF_ID]
                return types.JSONRPCRequest(jsonrpc="2.0", id=id, method=_UNREADABLE_REQUEST)
        return message
    except ValueError as error:
        return _unreadable(text, error)


def _unreadable(text: bytes, error: ValueError) -> Message | ValueError:
    """Return a message in place of one that cannot be read; for another text the reason.

    It is the error that ends the request of an answer, or a request that the session answers with an error.
    """
    number = id_of(text) if b'"jsonrpc"' in text else None
    if number is not None and b'"method"' in text:
        return types.JSONRPCRequest(jsonrpc="2.0", id=number, method=_UNREADABLE_REQUEST)
    if number is None or not is_answer(text):
        return error
    reason = (
        error.errors(include_url=False, include_input=False)[0]["msg"] if isinstance(error, ValidationError) else error
    )
    problem = types.ErrorData(code=types.PARSE_ERROR, message=f"{UNREADABLE[-1]}: {reason}")
    return types.JSONRPCError(jsonrpc="2.0", id=number, error=problem)


def readable(text: bytes) -> list[bytes]:
    """Return the messages in a text, each as text: those of a list, and what stands for an unreadable request."""
    parts = _parts_of(text) or [text]
    messages = [_message_of(part) for part in parts]
    return [
        message.model_dump_json().encode()
        if isinstance(message, types.JSONRPCRequest) and message.method == _UNREADABLE_REQUEST
        else part
        for part, message in zip(parts, messages, strict=True)
    ]


def may_answer(text: bytes, request: bytes) -> bool:
    """Return whether a text is a message beside the answer to a request, or may be meant as that answer.

    It is neither where it answers another request, or cannot be read and does not look like an answer.
    """
    asked = types.jsonrpc_message_adapter.validate_json(request)
    try:
        message = types.jsonrpc_message_adapter.validate_json(text, by_name=False)
    except ValueError as error:
        unreadable = _unreadable(text, error)
        if isinstance(unreadable, ValueError):
            return is_answer(text)
        message = unreadable
    if isinstance(message, types.JSONRPCError) and message.id is None:
        return True
    is_an_answer = isinstance(message, types.JSONRPCError | types.JSONRPCResponse)
    return not is_an_answer or str(message.id) == str(getattr(asked, "id", None))


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
        rest = self._most
        async for chunk in self._stream:
            rest -= len(chunk)
            if rest < 0:
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
            yield body if _error_message_of(body) is not None else _refusal(self._status)


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
    if (message := _error_message_of(body)) is None:
        return status == 404
    return "session" in message.lower() if status == 404 else _NO_SESSION.fullmatch(message.strip()) is not None


def _error_message_of(body: bytes) -> str | None:
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
