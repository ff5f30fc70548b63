"""The event loop of programs: instead of waiting for sockets, it waits for frames of the host."""

from __future__ import annotations

import asyncio
import selectors
import socket
from asyncio.base_events import BaseEventLoop
from contextlib import suppress
from typing import Any, NoReturn, cast

from ._clock import CLOCK
from ._exchange import Exchange, has_threads
from ._optional_await import coroutine_of

_DEADLOCK = "the program waits for something that never comes: no tool runs, no timer and no thread"
_NO_NETWORK = "a program has no network and no processes: call a tool instead"


class ProgramLoop(BaseEventLoop):
    """An event loop without sockets, on the program's clock."""

    def __init__(self, exchange: Exchange) -> None:
        super().__init__()
        self._selector = _HostSelector(exchange)

    def create_task(self, coro: Any, **options: Any) -> asyncio.Task[Any]:
        return super().create_task(coroutine_of(coro), **options)

    def time(self) -> float:
        return CLOCK.monotonic() / 1e9

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:
        await super().shutdown_default_executor()  # no timer of minutes, which would count as the program's sleep

    def close(self) -> None:
        super().close()
        self._selector.close()

    def _write_to_self(self) -> None:
        self._selector.call()

    def _process_events(self, event_list: object) -> None:
        pass

    async def create_connection(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise PermissionError(_NO_NETWORK)

    create_server = create_datagram_endpoint = subprocess_exec = subprocess_shell = create_connection
    create_unix_connection = create_unix_server = connect_read_pipe = connect_write_pipe = create_connection
    sock_connect = sock_accept = sock_recv = sock_sendall = getaddrinfo = getnameinfo = create_connection

    def add_reader(self, fd: Any, callback: Any, *args: Any) -> NoReturn:
        raise PermissionError(_NO_NETWORK)

    def add_writer(self, fd: Any, callback: Any, *args: Any) -> NoReturn:
        raise PermissionError(_NO_NETWORK)


class LoopPolicy(asyncio.DefaultEventLoopPolicy):
    """Makes the loops of a program."""

    def __init__(self, exchange: Exchange) -> None:
        super().__init__()
        self._exchange = exchange

    def new_event_loop(self) -> ProgramLoop:
        return ProgramLoop(self._exchange)


class _HostSelector:
    """Waits for the host; with threads also for a call from one of them."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._real: selectors.BaseSelector | None = None
        self._pair: tuple[socket.socket, socket.socket] | None = None
        self._called = False

    def select(self, timeout: float | None = None) -> list[object]:
        """Wait for a frame or a call, at most for `timeout` seconds."""
        if timeout is not None and timeout <= 0:
            return []
        if has_threads():
            self._among_threads(timeout)
        elif timeout is None and not self._exchange.waiting:
            # raised in tasks that wait for nothing, so that the error shows the program's lines
            found = False
            for task in asyncio.all_tasks():
                wait: Any = getattr(task, "_fut_waiter", None)
                if cast("type[Any]", type(wait)) is asyncio.Future:  # neither a task nor a gathering of tasks
                    wait.set_exception(RuntimeError(_DEADLOCK))
                    found = True
            if not found:
                raise RuntimeError(_DEADLOCK)
        elif not self._called:
            self._exchange.wait(timeout)
            self._exchange.read_batch()
        self._called = False
        return []

    def call(self) -> None:
        """End a wait; from any thread."""
        self._called = True
        if self._pair is not None:
            with suppress(BlockingIOError):  # then it is awake already
                self._pair[1].send(b".")

    def close(self) -> None:
        """Close the descriptors."""
        if self._real is not None:
            self._real.close()
        for end in self._pair or ():
            end.close()
        self._real = self._pair = None

    def _among_threads(self, timeout: float | None) -> None:
        real, waker = self._watched()
        self._exchange.on_reader_left = self.call
        if self._called:
            return
        asks = timeout is not None or self._exchange.waiting
        if not asks or not self._exchange.start_reading():
            if real.select(timeout):
                waker.recv(4096)
            return
        try:
            self._exchange.wait(timeout)
            real.register(self._exchange.fd, selectors.EVENT_READ)
            ready = {key.fd for key, _ in real.select()}
            if waker.fileno() in ready:
                waker.recv(4096)
            if self._exchange.fd in ready:
                self._exchange.read_batch()
        finally:
            real.unregister(self._exchange.fd)
            self._exchange.stop_reading()

    def _watched(self) -> tuple[selectors.BaseSelector, socket.socket]:
        if self._real is None or self._pair is None:
            waker, other = socket.socketpair()
            waker.setblocking(False)
            other.setblocking(False)
            self._real, self._pair = selectors.DefaultSelector(), (waker, other)
            self._real.register(waker, selectors.EVENT_READ)
        return self._real, self._pair[0]
