"""Gateway over HTTP that says what it holds: `python -m tests.gateway.soak_gateway FILE TOKENS`.

It writes its URL, and for each line on stdin what it holds, as JSON; it ends with stdin.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import json
import os
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.sandbox.acting import descendants
from toolcrib.adapters.mcp_client import server_statuses
from toolcrib.adapters.mcp_server import HttpApp, HttpOptions, ServerOptions, http_app
from toolcrib.approvals import SqliteApprovalStore
from toolcrib.gateway import read_gateway, toolset_of_file
from toolcrib.record import SqliteSink
from toolcrib.serving.http import HttpLimits, listen, serve_app
from toolcrib.toolsets import Toolset

IDLE_SECONDS = 5.0


async def main() -> None:
    """Serve until stdin ends."""
    file, tokens = Path(sys.argv[1]), json.loads(sys.argv[2])
    given, tools = read_gateway(file).options, toolset_of_file(file)
    http = HttpOptions(port=0, tokens=tokens, idle_seconds=IDLE_SECONDS)
    with SqliteSink(str(given.approvals.database)) as sink:
        options = ServerOptions(
            approvals=SqliteApprovalStore(str(given.approvals.database)), sinks=(sink,), limits=given.limits.of_calls
        )
        app = http_app(tools, options, http)
        with listen(http.host, 0) as listener:
            async with app.running():
                limits = HttpLimits(http.max_connections, http.body_seconds, http.read_seconds)
                url = f"{listener.url}{http.path}"
                serving = asyncio.ensure_future(serve_app(app, listener, limits, started=lambda: say({"url": url})))
                await answer(app, tools)
                serving.cancel()
                await asyncio.wait({serving})


async def answer(app: HttpApp, tools: Toolset) -> None:
    """Say what is held whenever a line comes."""
    lines: asyncio.Queue[str] = asyncio.Queue()
    loop = asyncio.get_running_loop()

    def read() -> None:
        for line in iter(sys.stdin.readline, ""):
            loop.call_soon_threadsafe(lines.put_nowait, line)
        loop.call_soon_threadsafe(lines.put_nowait, "")

    threading.Thread(target=read, daemon=True).start()
    while await lines.get():
        say(held(app, tools))


def held(app: HttpApp, tools: Toolset) -> dict[str, Any]:
    """Return what this process holds."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    return {
        **of_process(os.getpid()),
        "tasks": len(asyncio.all_tasks()),
        "sessions": len(app._manager._server_instances),  # the SDK has no public way
        "objects": len(gc.get_objects()),
        "statuses": {one.server: one.state for one in server_statuses(tools)},
        "kinds": Counter(type(one).__name__ for one in gc.get_objects()).most_common(400),
        "task_names": Counter(_coro_name(task) for task in asyncio.all_tasks()).most_common(),
    }


def _coro_name(task: asyncio.Task[Any]) -> str:
    """Return the name of a task's coroutine, or of its type: the close of a generator has none."""
    coroutine = task.get_coro()
    return getattr(coroutine, "__qualname__", type(coroutine).__name__)


def of_process(pid: int) -> dict[str, int]:
    """Return what can be seen of a process from outside."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return {
        "memory": pages * os.sysconf("SC_PAGE_SIZE"),
        "descriptors": len(os.listdir(f"/proc/{pid}/fd")),
        "databases": sum(name.endswith((".db", ".db-wal", ".db-shm")) for name in _open_files(pid)),
        "threads": len(os.listdir(f"/proc/{pid}/task")),
        "processes": len(descendants(pid)),
    }


def _open_files(pid: int) -> Iterator[str]:
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(OSError):  # it has just been closed
            yield str(descriptor.readlink())


def say(data: dict[str, Any]) -> None:
    """Write a line for the process that started this one."""
    print(json.dumps(data), flush=True)


if __name__ == "__main__":
    asyncio.run(main())
