"""Messages of clients as text: one that has a key twice is refused, before the SDK takes the last of its values."""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import AsyncIterator, Generator, Iterable
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, BinaryIO, Final, cast

import mcp_types as types
from anyio import AsyncFile, BrokenResourceError, ClosedResourceError
from mcp.shared.message import SessionMessage
from mcp_types import INVALID_REQUEST, PARSE_ERROR
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from toolcrib._json_writer import RepeatedKeyError, read_json, unique_keys
from toolcrib.adapters.mcp_server._replies import clean

if sys.platform == "win32":
    from mcp.os.win32.utilities import rebind_std_handle_to_fd
else:
    import fcntl

__all__ = [
    "Checked",
    "UniqueKeys",
    "UniqueLines",
    "check_message",
    "read_body",
    "repeated_arguments",
    "stdin_of_client",
]

_log = logging.getLogger("toolcrib.adapters")

repeated_arguments: Final = ContextVar[str | None]("repeated_arguments", default=None)
"""The arguments of the call that is handled now, as JSON text, where they have a key twice."""


@dataclass(frozen=True, slots=True)
class Checked:
    """A message of a client, checked for keys that stand twice.

    Attributes:
        text: The message to pass on; None for one that is refused.
        refusal: The error that answers a refused message; None for a notification and an answer, which get none.
        arguments: The arguments of a call as JSON text, where they alone have a key twice: the pipeline refuses them.
    """

    text: str | bytes | None
    refusal: types.JSONRPCError | None = None
    arguments: str | None = None


class _Written(dict[str, Any]):
    """An object of JSON text with each of its pairs, which `json.dumps` writes again as they were."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self.pairs = pairs

    def items(self) -> Any:
        return self.pairs


def check_message(text: str | bytes) -> Checked:
    """Return what becomes of a message; one that is not JSON is left to its reader."""
    try:
        json.loads(text, object_pairs_hook=unique_keys, parse_int=str, parse_float=str, strict=False)
    except RepeatedKeyError as error:
        return _refuse(text, error)
    except RecursionError:
        return Checked(None, _error(None, PARSE_ERROR, "it is nested too deep"))
    except ValueError:
        pass
    return Checked(text)


def _refuse(text: str | bytes, error: RepeatedKeyError) -> Checked:
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
        return Checked(None, _error(None, INVALID_REQUEST, error))
    if arguments is not None:
        return Checked(text, arguments=arguments)
    given = [value for key, value in message.pairs if key == "id"]
    request_id = given[0] if len(given) == 1 and type(given[0]) in (str, int) else None
    if "method" in message:
        return Checked(None, _error(request_id, INVALID_REQUEST, error) if given else None)
    if request_id is None:
        return Checked(None)
    return Checked(_error(request_id, INVALID_REQUEST, error).model_dump_json(by_alias=True, exclude_unset=True))


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


def _error(request_id: str | int | None, code: int, why: object) -> types.JSONRPCError:
    said = clean(f"the message cannot be taken: {why}")
    return types.JSONRPCError(jsonrpc="2.0", id=request_id, error=types.ErrorData(code=code, message=said))


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
    """ASGI middleware: refuses a message that has a key twice.

    Args:
        app: The server.
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
            refusal = checked.refusal or _error(None, INVALID_REQUEST, "it has a key more than once; send it once")
            await JSONResponse(refusal.model_dump(mode="json", by_alias=True), 400)(scope, receive, send)
            return
        if isinstance(checked.text, str):  # another message in its place
            receive = _receiving([{"type": "http.request", "body": checked.text.encode()}], receive)
        repeated_arguments.set(checked.arguments)
        await self._app(scope, receive, send)


def _receiving(messages: Iterable[Message], after: Receive) -> Receive:
    """Return what receives these messages, and then what comes after them."""
    left = iter(messages)

    async def receive() -> Message:
        message = next(left, None)
        return await after() if message is None else message

    return receive


# --- over the standard streams


class UniqueLines:
    """The lines of a client without those that have a key twice, which are answered here.

    Args:
        file: The lines.

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
            checked = check_message(line.decode("utf-8", "replace"))
            if isinstance(checked.text, str):
                repeated_arguments.set(checked.arguments)  # in the task that reads: the SDK hands on its context
                yield checked.text
            elif checked.refusal is None:
                _log.warning("a message of the client is left out: it has a key more than once")
            else:
                with suppress(BrokenResourceError, ClosedResourceError):  # nobody reads the answers any more
                    await self.replies.send(SessionMessage(checked.refusal))


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
