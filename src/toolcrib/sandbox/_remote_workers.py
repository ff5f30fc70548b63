"""Workers at an address: a microVM, a container or another machine, where the guest serves hosts that have a token."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
import weakref
from collections.abc import Iterable
from contextlib import suppress
from typing import Final

from toolcrib._numbers import require_seconds
from toolcrib.errors import SandboxError, SandboxUnavailable, explain_options
from toolcrib.sandbox._layers import REQUIRED, LayerCheck
from toolcrib.sandbox._worker.launch import send_message
from toolcrib.sandbox._worker.relay import is_loopback, keep_alive, proof_of, relay
from toolcrib.sandbox._worker_pool import leave_at_fork
from toolcrib.sandbox._zygote import ready

__all__ = ["RemoteWorkers"]

_SECONDS: Final = 10.0


class RemoteWorker:
    """A worker at the other end of a connection, with which it ends.

    Attributes:
        socket: The connection, or the host's end of its TLS.
    """

    def __init__(self, channel: socket.socket) -> None:
        self.socket = channel

    def kill(self) -> None:
        """End the connection."""
        with suppress(OSError):  # it is over
            self.socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """End the connection, and give back the socket."""
        self.kill()
        self.socket.close()


@explain_options()
class RemoteWorkers:
    """Workers of a guest that serves at an address; each has a connection, and ends with it.

    Args:
        address: The host and the port: `"10.0.0.2:7000"`.
        token: The guest's TOOLCRIB_TOKEN.
        tls: How the guest is recognised, and the connection encrypted.
        plain: Connect without TLS to another machine, because the network between is yours alone.
        require: Layers inside without which nothing runs; `a|b` is either. They keep the programs there apart.
        seconds: How long it may take until there is a worker.

    Raises:
        ValueError: The address is not a host and port, or needs TLS.
    """

    def __init__(
        self,
        address: str,
        *,
        token: str,
        tls: ssl.SSLContext | None = None,
        plain: bool = False,
        require: Iterable[str] = REQUIRED,
        seconds: float = _SECONDS,
    ) -> None:
        require_seconds("RemoteWorkers", "seconds", seconds)
        host, _, port = address.rpartition(":")
        self._host = host.strip("[]")
        if not self._host or not port.isdecimal():
            raise ValueError(f'address: "host:port" is wanted, and not {address!r}')
        if tls is None and not plain and not is_loopback(self._host):
            raise ValueError(
                f"address: without TLS, the token and all programs can be read on the way to {self._host}. Give "
                "tls=ssl.create_default_context(cafile=...), or take a tunnel that ends on 127.0.0.1; where the "
                "network between is yours alone, plain=True"
            )
        self._port, self._tls, self._proof, self._seconds = int(port), tls, proof_of(token), seconds
        self._check = LayerCheck(frozenset(require))
        self.forget()
        leave_at_fork(self)

    @property
    def layers(self) -> tuple[str, ...]:
        """The layers that hold in each worker, which the guest has said."""
        return self._check.layers

    def start(self) -> None:
        """See whether there is a guest, unless that was done.

        Raises:
            SandboxUnavailable: There is none, or it takes no host with this token; the message says why.
        """
        self._closed = False
        if not self.layers:
            self._greeted().close()

    def take(self, cpu: int, memory: int) -> RemoteWorker:
        """Connect, and return the worker of the connection.

        Raises:
            SandboxError: The workers were closed.
            SandboxUnavailable: There is no guest, or it has no worker to give.
        """
        if self._closed:
            raise SandboxError("this sandbox was closed. Make another one")
        worker = self._greeted()
        try:
            send_message(worker.socket, {"cpu": cpu, "memory": memory})
        except OSError as error:
            worker.close()
            raise SandboxUnavailable(f"the guest at {self._host}:{self._port} is gone: {error}") from error
        with self._lock:
            self._taken.add(worker)
        return worker

    def close(self) -> None:
        """End the connections."""
        self._closed = True
        with self._lock:
            for worker in list(self._taken):
                worker.kill()
            loop, self._loop = self._loop, None
        if loop is not None:
            asyncio.run_coroutine_threadsafe(self._end_relays(), loop)

    def forget(self) -> None:
        """Leave the connections to the process this one was forked from."""
        for worker in list(getattr(self, "_taken", ())):
            worker.socket.close()
        self._lock = threading.Lock()
        self._taken: weakref.WeakSet[RemoteWorker] = weakref.WeakSet()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._relaying: set[asyncio.Future[None]] = set()
        self._closed = False

    # --- connecting

    def _greeted(self) -> RemoteWorker:
        """Return a worker whose guest has said what holds."""
        where = f"the guest at {self._host}:{self._port}"
        try:
            channel = self._connected()
        except OSError as error:
            raise SandboxUnavailable(
                f"{where} cannot be reached: {error or 'it took too long'}",
                remedy="See that it runs, and that this machine may connect to it",
            ) from error
        worker = RemoteWorker(channel)
        try:
            channel.sendall(self._proof)
            self._check.take(ready(channel, seconds=self._seconds))
        except OSError as error:
            worker.close()
            raise SandboxUnavailable(f"{where} ended the connection: {error}") from error
        except SandboxUnavailable as error:
            worker.close()
            raise SandboxUnavailable(f"{where}: {error.problem}", error.layer, error.remedy) from None
        return worker

    def _connected(self) -> socket.socket:
        if self._tls is None:
            connection = socket.create_connection((self._host, self._port), self._seconds)
            keep_alive(connection)
            connection.settimeout(None)
            return connection
        ours, theirs = socket.socketpair()
        try:
            asyncio.run_coroutine_threadsafe(self._encrypt(self._tls, theirs), self._relays()).result()
        except BaseException:
            ours.close()
            theirs.close()
            raise
        return ours

    async def _encrypt(self, tls: ssl.SSLContext, channel: socket.socket) -> None:
        """Connect by TLS, and pass on what comes from a channel, and to it, from now on."""
        async with asyncio.timeout(self._seconds):
            reader, writer = await asyncio.open_connection(self._host, self._port, ssl=tls)
        keep_alive(writer.get_extra_info("socket"))
        relaying = asyncio.ensure_future(relay(reader, writer, channel))
        self._relaying.add(relaying)
        relaying.add_done_callback(self._relaying.discard)

    def _relays(self) -> asyncio.AbstractEventLoop:
        """Return an event loop in a thread of its own, started for the first connection."""
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=_run, args=(self._loop,), name="toolcrib-tls", daemon=True).start()
            return self._loop

    async def _end_relays(self) -> None:
        await asyncio.gather(*self._relaying, return_exceptions=True)
        await asyncio.sleep(0.01)  # connections that failed are closed by callbacks
        asyncio.get_running_loop().stop()


def _run(loop: asyncio.AbstractEventLoop) -> None:
    loop.run_forever()
    loop.close()
