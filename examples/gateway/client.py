"""An MCP client of the gateway: it lists the tools, asks the time, and adds a note."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

FILE = Path(__file__).with_name("mcp.json")


async def main(note: str) -> None:
    gateway = StdioServerParameters(command=sys.executable, args=["-m", "toolcrib", "serve", str(FILE)])
    async with Client(stdio_client(gateway)) as client:
        print("tools:", ", ".join(sorted(tool.name for tool in (await client.list_tools()).tools)))
        for name, arguments in (("clock_now", {}), ("notes_add", {"text": note}), ("notes_read", {})):
            result = await client.call_tool(name, arguments)
            print(f"{name}:", *(part.text for part in result.content if part.type == "text"))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
