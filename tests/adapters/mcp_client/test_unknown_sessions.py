"""Sessions that a server does not know any more: a call is sent again where its status says that it was not read."""

from __future__ import annotations

import json
from typing import Any

import mcp_types as types
import pytest
from mcp.server import Server
from mcp.shared.exceptions import MCPError

from tests.adapters.mcp_client.servers import asked_over_http, called, failed, serving
from tests.networks import free_port
from toolcrib.adapters.mcp_client import connect

TOOL: dict[str, Any] = {"name": "pay", "inputSchema": {"type": "object"}}
START = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "odd", "version": "1"}}


def error(message: str, code: int = -32001) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": message}}).encode()


class Restarted:
    """A server over HTTP that refuses its first call, as if it had been started anew since it began the session."""

    def __init__(self, status: int, body: bytes, kind: str = "application/json") -> None:
        self._refusal = (status, body, kind)
        self.sessions, self.calls = 0, 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        asked = await asked_over_http(scope, receive)
        status, said, kind = self._answer(scope["method"], asked) if scope["type"] == "http" else (200, b"", "")
        headers = [(b"content-type", kind.encode()), (b"mcp-session-id", b"%d" % self.sessions)]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": said})

    def _answer(self, http: str, asked: dict[str, Any]) -> tuple[int, bytes, str]:
        method, number = asked.get("method"), asked.get("id")
        if http != "POST" or number is None:
            return (405 if http != "POST" else 202), b"", "application/json"
        self.sessions += method == "initialize"
        self.calls += method == "tools/call"
        if method == "tools/call" and self.calls == 1:
            status, said, kind = self._refusal
            return status, said.replace(b"null", b"%d" % number), kind
        done = {"content": [{"type": "text", "text": "paid"}]}
        result: Any = {"initialize": START, "tools/list": {"tools": [TOOL]}, "tools/call": done}.get(method or "", {})
        return 200, json.dumps({"jsonrpc": "2.0", "id": number, "result": result}).encode(), "application/json"


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (404, b"", "text/plain"),
        (404, b"<html>gone</html>", "text/html"),
        (404, error("Session not found"), "application/json"),
        (404, error("Not Found: Session has been terminated", -32600), "application/json"),
        (400, error("Bad Request: No valid session ID provided", -32000), "application/json"),
    ],
)
async def test_a_call_that_was_refused_for_its_session_is_sent_again(status: int, body: bytes, kind: str) -> None:
    server, port = Restarted(status, body, kind), free_port()

    async with serving(server, port), connect(f"http://127.0.0.1:{port}/mcp", mode="legacy").open() as tools:
        value = await called(tools, "pay")

    assert (value, server.sessions, server.calls) == ("paid", 2, 2)


@pytest.mark.parametrize(
    ("status", "message"),
    [(404, "order 7 was not found"), (400, "paid, and then the checkout session not found"), (400, "no such order")]
    + [(status, "Session not found") for status in (200, 403, 409, 500)],
)
async def test_a_call_that_was_refused_for_something_else_is_sent_once(status: int, message: str) -> None:
    server, port = Restarted(status, error(message)), free_port()

    async with serving(server, port), connect(f"http://127.0.0.1:{port}/mcp", mode="legacy").open() as tools:
        await failed(tools, "pay")

    assert (server.sessions, server.calls) == (1, 1)


@pytest.mark.parametrize("mode", ["legacy", "auto"])
@pytest.mark.parametrize(
    ("code", "message"),
    [
        (-32603, "paid, and then the checkout session not found"),
        (-32600, "Session terminated"),
        (-32001, "Session not found"),
        (-32000, "Connection closed by the bank"),
    ],
)
async def test_the_words_of_a_tool_make_no_call_twice(mode: str, code: int, message: str) -> None:
    calls = list[str]()

    async def list_tools(ctx: Any, params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[types.Tool(name="pay", input_schema={"type": "object"})])

    async def call_tool(ctx: Any, params: Any) -> types.CallToolResult:
        calls.append(params.name)
        raise MCPError(code, message)

    async with connect(Server("bank", on_list_tools=list_tools, on_call_tool=call_tool), mode=mode).open() as tools:
        outcome = await failed(tools, "pay")

    assert (calls, outcome.text()) == (["pay"], f"RemoteToolError: {message}")
