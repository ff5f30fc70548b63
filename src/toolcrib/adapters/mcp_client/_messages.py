"""Messages of a server as bytes: they are repaired, and an answer that cannot be read ends its request."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import Callable
from typing import Any, Final, TypeVar, cast

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
        return _valid(text)
    except ValueError as error:
        return _unreadable(text, error)


def _valid(text: bytes) -> Message:
    """Return a message; a request whose id is neither a text nor an integer is answered by the text of that id."""
    message = types.jsonrpc_message_adapter.validate_json(text, by_name=False)
    if isinstance(message, types.JSONRPCNotification) and not message.method.startswith("notifications/"):
        read: dict[str, Any] = json.loads(text)
        if "id" in read:  # the SDK takes it for a notification, and the server would wait
            id = json.dumps(read["id"])[:_MOST_OF_ID]
            return types.JSONRPCRequest(jsonrpc="2.0", id=id, method=_UNREADABLE_REQUEST)
    return message


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
