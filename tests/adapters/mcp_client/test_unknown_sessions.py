"""Calls that a server refuses by the status of its response: what it did not read is known not to have run."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import mcp_types as types
import pytest
from mcp.server import Server
from mcp.shared.exceptions import MCPError

from tests.adapters.mcp_client.servers import asked_over_http, called, failed, serving
from tests.networks import free_port
from toolcrib.adapters.mcp_client import connect
from toolcrib.adapters.mcp_client._messages import limited_responses
from toolcrib.errors import ServerError

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


NOTHING_RAN = [(status, b"no", "text/plain") for status in (401, 403, 405, 406, 413, 415, 421, 429)]


@pytest.mark.parametrize("mode", ["legacy", "auto"])
@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [*NOTHING_RAN, (401, b'{"error": "invalid_token"}', "application/json"), (403, b"", "text/html")],
)
async def test_a_call_that_was_refused_by_its_status_is_known_not_to_have_run(
    status: int, body: bytes, kind: str, mode: str
) -> None:
    server, port = Restarted(status, body, kind), free_port()

    async with serving(server, port), connect(f"http://127.0.0.1:{port}/mcp", mode=mode).open() as tools:
        outcome = await failed(tools, "pay")
        after = await called(tools, "pay")

    assert f"refused the request by HTTP: {status} " in outcome.text()
    assert outcome.text().endswith("Nothing of it ran")
    assert (after, server.calls) == ("paid", 2)


@pytest.mark.parametrize("status", [400, 408, 409, 422, 424, 500, 502, 503, 504])
async def test_of_a_call_that_failed_by_another_status_it_is_not_known_whether_it_ran(status: int) -> None:
    server, port = Restarted(status, b"no", "text/plain"), free_port()

    async with serving(server, port), connect(f"http://127.0.0.1:{port}/mcp", mode="legacy").open() as tools:
        outcome = await failed(tools, "pay")

    assert isinstance(outcome.exception, ServerError)
    assert outcome.exception.may_have_run


async def test_what_a_server_says_of_its_refusal_is_what_the_model_is_told() -> None:
    server, port = Restarted(403, error("the till is closed")), free_port()

    async with serving(server, port), connect(f"http://127.0.0.1:{port}/mcp", mode="legacy").open() as tools:
        outcome = await failed(tools, "pay")

    assert outcome.text() == "RemoteToolError: the till is closed"


@pytest.mark.parametrize(
    "asked",
    [
        {"method": "tasks/get", "params": {"taskId": "t"}},
        {"method": "tools/call", "params": {"name": "pay", "inputResponses": {}}},
        {"method": "tools/call", "params": {"name": "pay", "requestState": "s"}},
    ],
)
@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": ")])
async def test_a_call_that_is_gone_on_with_may_have_run_whatever_the_status(asked: Any, separators: Any) -> None:
    content = json.dumps({"jsonrpc": "2.0", "id": 1, **asked}, separators=separators).encode()
    headers = {"accept": "application/json, text/event-stream"}
    request = httpx2.Request("POST", "http://bank.example", content=content, headers=headers)

    async def body() -> AsyncIterator[bytes]:
        yield b"no"

    response = httpx2.Response(401, content=body(), request=request)
    await limited_responses("bank", 1000)(response)

    assert await response.aread() == b"no"
