"""A server that does what the protocol forbids, beside a good one, behind one gateway."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp.client.client import Client
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

from tests.adapters.mcp_client.servers import called, failed
from tests.adapters.mcp_server.faults import (
    CORRECT,
    MOST,
    NEWER,
    Fault,
    faults_of,
    faulty_command,
    faulty_servers,
)
from tests.effort import share
from toolcrib.adapters.mcp_client import connect
from toolcrib.adapters.mcp_server import build_server
from toolcrib.toolsets import Toolset

IN_TIME = 60.0  # seconds, for a test that hangs
ASKED: dict[str, Any] = {
    "tools/call": lambda client: client.call_tool("bad_pay", {"cents": 1}),
    "resources/read": lambda client: client.read_resource("odd://r"),
    "resources/templates/list": lambda client: client.read_resource("odd://t/1"),
    "prompts/get": lambda client: client.get_prompt("bad_p", {"a": "x"}),
    "completion/complete": lambda client: client.complete(
        types.PromptReference(name="bad_p"), {"name": "a", "value": "x"}
    ),
}


def good() -> Server[Any]:
    async def list_tools(ctx: Any, params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[types.Tool(name="add", input_schema={"type": "object"})])

    async def call_tool(ctx: Any, params: Any) -> types.CallToolResult:
        return types.CallToolResult(content=[types.TextContent(text="2")])

    return Server("good", on_list_tools=list_tools, on_call_tool=call_tool)


async def ended(asking: Any) -> str:
    """Return how a request of the bad server ends."""
    try:
        result = await asking
    except MCPError as error:
        return f"error: {error.message}"
    text = result.model_dump_json(by_alias=True)
    return f"failed: {text}" if getattr(result, "is_error", False) else "done"


async def use(fault: Fault, source: str | list[str]) -> dict[str, str]:
    """Use the good server of a gateway beside the bad one; return how the requests of the bad one end."""
    seconds = IN_TIME if fault.lines else 2.0  # the right answer is among the lines
    bad = connect(
        source,
        name="bad",
        prefix="bad_",
        mode="auto" if fault.newer else "legacy",
        timeout=seconds,
        connect_timeout=seconds,
        max_message=MOST,
        required=False,
    )
    async with Client(build_server(Toolset([bad, connect(good(), name="good")])), cache=None) as client:
        listed = [tool.name for tool in (await client.list_tools()).tools]
        assert "add" in listed
        asked = [ended(ask(client)) for ask in ASKED.values()]
        *ends, added = await asyncio.gather(*asked, client.call_tool("add", {}))
        for result in (added, await client.call_tool("add", {})):
            assert (result.is_error, result.content[0].text) == (False, "2")
    return dict(zip(ASKED, ends, strict=True))


def problem_of(fault: Fault, ends: dict[str, str]) -> str:
    """Return what is wrong with how a call of the bad server ended; empty where nothing is.

    It is done, or it is the answer of the server itself, or the error names the server and says what is not known. What
    stands beside a right answer changes nothing.
    """
    if fault.lines:
        return "" if {*ends.values()} == {"done"} else f"{fault}: {ends!s:.300}"
    end = ends["tools/call"]
    if end == "done" or fault.method != "tools/call" or fault.name.startswith("the message"):
        return ""
    if "odd" in end or ('"isError":true' in end and "done" in end):
        return ""
    names = "the server `bad`" in end
    says_what_is_known = any(words in end for words in ("took effect", "taken effect", "Nothing of it ran"))
    return "" if names and says_what_is_known else f"{fault}: {end:.300}"


async def used(faults: Iterable[Fault], folder: Path | None = None) -> list[str]:
    """Use a gateway with each of these faults, over HTTP, or by commands with a folder; return what went wrong."""
    wrong: list[str] = []
    async with faulty_servers() as servers:
        for fault in faults:
            try:
                async with asyncio.timeout(IN_TIME):
                    source = servers.url_of(fault) if folder is None else faulty_command(fault, folder)
                    wrong.append(problem_of(fault, await use(fault, source)))
            except BaseException as error:
                wrong.append(f"{fault}: {error!r}")
    return [problem for problem in wrong if problem]


GENERATIONS = [(method, False) for method in CORRECT] + [(method, True) for method in NEWER]
every_method = pytest.mark.parametrize(("method", "newer"), GENERATIONS)


@every_method
async def test_a_fault_of_a_server_stops_no_other_one(method: str, newer: bool) -> None:
    some = islice(faults_of(method, newer=newer), 3, None, 29)

    assert await used(some) == []


@pytest.mark.processes
@every_method
async def test_a_fault_of_a_command_stops_no_other_one(method: str, newer: bool, tmp_path: Path) -> None:
    messages = (fault for fault in faults_of(method, newer=newer) if fault.status == 200)

    assert await used(islice(messages, 5, None, 23), tmp_path) == []


@pytest.mark.systems
@pytest.mark.timeout(1_200)
@every_method
async def test_no_fault_of_a_server_stops_another_one(method: str, newer: bool) -> None:
    assert await used(share([*faults_of(method, newer=newer)])) == []


async def test_a_server_that_answers_with_the_code_of_a_lost_connection_is_not_lost() -> None:
    fault = next(fault for fault in faults_of("tools/call") if fault.name == "the code -32000")
    async with faulty_servers() as servers:
        bad = connect(servers.url_of(fault), name="bad", mode="legacy")
        async with bad.open() as tools:
            outcome = await failed(tools, "pay", cents=1)
            words = await called(tools, "read_r")

    assert (outcome.text(), words) == ("RemoteToolError: odd", "words")
