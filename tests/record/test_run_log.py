"""Runs of a log, and the tree of one: over a file and over a Postgres server."""

import json
from collections.abc import Iterator
from contextlib import AbstractContextManager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.in_doubt import answered_in_doubt
from tests.postgres import Postgres
from toolcrib.calls import Denial, Grant, Outcome, Reject, RunNormally, Suspended, ToolCall, now, outcome_from_dict
from toolcrib.code import Toolkit
from toolcrib.hooks import HookSet
from toolcrib.pipeline import Channel, Pipeline, Run
from toolcrib.record import (
    EventLog,
    PostgresSink,
    RunFilter,
    SqliteSink,
    TraceNode,
    ids_like,
    list_runs,
    trace_activity,
    trace_nodes,
)
from toolcrib.tools import Tool, ez_tool


@ez_tool
def add(a: int, b: int = 1) -> int:
    return a + b


@ez_tool(requires_approval=True)
def refund(order: int) -> str:
    return f"refunded {order}"


@pytest.fixture(params=["sqlite", "postgres"])
def sink(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    made: AbstractContextManager[Any]
    if request.param == "sqlite":
        made = SqliteSink(tmp_path / "toolcrib.db")
    else:
        server: Postgres = request.getfixturevalue("postgres")
        made = PostgresSink(server.url("run_log"))
        with server.connect("run_log") as connection:
            connection.execute("TRUNCATE toolcrib_events, toolcrib_activities")
    with made as opened:
        yield opened


async def recorded(sink: Any) -> EventLog:
    """Two runs at the top, and a program of a third: of ann, of bob, and of nobody."""
    tools: list[Tool[..., Any]] = [add, refund]
    pipeline = Pipeline(tools, sinks=[sink])
    ann, bob = Run("run_ann", principal="ann"), Run("run_bob", principal="bob")
    await pipeline.run(ToolCall("add", {"a": "one"}, "call_bad"), ann)
    asked = await pipeline.run(ToolCall("refund", {"order": 7}, "call_refund"), ann)
    assert isinstance(asked, Suspended)
    await pipeline.run(ToolCall("refund", {"order": 8}, "call_waits"), bob)
    await pipeline.run(asked, ann, grant=asked.request.grant("carol"))
    await Toolkit(tools, sinks=[sink]).execute_async("add(1)", run=Run("run_program"))
    return sink.log()


@pytest.mark.processes
async def test_runs_are_listed_the_latest_first_with_what_became_of_their_calls(sink: Any) -> None:
    log = await recorded(sink)

    found = list_runs(log)

    assert [one.id for one in found] == ["run_program", "run_bob", "run_ann"]
    assert [dict(one.calls) for one in found] == [{"completed": 1}, {"suspended": 1}, {"completed": 1, "failed": 1}]
    assert [one.principal for one in found] == [None, "bob", "ann"]
    assert [[(one["tool"], one["id"]) for one in run.waiting] for run in found] == [[], [("refund", "call_waits")], []]
    assert found[1].waiting[0]["at"] == found[1].started_at
    assert [one.ended_at is None for one in found] == [False, True, False]
    assert found[0].names == ("program",)


@pytest.mark.processes
async def test_runs_are_chosen_by_one_of_their_calls(sink: Any) -> None:
    log = await recorded(sink)

    def ids(wanted: RunFilter, limit: int = 50) -> list[str]:
        return [one.id for one in list_runs(log, wanted, limit=limit)]

    assert ids(RunFilter(principal="ann")) == ["run_ann"]
    assert ids(RunFilter(tool="refund")) == ["run_bob", "run_ann"]
    assert ids(RunFilter(tool="refund", outcomes=("suspended",))) == ["run_bob"]
    assert ids(RunFilter(outcomes=("rejected",))) == []
    assert ids(RunFilter(since=now() + timedelta(hours=1))) == []
    assert ids(RunFilter(since=now() - timedelta(hours=1)), limit=1) == ["run_program"]


@pytest.mark.processes
async def test_runs_are_chosen_by_the_time_before_which_they_began(sink: Any) -> None:
    await recorded(sink)
    for name in ("early", "late"):
        trace = trace_activity("session", name, Run(f"run_{name}", sinks=(sink,)), about=dict)
        assert trace is not None
        trace.closed("completed")
    log = sink.log()
    began = {one.id: datetime.fromisoformat(one.started_at) for one in list_runs(log)}

    def ids(before: str, limit: int = 50) -> list[str]:
        return [one.id for one in list_runs(log, RunFilter(until=began[before]), limit=limit)]

    assert ids("run_late") == ["run_early", "run_program", "run_bob", "run_ann"]
    assert ids("run_late", limit=1) == ["run_early"]
    assert ids("run_bob") == ["run_ann"]
    assert ids("run_ann") == []


@pytest.mark.processes
async def test_a_run_is_as_late_as_its_first_call(sink: Any) -> None:
    pipeline, early = Pipeline([add], sinks=[sink]), Run("run_early")
    await pipeline.run(ToolCall("add", {"a": 1}, "call_first"), early)
    await pipeline.run(ToolCall("add", {"a": 1}, "call_late"), Run("run_late"))
    for number in range(20):  # more than a page
        await pipeline.run(ToolCall("add", {"a": 1}, f"call_{number}"), early)

    assert [run.id for run in list_runs(sink.log(), limit=1)] == ["run_late"]
    assert [run.id for run in list_runs(sink.log(), RunFilter(tool="add"), limit=2)] == ["run_late", "run_early"]


@pytest.mark.processes
async def test_the_latest_runs_of_requests_alone_are_listed_among_those_with_calls(sink: Any) -> None:
    began = dict[str, datetime]()
    for number in range(20):
        run = Run(f"run_{number}", sinks=(sink,), principal=f"user_{number % 2}")
        began[run.id] = now()
        for _ in range(2):
            trace = trace_activity("chat", "model", run.view(parent_id=run.id), about=dict)
            assert trace is not None
            trace.closed("completed")
    await Pipeline([add], sinks=[sink]).run(ToolCall("add", {"a": 1}, "call_1"), Run("run_called"))
    log = sink.log()

    def ids(limit: int, **wanted: Any) -> list[str]:
        return [run.id for run in list_runs(log, RunFilter(**wanted), limit=limit)]

    assert ids(3) == ["run_called", "run_19", "run_18"]
    assert ids(2, until=began["run_6"]) == ["run_5", "run_4"]
    assert ids(50, since=began["run_17"]) == ["run_called", "run_19", "run_18", "run_17"]
    assert ids(50, until=began["run_1"]) == ["run_0"]


async def test_a_call_is_found_by_its_own_time_also_in_a_run_that_began_before(sink: Any) -> None:
    hooks = HookSet()

    @hooks.on("add")
    async def limits(call: Any, given: Any) -> Any:
        return Reject("too much") if given.a > 10 else RunNormally(given)

    pipeline, run = Pipeline([add], hooks=hooks, sinks=[sink]), Run("run_of_days")
    await pipeline.run(ToolCall("add", {"a": 1}, "call_old"), run)
    morning = now()
    await pipeline.run(ToolCall("add", {"a": 11}, "call_new"), run)
    log, refused = sink.log(), RunFilter(outcomes=("rejected",), since=morning)

    assert [call["id"] for one in list_runs(log, refused) for call in one.matching] == ["call_new"]
    assert [one.id for one in list_runs(log, RunFilter(since=morning))] == ["run_of_days"]
    assert list_runs(log, RunFilter(outcomes=("rejected",), until=morning)) == []
    assert [one.id for one in list_runs(log, RunFilter(tool="add", until=morning))] == ["run_of_days"]


async def test_a_run_chosen_by_an_outcome_has_the_calls_that_ended_so_and_why(sink: Any) -> None:
    hooks = HookSet()

    @hooks.on("add")
    async def limits(call: Any, given: Any) -> Any:
        return Reject("too much") if given.a > 10 else RunNormally(given)

    pipeline, run = Pipeline([add], hooks=hooks, sinks=[sink]), Run("run_1")
    for number, a in enumerate((1, 11, 12, "one")):
        await pipeline.run(ToolCall("add", {"a": a}, f"call_{number}"), run)

    def matching(outcome: str) -> list[tuple[str, str]]:
        return [
            (call["id"], call["reason"])
            for one in list_runs(sink.log(), RunFilter(outcomes=(outcome,)))
            for call in one.matching
        ]

    refused = RunFilter(outcomes=("rejected", "failed"))
    [run_of_all] = list_runs(sink.log(), refused)
    assert [(call["id"], call["status"]) for call in run_of_all.matching] == [
        ("call_1", "rejected"),
        ("call_2", "rejected"),
        ("call_3", "failed"),
    ]
    assert run_of_all.started_at < run_of_all.matching[0]["at"] < run_of_all.matching[-1]["at"] == run_of_all.ended_at
    assert matching("rejected") == [("call_1", "too much"), ("call_2", "too much")]
    assert matching("completed") == [("call_0", "")]
    assert [id for id, reason in matching("failed") if "a" in reason] == ["call_3"]
    assert matching("") == []


async def test_a_run_without_a_call_is_listed_with_what_its_model_took(sink: Any) -> None:
    run = Run("run_quiet", sinks=(sink,), principal="ann", channel=Channel(entry="session"))
    trace = trace_activity("session", "support", run, about=lambda: {"principal": "ann"})
    assert trace is not None
    trace.closed("completed", usage={"requests": 2, "cost": "0.5"})

    (found,) = list_runs(sink.log())

    assert (found.id, found.names, found.entry, found.principal) == (
        "run_quiet",
        ("session support",),
        "session",
        "ann",
    )
    assert found.usage == {"requests": 2, "cost": "0.5"}
    assert list_runs(sink.log(), RunFilter(tool="add")) == []


async def test_a_run_takes_what_all_of_its_answers_took(sink: Any) -> None:
    run = Run("run_twice", sinks=(sink,), channel=Channel(entry="session"))
    for cost, calls in (("0.5", 1), ("0.25", 1), ("0.125", 0)):
        trace = trace_activity("agent", "support", run, about=dict)
        assert trace is not None
        with trace.within():
            for _ in range(calls):
                await Pipeline([add]).run(ToolCall("add", {"a": 1}, f"call_{cost}"), run)
        trace.closed("completed", usage={"requests": 2, "input_tokens": 10, "cost": cost})

    (found,) = list_runs(sink.log())

    assert found.usage == {"requests": 6, "input_tokens": 30, "cost": "0.875"}
    assert found.names == ("agent support",)


async def test_the_tree_of_a_run_has_the_answers_that_made_no_call(sink: Any) -> None:
    run = Run("run_twice", sinks=(sink,), channel=Channel(entry="session"))
    for calls in (1, 0):
        trace = trace_activity("agent", "support", run, about=dict)
        assert trace is not None
        with trace.within():
            for _ in range(calls):
                await Pipeline([add]).run(ToolCall("add", {"a": 1}, "call_add"), run)
        trace.closed("completed")

    tree = trace_nodes(sink.log(), "run_twice")

    assert tree is not None
    assert [(one.kind, [inner.name for inner in one.inside]) for one in tree.inside] == [
        ("agent", ["add"]),
        ("agent", []),
    ]


def kinds(node: TraceNode) -> list[str]:
    return [event["kind"] for event in node.events]


@pytest.mark.processes
async def test_the_tree_of_a_run_has_its_calls_and_who_approved_what(sink: Any) -> None:
    log = await recorded(sink)

    tree = trace_nodes(log, "run_ann")

    assert tree is not None
    assert (tree.kind, tree.id, tree.status, tree.principal) == ("run", "run_ann", "ended", "ann")
    bad, refunded = tree.inside
    assert (bad.name, bad.status, kinds(bad)) == ("add", "failed", ["received", "ended"])
    assert kinds(refunded) == ["received", "suspended", "ended", "received", "decided", "started", "ended"]
    assert [event["text"] for event in refunded.events if event["kind"] == "decided"] == ["approved by carol"]


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (lambda request: request.grant("ann"), "approved by ann"),
        (lambda request: request.done("refunded 7", "ann"), "ann says that it was done; not run again"),
        (lambda request: request.deny(message="leave it", by="ann"), "denied by ann leave it"),
    ],
)
async def test_the_tree_tells_how_a_call_in_doubt_was_answered(tmp_path: Path, answer: Any, expected: str) -> None:
    with SqliteSink(tmp_path / "toolcrib.db") as sink:
        call_id = await answered_in_doubt(Pipeline([refund], sinks=[sink]), answer)
        tree = trace_nodes(sink.log(), call_id)

    assert tree is not None
    decided = [event for event in tree.events if event["kind"] == "decided"]
    assert [event["text"] for event in decided] == [expected]
    assert decided[0]["data"]["approval"].get("done", False) == ("done" in expected)


@pytest.mark.processes
async def test_the_tree_of_a_program_s_run_has_the_calls_inside_the_program(sink: Any) -> None:
    log = await recorded(sink)

    tree = trace_nodes(log, "run_program")

    assert tree is not None
    (program,) = tree.inside
    assert (program.kind, [one.name for one in program.inside]) == ("program", ["add"])
    inner = trace_nodes(log, program.inside[0].id)
    assert inner is not None
    assert (inner.kind, inner.name) == ("call", "add")
    by_activity = trace_nodes(log, program.id)
    assert by_activity is not None
    assert by_activity.to_dict() == program.to_dict()


def elsewhere(outcome: Outcome) -> Suspended:
    """A suspended call as another process reads it."""
    read = outcome_from_dict(json.loads(json.dumps(outcome.to_dict())))
    assert isinstance(read, Suspended)
    return read


async def test_a_call_that_goes_on_in_another_run_waits_no_more_in_the_first(sink: Any) -> None:
    pipeline = Pipeline([refund], sinks=[sink])
    asked = [
        elsewhere(await pipeline.run(ToolCall("refund", {"order": n}, f"call_{n}"), Run("run_1"))) for n in range(4)
    ]
    grant, denial = asked[0].request.grant("ann"), asked[1].request.deny(message="no", by="ann")
    answers: list[Grant | Denial | None] = [grant, denial, None, grant]  # the last is of another call

    for suspended, answer in zip(asked, answers, strict=True):
        await pipeline.run(suspended, Run("run_2"), grant=answer)

    second, first = list_runs(sink.log())
    assert first.calls == {"resumed": 3, "suspended": 1}
    assert second.calls == {"completed": 1, "failed": 1, "rejected": 1, "suspended": 1}
    assert [one["id"] for one in first.waiting] == ["call_3"]
    assert [one["id"] for one in second.waiting] == ["call_2"]


@pytest.mark.parametrize("stored", [False, True])
async def test_a_call_that_went_through_several_runs_has_ended_in_the_last_alone(sink: Any, stored: bool) -> None:
    pipeline, call = Pipeline([refund], sinks=[sink]), ToolCall("refund", {"order": 5}, "call_1")
    other = await pipeline.run(call, Run("run_of_another"))
    outcome: Any = await pipeline.run(call, Run("run_1"))

    for number, grant in enumerate((None, outcome.request.grant("ann")), 2):
        outcome = elsewhere(outcome) if stored else outcome
        outcome = await pipeline.run(outcome, Run(f"run_{number}"), grant=grant)

    found = {one.id: one for one in list_runs(sink.log())}
    assert isinstance(other, Suspended)
    assert [found[f"run_{n}"].calls for n in (1, 2, 3)] == [{"resumed": 1}, {"resumed": 1}, {"completed": 1}]
    assert all(found[f"run_{n}"].ended_at for n in (1, 2, 3))
    assert found["run_of_another"].calls == {"suspended": 1}
    shown = trace_nodes(sink.log(), "call_1")
    assert shown is not None
    assert (shown.kind, sorted(one.status for one in shown.inside)) == (
        "call",
        ["completed", "resumed", "resumed", "suspended"],
    )


@pytest.mark.processes
async def test_an_id_is_found_by_its_beginning_or_the_nearest_is_named(sink: Any) -> None:
    log = await recorded(sink)

    assert ids_like(log, "run_a") == (["run_ann"], [])
    assert ids_like(log, "call_") == (sorted(ids_like(log, "call_")[0]), [])
    assert {"call_bad", "call_refund", "call_waits"} <= set(ids_like(log, "call_")[0])
    assert ids_like(log, "run_anm")[1][0] == "run_ann"
    assert ids_like(log, "runXann")[0] == []
    assert trace_nodes(log, "nothing") is None
