"""An MCP server with notes in a file: one tool reads them, one adds to them, one deletes them all."""

from __future__ import annotations

from pathlib import Path

from mcp.server.mcpserver import MCPServer
from mcp_types import ToolAnnotations

NOTES = Path(__file__).with_name("notes.txt")
server = MCPServer("notes")


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def read() -> str:
    """Read the notes."""
    return NOTES.read_text() if NOTES.exists() else "(no notes)"


@server.tool()
def add(text: str) -> str:
    """Add a note."""
    with NOTES.open("a") as notes:
        notes.write(f"{text}\n")
    return "added"


@server.tool()
def delete_all() -> str:
    """Delete the notes."""
    NOTES.unlink(missing_ok=True)
    return "deleted"


if __name__ == "__main__":
    server.run()
