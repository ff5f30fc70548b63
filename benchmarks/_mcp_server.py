"""A server that is measured: `python -m benchmarks._mcp_server toolcrib|fastmcp [PORT]`, over stdio without a port."""

# ruff: noqa: PLC0415 -- a contender's process imports what that contender needs, and nothing of the others

from __future__ import annotations

import os
import sys
import threading

from benchmarks._tools import get_weather


def main() -> None:
    """Serve the tool until standard input ends, or over HTTP until the process is ended."""
    name, *port = sys.argv[1:]
    if port:  # nobody speaks to it on stdin, whose end says that the measurement is over, however it ended
        threading.Thread(target=_end_with_stdin, daemon=True).start()
    {"toolcrib": toolcrib, "fastmcp": fastmcp}[name](int(port[0]) if port else None)


def _end_with_stdin() -> None:
    while os.read(0, 1024):
        pass
    os._exit(0)


def toolcrib(port: int | None) -> None:
    from toolcrib.adapters.mcp_server import HttpOptions, serve
    from toolcrib.tools import tool

    serve([tool()(get_weather)], http=None if port is None else HttpOptions(port=port))


def fastmcp(port: int | None) -> None:
    from fastmcp import FastMCP

    server = FastMCP("benchmark")
    server.tool(get_weather)
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
