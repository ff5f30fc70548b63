"""A server that is measured: `python -m benchmarks._mcp_server NAME [PORT]`, over stdio without a port.

NAME is `toolcrib` or `fastmcp`, or with `-proxy` a gateway of that name in front of a server of FastMCP's over stdio.
"""

# ruff: noqa: PLC0415 -- a contender's process imports what that contender needs, and nothing of the others

from __future__ import annotations

import os
import sys
import threading
from typing import Any

from benchmarks._tools import get_weather

UPSTREAM = [sys.executable, "-m", "benchmarks._mcp_server", "fastmcp"]


def main() -> None:
    """Serve the tool until standard input ends, or over HTTP until the process is ended."""
    name, *port = sys.argv[1:]
    if port:  # nobody speaks to it on stdin, whose end says that the measurement is over, however it ended
        threading.Thread(target=_end_with_stdin, daemon=True).start()
    servers = {
        "toolcrib": toolcrib,
        "fastmcp": fastmcp,
        "toolcrib-proxy": toolcrib_proxy,
        "fastmcp-proxy": fastmcp_proxy,
    }
    servers[name](int(port[0]) if port else None)


def _end_with_stdin() -> None:
    while os.read(0, 1024):
        pass
    os._exit(0)


def toolcrib(port: int | None) -> None:
    from toolcrib.adapters.mcp_server import HttpOptions, serve
    from toolcrib.tools import tool

    serve([tool()(get_weather)], http=None if port is None else HttpOptions(port=port))


def toolcrib_proxy(port: int | None) -> None:
    from toolcrib.adapters.mcp_client import connect
    from toolcrib.adapters.mcp_server import HttpOptions, serve

    serve(connect(UPSTREAM, env=dict(os.environ)), http=None if port is None else HttpOptions(port=port))


def fastmcp(port: int | None) -> None:
    from fastmcp import FastMCP

    server = FastMCP("benchmark")
    server.tool(get_weather)
    _run_fastmcp(server, port)


def fastmcp_proxy(port: int | None) -> None:
    from fastmcp.client.transports import StdioTransport
    from fastmcp.server import create_proxy

    _run_fastmcp(create_proxy(StdioTransport(UPSTREAM[0], UPSTREAM[1:], env=dict(os.environ))), port)


def _run_fastmcp(server: Any, port: int | None) -> None:
    if port is None:
        server.run(transport="stdio", show_banner=False, log_level="ERROR")
    else:
        server.run(
            transport="http",
            port=port,
            show_banner=False,
            log_level="ERROR",
            uvicorn_config={"timeout_keep_alive": 75},
        )


if __name__ == "__main__":
    main()
