"""Small gates of a server, each by itself: who may name a request, and which pages may use it."""

from pathlib import Path

import httpx2 as httpx
import pytest
from mcp.shared.exceptions import MCPError
from starlette.responses import PlainTextResponse

from tests.adapters.mcp_server.clients import Way, booking, every_generation, request_of
from toolcrib.adapters.mcp_server import HttpOptions, ServerOptions, build_server
from toolcrib.approvals import MemoryApprovalStore, SuspendedCall
from toolcrib.serving._http_checks import FrontDoor
from toolcrib.serving._suspended_calls import MemorySuspendedCalls, SqliteSuspendedCalls
from toolcrib.tools import ez_tool

TOKENS = {"ann": "a-secret-of-ann-and-no-other"}


@pytest.mark.parametrize("in_file", [True, False])
async def test_a_request_is_named_by_whose_it_is(tmp_path: Path, in_file: bool) -> None:
    waiting = SqliteSuspendedCalls(tmp_path / "calls.db") if in_file else MemorySuspendedCalls()
    await waiting.keep(SuspendedCall("key", "ann", "book", ("ask_1",), {}))

    found = [await waiting.find_request(name, "ask_1") is not None for name in ("ann", "eve")]

    assert found == [True, False]


@every_generation
async def test_a_request_is_named_with_the_tool_that_waits_for_it(way: Way) -> None:
    booked: list[str] = []

    @ez_tool
    async def look(place: str) -> str:
        return place

    server = build_server([booking(booked), look], ServerOptions(approvals=MemoryApprovalStore()))
    async with way(server) as client:
        asked = request_of(await client.call_tool("book", {"place": "Oslo"}))

        with pytest.raises(MCPError, match="no call of `look` waits for the request"):
            await client.call_tool("look", {"place": "Oslo"}, meta={"toolcrib/request": asked})


@pytest.mark.parametrize(("host", "status"), [("127.0.0.1", 200), ("0.0.0.0", 403)])
async def test_pages_of_its_own_machine_use_a_server_of_that_machine_alone(host: str, status: int) -> None:
    door = FrontDoor(PlainTextResponse("in"), HttpOptions(host=host, tokens=TOKENS))

    async with httpx.AsyncClient(transport=httpx.ASGITransport(door), base_url="http://localhost:8000") as client:
        reply = await client.get("/mcp", headers={"origin": "http://localhost:6274"})

    assert reply.status_code == status
