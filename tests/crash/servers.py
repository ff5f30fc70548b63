"""MCP clients of servers in processes of their own, which are killed: a client starts one anew, and calls again."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Any

from mcp.client.client import Client
from mcp_types import TextContent

from tests.crash import backend, pay
from tests.crash.points import CENTS, DATABASE, PAID, POINT, calls_again, doubts, folder, note_text
from tests.ways_in.mcp import pipe_client
from toolcrib.cli import main


def over_stdio() -> str | None:
    """Call a server over its standard streams."""
    with _served(f"{pay.__file__}:tools") as (from_server, to_server, _):
        return asyncio.run(_call(pipe_client(from_server, to_server)))


def over_stdio_unasked() -> str | None:
    """Call a server over its standard streams that notes a call though it needs no approval."""
    with _served(f"{pay.__file__}:unasked", "--store") as (from_server, to_server, _):
        return asyncio.run(_call(pipe_client(from_server, to_server)))


def over_http() -> str | None:
    """Call a server over HTTP."""
    with _served(f"{pay.__file__}:tools", "--http", "--port", "0") as (*_, log), os.fdopen(os.dup(log)) as lines:
        found = next(found for line in lines if (found := re.search(r"on (http://\S+)", line)))
        return asyncio.run(_call(found[1]))


def through_gateway() -> str | None:
    """Call a server through a gateway that asks for approval."""
    file = folder() / "mcp.json"
    env = dict(os.environ)
    backend.write_point(env.pop(POINT, ""))  # in the environment, it would make another server of it
    command = {"command": sys.executable, "args": ["-m", backend.__name__], "env": env, "cwd": os.getcwd()}
    section = {"approval": True, "prefix": ""}
    file.write_text(json.dumps({"mcpServers": {"bank": {**command, "toolcrib": section}}}))
    with _served(str(file)) as (from_server, to_server, _):
        return asyncio.run(_call(pipe_client(from_server, to_server)))


async def _call(server: Any) -> str | None:
    """Call the tool once, and return what came of it when there is nothing more to do."""
    try:
        async with asyncio.timeout(60), Client(server, cache=None) as client:
            result: Any = await client.call_tool("pay", {"cents": CENTS})
    except Exception as error:
        note_text(f"{type(error).__name__}: {error}")
        return None
    text = "\n".join(part.text for part in result.content if isinstance(part, TextContent))
    note_text(text)
    if PAID in text or text.startswith("Rejected"):  # the person's word ends it, too
        return text
    waits = "same call again" in text
    return text if doubts(text) and not waits and not calls_again([text]) else None


@contextmanager
def _served(*arguments: str) -> Generator[tuple[int, int, int]]:
    """Run `toolcrib serve` in a fork of this process; the body is given its output, its input and its log."""
    (to_server, from_client), (to_client, from_server), (log, to_log) = (os.pipe() for _ in range(3))
    database = ("--database", str(folder() / DATABASE), "--record", str(folder() / DATABASE))
    server = os.fork()
    if server == 0:
        for end, number in ((to_server, 0), (from_server, 1), (to_log, 2)):
            os.dup2(end, number)
        for end in (from_client, to_client, log):
            os.close(end)
        (folder() / "server").write_text(str(os.getpid()))
        sys.stdin, sys.stdout, sys.stderr = (os.fdopen(n, mode, 1) for n, mode in enumerate(("r", "w", "w")))
        sys.argv = ["toolcrib", "serve", *arguments, *database]
        try:
            main()
        finally:
            os._exit(0)
    for end in (to_server, from_server, to_log):
        os.close(end)
    try:
        yield to_client, from_client, log
    finally:
        os.kill(server, signal.SIGTERM)
        os.waitpid(server, 0)
        os.set_blocking(log, False)  # a server behind a gateway may still have the other end
        with suppress(BlockingIOError):
            sys.stderr.write(os.read(log, 1_000_000).decode())
