"""Recorded runs, played again without the model and without the tools' effects."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from toolcrib.approvals import approve_all, deny_all
from toolcrib.calls import CallRecord, ToolCall
from toolcrib.errors import ModelRetry
from toolcrib.pipeline import Run
from toolcrib.record import JsonLinesSink, ListSink, Sink, SqliteSink
from toolcrib.rounds import Session
from toolcrib.testing import Recording, ScriptedModel
from toolcrib.tools import ez_tool

RAN: list[str] = []


@ez_tool
async def stock(sku: str) -> dict[str, int]:
    RAN.append(sku)
    if sku == "jug":
        raise ModelRetry("there is no jug")
    if sku == "pot":
        raise LookupError("no pot")
    return {"left": len(RAN)}


@ez_tool(requires_approval=True)
async def order(sku: str, pieces: int = 1) -> str:
    RAN.append(f"order {sku}")
    return f"{pieces} {sku} ordered"


TOOLS = [stock, order]
STEPS = (
    [ToolCall("stock", {"sku": "mug"}), ToolCall("stock", {"sku": "lamp"})],
    ToolCall("order", {"article": "mug"}),
    [ToolCall("order", '{"sku": "mug", "pieces": 2}'), ToolCall("stock", {"sku": "jug"})],
    ToolCall("stock", {"sku": "pot"}),
    ToolCall("stock", {"sku": "mug"}),
)


def hold(*sinks: Sink) -> None:
    """Hold the conversation that is recorded."""
    run = Run(approver=approve_all, sinks=sinks)
    Session(ScriptedModel(*STEPS, "Done."), tools=TOOLS, run=run).say("Pay.").run_sync()


def outcomes(records: list[CallRecord]) -> list[tuple[str, dict[str, object]]]:
    """Return what each call came to, but for what is of its moment."""
    of_a_moment = {"reference", "traceback"}
    made = [
        (one.call_id, {key: said for key, said in one.outcome.items() if key not in of_a_moment}) for one in records
    ]
    return sorted(made, key=lambda one: one[0])


@pytest.fixture
def recorded() -> ListSink:
    """The records of a conversation."""
    sink = ListSink()
    hold(sink)
    RAN.clear()
    return sink


def test_the_same_calls_come_to_the_same_and_no_tool_runs(recorded: ListSink) -> None:
    recording, again = Recording.of(recorded.records), ListSink()
    run = Run(approver=approve_all, sinks=(again,))

    with recording.model("Done.") as model:
        Session(model, tools=recording.pipeline(TOOLS), run=run).say("Pay.").run_sync()

    assert outcomes(again.records) == outcomes(recorded.records)
    assert RAN == []


def test_calls_of_one_reply_come_in_one_reply(recorded: ListSink) -> None:
    rounds = Recording.of(recorded.records).rounds()

    assert [[call.name for call in calls] for calls in rounds] == [
        ["stock", "stock"], ["order"], ["order", "stock"], ["stock"], ["stock"]
    ]  # fmt: skip
    assert rounds[1][0].arguments == '{"article": "mug"}'


def test_gates_are_asked_again(recorded: ListSink) -> None:
    recording, again = Recording.of(recorded.records), ListSink()
    run = Run(approver=deny_all, sinks=(again,))

    Session(recording.model("Done."), tools=recording.pipeline(TOOLS), run=run).say("Pay.").run_sync()

    assert [record.outcome["kind"] for record in again.records if record.tool == "order"] == ["failed", "rejected"]


def test_a_call_that_is_not_recorded_fails_the_test(recorded: ListSink) -> None:
    pipeline = Recording.of(recorded.records).pipeline(TOOLS)

    with pytest.raises(pytest.fail.Exception, match=r"`stock` was called with \{'sku': 'cup'\}, which is not recorded"):
        pipeline.run_sync(ToolCall("stock", {"sku": "cup"}))


def test_a_result_is_given_once(recorded: ListSink) -> None:
    pipeline = Recording.of(recorded.records).pipeline(TOOLS)
    made = [pipeline.run_sync(ToolCall("stock", {"sku": "mug"})).text() for _ in range(2)]

    with pytest.raises(pytest.fail.Exception, match="recorded"):
        pipeline.run_sync(ToolCall("stock", {"sku": "mug"}))

    assert made[0] != made[1]


@pytest.mark.parametrize(
    "sink", [JsonLinesSink, lambda path: JsonLinesSink(path, events=True), SqliteSink], ids=["records", "events", "db"]
)
def test_a_file_of_any_sink_is_read(sink: Callable[[Path], JsonLinesSink | SqliteSink], tmp_path: Path) -> None:
    kept, path = ListSink(), tmp_path / "recorded"
    with sink(path) as file:
        hold(kept, file)

    recording = Recording.load(path)

    assert recording == Recording.of(kept.records)


def test_one_run_of_several_is_named_and_saved(tmp_path: Path) -> None:
    kept = ListSink()
    with JsonLinesSink(tmp_path / "runs.jsonl") as file:
        hold(file)
        hold(kept, file)

    with pytest.raises(ValueError, match="has 2 runs; name one as `run_id`"):
        Recording.load(tmp_path / "runs.jsonl")
    Recording.load(tmp_path / "runs.jsonl", kept.records[0].run_id).save(tmp_path / "one.jsonl")

    assert Recording.load(tmp_path / "one.jsonl") == Recording.of(kept.records)


def test_a_file_of_something_else_and_a_sink_are_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text('{"outcome": {}}\nhello\n', "utf-8")
    (tmp_path / "other.jsonl").write_bytes(b"\xff\xfe")

    with pytest.raises(ValueError, match=r"notes.txt has no record in line 2; name a file of JsonLinesSink"):
        Recording.load(tmp_path / "notes.txt")
    with pytest.raises(ValueError, match=r"other.jsonl has no record in line 1"):
        Recording.load(tmp_path / "other.jsonl")
    with pytest.raises(TypeError, match=r"give those of the sink: sink\.records"):
        Recording.of(ListSink())  # pyright: ignore[reportArgumentType]


def test_a_file_without_the_run_says_so(tmp_path: Path) -> None:
    (tmp_path / "runs.jsonl").touch()

    with pytest.raises(ValueError, match="no call of the run 'x' that has ended"):
        Recording.load(tmp_path / "runs.jsonl", "x")
