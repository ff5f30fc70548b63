"""What is told of a call: events in order, the record that closes them, and where they go."""

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from toolcrib.approvals import approve_all
from toolcrib.calls import CallEvent, Completed, Failed, Reject, RunNormally, Suspended, ToolCall
from toolcrib.hooks import HookSet
from toolcrib.pipeline import Channel, Pipeline, Run
from toolcrib.record import JsonLinesSink, ListSink
from toolcrib.schema import RunContext
from toolcrib.testing import RecordingSink
from toolcrib.tools import Tool, ez_tool


def adding(**options: Any) -> Tool[..., Any]:
    @ez_tool(**options)
    async def add(a: int, b: int = 1) -> int:
        return a + b

    return add


def deciding(decide: Any) -> HookSet:
    hooks = HookSet()

    async def hook(call: Any, given: Any) -> Any:
        return decide(given)

    hooks.register(hook)
    return hooks


async def events(
    tool: Tool[..., Any], arguments: Any = None, hooks: HookSet | None = None, **scope: Any
) -> RecordingSink:
    sink = RecordingSink()
    call = ToolCall(tool.name, {"a": 1} if arguments is None else arguments, "c1")
    await Pipeline([tool], hooks=hooks, sinks=[sink]).run(call, Run(id="run_1", channel=Channel(entry="test"), **scope))
    return sink


async def test_a_call_is_received_started_and_ended() -> None:
    sink = await events(adding())

    assert sink.kinds() == ["received", "started", "ended"]
    assert {(e.call_id, e.tool, e.run_id, e.entry) for e in sink.events} == {("c1", "add", "run_1", "test")}
    times = [event.at for event in sink.events]
    assert times == sorted(times)


async def test_decisions_and_approval_are_told_between() -> None:
    sink = await events(adding(requires_approval=True), hooks=deciding(RunNormally), approver=approve_all)

    assert sink.kinds() == ["received", "decided", "decided", "started", "ended"]
    assert sink.of_kind("decided")[1].data["approval"]["approver"] == "approve_all"


async def test_a_suspension_is_told_and_ends_the_record() -> None:
    sink = await events(adding(requires_approval=True))

    assert sink.kinds() == ["received", "suspended", "ended"]
    assert sink.record.outcome["kind"] == "suspended"
    assert "call" not in sink.record.outcome


@pytest.mark.parametrize("is_async", [True, False])
async def test_many_reports_of_progress_are_told_as_few(is_async: bool) -> None:
    def work(ctx: RunContext) -> None:
        for n in range(20_001):
            ctx.progress(n, 20_000, "rows")

    @ez_tool
    async def work_async(ctx: RunContext) -> None:
        work(ctx)

    sink = await events(work_async if is_async else ez_tool(name="work_async")(work), {})

    told = [event.data for event in sink.of_kind("progressed")]
    assert told[0] == {"progress": 0, "total": 20_000, "message": "rows"}
    assert told[-1] == {"progress": 20_000, "total": 20_000, "message": "rows"}
    assert len(told) < 10_000


async def test_every_value_of_a_stream_is_told() -> None:
    @ez_tool
    async def count(to: int) -> Any:
        for n in range(to):
            yield {"n": n}

    sink = await events(count, {"to": 2})

    assert sink.kinds() == ["received", "started", "yielded", "yielded", "ended"]
    assert [event.data["value"] for event in sink.of_kind("yielded")] == [{"n": 0}, {"n": 1}]


@pytest.mark.parametrize("arguments", [{"a": "one"}, "{", "[]"])
async def test_a_call_that_does_not_fit_is_received_too(arguments: Any) -> None:
    sink = await events(adding(), arguments)

    assert sink.kinds() == ["received", "ended"]
    assert sink.record.arguments is None
    assert sink.record.requested == arguments


async def test_an_unknown_tool_is_recorded() -> None:
    sink = RecordingSink()

    await Pipeline([adding()], sinks=[sink]).run(ToolCall("sub", {"a": 1}))

    assert sink.record.outcome["code"] == "unknown_tool"


async def test_a_record_tells_the_whole_call() -> None:
    hooks = deciding(lambda given: RunNormally(given.model_copy(update={"b": 5})))

    sink = await events(adding(), hooks=hooks, principal="ann")

    record = sink.record
    assert (record.call_id, record.tool, record.run_id, record.entry, record.principal) == (
        "c1",
        "add",
        "run_1",
        "test",
        "ann",
    )
    assert (record.arguments, record.requested) == ({"a": 1, "b": 5}, {"a": 1, "b": 1})
    assert [note.decision for note in record.decisions] == ["run"]
    assert record.outcome["value"] == 6
    assert record.started_at <= record.ended_at
    assert record.duration_ms >= 0
    assert json.loads(json.dumps(record.to_dict()))["tool"] == "add"


async def test_a_record_does_not_repeat_what_did_not_change() -> None:
    sink = await events(adding())

    assert sink.record.requested is None


async def test_a_rejected_call_never_started() -> None:
    sink = await events(adding(), hooks=deciding(lambda given: Reject("no")))

    assert sink.kinds() == ["received", "decided", "ended"]
    assert sink.record.arguments is None
    assert sink.record.requested == {"a": 1, "b": 1}


async def test_a_very_long_value_is_cut_in_the_record_alone() -> None:
    @ez_tool
    async def much() -> str:
        return "x" * 1_000_000

    sink = RecordingSink()

    outcome = await Pipeline([much], sinks=[sink]).run(ToolCall("much"))

    assert isinstance(outcome, Completed)
    assert len(outcome.value) == 1_000_000
    assert len(json.dumps(sink.record.to_dict())) < 200_000


# --- sinks


async def test_the_runs_sinks_and_the_pipelines_are_both_told() -> None:
    one, other = RecordingSink(), ListSink()

    await Pipeline([adding()], sinks=[one]).run(ToolCall("add", {"a": 1}), Run(sinks=(other,)))

    assert one.events == other.events
    assert len(other.records) == 1


async def test_a_sink_that_fails_changes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    class Broken:
        def emit(self, event: CallEvent) -> None:
            raise OSError("disk full")

    sink = RecordingSink()

    outcome = await Pipeline([adding()], sinks=[Broken(), sink]).run(ToolCall("add", {"a": 1}))

    assert isinstance(outcome, Completed)
    assert sink.kinds() == ["received", "started", "ended"]
    assert "Broken" in caplog.text


async def test_the_logger_tells_of_each_call(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "toolcrib.calls"):
        await Pipeline([adding()]).run(ToolCall("add", {"a": 1}))

    [line] = caplog.records
    assert line.getMessage().startswith("add(a=1, b=1) completed in ")
    assert line.toolcrib.outcome["value"] == 2  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("arguments", "decision", "begin", "end"),
    [
        ({"a": "x"}, RunNormally, "add(a='x') failed in ", 'arguments: a: must be an integer; got "x"'),
        ('{"a":\n1', RunNormally, 'add({"a": 1) failed in ', "Send all of it again, as one JSON object"),
        ({"a": 1}, lambda given: Reject("not\ntoday"), "add(a=1, b=1) rejected in ", " ms: not today"),
        ({"a": "x" * 2000}, RunNormally, f"add(a='{'x' * 996}…) failed in ", "(2002 characters)"),
        ({"a": 1, "x\n\x1b[31mforged": 2}, RunNormally, "add(a=1, x\\n\\x1b[31mforged=2) failed in ", "are a, b"),
    ],
    ids=["misfit", "no JSON", "rejected", "long", "forged"],
)
async def test_the_logger_says_in_one_line_why_a_call_did_not_run(
    caplog: pytest.LogCaptureFixture, arguments: Any, decision: Any, begin: str, end: str
) -> None:
    with caplog.at_level(logging.INFO, "toolcrib.calls"):
        await Pipeline([adding()], hooks=deciding(decision)).run(ToolCall("add", arguments))

    [line] = caplog.records
    assert line.getMessage().startswith(begin)
    assert line.getMessage().endswith(end)


async def test_the_logger_tells_of_each_event_where_it_is_asked(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "toolcrib.calls"):
        await Pipeline([adding()]).run(ToolCall("add", {"a": 1}, "c1"))

    assert [line.getMessage().split(" ")[0] for line in caplog.records[:2]] == ["received", "started"]


@pytest.mark.parametrize("whole", [False, True])
async def test_a_file_of_json_lines(tmp_path: Path, whole: bool) -> None:
    path = tmp_path / "calls.jsonl"

    with JsonLinesSink(path, events=whole) as sink:
        for _ in range(2):
            await Pipeline([adding()], sinks=[sink]).run(ToolCall("add", {"a": 1}))

    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    assert len(lines) == (6 if whole else 2)
    assert (lines[-1]["record"] if whole else lines[-1])["outcome"]["value"] == 2


async def test_a_file_is_appended_to(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"

    for _ in range(2):
        with JsonLinesSink(path) as sink:
            await Pipeline([adding()], sinks=[sink]).run(ToolCall("add", {"a": 1}))

    assert len(path.read_text("utf-8").splitlines()) == 2


async def test_whatever_a_tool_is_given_and_gives_can_be_written(tmp_path: Path) -> None:
    @ez_tool
    async def echo(text: str) -> Any:
        return [text, object(), b"\xff", float("nan")]

    path = tmp_path / "calls.jsonl"
    with JsonLinesSink(path) as sink:
        await Pipeline([echo], sinks=[sink]).run(ToolCall("echo", {"text": "\ud800 \u2028 \x00"}, origin="host"))

    [line, rest] = path.read_text("utf-8").split("\n")
    assert json.loads(line)["arguments"] == {"text": "\ud800 \u2028 \x00"}
    assert rest == ""


async def test_nothing_is_made_where_nobody_listens() -> None:
    outcome = await Pipeline([adding(requires_approval=True)]).run(ToolCall("add", {"a": 1}))

    assert isinstance(outcome, Suspended)


async def test_a_recording_sink_is_asked_about_one_call() -> None:
    sink = RecordingSink()
    pipeline = Pipeline([adding()], sinks=[sink])

    await pipeline.run(ToolCall("add", {"a": 1}, "c1"))
    failed = await pipeline.run(ToolCall("add", {}, "c2"))

    assert isinstance(failed, Failed)
    assert sink.kinds("c2") == ["received", "ended"]
    with pytest.raises(ValueError, match="2 calls"):
        _ = sink.record
