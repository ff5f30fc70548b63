"""One tool served over MCP: calls over stdio and HTTP, one and fifty at a time; through a gateway; and 200 clients.

The client is a few lines that write and read the protocol themselves, so that what is timed is the server. The time of
the processor is that of the server alone: of a gateway without the server behind it.
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
from pathlib import Path
from typing import Any

from benchmarks._measure import Contender, Measure, Metric, Sample, Target
from benchmarks._timing import MICROSECONDS, MILLISECONDS, async_sample, check, on_loop, seconds

CALLS = 100
AT_ONCE, TURNS = 50, 6
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
    library = name.removesuffix("-proxy")
    if importlib.util.find_spec(library) is None:
        raise ImportError(f"No module named {library!r}", name=library)
    folder = tempfile.TemporaryDirectory()
    atexit.register(folder.cleanup)
    command = [sys.executable, "-m", "benchmarks._mcp_server", name, *([] if port is None else [str(port)])]
    environment = {**os.environ, "PYTHONPATH": os.getcwd(), "TOOLCRIB_DATABASE": f"{folder.name}/toolcrib.db"}
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
    atexit.register(process.kill)
    return process


def processor_seconds(process: subprocess.Popen[bytes]) -> float:
    """Return the time of the processor that all threads of a process have had."""
    files = Path(f"/proc/{process.pid}/task").glob("*/schedstat")
    return sum(int(file.read_text().split()[0]) for file in files) / 1e9


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
    return calling(partial(ask, CALL), process)


def many_over_stdio(name: str) -> Sample:
    process = started(name, None)
    if process.stdin is None or process.stdout is None:
        raise RuntimeError("the server has no pipes")
    write, flush, read = process.stdin.write, process.stdin.flush, process.stdout.readline
    write(message("initialize", OPENING) + b"\n")
    flush()
    read()
    write(message("notifications/initialized", {}, None) + b"\n")
    lines = b"".join(call_numbered(number) + b"\n" for number in range(AT_ONCE))

    def turn() -> list[bytes]:
        write(lines)
        flush()
        return [read() for _ in range(AT_ONCE)]

    for reply in turn():
        check(structured(reply), ANSWER)
    return timed_with_processor(lambda: [turn() for _ in range(TURNS)], TURNS * AT_ONCE, process)


def call_numbered(number: int) -> bytes:
    return message("tools/call", {"name": "get_weather", "arguments": {"city": "Oslo"}}, number + 2)


def calling(ask: Callable[[], bytes], process: subprocess.Popen[bytes]) -> Sample:
    """Return a sample of microseconds per call, and of those of the processor."""

    def batch() -> None:
        for _ in range(CALLS):
            ask()

    check(structured(ask()), ANSWER)
    return timed_with_processor(batch, CALLS, process)


def timed_with_processor(batch: Callable[[], object], calls: int, process: subprocess.Popen[bytes]) -> Sample:
    """Return a sample of a batch: microseconds per call, and microseconds of the server's processor."""

    def sample() -> dict[str, float]:
        rounds = 0

        def counted() -> None:
            nonlocal rounds
            rounds += 1
            batch()

        before = processor_seconds(process)
        fastest = seconds(counted)
        spent = processor_seconds(process) - before
        return {"us": fastest / calls * MICROSECONDS, "cpu": spent / (rounds * calls) * MICROSECONDS}

    return sample


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def listening(name: str) -> tuple[int, subprocess.Popen[bytes]]:
    """Start a contender's server over HTTP and return its port, once it can be reached there, and its process."""
    process, port = started(name, place := free_port()), 0
    while not port:
        if process.poll() is not None:
            raise RuntimeError("the server ended")
        try:
            socket.create_connection(("127.0.0.1", place)).close()
            port = place
        except ConnectionRefusedError:
            time.sleep(0.05)
    return port, process


def over_http(name: str) -> Sample:
    port, process = listening(name)
    connection = HTTPConnection("127.0.0.1", port)
    headers = dict(HEADERS)

    def ask(body: bytes) -> bytes:
        connection.request("POST", "/mcp", body, headers)
        reply = connection.getresponse()
        headers["mcp-session-id"] = reply.headers.get("mcp-session-id") or headers["mcp-session-id"]
        return reply.read()

    ask(message("initialize", OPENING))
    ask(message("notifications/initialized", {}, None))
    return calling(partial(ask, CALL), process)


class Connection:
    """A connection of HTTP that is kept, with a session of its own."""

    def __init__(self, port: int) -> None:
        self._port, self._session = port, ""

    async def open(self) -> None:
        """Connect, and begin a session."""
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)
        await self.ask(message("initialize", OPENING))
        await self.ask(message("notifications/initialized", {}, None))

    async def ask(self, body: bytes) -> bytes:
        """Return the body of the reply."""
        session = {"mcp-session-id": self._session} if self._session else {}
        headers = {"host": f"127.0.0.1:{self._port}", **HEADERS, **session, "content-length": str(len(body))}
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        self._writer.write(f"POST /mcp HTTP/1.1\r\n{lines}\r\n".encode() + body)
        head = (await self._reader.readuntil(b"\r\n\r\n")).decode().lower().split("\r\n")
        found = dict(line.split(": ", 1) for line in head[1:] if line)
        self._session = found.get("mcp-session-id", self._session)
        if "content-length" in found:
            return await self._reader.readexactly(int(found["content-length"]))
        whole = b""
        while size := int(await self._reader.readuntil(b"\r\n"), 16):
            whole += (await self._reader.readexactly(size + 2))[:-2]
        await self._reader.readexactly(2)
        return whole


def many_over_http(name: str) -> Sample:
    port, process = listening(name)
    connections = [Connection(port) for _ in range(AT_ONCE)]

    async def each(calls: int) -> None:
        await asyncio.gather(*(calls_of(one, calls) for one in connections))

    async def calls_of(one: Connection, calls: int) -> None:
        for _ in range(calls):
            check(structured(await one.ask(CALL)), ANSWER)

    async def begin() -> None:
        await asyncio.gather(*(one.open() for one in connections))
        await each(1)

    on_loop(begin())
    return timed_with_processor(lambda: on_loop(each(TURNS)), TURNS * AT_ONCE, process)


def many_clients(name: str) -> Sample:
    import httpx2 as httpx

    url = f"http://127.0.0.1:{listening(name)[0]}/mcp"
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


def _contenders(how: Callable[[str], Sample], transport: str, suffix: str = "") -> tuple[Contender, ...]:
    return tuple(Contender(f"{name} {transport}", partial(how, name + suffix)) for name in ("fastmcp", "toolcrib"))


def _targets(at_most: float) -> tuple[Target, ...]:
    pairs = [(metric, transport) for transport in ("stdio", "HTTP") for metric in ("us", "cpu")]
    return tuple(Target(metric, f"toolcrib {kind}", f"fastmcp {kind}", at_most) for metric, kind in pairs)


METRICS = (Metric("us", "per call", "us"), Metric("cpu", "of the processor", "us"))


MEASURES = (
    Measure(
        name="mcp",
        title="a call over MCP, to a server in a process of its own",
        metrics=METRICS,
        contenders=(*_contenders(over_stdio, "stdio"), *_contenders(over_http, "HTTP")),
        baseline="fastmcp stdio",
        targets=_targets(1.0),
        notes=("the older generation of the protocol, which most clients speak; the client is the same for both.",),
    ),
    Measure(
        name="mcp-fifty",
        title=f"the same, {AT_ONCE} calls at a time: of one session over stdio, of {AT_ONCE} over HTTP",
        metrics=METRICS,
        contenders=(*_contenders(many_over_stdio, "stdio"), *_contenders(many_over_http, "HTTP")),
        baseline="fastmcp stdio",
        targets=_targets(1.0),
    ),
    Measure(
        name="mcp-hop",
        title="a call through a gateway to one server over stdio, the same for both",
        metrics=METRICS,
        contenders=(*_contenders(over_stdio, "stdio", "-proxy"), *_contenders(over_http, "HTTP", "-proxy")),
        baseline="fastmcp stdio",
        targets=_targets(1.3),
        notes=("the server behind the gateway is FastMCP's; the time of the processor is the gateway's own.",),
    ),
    Measure(
        name="mcp-hop-fifty",
        title=f"the same, {AT_ONCE} calls at a time",
        metrics=METRICS,
        contenders=(*_contenders(many_over_stdio, "stdio", "-proxy"), *_contenders(many_over_http, "HTTP", "-proxy")),
        baseline="fastmcp stdio",
        targets=_targets(1.3),
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
