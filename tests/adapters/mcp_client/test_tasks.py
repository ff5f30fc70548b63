"""Calls that are tasks of a server: followed to their results, cancelled, come back to over another connection."""

from __future__ import annotations

import asyncio
import logging
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from tests.adapters.mcp_client.servers import EVERYTHING
from tests.adapters.mcp_server.clients import booking
from tests.adapters.mcp_server.http import served
from tests.networks import free_port
from tests.npm.programs import command
from toolcrib import Pipeline, RunContext, ToolCall
from toolcrib.adapters.mcp_client import Elicitation, Progress, connect
from toolcrib.adapters.mcp_server import ServerOptions, TaskOptions, build_server
from toolcrib.approvals import MemoryApprovalStore, SqliteApprovalStore
from toolcrib.calls import Completed, Failed, Outcome, Yielded
from toolcrib.tools import Tool, ez_tool

every_generation = pytest.mark.parametrize("mode", ["legacy", "auto"])


class Job:
    """A tool that goes on until it is let, and is called as a task alone."""

    def __init__(self) -> None:
        self.go, self.begun, self.ended = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self.outcome = ""

        @ez_tool(tags=("task_required",))
        async def work(part: str) -> dict[str, str]:
            """Work."""
            self.begun.set()
            try:
                await self.go.wait()
                self.outcome = "done"
            finally:
                self.outcome = self.outcome or "cancelled"
                self.ended.set()
            return {"did": part}

        self.tool: Tool[..., Any] = work


async def call(tools: Any, name: str, **arguments: Any) -> Outcome:
    return await Pipeline(tools).run(ToolCall(name, arguments))


async def following(tools: Any, known: asyncio.Event, name: str, **arguments: Any) -> Outcome:
    """Call, and set `known` when the client has asked for its task and was told how that stands."""
    async for item in Pipeline(tools).stream(ToolCall(name, arguments)):
        if not isinstance(item, Yielded):
            return item
        known.set()
    raise AssertionError


@every_generation
async def test_a_tool_that_is_called_as_a_task_gives_its_result(mode: str) -> None:
    job = Job()
    async with connect(build_server([job.tool]), mode=mode, tasks=True).open() as tools:
        calling = asyncio.create_task(call(tools, "work", part="roof"))
        await job.begun.wait()
        job.go.set()
        outcome = await calling

    assert isinstance(outcome, Completed)
    assert outcome.value == {"did": "roof"}


@every_generation
async def test_a_cancelled_call_cancels_its_task(mode: str) -> None:
    job = Job()
    async with connect(build_server([job.tool]), mode=mode, tasks=True).open() as tools:
        calling = asyncio.create_task(call(tools, "work", part="roof"))
        await job.begun.wait()
        calling.cancel()
        await asyncio.wait([calling])
        await job.ended.wait()

    assert job.outcome == "cancelled"


class Noted(logging.Handler):
    """Waits for a line in the error output of a server."""

    def __init__(self) -> None:
        super().__init__()
        self._loop, self._lines = asyncio.get_running_loop(), asyncio.Queue[str]()

    def emit(self, record: logging.LogRecord) -> None:
        self._loop.call_soon_threadsafe(self._lines.put_nowait, record.getMessage())

    async def wait(self, line: str) -> None:
        async with asyncio.timeout(60):
            while await self._lines.get() != line:
                pass


@pytest.mark.processes
@pytest.mark.parametrize("generation", ["older", "newer"])
async def test_a_call_that_is_cancelled_before_its_task_is_known_cancels_it_when_it_is(
    generation: str, caplog: pytest.LogCaptureFixture
) -> None:
    script, noted, log = (
        str(Path(__file__).with_name("late_task_server.py")),
        Noted(),
        logging.getLogger("toolcrib.mcp"),
    )
    caplog.set_level(logging.DEBUG, "toolcrib.mcp")
    log.addHandler(noted)

    async with connect(
        [sys.executable, script, generation, "0.3"], name="late", mode="auto", tasks=True
    ).open() as tools:
        calling = asyncio.create_task(call(tools, "pay"))
        await noted.wait("late: tools/call")
        calling.cancel()
        await asyncio.wait([calling])
        await noted.wait("late: tasks/cancel t1")

    log.removeHandler(noted)
    assert calling.cancelled()


@every_generation
async def test_what_a_task_says_of_its_state_is_progress(mode: str) -> None:
    booked, store = list[str](), MemoryApprovalStore()
    options = ServerOptions(approvals=store, answered_in="the desk", tasks=TaskOptions(poll=20))
    server = build_server([booking(booked, tags=("task_required",))], options)
    said = list[str]()

    async with connect(server, mode=mode, tasks=True).open() as tools:
        async for item in Pipeline(tools).stream(ToolCall("book", {"place": "Oslo"})):
            if isinstance(item, Yielded):
                assert isinstance(item.value, Progress)
                said.append(item.value.message or "")
                [entry] = await store.list()
                await store.answer(entry.request.grant("boss"))
            else:
                outcome = item

    assert isinstance(outcome, Completed)
    assert (outcome.value, booked) == ("booked Oslo", ["Oslo"])
    assert "a person has to answer it, in the desk" in said[0]


class Size(BaseModel):
    size: int


@ez_tool(tags=("task_required",))
async def measure(ctx: RunContext[Any]) -> str:
    """Ask for two sizes at once."""
    answers = await asyncio.gather(*(ctx.elicit(question, Size) for question in ("How tall?", "How wide?")))
    return " x ".join(str(answer.data.size) if answer.data else answer.action for answer in answers)


@every_generation
async def test_the_questions_of_a_task_are_answered(mode: str) -> None:
    async def answer(question: Elicitation) -> dict[str, int] | None:
        return {"size": 3} if question.message == "How tall?" else None

    server = build_server([measure], ServerOptions(tasks=TaskOptions(poll=20)))
    async with connect(server, mode=mode, elicit=answer, tasks=True).open() as tools:
        outcome = await call(tools, "measure")

    assert outcome.text() == "3 x cancel"


@every_generation
async def test_an_error_of_a_task_is_the_tools(mode: str) -> None:
    @ez_tool(tags=("task_required",))
    async def fail() -> str:
        raise ValueError("out of paper")

    async with connect(build_server([fail]), mode=mode, tasks=True).open() as tools:
        outcome = await call(tools, "fail")

    assert isinstance(outcome, Failed)
    assert (outcome.code, "out of paper" in outcome.message) == ("remote_tool_error", True)


async def test_a_tool_that_may_be_called_as_a_task_is_one_when_the_host_says_so() -> None:
    @ez_tool
    async def quick() -> str:
        return "done"

    server = build_server([quick])
    begun = list[str]()
    assert server.tasks is not None
    begin = server.tasks.begin

    async def noted(ctx: Any, params: Any, *rest: Any, **more: Any) -> Any:
        begun.append(params.name)
        return await begin(ctx, params, *rest, **more)

    server.tasks.begin = noted  # type: ignore[method-assign]
    async with connect(server, mode="legacy").open() as tools:
        plain = await call(tools, "quick")
        without = begun.copy()
    async with connect(server, mode="legacy", tasks=True).open() as tools:
        task = await call(tools, "quick")

    assert (plain.text(), task.text()) == ("done", "done")
    assert (without, begun) == ([], ["quick"])


@every_generation
async def test_a_call_comes_back_to_its_task_when_the_server_was_restarted(mode: str, tmp_path: Path) -> None:
    booked, store, port = list[str](), SqliteApprovalStore(tmp_path / "t.db"), free_port()
    tool = booking(booked, tags=("task_required",))
    options = ServerOptions(approvals=store, principal="ann", tasks=TaskOptions(poll=20))
    async with connect(f"http://127.0.0.1:{port}/mcp", mode=mode, required=False, tasks=True).open() as tools:
        async with served([tool], options, port=port):
            while "book" not in tools.names():  # noqa: ASYNC110 -- it is tried again in the background
                await asyncio.sleep(0.05)
            known = asyncio.Event()
            calling = asyncio.create_task(following(tools, known, "book", place="Oslo"))
            await known.wait()
        [entry] = await store.list(pending=True)
        await store.answer(entry.request.grant("boss"))
        async with served([tool], options, port=port):
            outcome = await calling

    assert isinstance(outcome, Completed), outcome.text()
    assert (outcome.value, booked) == ("booked Oslo", ["Oslo"])


@every_generation
async def test_a_task_that_the_server_forgot_is_an_error_that_says_so(mode: str) -> None:
    @ez_tool(tags=("task_required",))
    async def work(part: str, ctx: RunContext[Any]) -> None:
        """Work."""
        ctx.progress(1, message="begun")
        await asyncio.Event().wait()

    port = free_port()
    options = ServerOptions(principal="ann", tasks=TaskOptions(poll=20))
    async with served([work], options, port=port):
        toolset = connect(f"http://127.0.0.1:{port}/mcp", mode=mode, tasks=True)
        opened = toolset.open()
        tools = await opened.__aenter__()
        known = asyncio.Event()
        calling = asyncio.create_task(following(tools, known, "work", part="roof"))
        await known.wait()
    async with served([work], options, port=port):
        outcome = await calling
        await opened.__aexit__(None, None, None)

    assert isinstance(outcome, Failed)
    assert outcome.code == "server_error"
    assert "ran as a task, which it no longer knows. Whether it took effect is unknown" in outcome.message


@every_generation
async def test_a_call_that_waits_for_a_person_ends_where_no_tasks_are_taken(mode: str) -> None:
    booked, store = list[str](), MemoryApprovalStore()
    server = build_server([booking(booked)], ServerOptions(approvals=store, answered_in="the desk"))
    async with connect(server, mode=mode).open() as tools:
        outcome = await call(tools, "book", place="Oslo")

    assert "A person answers it in the desk" in outcome.text()
    assert booked == []


async def test_the_task_of_a_server_that_nobody_here_wrote() -> None:
    async with connect(command(EVERYTHING), mode="legacy", include_resources=False).open() as tools:
        outcome = await call(tools, "simulate-research-query", topic="rain")

    assert isinstance(outcome, Completed), outcome.text()
    assert "rain" in outcome.text()
