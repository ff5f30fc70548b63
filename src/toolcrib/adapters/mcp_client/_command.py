"""Transport to a server that is a command: JSON lines over its standard streams, and its error output.

The SDK's own transport has no limit for the length of a line.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, TextIO

import anyio
import mcp_types as types
from anyio.streams.buffered import BufferedByteReceiveStream
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client.stdio import StdioServerParameters, get_default_environment
from mcp.os.posix.utilities import terminate_posix_process_tree
from mcp.os.win32.utilities import (
    close_process_job,
    create_windows_process,
    get_windows_executable_command,
    terminate_windows_process_tree,
)
from mcp.shared.message import SessionMessage
from pydantic_core import PydanticSerializationError

from toolcrib._json_writer import valid_text
from toolcrib.adapters.mcp_client._messages import RepeatedKeys, off_loop, read_line

_log = logging.getLogger("toolcrib.mcp")
_STOP_SECONDS = 2.0  # that a server has to end after its input is closed, and again after a signal
_WRITE_SECONDS = 0.5  # for messages that are on their way to the server
_KILL_SECONDS = 1.0  # for a process that is killed to be gone
_POLL_SECONDS = 0.01  # between two checks whether it has ended
_KEPT_LINES, _LINE_CHARS = 20, 500  # of the error output
_READ_SECONDS = 1.0  # for what a process that ended has written to arrive
_CLOSED = (anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError, OSError)


@asynccontextmanager
async def command_streams(
    command: StdioServerParameters, errors: TextIO, most: int, repeated: RepeatedKeys, ended: Callable[[str], None]
) -> AsyncGenerator[Any]:
    """Start a command, and give the streams of messages from it and to it; stop it at the end.

    Args:
        ended: Called with the fault of the server, or an empty text, when nothing is read any more.
    """
    starting = asyncio.ensure_future(_started(command, errors))
    try:
        await asyncio.shield(starting)
    except asyncio.CancelledError:  # a process that is half started would keep its pipes
        await asyncio.wait({starting})
        if not starting.cancelled() and starting.exception() is None:
            await _Command(starting.result(), command, most, repeated, ended).stop()
        raise
    server = _Command(starting.result(), command, most, repeated, ended)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(server.read)
        tasks.start_soon(server.write)
        try:
            yield server.received, server.sending
        finally:
            with anyio.CancelScope(shield=True):  # else a caller that is cancelled leaves the process behind
                await server.stop()
            tasks.cancel_scope.cancel()


def _kill(transport: asyncio.SubprocessTransport) -> None:
    """End a process that still runs, and those that it has started, without waiting for the event loop."""
    if transport.get_returncode() is not None or sys.platform == "win32":
        return
    process: subprocess.Popen[bytes] = transport.get_extra_info("subprocess")
    with suppress(ProcessLookupError, PermissionError, subprocess.TimeoutExpired):
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(_KILL_SECONDS)


class _Command:
    """A process, and the streams between it and a session."""

    def __init__(
        self,
        process: Any,
        command: StdioServerParameters,
        most: int,
        repeated: RepeatedKeys,
        ended: Callable[[str], None],
    ) -> None:
        self._process, self._command, self._most, self._ended = process, command, most, ended
        self._read = partial(read_line, repeated=repeated)
        self._incoming: MemoryObjectSendStream[SessionMessage | Exception]
        self.received: MemoryObjectReceiveStream[SessionMessage | Exception]
        self._incoming, self.received = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        self.sending, self._outgoing = anyio.create_memory_object_stream[SessionMessage](0)
        self._written = anyio.Event()
        self._patience = _STOP_SECONDS

    async def read(self) -> None:
        """Pass on the lines of the server until it ends, or sends a line that is too long."""
        fault = ""
        with suppress(*_CLOSED):
            async with self._incoming:
                try:
                    fault = await self._pass_on_lines()
                finally:
                    self._ended(fault)
        if not fault:  # a full pipe must not keep it from ending
            with suppress(*_CLOSED), anyio.CancelScope(shield=True):
                while True:
                    await self._process.stdout.receive()

    async def _pass_on_lines(self) -> str:
        async with aclosing(_lines(self._process.stdout, self._most)) as lines:
            async for line in lines:
                if line is None:
                    self._patience = 0.0
                    return f"it sent a line of more than {self._most} bytes (max_message)"
                await self._pass_on(line)
        return ""

    async def _pass_on(self, line: bytes) -> None:
        """Pass on the messages that a line ends."""
        command = self._command
        if command.encoding.lower().replace("_", "-") not in ("utf-8", "utf8"):
            line = line.decode(command.encoding, "replace").encode()
        for message in await off_loop(self._read, line):
            if isinstance(message, ValueError):
                await self._incoming.send(ValueError(f"it wrote a line that is not a message: {line[:200]!r}"))
            else:
                await self._incoming.send(SessionMessage(message))

    async def write(self) -> None:
        """Pass on messages to the server; one that does not read any more has ended."""
        command = self._command
        try:
            async with self._outgoing:
                async for sent in self._outgoing:
                    text = _text_of(sent.message) + "\n"
                    await self._process.stdin.send(text.encode(command.encoding, command.encoding_error_handler))
        except _CLOSED:
            self._incoming.close()
            self._ended("")
        finally:
            self._written.set()

    async def stop(self) -> None:
        """Close the streams, and end the process and those that it has started; by force when this is cancelled."""
        process = self._process
        self.received.close()
        self.sending.close()
        try:
            with anyio.move_on_after(min(self._patience, _WRITE_SECONDS)):
                await self._written.wait()
            with suppress(*_CLOSED):
                await process.stdin.aclose()
            if not await self._ends(self._patience):
                if sys.platform == "win32":
                    await terminate_windows_process_tree(process)
                else:
                    await terminate_posix_process_tree(process, _STOP_SECONDS)
                await self._ends(_STOP_SECONDS)
            if sys.platform == "win32":
                close_process_job(process)
            with suppress(*_CLOSED):
                await process.stdout.aclose()
        finally:
            self._incoming.close()
            self._outgoing.close()  # of a command whose start was cancelled nothing reads it
            transport: Any = getattr(getattr(process, "_process", None), "_transport", None)  # there is no public way
            if isinstance(transport, asyncio.SubprocessTransport):  # else a pipe that a child has taken keeps it open
                _kill(transport)
                with suppress(PermissionError):
                    transport.close()

    async def _ends(self, seconds: float) -> bool:
        """Return whether the process has ended within so many seconds; one of its children may keep its pipes open."""
        for _ in range(round(seconds / _POLL_SECONDS)):
            if self._process.returncode is not None:
                break
            await anyio.sleep(_POLL_SECONDS)
        return self._process.returncode is not None


async def _lines(stream: Any, most: int) -> AsyncGenerator[bytes | None]:
    """Yield each line without its end, also the last one; None, and nothing after it, for one longer than `most`."""
    buffered = BufferedByteReceiveStream(stream)
    is_last = False
    while not is_last:
        try:
            line = await buffered.receive_until(b"\n", most + 1)
        except anyio.DelimiterNotFound:
            line = None
        except anyio.IncompleteRead:
            line, is_last = buffered.buffer, True
            if not line:
                return
        if line is None or len(line) > most:
            yield None
            return
        yield line


async def _started(command: StdioServerParameters, errors: TextIO) -> Any:
    env = get_default_environment() | (command.env or {})
    if command.cwd is not None:
        await asyncio.to_thread(_require_folder, Path(command.cwd))
    if sys.platform == "win32":
        path = await asyncio.to_thread(get_windows_executable_command, command.command)
        return await create_windows_process(path, command.args, env, errors, command.cwd)
    words = [command.command, *command.args]
    folder = None if command.cwd is None else str(command.cwd)  # its error shows it
    return await anyio.open_process(words, env=env, stderr=errors, cwd=folder, start_new_session=True)


def _require_folder(folder: Path) -> None:
    """Raise NotADirectoryError, which names the option: the system's error is the same for a missing command."""
    if not folder.is_dir():
        raise NotADirectoryError(f"its working folder is not there: cwd is {folder.absolute()}")


class ErrorOutput:
    """A pipe for the error output of a process, read by a thread."""

    def __init__(self, server: str) -> None:
        reading, writing = os.pipe()
        self.file: TextIO = os.fdopen(writing, "w", encoding="utf-8")
        self._server, self._lines = server, deque[str](maxlen=_KEPT_LINES)
        self._reader = threading.Thread(target=self._read, args=(reading,), name=f"{server}: stderr", daemon=True)
        self._reader.start()

    def _read(self, reading: int) -> None:
        with os.fdopen(reading, encoding="utf-8", errors="replace") as lines:
            for line in iter(lambda: lines.readline(_LINE_CHARS), ""):  # one without an end comes in pieces
                text = line.rstrip()
                self._lines.append(text)
                _log.debug("%s: %s", self._server, text)

    def close(self) -> None:
        """Close this process's end of the pipe; the thread ends with the process."""
        self.file.close()

    async def last(self) -> list[str]:
        """Return the last lines of a process that ended."""
        self.close()
        await asyncio.to_thread(self._reader.join, _READ_SECONDS)
        return [line for line in self._lines if line]


def _text_of(message: types.JSONRPCMessage) -> str:
    """Return a message as JSON, with U+FFFD for half a character: the connection is not lost with one text."""
    try:
        return message.model_dump_json(by_alias=True, exclude_unset=True)
    except PydanticSerializationError:
        return valid_text(json.dumps(message.model_dump(by_alias=True, exclude_unset=True), ensure_ascii=False))
