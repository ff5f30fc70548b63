"""Servers that change, are cut off, die and come back, while they are open."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.adapters.mcp_client import small_server as module
from tests.adapters.mcp_client.servers import Told, called, failed, served
from tests.adapters.mcp_client.small_server import small_server
from tests.networks import free_port
from toolcrib.adapters.mcp_client import connect
from toolcrib.calls import Suspended, ToolCall
from toolcrib.pipeline import Pipeline
from toolcrib.toolsets import Toolset


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_an_open_toolset_follows_what_the_server_has(mode: str) -> None:
    told, crib = Told(), Toolset([connect(small_server(), mode=mode)]).prefixed("s_").with_approval()

    async with crib.open() as tools:
        tools.listen_for_renewal(told)
        pipeline = Pipeline(tools)
        await granted(pipeline, "s_grow", {"name": "oak"})
        await told.wait()
        new = await pipeline.run(ToolCall("s_oak", {}))
        await granted(pipeline, "s_shrink", {"name": "oak"})
        await told.wait()
        gone = await pipeline.run(ToolCall("s_oak", {}))

    assert isinstance(new, Suspended)
    assert gone.text().startswith("NotAvailable: `s_oak` is not available")
    assert "s_oak" not in tools.offered()


async def granted(pipeline: Pipeline, name: str, arguments: dict[str, Any]) -> None:
    asked = await pipeline.run(ToolCall(name, arguments))
    assert isinstance(asked, Suspended)
    await pipeline.run(asked, grant=asked.request.grant())


async def test_a_new_tool_with_a_name_that_is_taken_changes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    crib = Toolset(
        [connect(small_server("one"), prefix="x"), connect(small_server("two"), tool_names=["grow", "xadd"])]
    )
    told = Told()

    with pytest.raises(ValueError, match="`xadd`"):
        async with crib.open():
            pass

    crib = Toolset([connect(small_server("one"), prefix="x"), connect(small_server("two"), include_resources=False)])
    async with crib.open() as tools:
        tools.listen_for_renewal(told)
        before = tools.names()
        await called(tools, "grow", name="xadd")
        await settled()

        assert tools.names() == before
        assert await called(tools, "xadd", a=1, b=2) == {"result": 3}
        assert await called(tools, "add", a=1, b=2) == {"result": 3}
    assert "its new listing cannot be used" in caplog.text


async def settled() -> None:
    """Let everything that is ready happen."""
    for _ in range(200):
        await asyncio.sleep(0)


async def test_a_call_that_is_cancelled_is_cancelled_on_the_server(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    async with connect(small_server(notes=str(notes))).open() as tools:
        outcome = await failed(tools.with_timeout(0.1), "wait")
        await settled()

    assert outcome.code == "tool_timeout"
    assert notes.read_text().split() == ["waiting", "cancelled"]


async def test_a_server_that_dies_is_started_again_and_the_call_is_not_repeated(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    words = [sys.executable, str(module.__file__), str(notes)]

    async with connect(words, name="small").open() as tools:
        lost = await failed(tools, "die", code=3)
        again = await called(tools, "add", a=1, b=2)

    assert lost.code == "server_error"
    assert "`small` was lost while `die` ran. Whether it took effect is unknown" in lost.message
    assert "\n  it hurts" in lost.message
    assert again == {"result": 3}
    assert notes.read_text().split() == ["dying"]


async def test_a_server_that_died_between_calls_is_started_before_the_next(tmp_path: Path) -> None:
    told, logger = Told(), logging.getLogger("toolcrib.mcp")
    logger.addHandler(told)

    async with connect([sys.executable, str(module.__file__), str(tmp_path / "notes")]).open() as tools:
        before = await called(tools, "process")
        os.kill(int(before), signal.SIGKILL)
        await told.wait()
        after = await called(tools, "process")
    logger.removeHandler(told)

    assert before != after


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_server_over_http_that_forgot_the_session_is_connected_to_again(mode: str) -> None:
    port = free_port()
    async with served(small_server(), port):
        opening = connect(f"http://127.0.0.1:{port}/mcp", mode=mode).open()
        tools = await opening.__aenter__()
        first = await called(tools, "add", a=1, b=2)
    async with served(small_server(), port):
        again = await called(tools, "add", a=1, b=2)
        await opening.__aexit__(None, None, None)

    assert first == again == {"result": 3}


async def test_a_server_over_http_that_is_gone_is_an_error_that_names_it_and_is_found_again() -> None:
    port = free_port()
    async with served(small_server(), port):
        opening = connect(f"http://127.0.0.1:{port}/mcp", include_resources=False).open()
        tools = await opening.__aenter__()
        first = await called(tools, "add", a=1, b=2)
    lost = await failed(tools, "add", a=1, b=2)
    still = await failed(tools, "add", a=1, b=2)
    async with served(small_server(), port):
        again = await called(tools, "add", a=1, b=2)
        await opening.__aexit__(None, None, None)

    assert first == again == {"result": 3}
    assert lost.message.startswith(f"the server `127.0.0.1:{port}/mcp` was lost while `add` ran")
    assert still.message.startswith(f"the server `127.0.0.1:{port}/mcp` cannot be connected to")


def test_a_server_is_stopped_although_the_loop_ends_while_it_is_closed(tmp_path: Path) -> None:
    words = f"import os, runpy, sys, time; sys.argv[1:] = [{str(tmp_path / 'notes')!r}]; "
    words += f"runpy.run_path({str(module.__file__)!r}, run_name='__main__'); time.sleep(600)"

    async def leave() -> tuple[int, Any]:
        opening = connect([sys.executable, "-c", words]).open()
        number = await called(await opening.__aenter__(), "process")
        closing = asyncio.create_task(opening.__aexit__(None, None, None))
        await settled()
        return int(number), closing

    number, _ = asyncio.run(leave())

    assert has_gone(number)


def has_gone(number: int) -> bool:
    """Wait until a process has ended, and return whether it has."""
    for _ in range(1000):
        try:
            os.kill(number, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.03)
    return False
