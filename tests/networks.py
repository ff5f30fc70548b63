"""Network between a test and a server: ports, and a proxy that can stop passing anything on, and closes nothing."""

from __future__ import annotations

import atexit
import random
import socket
import sys
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress

_reserved: list[socket.socket] = []


@atexit.register
def _release() -> None:
    """Close the reserved ports as the process ends: Python warns of each that is open then."""
    for bound in _reserved:
        bound.close()


def free_port() -> int:
    """Return a port of loopback that a server may listen on, and that no other process is given.

    On Linux it stays bound, without listening, until this process ends: the kernel gives it to nobody who asks for any
    port, a connection to it is refused, and a server that sets SO_REUSEADDR, as they do, may listen on it.
    """
    bound = socket.socket()
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    bound.bind(("127.0.0.1", 0))
    port = int(bound.getsockname()[1])
    if sys.platform == "linux":
        _reserved.append(bound)
    else:
        bound.close()
    return port


class Network:
    """A proxy on loopback, which passes on what it gets, in threads.

    Args:
        targets: The ports that it passes on to, each connection to one of them that takes it.

    Attributes:
        port: Where it listens.
    """

    def __init__(self, *targets: int) -> None:
        self._targets = targets
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._sockets: list[socket.socket] = []
        self._swallowed: set[socket.socket] = set()
        self._swallows_later = False
        threading.Thread(target=self._accept, daemon=True).start()

    def swallow(self, *, later: bool = False) -> None:
        """Lose from now on what is sent on the connections that there are; with `later` also on those after them."""
        self._swallowed.update(self._sockets)
        self._swallows_later = later

    def cut(self, seconds: float) -> None:
        """Lose what is sent for so long, then end all connections that there are by then, and pass on anew."""
        self.swallow(later=True)
        time.sleep(seconds)
        ended, self._sockets, self._swallows_later = self._sockets, [], False
        self._close(ended)
        self._swallowed.clear()

    def close(self) -> None:
        """End all connections."""
        self._close([self._listener, *self._sockets])

    def _close(self, sockets: list[socket.socket]) -> None:
        for each in sockets:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _accept(self) -> None:
        with suppress(OSError):  # it was closed
            while True:
                ours, _ = self._listener.accept()
                theirs = self._connect()
                if theirs is None:
                    ours.close()
                    continue
                self._sockets += [ours, theirs]
                if self._swallows_later:
                    self._swallowed.update((ours, theirs))
                for source, sink in ((ours, theirs), (theirs, ours)):
                    threading.Thread(target=self._pass_on, args=(source, sink), daemon=True).start()

    def _connect(self) -> socket.socket | None:
        for target in random.sample(self._targets, len(self._targets)):
            with suppress(OSError):
                return socket.create_connection(("127.0.0.1", target))
        return None

    def _pass_on(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65_536):
                if source not in self._swallowed:
                    sink.sendall(data)
            if source not in self._swallowed:
                sink.shutdown(socket.SHUT_WR)


@contextmanager
def network_to(port: int) -> Generator[Network]:
    """Give a network to a port of this machine."""
    network = Network(port)
    try:
        yield network
    finally:
        network.close()
