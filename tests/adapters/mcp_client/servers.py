"""Servers to connect to: those from npm, started once, and small ones of the SDK."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from typing import Any

import uvicorn
from mcp.server.mcpserver import MCPServer

from tests.networks import free_port
from tests.npm.programs import command
from toolcrib.calls import Completed, Failed, Outcome, ToolCall
from toolcrib.pipeline import Pipeline, Run
from toolcrib.record import ListSink
from toolcrib.toolsets import Toolset

EVERYTHING = "@modelcontextprotocol/server-everything"
FILESYSTEM = "@modelcontextprotocol/server-filesystem"
MEMORY = "@modelcontextprotocol/server-memory"


class Told(logging.Handler):
    """Waits for a line in a log, or for the tools of a toolset to be renewed."""

    def __init__(self) -> None:
        super().__init__()
        self._event = asyncio.Event()

    def emit(self, record: logging.LogRecord) -> None:
        self._event.set()

    def renewed(self) -> None:
        self._event.set()

    async def wait(self) -> None:
        async with asyncio.timeout(60):
            await self._event.wait()
        self._event.clear()


@contextmanager
def served_over_http(package: str) -> Iterator[str]:
    """Start a server of npm's that speaks streamable HTTP, and give its URL."""
    port = free_port()
    words = command(package, "streamableHttp")
    process = subprocess.Popen(
        words, env={**os.environ, "PORT": str(port)}, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stderr is not None
        for line in process.stderr:
            if "listening" in line:
                break
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.kill()
        process.communicate()


class _Http(uvicorn.Server):
    """Says when it listens, ends when it is told to, and does not wait for open streams then."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready, self.ending, self.force_exit = asyncio.Event(), asyncio.Event(), True

    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets)
        self.ready.set()

    async def main_loop(self) -> None:
        await self.on_tick(0)
        await self.ending.wait()


@asynccontextmanager
async def serving(app: Any, port: int) -> AsyncIterator[None]:
    """Serve an ASGI application in this process."""
    http = _Http(uvicorn.Config(app, port=port, log_level="critical", timeout_graceful_shutdown=0))
    task = asyncio.create_task(http.serve())
    ready = asyncio.create_task(http.ready.wait())
    await asyncio.wait((task, ready), return_when=asyncio.FIRST_COMPLETED)
    assert ready.done(), "the server has not started"
    try:
        yield
    finally:
        http.ending.set()
        await task


def served(server: MCPServer, port: int, **options: Any) -> AbstractAsyncContextManager[None]:
    """Serve a server of the SDK over streamable HTTP in this process."""
    return serving(server.streamable_http_app(**options), port)


async def asked_over_http(scope: Any, receive: Any) -> dict[str, Any]:
    """Return the message that a request to an ASGI application holds; empty where it holds none."""
    body = b""
    while scope["type"] == "http" and (part := await receive()):
        body += part.get("body", b"")
        if not part.get("more_body"):
            break
    return json.loads(body or b"{}")


async def called(tools: Toolset, name: str, /, **arguments: Any) -> Any:
    """Return what a call of an open toolset gives; AssertionError when it gives nothing."""
    outcome = await outcome_of(tools, name, **arguments)
    assert isinstance(outcome, Completed), outcome.text()
    return outcome.value


async def failed(tools: Toolset, name: str, /, **arguments: Any) -> Failed:
    """Return how a call of an open toolset fails."""
    outcome = await outcome_of(tools, name, **arguments)
    assert isinstance(outcome, Failed), outcome
    return outcome


async def outcome_of(
    tools: Toolset, name: str, /, sink: ListSink | None = None, run: Run | None = None, **arguments: Any
) -> Outcome:
    """Make a call of an open toolset as a model does."""
    sinks = () if sink is None else (sink,)
    return await Pipeline(tools, sinks=sinks).run(ToolCall(name, arguments), run or Run())
