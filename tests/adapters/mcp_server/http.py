"""A server over HTTP on a free port, for a test or a module."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from toolcrib.adapters.mcp_server import HttpOptions, ServerOptions, serve_http

COMMAND = [sys.executable, "-c", "from toolcrib.cli import main; main()"]


@asynccontextmanager
async def served(tools: Any, options: ServerOptions | None = None, **http: Any) -> AsyncIterator[str]:
    """Serve tools on a free port in this process, and yield the URL."""
    listening: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    given = HttpOptions(**{"port": 0, "grace_seconds": 0.2, **http})
    task = asyncio.create_task(serve_http(tools, options, given, started=listening.set_result))
    await asyncio.wait([task, listening], return_when=asyncio.FIRST_COMPLETED)
    if not listening.done():
        await task
    try:
        yield await listening
    finally:
        task.cancel()
        await asyncio.wait([task])


@contextmanager
def command_over_http(folder: Path, *arguments: str, **environment: str) -> Iterator[str]:
    """Run `toolcrib serve` in a process of its own on a free port, and yield the URL."""
    command = [*COMMAND, "serve", *arguments, "--transport", "http", "--port", "0"]
    process = subprocess.Popen(
        command, cwd=folder, stderr=subprocess.PIPE, text=True, env={**os.environ, **environment}
    )
    try:
        yield _url(process)
    finally:
        process.terminate()
        said = process.communicate()[1]
        assert process.returncode == 0, said


def _url(process: subprocess.Popen[str]) -> str:
    assert process.stderr is not None
    said = ""
    for line in process.stderr:
        said += line
        if found := re.search(r"on (http://\S+)", line):
            return found[1]
    raise AssertionError(said)
