"""Clients of a server, over each transport and in each generation of the protocol."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any

import pytest
from mcp.client.client import Client
from mcp_types import CallToolResult, ElicitRequestFormParams, ElicitResult, TextContent
from mcp_types.version import LATEST_MODERN_VERSION

from tests.ways_in.mcp import piped
from toolcrib.adapters.mcp_server import McpServer
from toolcrib.tools import Tool, ez_tool

OLD, NEW = "legacy", LATEST_MODERN_VERSION


@dataclass(frozen=True)
class Way:
    """How a client reaches a server: the transport and the generation."""

    title: str
    transport: Callable[[McpServer], Any]
    generation: str

    def __call__(self, server: McpServer, **options: Any) -> AbstractAsyncContextManager[Client]:
        """Return a client of the server."""
        return Client(self.transport(server), mode=self.generation, cache=None, **options)

    @property
    def is_new(self) -> bool:
        """Whether it is of the stateless generation."""
        return self.generation == NEW


def itself(server: McpServer) -> Any:
    """Return the server, which the SDK's client reaches in memory."""
    return server


IN_MEMORY = (Way("in memory, older", itself, OLD), Way("in memory", itself, NEW))
OVER_STDIO = (Way("stdio, older", piped, OLD), Way("stdio", piped, NEW))

every_generation = pytest.mark.parametrize("way", IN_MEMORY, ids=lambda way: way.title)
every_way = pytest.mark.parametrize("way", [*IN_MEMORY, *OVER_STDIO], ids=lambda way: way.title)


async def send(client: Client, method: str, **params: Any) -> dict[str, Any]:
    """Send a request that the SDK has no types for."""
    session: Any = client.session
    data, options = {"method": method, "params": params}, dict[str, Any]()
    session._stamp(data, options)
    return await session._dispatcher.send_raw_request(method, data["params"], options)


def text_of(result: Any) -> str:
    """Return the text of a result."""
    assert isinstance(result, CallToolResult)
    return "\n".join(part.text for part in result.content if isinstance(part, TextContent))


def request_of(result: Any) -> str:
    """Return the id of the one request that a call waits for."""
    assert result.is_error
    assert result.structured_content["status"] == "suspended"
    [request] = result.structured_content["requests"]
    return request["id"]


def booking(booked: list[str], **options: Any) -> Tool[..., Any]:
    """Return a tool that needs approval, and notes what it booked."""

    @ez_tool(requires_approval=True, **options)
    async def book(place: str) -> str:
        """Book a place."""
        booked.append(place)
        return f"booked {place}"

    return book


def answering(*answers: ElicitResult, asked: list[str] | None = None) -> Any:
    """Return a client's callback that fills in its forms with these answers, and notes what it was shown."""
    left = list(answers)

    async def answer(context: Any, params: Any) -> ElicitResult:
        assert isinstance(params, ElicitRequestFormParams)
        if asked is not None:
            asked.append(params.message)
        return left.pop(0)

    return answer


APPROVE = ElicitResult(action="accept", content={"decision": "approve"})
DENY = ElicitResult(action="accept", content={"decision": "deny", "message": "not this week"})
ANY_PLACE = ElicitResult(action="accept", content={"decision": "always", "argument place": "any"})
ALLOW = ElicitResult(action="accept", content={"decision": "allow"})
