"""What is told of runs, who is told, and what is inside what."""

import json
from pathlib import Path
from typing import Any

import pytest

from toolcrib.calls import ActivityEvent, Completed, Suspended, ToolCall, outcome_from_dict
from toolcrib.code import Toolkit
from toolcrib.pipeline import Channel, Pipeline, Run
from toolcrib.record import JsonLinesSink, ListSink, current_activity, trace_activity
from toolcrib.testing import RecordingSink
from toolcrib.tools import ez_tool


class Broken:
    """A sink that fails at everything."""

    def emit(self, event: Any) -> None:
        raise RuntimeError("full")

    def emit_activity(self, event: ActivityEvent) -> None:
        raise RuntimeError("full")

    def around(self, kind: str, activity_id: str, run_id: str) -> Any:
        raise RuntimeError("full")

    def carry(self, kind: str, activity_id: str, run_id: str) -> dict[str, str]:
        raise RuntimeError("full")


class Nested:
    """A sink that notes what is entered and left."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def emit(self, event: Any) -> None:
        self.seen.append(event.kind)

    def around(self, kind: str, activity_id: str, run_id: str) -> Any:
        sink = self

        class Entered:
            def __enter__(self) -> None:
                sink.seen.append(f"+{kind}")

            def __exit__(self, *error: object) -> None:
                sink.seen.append(f"-{kind}")

        return Entered()

    def carry(self, kind: str, activity_id: str, run_id: str) -> dict[str, str]:
        return {"from": activity_id}


@ez_tool(requires_approval=True)
async def refund(order: int) -> int:
    return order


def test_a_run_is_opened_changed_and_closed_once() -> None:
    sink = RecordingSink()

    run = trace_activity("request", "tools/call", Run(id="r1", sinks=(sink,)), about=lambda: {"client": "x"})
    assert run is not None
    run.changed(state="suspended")
    run.closed("completed")
    run.broken_off(RuntimeError("late"))

    assert [(event.kind, event.activity_id) for event in sink.runs] == [
        ("opened", run.id),
        ("changed", run.id),
        ("closed", run.id),
    ]
    assert sink.runs[0].data == {"client": "x", "run_id": "r1", "entry": "pipeline"}
    assert sink.runs[2].data["outcome"] == "completed"
    assert sink.runs[2].data["duration_ms"] >= 0


def test_nobody_is_asked_about_a_run_that_no_sink_wants() -> None:
    def about() -> Any:
        raise AssertionError("asked")

    run = trace_activity("agent", "a", Run(sinks=(ListSink(),)), (ListSink(),), about=about)

    assert run is None


def test_a_sink_that_is_given_twice_is_told_once() -> None:
    sink = RecordingSink()

    trace_activity("agent", "a", Run(sinks=(sink,)), (sink,))

    assert len(sink.runs) == 1


async def test_a_call_is_told_once_to_a_sink_that_pipeline_and_run_have() -> None:
    sink = RecordingSink()

    await Pipeline([refund], sinks=[sink]).run(ToolCall("nothing", {}), Run(sinks=(sink,)))

    assert sink.kinds() == ["ended"]


@pytest.mark.parametrize("error", [ValueError("no"), KeyboardInterrupt()])
def test_a_run_that_breaks_off_says_how(error: BaseException) -> None:
    sink = RecordingSink()
    run = trace_activity("agent", "a", Run(sinks=(sink,)))
    assert run is not None

    run.broken_off(error)

    told = sink.runs[-1].data
    expected = ("error", "ValueError: no") if isinstance(error, ValueError) else ("cancelled", None)
    assert (told["outcome"], told["error"]) == expected


async def test_a_broken_sink_changes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    @ez_tool
    async def add(a: int) -> int:
        return a + 1

    scope = Run(sinks=(Broken(),))
    run = trace_activity("agent", "a", scope)
    assert run is not None
    with run.within():
        outcome = await Pipeline([add]).run(ToolCall("add", {"a": 1}), scope)
    run.closed("completed")

    assert isinstance(outcome, Completed)
    assert outcome.value == 2
    assert run.carry() == {}
    assert "the sink Broken failed on opened of the agent a" in caplog.text


async def test_the_call_whose_tool_makes_a_call_is_its_parent() -> None:
    sink = RecordingSink()

    @ez_tool
    async def inner() -> str | None:
        return current_activity()

    @ez_tool
    async def outer() -> Any:
        return (await Pipeline([inner], sinks=[sink]).run(ToolCall("inner", {}, "c2"))).to_dict()["value"]

    outcome = await Pipeline([outer], sinks=[sink]).run(ToolCall("outer", {}, "c1"))

    assert isinstance(outcome, Completed)
    assert outcome.value == "c2"
    assert {(record.call_id, record.parent_id) for record in sink.records} == {("c1", None), ("c2", "c1")}
    assert {(event.call_id, event.parent_id) for event in sink.events} == {("c1", None), ("c2", "c1")}
    assert current_activity() is None


async def test_what_the_scope_names_makes_its_calls() -> None:
    sink = RecordingSink()

    await Pipeline([refund], sinks=[sink]).run(
        ToolCall("refund", {"order": 1}), Run(channel=Channel(parent_id="request_1"))
    )

    assert sink.record.parent_id == sink.record.to_dict()["parent_id"] == "request_1"


async def test_a_body_runs_within_its_call_and_each_step_of_a_stream_does() -> None:
    sink = Nested()

    @ez_tool
    async def count() -> Any:
        yield 1
        sink.seen.append("body")
        yield 2

    pipeline = Pipeline([count], sinks=[sink])
    async for _ in pipeline.stream(ToolCall("count", {})):
        assert current_activity() is None
        sink.seen.append("taker")

    steps = ["+call", "-call"]
    assert sink.seen == [
        *["received", "started", *steps, *steps, "yielded", "taker", "+call", "body", "-call", "yielded", "taker"],
        *[*steps, *steps, "ended", "taker"],
    ]


async def test_what_sinks_carry_goes_with_a_suspended_call_to_the_process_that_resumes_it() -> None:
    pipeline = Pipeline([refund], sinks=[Nested()])
    suspended = await pipeline.run(ToolCall("refund", {"order": 1}, "c1"))
    assert isinstance(suspended, Suspended)
    sink = RecordingSink()

    copy = outcome_from_dict(json.loads(json.dumps(suspended.to_dict())))
    assert isinstance(copy, Suspended)
    await Pipeline([refund], sinks=[sink]).run(copy, grant=copy.request.grant("ada"))

    assert sink.events[0].data == {"arguments": {"order": 1}, "resumed": {"from": "c1"}}


async def test_a_run_event_goes_to_json() -> None:
    sink = RecordingSink()
    trace_activity("program", "program", Run(id="r1", sinks=(sink,)), activity_id="program_1")

    told = sink.runs[0].to_dict()

    assert told.pop("at") == sink.runs[0].at.isoformat()
    assert told == {
        "kind": "opened",
        "activity": "program",
        "activity_id": "program_1",
        "parent_id": None,
        "name": "program",
        "data": {"run_id": "r1", "entry": "pipeline"},
    }


@pytest.mark.processes
@pytest.mark.parametrize("events", [True, False])
async def test_a_file_of_events_has_those_of_runs_and_a_file_of_records_none(tmp_path: Path, events: bool) -> None:
    @ez_tool
    def add(a: int) -> int:
        return a

    with JsonLinesSink(tmp_path / "calls.jsonl", events=events) as sink:
        await Toolkit([add], sinks=[sink], sandbox="process").execute_async("add(1)")
    lines = [json.loads(line) for line in (tmp_path / "calls.jsonl").read_text().splitlines()]

    told = [(line.get("activity"), line["kind"]) for line in lines if "kind" in line]
    calls = [(None, kind) for kind in ("received", "started", "ended")]
    assert told == ([("program", "opened"), *calls, ("program", "closed")] if events else [])
    assert len(lines) == (5 if events else 1)
