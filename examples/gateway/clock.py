"""An MCP server that knows the time."""

from __future__ import annotations

from datetime import UTC, datetime

from mcp.server.mcpserver import MCPServer
from mcp_types import ToolAnnotations

server = MCPServer("clock")


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def now() -> str:
    """Say what time it is, in UTC."""
    return datetime.now(UTC).isoformat(timespec="seconds")


if __name__ == "__main__":
    server.run()
