"""A server as most are written: its tools ask the client during a call, in the way of the older generation."""

from __future__ import annotations

import warnings

import mcp_types as types
from mcp.server.mcpserver import Context, MCPServer
from pydantic import BaseModel

server = MCPServer("classic")


class Name(BaseModel):
    name: str


@server.tool()
async def greet(ctx: Context) -> str:
    """Greet the person."""
    answer = await ctx.elicit("Who?", Name)
    return f"Hello, {answer.data.name}." if answer.action == "accept" else "Hello."


@server.tool()
async def add_up(ctx: Context) -> str:
    """Have the client's model add up."""
    asked = types.SamplingMessage(role="user", content=types.TextContent(text="Sum?"))
    answer = await ctx.session.create_message(messages=[asked], max_tokens=5)  # pyright: ignore[reportDeprecated]
    return f"It is {answer.content.text}." if isinstance(answer.content, types.TextContent) else ""


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    server.run()
