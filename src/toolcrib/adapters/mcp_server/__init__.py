"""MCP server: a toolset served to clients of the Model Context Protocol, in both of its generations. The extra `mcp`.

This package translates requests to calls, outcomes to results, and approvals both ways. It has no gates, no retries.
"""

from __future__ import annotations

from toolcrib._extras import Extra

with Extra(
    "the Model Context Protocol",
    "mcp",
    ("anyio", "cryptography", "h11", "httpx2", "jsonschema", "mcp", "mcp_types", "referencing", "starlette", "uvicorn"),
):
    from toolcrib.adapters.mcp_server._http import (
        HttpApp,
        HttpEndpoint,
        http_app,
        serve,
        serve_async,
        serve_endpoints,
        serve_http,
        serve_stdio,
    )
    from toolcrib.adapters.mcp_server._http_options import HttpOptions
    from toolcrib.adapters.mcp_server._options import ServerOptions, TaskOptions
    from toolcrib.adapters.mcp_server._server import McpServer, build_server
    from toolcrib.serving import acting_as
    from toolcrib.serving.oauth import AuthorizationServer

__all__ = [
    "AuthorizationServer",
    "HttpApp",
    "HttpEndpoint",
    "HttpOptions",
    "McpServer",
    "ServerOptions",
    "TaskOptions",
    "acting_as",
    "build_server",
    "http_app",
    "serve",
    "serve_async",
    "serve_endpoints",
    "serve_http",
    "serve_stdio",
]
