"""The console on a port, until a signal stops it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

from toolcrib.console._app import ConsoleApp
from toolcrib.console._options import ConsoleOptions
from toolcrib.serving.http import HttpLimits, listen, serve_app

__all__ = ["serve"]


def serve(app: ConsoleApp, options: ConsoleOptions, started: Callable[[str], None] = lambda url: None) -> None:
    """Serve the console until SIGINT or SIGTERM.

    Args:
        app: The application that `console_app` made with the same options.
        options: Where to listen.
        started: Receives the URL when the console listens.

    Raises:
        OSError: The console cannot listen there.
    """
    with listen(options.host, options.port) as listener:
        ready = partial(started, f"{listener.url}/")
        asyncio.run(serve_app(app, listener, HttpLimits(), started=ready, signals=True))
