"""Server of MCP whose effects are lines of a file: `ledger_server.py FILE [PORT|NAME]`, over HTTP with a port."""

from __future__ import annotations

import os
import sys

import anyio
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError


def ledger_server(ledger: str) -> MCPServer:
    """Return the server; `ledger` is the file."""
    server = MCPServer("ledger", log_level="CRITICAL")

    def write(line: str) -> None:
        place = os.open(ledger, os.O_CREAT | os.O_APPEND | os.O_WRONLY)
        try:
            os.write(place, f"{line}\n".encode())  # one write: several processes have the file
        finally:
            os.close(place)

    @server.tool()
    def note(key: str) -> str:
        """Write a line."""
        write(key)
        return f"noted {key}"

    @server.tool()
    def buy(key: str) -> str:
        """Write a line, after a person has said yes."""
        write(key)
        return f"bought {key}"

    @server.tool()
    def fail(word: str) -> str:
        """Fail."""
        raise ToolError(f"no {word} here")

    @server.tool()
    async def nap(seconds: float) -> str:
        """Wait."""
        await anyio.sleep(seconds)
        return "slept"

    @server.tool()
    async def turn(ctx: Context) -> str:  # type: ignore[type-arg]
        """Have one tool more, or one less."""
        names = {tool.name for tool in await server.list_tools()}
        if "extra" in names:
            server.remove_tool("extra")
        else:
            server.add_tool(lambda: "extra", name="extra", description="One tool more.")
        await ctx.notify_tools_changed()
        if ctx.request_context.protocol_version < "2026":
            await ctx.session.send_tool_list_changed()
        return "turned"

    return server


if __name__ == "__main__":
    file, *port = sys.argv[1:]
    if port and port[0].isdigit():
        ledger_server(file).run("streamable-http", port=int(port[0]))
    else:
        ledger_server(file).run()
