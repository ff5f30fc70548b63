"""Serving over the standard streams."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from contextlib import redirect_stdout

from mcp.server.stdio import stdio_server

from toolcrib.adapters.mcp_server._server import CribServer

__all__ = ["serve_stdio"]

_log = logging.getLogger("toolcrib.adapters")


async def serve_stdio(server: CribServer, *, ended: Callable[[], object] | None = None) -> None:
    """Serve one client over stdin and stdout until it goes; what tools print goes to stderr meanwhile.

    Args:
        server: The server.
        ended: Called when everything is closed but stdin: a thread that waits for a line cannot be stopped, so that a
            cancelled call of this returns with the next line, or the end.
    """
    try:
        async with stdio_server() as (read, write):
            try:
                with redirect_stdout(sys.stderr):
                    await server.run(read, write, server.create_initialization_options())
            finally:
                if ended is not None:
                    ended()
    except* BrokenPipeError:  # the client went before it was answered
        _log.info("the client went before it was answered")
