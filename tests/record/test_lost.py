"""Calls and runs of processes that are gone: over a file and over a Postgres server."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.postgres import Postgres
from toolcrib.adapters.dbos._sinks import WorkerSink
from toolcrib.approvals import MemoryApprovalStore
from toolcrib.calls import Suspended, ToolCall
from toolcrib.pipeline import Pipeline, Run
from toolcrib.record import ActivityFilter, PostgresSink, RunFilter, SqliteSink, list_runs, trace_nodes
from toolcrib.tools import ez_tool


@pytest.fixture(params=["sqlite", "postgres"])
def sink(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    made: AbstractContextManager[Any]
    if request.param == "sqlite":
        made = SqliteSink(tmp_path / "toolcrib.db")
    else:
        server: Postgres = request.getfixturevalue("postgres")
        made = PostgresSink(server.url("lost"))
        with server.connect("lost") as connection:
            connection.execute("TRUNCATE toolcrib_events, toolcrib_activities")
    with made as opened:
        yield opened


@pytest.fixture(scope="module")
def gone() -> str:
    """The identity of a process that has ended."""
    program = "from toolcrib._processes import this_process; print(this_process())"
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.strip()


@asynccontextmanager
async def paying(sink: Any, call: Any = None, run: Run | None = None) -> AsyncIterator[None]:
    """Execute a call that does not end, while the body looks at what is kept of it."""
    entered = asyncio.Event()

    @ez_tool(requires_approval=call is not None)
    async def pay(cents: int) -> None:
        entered.set()
        await asyncio.Event().wait()

    pipeline = Pipeline([pay], sinks=[sink])
    task = asyncio.create_task(pipeline.run(call or ToolCall("pay", {"cents": 5}, "call_1"), run or Run("run_1")))
    await entered.wait()
    yield
    task.cancel()
    await asyncio.wait([task])


@pytest.mark.processes
async def test_what_ran_in_a_process_that_is_gone_is_lost(sink: Any, gone: str) -> None:
    sink.process = gone

    async with paying(sink):
        log = sink.log()
        [call] = log.activities()
        [run] = list_runs(log)
        tree = trace_nodes(log, "run_1")
        wanted = list_runs(log, RunFilter(outcomes=("lost",)))

    assert (call.status, call.ended_at is not None) == ("lost", True)
    assert (dict(run.calls), run.ended_at is not None) == ({"lost": 1}, True)
    assert [one.id for one in wanted] == ["run_1"]
    assert tree is not None
    assert tree.status == "ended"


async def test_what_runs_in_this_process_is_not_lost(sink: Any) -> None:
    async with paying(sink):
        [call] = sink.log().activities()

    assert call.status == "running"


async def test_what_another_machine_runs_is_not_lost(sink: Any) -> None:
    sink.process = "another:1:1"

    async with paying(sink):
        [call] = sink.log().activities()

    assert call.status == "running"


@pytest.mark.processes
async def test_durable_work_is_not_lost(sink: Any, gone: str) -> None:
    sink.process = gone

    async with paying(WorkerSink(sink)):
        [call] = sink.log().activities()

    assert call.status == "running"


@pytest.mark.processes
async def test_a_lost_call_that_is_taken_up_in_another_run_has_gone_on_there(sink: Any, gone: str) -> None:
    @ez_tool(requires_approval=True)
    async def pay(cents: int) -> str:
        return "paid"

    sink.process, store = gone, MemoryApprovalStore()
    asked = await Pipeline([pay], sinks=[sink]).run(
        ToolCall("pay", {"cents": 5}, "call_1"), Run("run_1", approvals=store)
    )
    assert isinstance(asked, Suspended)
    stored = json.loads(json.dumps(asked.to_dict()))["call"]
    await store.answer(asked.request.grant("ann"))
    async with paying(sink, asked, Run("run_1", approvals=store)):
        lost = [one.status for one in sink.log().activities(ActivityFilter(ids=("call_1",)))]

    sink.process = None
    await Pipeline([pay], sinks=[sink]).run(stored, Run("run_2", approvals=store))

    found = {one.run_id: one.status for one in sink.log().activities(ActivityFilter(ids=("call_1",)))}
    assert lost == ["lost"]
    assert found["run_2"] == "suspended"
    assert found["run_1"] != "running"
