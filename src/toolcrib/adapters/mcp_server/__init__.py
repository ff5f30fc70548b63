"""MCP server: a toolset served to the clients of the Model Context Protocol, both generations of it. The extra `mcp`.

What is here translates: their requests to calls, outcomes to their results, approval both ways. It has no gate and no
retry.
"""

from __future__ import annotations

from toolcrib.errors import MissingExtraError

try:
    import mcp as _mcp
except ModuleNotFoundError as error:
    if error.name != "mcp":
        raise
    raise MissingExtraError("serving tools over MCP", "mcp") from error

from toolcrib.adapters.mcp_server._http import HttpApp, http_app, serve_http
from toolcrib.adapters.mcp_server._options import ServerOptions
from toolcrib.adapters.mcp_server._serve import serve, serve_async
from toolcrib.adapters.mcp_server._server import CribServer, build_server
from toolcrib.adapters.mcp_server._stdio import serve_stdio
from toolcrib.serving._http_options import HttpOptions
from toolcrib.serving._principals import acting_as

__all__ = [
    "CribServer",
    "HttpApp",
    "HttpOptions",
    "ServerOptions",
    "acting_as",
    "build_server",
    "http_app",
    "serve",
    "serve_async",
    "serve_http",
    "serve_stdio",
]

del _mcp
