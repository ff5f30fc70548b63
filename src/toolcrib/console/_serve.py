"""serve: the console on a port, until it is told to stop."""

from __future__ import annotations

import socket
from collections.abc import Callable
from types import FrameType

import uvicorn

from toolcrib.console._app import ConsoleApp
from toolcrib.console._options import ConsoleOptions
from toolcrib.serving._http_timeouts import punctual_protocol

__all__ = ["serve"]

_REQUEST_SECONDS = 15.0  # until the head of a request is there
_READ_SECONDS = 30.0  # how often it is looked whether a page reads on what it is sent
_CONNECTIONS = 500  # at a time; every open page holds one


class _Server(uvicorn.Server):
    """A server that ends the streams of waiting browsers before it waits for requests to end."""

    def __init__(self, config: uvicorn.Config, stop: Callable[[], None]) -> None:
        super().__init__(config)
        self._stop = stop

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._stop()
        super().handle_exit(sig, frame)


def serve(app: ConsoleApp, options: ConsoleOptions, started: Callable[[str], None] = lambda url: None) -> None:
    """Serve the console until SIGINT or SIGTERM.

    Args:
        app: What `console_app` made with the same options.
        options: Where to listen.
        started: Told the address once it listens.

    Raises:
        OSError: It cannot listen there.
    """
    family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
    with socket.socket(family) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((options.host.strip("[]"), options.port))
        listener.listen(128)
        port = int(listener.getsockname()[1])
        name = f"[{options.host}]" if family == socket.AF_INET6 else options.host
        started(f"http://{name}:{port}/")
        config = uvicorn.Config(
            app,
            http=punctual_protocol(_REQUEST_SECONDS, _READ_SECONDS),
            limit_concurrency=_CONNECTIONS,
            lifespan="off",
            log_level="warning",
            timeout_graceful_shutdown=2,
            server_header=False,
            ws="none",
        )
        _Server(config, app.feed.close).run(sockets=[listener])
