"""Serving over the standard streams."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout

from mcp.server.stdio import stdio_server

from toolcrib.adapters.mcp_server._server import CribServer

__all__ = ["serve_stdio"]


async def serve_stdio(server: CribServer) -> None:
    """Serve one client over stdin and stdout until it goes; what tools print goes to stderr meanwhile."""
    async with stdio_server() as (read, write):
        with redirect_stdout(sys.stderr):
            await server.run(read, write, server.create_initialization_options())
