"""Messages of clients as text: what the SDK would not take, or not as it was meant, is repaired or refused."""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import AsyncIterator, Generator, Iterable, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, BinaryIO, Final, cast

import mcp_types as types
from anyio import AsyncFile, BrokenResourceError, ClosedResourceError
from mcp.shared.message import SessionMessage
from mcp_types import INVALID_REQUEST, PARSE_ERROR
from pydantic import ValidationError
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from toolcrib._json_rpc import id_of, is_answer, with_whole_id
from toolcrib._json_writer import RepeatedKeyError, read_json, unique_keys, valid_json, valid_text
from toolcrib.adapters.mcp_server._replies import clean

if sys.platform == "win32":
    from mcp.os.win32.utilities import rebind_std_handle_to_fd
else:
    import fcntl

_log = logging.getLogger("toolcrib.adapters")

refused_arguments: Final = ContextVar[str | None]("refused_arguments", default=None)
"""The arguments of the call that is handled now, as JSON text, where they have a key twice or half a character."""


@dataclass(frozen=True, slots=True)
class Checked:
    """A message of a client, checked for what no reader would take as it was meant.

    Attributes:
        text: The message to pass on; None for one that no reader may see.
        refusals: The errors that answer a message which is not taken; none of a notification and an answer.
        arguments: The arguments of a call as JSON text, where they alone are wrong: the pipeline refuses them.
    """

    text: bytes | None
    refusals: tuple[types.JSONRPCError, ...] = ()
    arguments: str | None = None


class _Written(dict[str, Any]):
    """An object of JSON text with each of its pairs, which `json.dumps` writes again as they were."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self.pairs = pairs

    def items(self) -> Any:
        return self.pairs


def check_message(text: bytes) -> Checked:
    """Parse and check a message.

    One that cannot be read has refusals and is passed on: over HTTP the SDK answers it by itself.
    """
    valid = with_whole_id(valid_json(text))
    try:
        read: Any = json.loads(valid, object_pairs_hook=unique_keys, parse_int=str, parse_float=str, strict=False)
        message = types.jsonrpc_message_adapter.validate_json(valid, by_name=False)
    except RepeatedKeyError as error:
        return _refuse_repeated(valid, error)
    except (ValueError, RecursionError) as error:
        return _refuse_unreadable(valid, error)
    if isinstance(message, types.JSONRPCNotification):
        has_odd_id = "id" in read and not message.method.startswith("notifications/")
        refusal = _error(None, "its id is neither a text nor an integer")
        return Checked(None, (refusal,)) if has_odd_id else Checked(valid)
    is_altered = isinstance(message, types.JSONRPCRequest) and valid != text
    return Checked(valid, arguments=_odd_arguments(text) if is_altered else None)


def _odd_arguments(text: bytes) -> str | None:
    """Return the arguments of a call as JSON text, where they have half a character; None for another request."""
    request: dict[str, Any] = json.loads(text.decode("utf-8-sig", "surrogateescape"))
    if request["method"] != "tools/call":
        return None
    params: dict[str, Any] = request.get("params") or {}
    written = json.dumps(params.get("arguments"), ensure_ascii=False)
    return None if valid_text(written) == written else written


def _refuse_repeated(text: bytes, error: RepeatedKeyError) -> Checked:
    message: Any = None
    arguments: str | None = None
    try:
        message = json.loads(text, object_pairs_hook=_Written, strict=False)
        arguments = _repeated_arguments_in(message)
    except RepeatedKeyError as elsewhere:
        error = elsewhere
    except (ValueError, RecursionError):  # a number that is too long to be read
        message = None
    if not isinstance(message, _Written):
        return Checked(None, (_error(None, error),))
    if arguments is not None:
        return Checked(text, arguments=arguments)
    ids = [value for key, value in message.pairs if key == "id"]
    return _refuse(None, message, _error(_as_id(ids[0]) if len(ids) == 1 else None, error))


def _refuse_unreadable(text: bytes, error: ValueError | RecursionError) -> Checked:
    try:
        message: Any = json.loads(text)
    except (ValueError, RecursionError):
        refusal = _error(id_of(text), _reason(error), PARSE_ERROR)
        return _refuse(text, {"result": None} if is_answer(text) else {}, refusal)
    if isinstance(message, dict):
        fields = cast("dict[str, Any]", message)
        return _refuse(text, fields, _error(_as_id(fields.get("id")), _reason(error)))
    if not isinstance(message, list):
        return Checked(text, (_error(None, _reason(error)),))
    objects = [cast("dict[str, Any]", item) for item in cast("list[Any]", message) if isinstance(item, dict)]
    ids = [_as_id(item.get("id")) for item in objects if "method" in item and "id" in item]
    why = "it is one of a list; send each message by itself"
    return Checked(text, tuple(_error(request_id, why) for request_id in ids or [None]))


def _refuse(text: bytes | None, message: Mapping[str, Any], refusal: types.JSONRPCError) -> Checked:
    """Return a wrong message with its refusal; a notification gets none, and an answer becomes the refusal."""
    if "method" in message:
        return Checked(text, (refusal,) if "id" in message else ())
    if "result" not in message and "error" not in message:
        return Checked(text, (refusal,))
    as_answer = refusal.model_dump_json(by_alias=True, exclude_unset=True).encode()
    return Checked(None if refusal.id is None else as_answer)


def _repeated_arguments_in(message: Any) -> str | None:
    """Return the arguments of a call as JSON text, where a key stands twice in them; None for another message.

    Raises:
        RepeatedKeyError: A key stands twice in something else of the call.
    """
    params = message.get("params") if isinstance(message, _Written) and message.get("method") == "tools/call" else None
    arguments = params.get("arguments") if isinstance(params, _Written) else None
    if not isinstance(params, _Written) or not isinstance(arguments, _Written):
        return None
    params.pairs = [(key, None if key == "arguments" else value) for key, value in params.pairs]
    read_json(json.dumps(message))
    return json.dumps(arguments)


def _as_id(value: Any) -> str | int | None:
    return value if type(value) in (str, int) else None


def _reason(error: ValueError | RecursionError) -> str:
    """Return why a message cannot be read."""
    if isinstance(error, RecursionError):
        return "it is nested too deep"
    if not isinstance(error, ValidationError):
        return f"it is not JSON: {error}"
    errors = error.errors(include_url=False, include_input=False)
    telling = min(errors, key=lambda problem: problem["type"] == "missing")  # of all kinds of messages, it may be none
    return ": ".join([*map(str, telling["loc"][1:]), telling["msg"]])


def _error(request_id: str | int | None, why: object, code: int = INVALID_REQUEST) -> types.JSONRPCError:
    text = clean(f"the message cannot be taken: {why}")
    return types.JSONRPCError(jsonrpc="2.0", id=request_id, error=types.ErrorData(code=code, message=text))


# --- over HTTP


async def read_body(receive: Receive, most: int) -> tuple[bytes | None, Receive]:
    """Return the body of a request, None where it has more than `most` bytes; and what receives it once more."""
    read: list[Message] = []
    size, more = 0, True
    while more and size <= most:
        read.append(await receive())
        size += len(read[-1].get("body", b""))
        more = read[-1].get("more_body", False)
    body = None if more else b"".join(message.get("body", b"") for message in read)
    return body, _receiving(read, receive)


class UniqueKeys:
    """ASGI middleware: refuses a message that has a key twice, and repairs others.

    Args:
        max_body: Bytes of a request that are read; a longer one is left to the server, which refuses it.
    """

    def __init__(self, app: ASGIApp, max_body: int) -> None:
        self._app, self._max_body = app, max_body

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] != "POST":
            await self._app(scope, receive, send)
            return
        body, receive = await read_body(receive, self._max_body)
        checked = Checked(b"") if body is None else check_message(body)
        if checked.text is None:
            why = "it has a key more than once, or is an answer without an id"
            refusal = checked.refusals[0] if checked.refusals else _error(None, why)
            await JSONResponse(refusal.model_dump(mode="json", by_alias=True), 400)(scope, receive, send)
            return
        if body is not None and checked.text != body:  # another message in its place
            receive = _receiving([{"type": "http.request", "body": checked.text}], receive)
        refused_arguments.set(checked.arguments)
        await self._app(scope, receive, send)


def _receiving(messages: Iterable[Message], after: Receive) -> Receive:
    """Return a function that receives these messages, and then those of another."""
    buffered = iter(messages)

    async def receive() -> Message:
        message = next(buffered, None)
        return await after() if message is None else message

    return receive


# --- over the standard streams


class UniqueLines:
    """The lines of a client without those that cannot be taken, which are answered here: the SDK's reader drops them.

    Attributes:
        replies: Receives the answers; set before the first line is read.
    """

    def __init__(self, file: AsyncFile[bytes]) -> None:
        self._file = file
        self.replies: Any = None

    def as_file(self) -> AsyncFile[str]:
        """Return the lines as the file that the SDK takes, of which it reads nothing but lines."""
        return cast("AsyncFile[str]", self)

    async def __aiter__(self) -> AsyncIterator[str]:
        async for line in self._file:
            if not line.strip():
                continue
            checked = check_message(line)
            if checked.text is None and not checked.refusals:
                _log.warning("a message of the client is left out: it has a key more than once, or answers nothing")
            elif not checked.refusals:
                refused_arguments.set(checked.arguments)  # in the task that reads: the SDK hands on its context
                yield cast("bytes", checked.text).decode()
            with suppress(BrokenResourceError, ClosedResourceError):  # nobody reads the answers any more
                for refusal in checked.refusals:
                    await self.replies.send(SessionMessage(refusal))


@contextmanager
def stdin_of_client() -> Generator[BinaryIO]:
    """Open stdin for the messages of the client; what else reads stdin meanwhile, such as a child, finds it empty."""
    stream = sys.stdin.buffer
    try:
        is_own = stream.fileno() == 0
    except (OSError, ValueError):
        is_own = False
    if not is_own:
        yield stream
        return
    client = os.dup(0) if sys.platform == "win32" else fcntl.fcntl(0, fcntl.F_DUPFD_CLOEXEC, 3)
    empty = os.open(os.devnull, os.O_RDONLY)
    _replace_stdin(empty)
    os.close(empty)
    try:
        yield os.fdopen(client, "rb", closefd=False)  # a thread may wait for a line when this has ended
    finally:
        _replace_stdin(client)


def _replace_stdin(descriptor: int) -> None:
    os.dup2(descriptor, 0)
    if sys.platform == "win32":
        with suppress(OSError):
            rebind_std_handle_to_fd(0)
