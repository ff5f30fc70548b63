"""Functions that serve a toolset over MCP until they are stopped: over the standard streams, or over HTTP."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable
from contextlib import redirect_stdout, suppress
from dataclasses import replace

from anyio import wrap_file
from mcp.server.stdio import stdio_server

from toolcrib._run_sync import run_sync
from toolcrib.adapters.mcp_server._http import serve_http
from toolcrib.adapters.mcp_server._http_options import HttpOptions
from toolcrib.adapters.mcp_server._incoming import UniqueLines, stdin_of_client
from toolcrib.adapters.mcp_server._options import ServerOptions
from toolcrib.adapters.mcp_server._server import McpServer, build_server
from toolcrib.approvals import SqliteApprovalStore
from toolcrib.errors import ToolcribError, explain_options
from toolcrib.toolsets import ToolsetLike

_log = logging.getLogger("toolcrib.adapters")


_OF_OTHERS = {"transport": "serve(toolset) over stdio, or serve(toolset, http=HttpOptions(port=...))"}


@explain_options(_OF_OTHERS)
def serve(toolset: ToolsetLike, options: ServerOptions | None = None, *, http: HttpOptions | None = None) -> None:
    """Serve a toolset until the client disconnects, or over HTTP until Ctrl-C; see `serve_async`."""
    with suppress(KeyboardInterrupt):
        run_sync(serve_async(toolset, options, http=http), "write `await serve_async(toolset)`")


@explain_options(_OF_OTHERS)
async def serve_async(
    toolset: ToolsetLike, options: ServerOptions | None = None, *, http: HttpOptions | None = None
) -> None:
    """Serve a toolset over stdio until the client disconnects; what tools print goes to stderr.

    Args:
        toolset: The tools.
        options: How they are served. Without a store in them, approvals are kept in the file that the environment
            variable TOOLCRIB_DATABASE names, or `toolcrib.db` in the current folder, where `toolcrib approvals` looks.
        http: Serve over HTTP instead, with these options, until this is cancelled.
    """
    server_options = options or ServerOptions()
    if server_options.approvals is None:
        path = os.environ.get("TOOLCRIB_DATABASE") or "toolcrib.db"
        server_options = replace(server_options, approvals=SqliteApprovalStore(path.removeprefix("sqlite:///")))
    if http is None:
        await serve_stdio(build_server(toolset, server_options))
    else:
        await serve_http(toolset, server_options, http)


@explain_options()
async def serve_stdio(server: McpServer, *, ended: Callable[[ToolcribError | None], object] | None = None) -> None:
    """Serve one client over stdin and stdout until it disconnects; what tools print goes to stderr.

    Args:
        server: The server.
        ended: Called when all is closed but stdin, with the error for which the toolset did not open: the thread that
            waits for a line cannot be stopped, so that this ends, after that or when it was cancelled, with the next
            line or the end of stdin.
    """
    try:
        await _serve_streams(server, ended)
    except* BrokenPipeError:  # the client went before it was answered
        _log.info("the client went before it was answered")


async def _serve_streams(server: McpServer, ended: Callable[[ToolcribError | None], object] | None) -> None:
    fault: ToolcribError | None = None
    try:
        with stdin_of_client() as stdin:
            lines = UniqueLines(wrap_file(stdin))
            async with stdio_server(lines.as_file()) as (read, write):
                lines.replies = write
                try:
                    with redirect_stdout(sys.stderr):
                        await server.run(read, write, server.create_initialization_options())
                except ToolcribError as error:
                    fault = error
                    raise
                finally:
                    if ended is not None:
                        ended(fault)
    except ExceptionGroup:
        if fault is None:
            raise
        raise fault from None  # the toolset does not open, which is no matter of the streams
