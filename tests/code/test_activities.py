"""Activity events of programs and sessions."""

import asyncio
import json
import sys
from typing import Any

import pytest

from toolcrib.calls import ActivityEvent, ToolCall
from toolcrib.code import ExecutionResult, PausedProgram, Toolkit
from toolcrib.pipeline import Channel, Pipeline, Run
from toolcrib.testing import FakeSandbox, RecordingSink
from toolcrib.tools import ez_tool


@ez_tool
async def double(n: int) -> int:
    return n * 2


@ez_tool(requires_approval=True)
async def refund(order: int) -> int:
    return order


@ez_tool
async def forever() -> None:
    await asyncio.Event().wait()


def kit(*calls: tuple[str, Any]) -> tuple[Toolkit, RecordingSink]:
    sink = RecordingSink()
    return Toolkit([double, refund, forever], sinks=[sink], sandbox=FakeSandbox(*calls, output="hi\n")), sink


def of_kind(sink: RecordingSink, kind: str) -> list[ActivityEvent]:
    return [event for event in sink.runs if event.kind == kind]


async def test_a_program_is_recorded_with_its_calls_inside_of_it() -> None:
    toolkit, sink = kit(("double", {"n": 2}), ("double", {"n": 3}))

    await toolkit.execute_async("double(n=2)\ndouble(n=3)")

    start, end = sink.runs
    assert (start.activity, start.name, start.parent_id, start.data["source"]) == (
        *("program", "program", None),
        "double(n=2)\ndouble(n=3)",
    )
    assert start.data["sandbox"] == "FakeSandbox"
    assert "double" in start.data["tools"]
    assert {record.parent_id for record in sink.records} == {start.activity_id} == {end.activity_id}
    assert {record.run_id for record in sink.records} == {start.data["run_id"]}
    assert (end.data["outcome"], end.data["output"], end.data["calls"]) == ("completed", 3, 2)


async def test_a_program_that_is_refused_is_recorded_and_did_not_run() -> None:
    toolkit, sink = kit()

    await toolkit.execute_async("double(n=2")

    assert [event.kind for event in sink.runs] == ["opened", "closed"]
    assert sink.runs[1].data["outcome"] == "refused"
    assert "SyntaxError" in sink.runs[1].data["error"]
    assert sink.events == []


async def test_a_program_that_fails_says_why_and_what_it_is_mended_to_is_another() -> None:
    sink = RecordingSink()
    toolkit = Toolkit([double], sinks=[sink], sandbox="unsafe_inline")

    def mend(text: str, code: str, result: ExecutionResult) -> str:
        return "double(n=1)"

    await toolkit.execute_async("double(n='x')", retry_handler=mend)

    assert [event.data["outcome"] for event in of_kind(sink, "closed")] == ["failed", "completed"]
    assert "double" in str(of_kind(sink, "closed")[0].data["error"])
    assert len({event.activity_id for event in sink.runs}) == 2
    assert len({event.data["run_id"] for event in of_kind(sink, "opened")}) == 1


async def test_a_cancelled_program_is_closed() -> None:
    toolkit, sink = kit(("forever", {}))
    task = asyncio.create_task(toolkit.execute_async("forever()"))
    for _ in range(20):
        await asyncio.sleep(0)

    task.cancel()
    await asyncio.gather(task, return_exceptions=True)

    assert of_kind(sink, "closed")[0].data["outcome"] == "cancelled"


async def test_a_program_that_pauses_says_so_and_goes_on_as_the_same_in_another_process() -> None:
    toolkit, sink = kit(("double", {"n": 2}), ("refund", {"order": 7}))

    result = await toolkit.execute_async("double(n=2)\nrefund(order=7)")
    assert result.paused is not None
    key = "sixteen bytes, or more"
    other, later = kit(("double", {"n": 2}), ("refund", {"order": 7}))
    paused = PausedProgram.from_bytes(result.paused.to_bytes(key), key)
    await other.resume_async(paused, grants=[result.suspended_calls[0].grant("ada")])

    request = result.suspended[0]
    waits, end = sink.runs[1:]
    assert (waits.kind, waits.data["state"], waits.data["request_id"]) == ("changed", "suspended", request.id)
    assert (end.data["outcome"], end.data["suspended"]) == ("paused", [{"tool": "refund", "request_id": request.id}])
    assert {event.activity_id for event in later.runs} == {end.activity_id}
    assert [event.kind for event in later.runs] == ["opened", "closed"]
    assert "resumed" in later.runs[0].data
    assert {record.parent_id for record in later.records} == {end.activity_id}


async def test_a_program_that_a_tool_runs_is_inside_of_the_call() -> None:
    toolkit, sink = kit(("double", {"n": 2}))

    @ez_tool
    async def run(code: str) -> str:
        return (await toolkit.execute_async(code)).output

    await Pipeline([run], sinks=[sink]).run(ToolCall("run", {"code": "double(n=2)"}, "c1"))

    assert sink.runs[0].parent_id == "c1"


@pytest.mark.skipif(sys.platform != "linux", reason="the processes of ProcessSandbox need Linux")
async def test_programs_of_a_session_are_inside_of_it() -> None:
    sink = RecordingSink()
    toolkit = Toolkit([double], sinks=[sink], sandbox="process")

    async with toolkit.session(Run(channel=Channel(parent_id="request_1"))) as session:
        await session.execute_async("a = double(2)")
        await session.execute_async("double(a)")

    assert [(event.activity, event.kind) for event in sink.runs] == [
        ("session", "opened"),
        *[("program", "opened"), ("program", "closed")] * 2,
        ("session", "closed"),
    ]
    assert sink.runs[0].parent_id == "request_1"
    assert {event.parent_id for event in sink.runs if event.activity == "program"} == {sink.runs[0].activity_id}
    programs = [event.activity_id for event in of_kind(sink, "opened") if event.activity == "program"]
    assert [record.parent_id for record in sink.records] == programs


async def test_events_of_programs_are_json() -> None:
    toolkit, sink = kit(("double", {"n": 2}))

    await toolkit.execute_async("double(n=2)")

    assert json.loads(json.dumps([event.to_dict() for event in sink.runs]))[0]["activity"] == "program"
