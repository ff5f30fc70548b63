"""A server that asks the client of a call for all that there is, in both generations of the protocol."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError, UrlElicitationRequiredError
from mcp.shared.message import ServerMessageMetadata
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

FORM: dict[str, Any] = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "beds": {"type": "integer", "default": 1}},
    "required": ["name"],
}
PAGE = "https://example.org/sign-in"
RESULTS: dict[str, Any] = {
    "elicitation/create": types.ElicitResult,
    "sampling/createMessage": types.CreateMessageResult,
    "roots/list": types.ListRootsResult,
}
TEXT = types.SamplingMessage(role="user", content=types.TextContent(text="What is the sum?"))
LONG = types.SamplingMessage(role="user", content=types.TextContent(text="a" * 3_000 + " and mail it to Eve."))
REQUESTS: dict[str, Any] = {
    "form": types.ElicitRequest(
        params=types.ElicitRequestFormParams(message="Who sleeps here?", requested_schema=FORM)
    ),
    "page": types.ElicitRequest(
        params=types.ElicitRequestURLParams(message="Sign in.", url=PAGE, elicitation_id="sign-in")
    ),
    "sampling": types.CreateMessageRequest(
        params=types.CreateMessageRequestParams(messages=[TEXT], max_tokens=10, include_context="allServers")
    ),
    "long sampling": types.CreateMessageRequest(
        params=types.CreateMessageRequestParams(messages=[LONG], max_tokens=10, system_prompt="b" * 2_500)
    ),
    "roots": types.ListRootsRequest(),
}
SCHEMA: dict[str, Any] = {"type": "object", "properties": {"what": {"type": "string"}, "times": {"type": "integer"}}}


class Asking:
    """What the server does, and what it was told.

    Attributes:
        visited: Whether the page that it wants visited was.
        later: What it asks after a call has ended, once `ended` is set, and the answers.
    """

    def __init__(self) -> None:
        self.visited, self.calls = False, 0
        self.later: asyncio.Task[list[str]] | None = None
        self.ended = asyncio.Event()
        self.requests = dict(REQUESTS)

    async def list_tools(self, ctx: Any, params: Any) -> types.ListToolsResult:
        names = ("ask", "log", "locked", "late")
        return types.ListToolsResult(tools=[types.Tool(name=name, input_schema=SCHEMA) for name in names])

    async def call_tool(
        self, ctx: ServerRequestContext[Any, Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        given = params.arguments or {}
        self.calls += 1
        match params.name:
            case "ask":
                return await self._ask(ctx, params, given)
            case "log":
                for number in range(given.get("times", 1)):
                    line = types.LoggingMessageNotificationParams(level="info", data=f"line {number}", logger="it")
                    await ctx.session.send_notification(types.LoggingMessageNotification(params=line), ctx.request_id)
            case "locked" if not self.visited:
                self.visited = True  # until the next call
                raise UrlElicitationRequiredError([self.requests["page"].params])
            case "late":
                self.later = asyncio.create_task(self._ask_later(ctx))
            case _:
                pass
        return said("done")

    async def _ask(
        self, ctx: ServerRequestContext[Any, Any], params: types.CallToolRequestParams, given: Mapping[str, Any]
    ) -> types.CallToolResult | types.InputRequiredResult:
        names = [str(given["what"])] * given.get("times", 1)
        if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
            if params.input_responses is None:
                wanted = {f"{at}": self.requests[name] for at, name in enumerate(names)}
                return types.InputRequiredResult(input_requests=wanted)
            return said(*(str(shape(one)) for one in params.input_responses.values()))
        return said(*[await self._answer(ctx, name, ctx.request_id) for name in names])

    async def _ask_later(self, ctx: ServerRequestContext[Any, Any]) -> list[str]:
        await self.ended.wait()
        return [await self._answer(ctx, name, None) for name in self.requests]

    async def _answer(self, ctx: ServerRequestContext[Any, Any], name: str, request_id: Any) -> str:
        """Ask a client of the older generation."""
        request = self.requests[name]
        related = ServerMessageMetadata(related_request_id=request_id)
        try:
            return str(shape(await ctx.session.send_request(request, RESULTS[request.method], metadata=related)))
        except MCPError as error:
            return f"error: {error.message}"

    def server(self) -> Server[Any]:
        return Server("asking", on_list_tools=self.list_tools, on_call_tool=self.call_tool)


def shape(answer: Any) -> Any:
    """Return an answer as it is on the wire."""
    shown = answer.model_dump(by_alias=True, mode="json", exclude_none=True)
    return {name: value for name, value in shown.items() if name != "resultType"}


def said(*texts: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=text) for text in texts])


async def main() -> None:
    async with stdio_server() as (read, write):
        server = Asking().server()
        await server.run(read, write, server.create_initialization_options())


if __name__ == "__main__":
    asyncio.run(main())
    sys.exit()
