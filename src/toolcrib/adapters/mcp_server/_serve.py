"""Serving a toolset until it is stopped, in a call."""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from dataclasses import replace

from toolcrib.adapters.mcp_server._http import serve_http
from toolcrib.adapters.mcp_server._options import ServerOptions
from toolcrib.adapters.mcp_server._server import build_server
from toolcrib.adapters.mcp_server._stdio import serve_stdio
from toolcrib.approvals import SqliteApprovalStore
from toolcrib.serving._http_options import HttpOptions
from toolcrib.toolsets import ToolsetLike

__all__ = ["serve", "serve_async"]


def serve(toolset: ToolsetLike, options: ServerOptions | None = None, *, http: HttpOptions | None = None) -> None:
    """Serve a toolset until the client goes, or over HTTP until Ctrl-C; see `serve_async`."""
    with suppress(KeyboardInterrupt):
        asyncio.run(serve_async(toolset, options, http=http))


async def serve_async(
    toolset: ToolsetLike, options: ServerOptions | None = None, *, http: HttpOptions | None = None
) -> None:
    """Serve a toolset over stdio until the client goes; what tools print goes to stderr meanwhile.

    Args:
        toolset: The tools.
        options: How they are served. Without a store in them, approvals are kept in the file that the environment
            variable TOOLCRIB_DATABASE names, or `toolcrib.db` in the current folder, where `toolcrib approvals` looks.
        http: Serve over HTTP instead, there and for those who may come, until this is cancelled.
    """
    given = options or ServerOptions()
    if given.approvals is None:
        path = os.environ.get("TOOLCRIB_DATABASE") or "toolcrib.db"
        given = replace(given, approvals=SqliteApprovalStore(path.removeprefix("sqlite:///")))
    if http is None:
        await serve_stdio(build_server(toolset, given))
    else:
        await serve_http(toolset, given, http)
