"""An MCP server of somebody else's, behind a gateway: it pays, and either of the two is killed around it."""

from __future__ import annotations

import asyncio
import os

from mcp.server.mcpserver import MCPServer

from tests.crash.points import POINT, effect, folder, kill_at, wait_for_release, write

server = MCPServer("bank", log_level="CRITICAL")


def write_point(point: str) -> None:
    """Arm the server that is started next with a point."""
    write(folder() / "point", point)


@server.tool()
async def pay(cents: int) -> str:
    """Pay a bill."""
    gateway = int((folder() / "server").read_text())
    kill_at("server: before the effect")
    kill_at("gateway: before the effect", gateway)
    await asyncio.to_thread(wait_for_release)
    result = effect()
    kill_at("server: after the effect")
    kill_at("gateway: after the effect", gateway)
    return result


if __name__ == "__main__":
    os.environ[POINT] = (folder() / "point").read_text()
    server.run()
