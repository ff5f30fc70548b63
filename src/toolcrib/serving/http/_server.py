"""HTTP server: uvicorn with time limits for slow connections, as one part of a program."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Generator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, cast

import h11
import uvicorn
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from toolcrib._numbers import require_numbers
from toolcrib.errors import explain_options

_BACKLOG = 512  # connections that wait to be accepted
_HEADER_BYTES = 64 * 1024
_KEEP_ALIVE = 75  # seconds that a connection may be idle; clients think longer than uvicorn's 5
_SLOWEST = 1024  # bytes a second that a client reads at least


@explain_options()
@dataclass(frozen=True, slots=True)
class HttpLimits:
    """Limits of the connections of a server.

    Attributes:
        connections: Connections and requests at a time.
        arrive_seconds: How long the head of a request may take to arrive, from the connection or from the end of the
            idle time before it; and the rest of a request that was answered before it had arrived.
        read_seconds: How often it is checked that the client reads on, when the system holds no more for it.
    """

    connections: int = 500
    arrive_seconds: float = 15.0
    read_seconds: float = 30.0

    def __post_init__(self) -> None:
        require_numbers("HttpLimits", self, {"connections": 1}, seconds=("arrive_seconds", "read_seconds"))


class ClosableApp(Protocol):
    """An ASGI application that ends its open requests when the server stops."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None: ...

    async def close(self) -> None:
        """End the open requests."""
        ...


@dataclass(frozen=True, slots=True)
class Listener:
    """A socket that a server can listen on, and its URL without a path."""

    socket: socket.socket
    url: str


@contextmanager
def listen(host: str, port: int) -> Generator[Listener]:
    """Bind a socket to an address, and any free port for 0; raises OSError when that is not possible."""
    address = host.strip("[]")
    found = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    family, kind, protocol, _, place = found[0]
    with socket.socket(family, kind, protocol) as bound:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(place)
        name = f"[{address}]" if ":" in address else address
        yield Listener(bound, f"http://{name}:{bound.getsockname()[1]}")


async def serve_app(
    app: ClosableApp,
    listener: Listener,
    limits: HttpLimits,
    *,
    started: Callable[[], object],
    signals: bool = False,
) -> None:
    """Serve an application until this is cancelled; its open requests are ended first.

    Args:
        app: The application.
        listener: Where to listen.
        limits: The limits of its connections.
        started: Called when the server accepts connections.
        signals: Whether SIGINT and SIGTERM stop the server.
    """
    server = _Server(app, limits, started, signals)
    serving = asyncio.create_task(server.serve([listener.socket]))
    try:
        await asyncio.shield(serving)
    finally:
        server.should_exit = True
        await asyncio.wait([serving])


class _Server(uvicorn.Server):
    def __init__(
        self, app: ClosableApp, limits: HttpLimits, started: Callable[[], object], takes_signals: bool
    ) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                http=cast("Any", partial(_TimedProtocol, limits)),
                ws="none",
                lifespan="off",  # the caller runs it, and reports its errors
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,  # `TrustedProxies` reads them where an address counts
                timeout_keep_alive=_KEEP_ALIVE,
                limit_concurrency=limits.connections,
                backlog=_BACKLOG,
                h11_max_incomplete_event_size=_HEADER_BYTES,
                timeout_graceful_shutdown=2,
            )
        )
        self._app, self._call_started, self._takes_signals = app, started, takes_signals

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._call_started()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await self._app.close()
        await super().shutdown(sockets)

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        with super().capture_signals() if self._takes_signals else nullcontext():
            yield
            self._captured_signals.clear()  # which stopped the server, and would be raised again


class _Timer:
    """Calls a function after some seconds, unless it is stopped or started again before."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._handle: asyncio.TimerHandle | None = None

    def start(self, seconds: float, call: Callable[..., object], *arguments: Any) -> None:
        self.stop()
        self._handle = self._loop.call_later(seconds, call, *arguments)

    def stop(self) -> None:
        if self._handle is not None:
            self._handle.cancel()


class _TimedProtocol(H11Protocol):
    """uvicorn's protocol, which waits for a request and for a reader without a limit, with limits.

    A client without a token could otherwise take all connections by sending little or nothing, and one with a token by
    not reading its replies.
    """

    def __init__(self, limits: HttpLimits, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._limits = limits
        self._late, self._slow = _Timer(self.loop), _Timer(self.loop)

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._late.start(self._limits.arrive_seconds, self.transport.abort)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._stop_waiting_when_answering()

    def on_response_complete(self) -> None:
        rest = self.conn.their_state is h11.SEND_BODY
        seconds = self._limits.arrive_seconds + (0 if rest else self.timeout_keep_alive)
        self._late.start(seconds, self.transport.abort)
        super().on_response_complete()
        self._stop_waiting_when_answering()

    def _stop_waiting_when_answering(self) -> None:
        """End the wait for a request while one is answered, which has its own limits."""
        cycle: Any = self.cycle
        if cycle is not None and not cycle.response_complete:
            self._late.stop()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch_reader()

    def _watch_reader(self) -> None:
        """Abort the connection later, unless the client has read enough by then."""
        seconds = self._limits.read_seconds
        enough = self.transport.get_write_buffer_size() - _SLOWEST * seconds
        self._slow.start(seconds, self._check_reader, enough)

    def _check_reader(self, enough: float) -> None:
        if self.transport.get_write_buffer_size() > enough:
            self.transport.abort()
        else:
            self._watch_reader()

    def resume_writing(self) -> None:
        self._slow.stop()
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._late.stop()
        self._slow.stop()
        super().connection_lost(exc)
