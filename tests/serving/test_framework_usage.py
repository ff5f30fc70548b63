"""Usage of an agent of another framework, on the record of the run of its calls."""

from __future__ import annotations

from pathlib import Path

from toolcrib.calls import ToolCall
from toolcrib.pipeline import Channel, Run
from toolcrib.record import ListSink, RunFilter, SqliteSink, list_runs, trace_nodes
from toolcrib.rounds import Usage
from toolcrib.serving.frameworks import CountedRequest, FrameworkRuns, FrameworkTools, record_usage
from toolcrib.tools import ez_tool

FIRST = CountedRequest("a", Usage(1, 1_000, 20, 900, reasoning_tokens=12, cost=None), "gpt-5")
SECOND = CountedRequest("b", Usage(1, 1_100, 30, cost=None))


async def test_requests_are_counted_once_beside_the_calls_of_their_run(tmp_path: Path) -> None:
    sink = SqliteSink(tmp_path / "runs.db")
    tools = FrameworkTools([ez_tool(name="size")(len)], FrameworkRuns("theirs", None, None), (sink,))

    with sink:
        run = Run("r", channel=Channel(entry="theirs"))
        tools.record_usage(run, [FIRST])
        await tools.call(ToolCall("size", {"obj": "abc"}), run)
        tools.record_usage(run, [FIRST, SECOND])
        tools.record_usage(Run("r", channel=Channel(entry="theirs")), [SECOND])  # as another process has it

    log = SqliteSink(tmp_path / "runs.db").log()
    [listed] = list_runs(log)
    node = trace_nodes(log, "r")
    assert listed.usage == {
        "requests": 2,
        "input_tokens": 2_100,
        "output_tokens": 50,
        "cached_tokens": 900,
        "cache_written_tokens": 0,
        "reasoning_tokens": 12,
        "cost": None,
    }
    assert node is not None
    assert [(one.kind, one.name, one.status) for one in node.inside] == [
        ("chat", "gpt-5", "completed"),
        ("call", "size", "completed"),
        ("chat", "model", "completed"),
    ]
    assert node.inside[0].events[-1]["text"] == "completed 1,000 tokens in (900 cached), 20 out (12 reasoning)"


async def test_a_run_that_asked_its_model_and_called_nothing_is_listed(tmp_path: Path) -> None:
    with SqliteSink(tmp_path / "runs.db") as sink:
        record_usage(Run("r", channel=Channel(entry="theirs"), principal="ann", sinks=(sink,)), [FIRST, SECOND])

    log = SqliteSink(tmp_path / "runs.db").log()
    [listed] = list_runs(log, RunFilter(principal="ann"))
    node = trace_nodes(log, "r")
    assert (listed.id, listed.entry, listed.principal, dict(listed.calls)) == ("r", "theirs", "ann", {})
    assert listed.usage is not None
    assert listed.usage["input_tokens"] == 2_100
    assert list_runs(log, RunFilter(principal="ben")) == []
    assert node is not None
    assert (node.status, [one.kind for one in node.inside]) == ("ended", ["chat", "chat"])


def test_where_no_sink_wants_activities_nothing_is_read() -> None:
    run, read = Run(sinks=(ListSink(),)), list[str]()

    record_usage(run, (CountedRequest(read.append("read") or "r", Usage()) for _ in range(2)))

    assert read == []
