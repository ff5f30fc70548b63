"""Servers that are not there when a toolset opens, or have not all that they announce; and what is known of them."""

from __future__ import annotations

import asyncio
import gc
import logging
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp.client.stdio import StdioServerParameters
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

from tests.adapters.mcp_client import small_server as module
from tests.adapters.mcp_client.servers import Told, called, failed, outcome_of
from tests.adapters.mcp_client.small_server import small_server
from toolcrib.adapters.mcp_client import connect, server_statuses
from toolcrib.adapters.mcp_client._command import command_streams
from toolcrib.adapters.mcp_client._messages import RepeatedKeys
from toolcrib.calls import Failed, ToolCall
from toolcrib.errors import ServerError, ToolConstraintError
from toolcrib.pipeline import Pipeline
from toolcrib.testing import FakeClock
from toolcrib.toolsets import Toolset

DEAD = [sys.executable, "-c", "raise SystemExit('no licence')"]


def warnings_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [r.message for r in caplog.records if r.name == "toolcrib.mcp" and r.levelno >= logging.WARNING]


async def test_a_server_that_does_not_start_is_left_out_with_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    clock = FakeClock()
    tools = Toolset([connect(DEAD, name="dead", prefix="d_", clock=clock), connect(small_server(), prefix="s_")])

    async with tools.with_approval(names=["d_pay"]).open() as opened:
        names = opened.names()
        added = await called(opened, "s_add", a=1, b=2)
        clock.advance(0.5)
        await until(lambda: server_statuses(tools)[0].retry_in == 1)  # it was tried twice
        down, up = server_statuses(tools)

    [warning] = warnings_of(caplog)
    assert names
    assert all(name.startswith("s_") for name in names)
    assert added == {"result": 3}
    assert warning.startswith("the server `dead` did not start")
    assert "no licence" in warning
    assert "leave it out" in warning
    assert (down.server, down.state, up.state) == ("dead", "down", "up")
    assert "no licence" in down.reason


@pytest.mark.parametrize("required", [True, None])
async def test_a_server_that_has_to_be_there_is_an_error(required: bool | None) -> None:
    others = [connect(small_server())] if required else []

    with pytest.raises(ServerError, match=r"`dead` did not start(.|\n)*no licence"):
        async with Toolset([connect(DEAD, name="dead", required=required), *others]).open():
            pass


async def test_servers_start_side_by_side_and_an_error_of_one_ends_the_others(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    meet = (
        "import os, runpy, sys, time\nopen(sys.argv[1], 'w')\nwhile not os.path.exists(sys.argv[2]): time.sleep(0.01)\n"
    )
    meet += f"sys.argv[1:] = [os.devnull]; runpy.run_path({str(module.__file__)!r}, run_name='__main__')"
    words = [sys.executable, "-c", meet]
    one = connect([*words, str(first), str(second)], name="one", prefix="a_")
    other = connect([*words, str(second), str(first)], name="other", prefix="b_")

    async with Toolset([one, other]).open() as opened:
        both = await called(opened, "a_add", a=1, b=2), await called(opened, "b_add", a=1, b=2)
    with pytest.raises(ServerError, match="`dead`"):
        async with Toolset([one, connect(DEAD, name="dead", required=True), other]).open():
            pass

    assert both == ({"result": 3}, {"result": 3})
    assert (one.status().reason, other.status().reason) == ("its toolset is not open", "its toolset is not open")


async def test_a_gateway_may_begin_without_any_tool() -> None:
    tools = Toolset([connect(DEAD, name="dead", required=False)])

    async with tools.open() as opened:
        assert opened.names() == []


async def test_a_name_that_no_server_has_is_an_error_where_all_are_there() -> None:
    tools = Toolset([connect(small_server(), prefix="s_")]).with_approval(names=["s_pay"])

    with pytest.raises(ToolConstraintError, match="`s_pay`"):
        async with tools.open():
            pass


async def test_a_list_of_resources_that_fails_is_left_out_until_it_works(caplog: pytest.LogCaptureFixture) -> None:
    clock, told, broken = FakeClock(), Told(), [True]

    async def list_tools(ctx: Any, params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[types.Tool(name="look", input_schema={"type": "object"})])

    async def list_resources(ctx: Any, params: Any) -> types.ListResourcesResult:
        if broken[0]:
            raise MCPError(-32603, "the database of resources is down")
        return types.ListResourcesResult(resources=[types.Resource(name="rules", uri="house://rules")])

    tools = connect(Server("a", on_list_tools=list_tools, on_list_resources=list_resources), clock=clock)
    async with tools.open() as opened:
        opened.listen_for_renewal(told)
        before, part = opened.names(), tools.status()
        broken[0] = False
        clock.advance(0.5)
        await told.wait()
        after, whole = opened.names(), tools.status()

    [warning] = warnings_of(caplog)
    assert before == ["look"]
    assert part.state == "in part"
    assert part.reason == "its resources are left out: the database of resources is down"
    assert "include_resources=False" in warning
    assert after == ["look", "read_rules"]
    assert (whole.state, whole.reason) == ("up", "")


def mortal(tmp_path: Path, last: str) -> list[str]:
    """Return the command of a server that notes its starts, and runs `last` in place of them once `gone` is there."""
    words = f"""
import os, runpy, sys, time
open({str(tmp_path / "starts")!r}, "a").write("x")
if os.path.exists({str(tmp_path / "gone")!r}): {last}
sys.argv[1:] = [{str(tmp_path / "notes")!r}]
runpy.run_path({str(module.__file__)!r}, run_name="__main__")
"""
    return [sys.executable, "-c", words]


async def until(condition: Callable[[], bool]) -> None:
    for _ in range(3000):
        if condition():
            return
        await asyncio.sleep(0.02)
    raise AssertionError("it did not happen")


async def refused(tools: Toolset, clock: FakeClock, name: str, **arguments: Any) -> Failed:
    """Return the first failure of a call that its server is not waited for: the pauses between two tries grow."""
    while True:
        calling = asyncio.create_task(failed(tools, name, **arguments))
        while not (await asyncio.wait((calling,), timeout=0.02))[0]:
            clock.skip()
        if "It is down" in calling.result().message:
            return calling.result()


async def test_calls_wait_for_one_try_together_and_later_ones_fail_at_once(tmp_path: Path) -> None:
    clock = FakeClock()
    tools = connect(mortal(tmp_path, "sys.exit('gone for good')"), name="small", clock=clock)

    async with tools.open() as opened:
        (tmp_path / "gone").touch()
        await failed(opened, "die", code=3)
        together = await asyncio.gather(*(failed(opened, "add", a=1, b=2) for _ in range(20)))
        at_once = await refused(opened, clock, "add", a=1, b=2)
        starts = (tmp_path / "starts").read_text()

    assert {outcome.code for outcome in together} == {"server_error"}
    assert "the server `small` did not start" in together[0].message
    assert "gone for good" in together[0].message
    assert "It is down, and tried again in" in at_once.message
    assert len(starts) < 10


async def test_a_call_that_waits_for_a_server_when_the_toolset_closes_is_an_error(tmp_path: Path) -> None:
    tools = connect(mortal(tmp_path, "time.sleep(600)"), name="small")

    async with tools.open() as opened:
        (tmp_path / "gone").touch()
        await failed(opened, "die", code=3)
        waiting = asyncio.create_task(failed(opened, "add", a=1, b=2))
        await until(lambda: (tmp_path / "starts").read_text() == "xx")
    outcome = await waiting

    assert "is closed" in outcome.message


async def test_a_server_that_dies_again_and_again_is_not_waited_for(tmp_path: Path) -> None:
    clock = FakeClock()
    words = [sys.executable, str(module.__file__), str(tmp_path / "notes")]
    tools = Toolset([connect(words, name="small", clock=clock)])

    async with tools.open() as opened:
        at_once = await refused(opened, clock, "die", code=1)
        down = server_statuses(tools)[0]

    assert (down.state, down.reason, down.last_error) == ("down", "has ended", "has ended")
    assert down.since is not None
    assert "It is down, and tried again in" in at_once.message


async def test_half_a_character_of_the_host_leaves_the_connection_open(tmp_path: Path) -> None:
    tools = Toolset([connect([sys.executable, str(module.__file__), str(tmp_path / "notes")], name="small")])

    async with tools.open() as opened:
        told = await Pipeline(opened).run(ToolCall("fail", {"word": "\ud83d"}, origin="host"))
        added = await called(opened, "add", a=1, b=2)

    assert "no \ufffd here" in told.message
    assert added == {"result": 3}


async def test_views_of_an_open_toolset_outlive_a_server_that_is_started_again(tmp_path: Path) -> None:
    tools = Toolset([connect([sys.executable, str(module.__file__), str(tmp_path / "notes")], name="small")])

    async with tools.open() as opened:
        view = opened.with_timeout(30)
        await outcome_of(opened, "die", code=1)
        await until(lambda: bool((up := server_statuses(tools)[0]).last_error) and up.state == "up")
        [up] = server_statuses(tools)
        added = await called(view, "add", a=1, b=2)

    assert added == {"result": 3}
    assert up.tools == len([name for name in opened.names() if not name.startswith(("read_", "query_"))])


async def test_a_command_whose_start_is_cancelled_leaves_no_stream_open() -> None:
    async def enter() -> None:
        command = StdioServerParameters(command=sys.executable, args=["-c", "import time; time.sleep(600)"])
        async with command_streams(command, sys.stderr, 1000, RepeatedKeys("slow"), lambda fault: None):
            pass

    entering = asyncio.create_task(enter())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    entering.cancel()
    with pytest.raises(asyncio.CancelledError):
        await entering

    gc.collect()  # a stream that is open then is a ResourceWarning, which pytest makes an error
