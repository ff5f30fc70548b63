"""Targets with members whose tools are known only while they are open: an MCP server beside tools of one's own."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from tests.adapters.mcp_server.http import COMMAND
from tests.cli.conftest import Command
from toolcrib.adapters.dbos import Engine
from toolcrib.cli._durable import durable_of
from toolcrib.turns import Turn

SAMPLE = '''
from mcp.server.mcpserver import Context, MCPServer

from toolcrib import Toolset, tool
from toolcrib.adapters.mcp_client import connect

server = MCPServer("house", log_level="CRITICAL")


@server.tool(structured_output=False)
async def clean(ctx: Context, rooms: list[str]) -> str:
    """Clean rooms."""
    for number, room in enumerate(rooms, 1):
        await ctx.report_progress(number, len(rooms), room)
    return "all clean"


@tool(requires_approval=True)
async def pay(amount: int) -> str:
    """Pay the cleaner."""
    return f"paid {amount}"


crib = Toolset([connect(server, name="house"), pay])
'''


@pytest.fixture
def house(tmp_path: Path) -> str:
    """The path of a file with a toolset that has a server of MCP as a member."""
    path = tmp_path / "house.py"
    path.write_text(SAMPLE, "utf-8")
    return str(path)


def test_the_tools_of_a_server_are_listed_with_ones_own(toolcrib: Command, house: str) -> None:
    listed = toolcrib("list", house, "--json")
    described = toolcrib("schema", house, "--format", "openai")

    assert {tool["name"]: tool["marks"] for tool in json.loads(listed.stdout)} == {
        "pay": ["approval"],
        "clean": ["#mcp"],
    }
    assert "Clean rooms." in described.stdout


def test_a_server_is_open_while_its_tool_is_called(toolcrib: Command, house: str) -> None:
    done = toolcrib("call", house, "clean", '{"rooms": ["attic"]}')
    wrong = toolcrib("call", house, "clean", '{"rooms": "attic"}')
    nobody = toolcrib("call", house, "pay", '{"amount": 3}', "--approve", "cleen")

    assert (done.exit_code, done.stdout) == (0, "all clean\n")
    assert done.stderr == "1 of 1: attic\n"  # progress is not a part of the result
    assert (wrong.exit_code, wrong.stdout) == (2, "")
    assert "there is no tool `cleen`" in nobody.stderr


def test_a_paused_program_opens_the_server_anew(toolcrib: Command, house: str, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("print(clean(rooms=[]), pay(2))", "utf-8")
    (tmp_path / "key").write_text("k" * 32, "utf-8")

    paused = toolcrib("exec", house, "program.py", "--pause", "kept", "--key", "key")
    done = toolcrib("resume", "kept", "--approve", "pay", "--key", "key")

    assert paused.exit_code == 3
    assert (done.exit_code, done.stdout.splitlines()[0]) == (0, "all clean paid 2")


def test_a_server_that_does_not_start_is_one_sentence(toolcrib: Command, tmp_path: Path) -> None:
    code = "import sys\nfrom toolcrib.adapters.mcp_client import connect\n"
    (tmp_path / "gone.py").write_text(f"{code}crib = connect([sys.executable, '-c', '1/0'], name='gone')", "utf-8")

    listed = toolcrib("list", "gone.py")

    assert (listed.exit_code, listed.stdout) == (1, "")
    assert listed.stderr.startswith("the server `gone` did not start: Connection closed")


async def test_a_worker_keeps_the_server_open_for_its_turns_and_programs(house: str, tmp_path: Path) -> None:
    async with durable_of(house) as durable:
        (agent,), (toolkit,) = durable.agents, durable.toolkits
        async with Engine(tmp_path / "work.db", worker_id="w1", queues=[replace(agent.queue, polling=0.02)]):
            turn = await agent.put(Turn(agent.agent.toolset["clean"].tool, kwargs={"rooms": ["attic"]}))
            program = await toolkit.start("print(clean(rooms=[]))")
            outcome, result = await turn.outcome(), await program.result(polling=0.02)
            reported = [value async for value in turn.values()]

    assert (outcome.value, result.output) == ("all clean", "all clean\n")
    assert reported[0]["message"] == "attic"


async def test_a_server_behind_the_counter_is_served_on(house: str, tmp_path: Path) -> None:
    said: list[tuple[float, float | None, str | None]] = []

    async def progress(done: float, total: float | None, message: str | None) -> None:
        said.append((done, total, message))

    command, *arguments = [*COMMAND, "serve", house]
    with (tmp_path / "log").open("w") as log:
        place = stdio_client(StdioServerParameters(command=command, args=arguments, cwd=tmp_path), errlog=log)
        async with Client(place) as client:
            names = [tool.name for tool in (await client.list_tools()).tools]
            done = await client.call_tool("clean", {"rooms": ["attic", "hall"]}, progress_callback=progress)

    assert sorted(names) == ["clean", "pay"]
    assert done.content[0].text == "all clean"
    assert said == [(1, 2, "attic"), (2, 2, "hall")]
