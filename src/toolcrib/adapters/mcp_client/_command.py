"""A server that is a command: started, spoken to in lines over its standard streams, and stopped.

The SDK's own transport keeps a line that does not end for as long as it grows.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, asynccontextmanager, suppress
from typing import Any, TextIO

import anyio
import mcp_types as types
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

__all__ = ["command_streams"]

_log = logging.getLogger("toolcrib.mcp")
_GRACE = 2.0  # seconds that a server has to end by itself once its input is closed, and again when it is told to
_LAST_WORDS = 0.5  # seconds for what is on its way to the server
_LOOK = 0.01  # seconds between two looks at whether it has ended
_GONE = (anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError, OSError)


@asynccontextmanager
async def command_streams(
    command: StdioServerParameters, errors: TextIO, most: int, ended: Callable[[str], None]
) -> AsyncGenerator[Any]:
    """Start a command, and give the streams of messages from it and to it; it is stopped at the end.

    Args:
        command: What is started.
        errors: Takes its error output.
        most: Bytes of a line.
        ended: Called when nothing will be read any more; with what the server did, if it was that.
    """
    server = _Command(await _started(command, errors), command, most, ended)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(server.read)
        tasks.start_soon(server.write)
        try:
            yield server.received, server.sending
        finally:
            with anyio.CancelScope(shield=True):  # else a caller that is cancelled leaves the process behind
                await server.stop()
            tasks.cancel_scope.cancel()


class _Command:
    """A process, and the streams between it and a session."""

    def __init__(self, process: Any, command: StdioServerParameters, most: int, ended: Callable[[str], None]) -> None:
        self._process, self._command, self._most, self._ended = process, command, most, ended
        self._arrived: MemoryObjectSendStream[SessionMessage | Exception]
        self.received: MemoryObjectReceiveStream[SessionMessage | Exception]
        self._arrived, self.received = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        self.sending, self._leaving = anyio.create_memory_object_stream[SessionMessage](0)
        self._written = anyio.Event()
        self._patience = _GRACE

    async def read(self) -> None:
        """Pass on what the server says until it ends, or says more in one line than is taken."""
        fault = ""
        with suppress(*_GONE):
            async with self._arrived:
                try:
                    fault = await self._pass_on()
                finally:
                    self._ended(fault)
        if not fault:  # what it still writes must not keep it from ending
            with suppress(*_GONE), anyio.CancelScope(shield=True):
                while True:
                    await self._process.stdout.receive()

    async def _pass_on(self) -> str:
        async with aclosing(_lines(self._process.stdout, self._most)) as lines:
            async for line in lines:
                if line is None:
                    self._patience = 0.0
                    return f"it sent a line of more than {self._most} bytes (max_message)"
                await self._arrived.send(self._message(line))
        return ""

    def _message(self, line: bytes) -> SessionMessage | Exception:
        command = self._command
        try:
            text = line.decode(command.encoding, command.encoding_error_handler)
            return SessionMessage(types.jsonrpc_message_adapter.validate_json(text, by_name=False))
        except ValueError as error:
            _log.warning("%s wrote a line that is no message: %.200r", command.command, line)
            return error

    async def write(self) -> None:
        """Pass on what is to be said to the server; one that does not listen any more is as good as gone."""
        command = self._command
        try:
            async with self._leaving:
                async for sent in self._leaving:
                    text = sent.message.model_dump_json(by_alias=True, exclude_unset=True) + "\n"
                    await self._process.stdin.send(text.encode(command.encoding, command.encoding_error_handler))
        except _GONE:
            self._arrived.close()
            self._ended("")
        finally:
            self._written.set()

    async def stop(self) -> None:
        """Close the streams, and see that the process ends, and those that it has started."""
        process = self._process
        self.received.close()
        self.sending.close()
        with anyio.move_on_after(min(self._patience, _LAST_WORDS)):
            await self._written.wait()
        with suppress(*_GONE):
            await process.stdin.aclose()
        if not await self._ends(self._patience):
            await _terminate(process)
            await self._ends(_GRACE)
        if sys.platform == "win32":
            close_process_job(process)
        with suppress(*_GONE):
            await process.stdout.aclose()
        self._arrived.close()
        transport: Any = getattr(getattr(process, "_process", None), "_transport", None)  # there is no public way
        if isinstance(transport, asyncio.SubprocessTransport):  # else a pipe that a child has taken keeps it open
            with suppress(PermissionError):
                transport.close()

    async def _ends(self, seconds: float) -> bool:
        """Return whether the process has ended within so many seconds; a child of its may keep its pipes open."""
        for _ in range(round(seconds / _LOOK)):
            if self._process.returncode is not None:
                break
            await anyio.sleep(_LOOK)
        return self._process.returncode is not None


async def _lines(stream: Any, most: int) -> AsyncGenerator[bytes | None]:
    """Yield each line without its end; None, and nothing after it, for one that is longer than `most`."""
    held = bytearray()
    while True:
        looked = len(held)
        held += await stream.receive()
        while (end := held.find(b"\n", looked)) >= 0:
            if end > most:
                break
            yield bytes(held[:end])
            del held[: end + 1]
            looked = 0
        if len(held) > most:
            yield None
            return


async def _started(command: StdioServerParameters, errors: TextIO) -> Any:
    env = get_default_environment() | (command.env or {})
    if sys.platform == "win32":
        path = await asyncio.to_thread(get_windows_executable_command, command.command)
        return await create_windows_process(path, command.args, env, errors, command.cwd)
    words = [command.command, *command.args]
    return await anyio.open_process(words, env=env, stderr=errors, cwd=command.cwd, start_new_session=True)


async def _terminate(process: Any) -> None:
    if sys.platform == "win32":
        await terminate_windows_process_tree(process)
    else:
        await terminate_posix_process_tree(process, _GRACE)
