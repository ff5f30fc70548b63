"""One tool served over MCP: a call over stdio, one over HTTP, and 200 clients at once.

The client is a few lines that write and read the protocol themselves, so that what is timed is the server.
"""

# ruff: noqa: PLC0415 -- a contender's process imports what that contender needs, and nothing of the others

from __future__ import annotations

import asyncio
import atexit
import importlib.util
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import partial
from http.client import HTTPConnection
from typing import Any

from benchmarks._measure import Contender, Measure, Metric, Sample, Target
from benchmarks._timing import MICROSECONDS, MILLISECONDS, async_sample, check, on_loop, seconds

CALLS = 100
CLIENTS, CALLS_EACH = 200, 3
ANSWER = {"city": "Oslo", "temp": 21, "unit": "c"}
OLDER = "2025-11-25"
HEADERS = {
    "content-type": "application/json",
    "accept": "application/json, text/event-stream",
    "mcp-protocol-version": OLDER,
}
ME = {"name": "benchmark", "version": "1"}
OPENING = {"protocolVersion": OLDER, "capabilities": {}, "clientInfo": ME}


def message(method: str, params: Mapping[str, Any], number: int | None = 1) -> bytes:
    """Return a request, or without a number a notification, as it goes over the wire."""
    told = {} if number is None else {"id": number}
    return json.dumps({"jsonrpc": "2.0", **told, "method": method, "params": params}).encode()


CALL = message("tools/call", {"name": "get_weather", "arguments": {"city": "Oslo"}})


def structured(reply: bytes) -> Any:
    """Return the structured result in a reply, which may be a stream of one event."""
    line = next(part for part in reply.splitlines() if part.startswith((b"data: {", b"{")))
    return json.loads(line.removeprefix(b"data: "))["result"]["structuredContent"]


def started(name: str, port: int | None) -> subprocess.Popen[bytes]:
    """Start a contender's server, in a folder of its own; it ends with this process."""
    if importlib.util.find_spec(name) is None:
        raise ImportError(f"No module named {name!r}", name=name)
    folder = tempfile.TemporaryDirectory()
    atexit.register(folder.cleanup)
    command = [sys.executable, "-m", "benchmarks._mcp_server", name, *([] if port is None else [str(port)])]
    environment = {**os.environ, "PYTHONPATH": os.getcwd(), "TOOLCRIB_DATABASE": f"{folder.name}/toolcrib.db"}
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
    atexit.register(process.kill)
    return process


def over_stdio(name: str) -> Sample:
    process = started(name, None)
    if process.stdin is None or process.stdout is None:
        raise RuntimeError("the server has no pipes")
    write, flush, read = process.stdin.write, process.stdin.flush, process.stdout.readline

    def ask(body: bytes) -> bytes:
        write(body + b"\n")
        flush()
        return read()

    ask(message("initialize", OPENING))
    write(message("notifications/initialized", {}, None) + b"\n")
    return calling(partial(ask, CALL))


def calling(ask: Callable[[], bytes]) -> Sample:
    """Return a sample of microseconds per call."""

    def batch() -> None:
        for _ in range(CALLS):
            ask()

    check(structured(ask()), ANSWER)
    return lambda: {"us": seconds(batch) / CALLS * MICROSECONDS}


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def listening(name: str) -> int:
    """Start a contender's server over HTTP and return its port, once it can be reached there."""
    process, port = started(name, place := free_port()), 0
    while not port:
        if process.poll() is not None:
            raise RuntimeError("the server ended")
        try:
            socket.create_connection(("127.0.0.1", place)).close()
            port = place
        except ConnectionRefusedError:
            time.sleep(0.05)
    return port


def over_http(name: str) -> Sample:
    connection = HTTPConnection("127.0.0.1", listening(name))
    headers = dict(HEADERS)

    def ask(body: bytes) -> bytes:
        connection.request("POST", "/mcp", body, headers)
        reply = connection.getresponse()
        headers["mcp-session-id"] = reply.headers.get("mcp-session-id") or headers["mcp-session-id"]
        return reply.read()

    ask(message("initialize", OPENING))
    ask(message("notifications/initialized", {}, None))
    return calling(partial(ask, CALL))


def many_clients(name: str) -> Sample:
    import httpx2 as httpx

    url = f"http://127.0.0.1:{listening(name)}/mcp"
    limits = httpx.Limits(max_connections=CLIENTS, max_keepalive_connections=CLIENTS)
    http = on_loop(_made(lambda: httpx.AsyncClient(limits=limits, timeout=300)))

    async def client() -> Any:
        opened = await http.post(url, content=message("initialize", OPENING), headers=HEADERS)
        session = {**HEADERS, "mcp-session-id": opened.headers["mcp-session-id"]}
        for _ in range(CALLS_EACH):
            reply = await http.post(url, content=CALL, headers=session)
            check(structured(reply.content), ANSWER)  # also raises for an error of any kind
        return (await http.delete(url, headers=session)).status_code

    async def batch() -> int:
        return sum(status == 200 for status in await asyncio.gather(*(client() for _ in range(CLIENTS))))

    sample = async_sample("ms", batch, 1, CLIENTS, once=True)
    return lambda: {"ms": sample()["ms"] / MICROSECONDS * MILLISECONDS}


async def _made(make: Callable[[], Any]) -> Any:
    return make()


def _contenders(how: Callable[[str], Sample], transport: str) -> tuple[Contender, ...]:
    return tuple(Contender(f"{name} {transport}", partial(how, name)) for name in ("fastmcp", "toolcrib"))


MEASURES = (
    Measure(
        name="mcp",
        title="a call over MCP, to a server in a process of its own",
        metrics=(Metric("us", "per call", "us"),),
        contenders=(*_contenders(over_stdio, "stdio"), *_contenders(over_http, "HTTP")),
        baseline="fastmcp stdio",
        targets=(
            Target("us", "toolcrib stdio", "fastmcp stdio", 1.0),
            Target("us", "toolcrib HTTP", "fastmcp HTTP", 1.0),
        ),
        notes=("the older generation of the protocol, which most clients speak; the client is the same for both.",),
    ),
    Measure(
        name="mcp-clients",
        title=f"{CLIENTS} clients at once over HTTP: each opens a session, makes {CALLS_EACH} calls and ends it",
        metrics=(Metric("ms", "in all", "ms"),),
        contenders=_contenders(many_clients, "HTTP"),
        baseline="fastmcp HTTP",
        targets=(Target("ms", "toolcrib HTTP", "fastmcp HTTP", 1.0),),
        notes=("an answer that is an error, or is not the tool's, fails the contender.",),
    ),
)
