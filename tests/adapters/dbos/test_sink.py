"""Events on a Postgres server are kept and read back as those in a file are."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.postgres import Postgres
from toolcrib.approvals import MemoryApprovalStore
from toolcrib.calls import ActivityEvent, CallEvent, Suspended, ToolCall
from toolcrib.pipeline import Pipeline, Run
from toolcrib.record import ActivityFilter, EventLog, PostgresSink, postgres_events
from toolcrib.tools import ez_tool
from toolcrib.toolsets import Toolset

AT = datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)


@ez_tool
def add(a: int, b: int) -> int:
    return a + b


@ez_tool(requires_approval=True)
def refund(cents: int) -> str:
    return f"refunded {cents}"


@pytest.fixture
def sink(postgres: Postgres) -> Iterator[PostgresSink]:
    with PostgresSink(postgres.url("events")) as made:
        postgres.empty("events")
        yield made


def event(call_id: str, kind: Any = "received", **data: Any) -> CallEvent:
    return CallEvent(kind, call_id, "add", "run_1", "test", AT, data)


async def test_the_events_of_calls_are_read_back_in_order(sink: PostgresSink) -> None:
    scope = Run(sinks=(sink,), principal="bob", approvals=MemoryApprovalStore())
    pipeline = Pipeline(Toolset([add, refund]))
    await pipeline.run(ToolCall("add", {"a": 1, "b": 2}, "c1"), scope)
    outcome = await pipeline.run(ToolCall("refund", {"cents": 5}, "c2"), scope)
    assert isinstance(outcome, Suspended)

    log = sink.log()

    assert [one.kind for one in log.since(0) if one.id == "c1"] == ["received", "started", "ended"]
    assert [(one.id, one.status) for one in log.activities()] == [("c2", "suspended"), ("c1", "completed")]
    await pipeline.run(outcome, scope, grant=outcome.request.grant("ann"))
    assert [(one.id, one.status) for one in sink.log().activities()] == [("c2", "completed"), ("c1", "completed")]


def test_runs_are_kept_and_found_by_words(sink: PostgresSink, postgres: Postgres) -> None:
    sink.emit_activity(
        ActivityEvent("opened", "program", "p1", None, "program", AT, {"source": "print('50% off\x00')"})
    )
    sink.emit_activity(ActivityEvent("opened", "program", "p2", None, "program", AT, {"source": "print('half')"}))
    sink.flush()

    found = postgres_events(postgres.url("events")).activities(ActivityFilter(text="50%"))

    assert [one.id for one in found] == ["p1"]


def test_words_are_found_by_an_index(sink: PostgresSink, postgres: Postgres) -> None:
    for number in range(3):
        sink.emit(event(f"c{number}", arguments={"order": f"A-{number}007", "note": "x" * 3_000}))
    sink.flush()
    asked: list[tuple[str, Sequence[Any]]] = []
    log = sink.log()
    seen = EventLog(lambda sql, values: asked.append((sql, values)) or [], log.words)
    seen.activities(ActivityFilter(text="a-1007"))
    ((sql, values),) = asked

    with postgres.connect("events") as connection:
        connection.execute("SET enable_seqscan = off")
        connection.execute("SET enable_indexscan = off")
        rows = connection.execute("EXPLAIN " + sql.replace("%", "%%").replace("?", "%s"), values).fetchall()

    assert "toolcrib_activities_words" in str(rows)
    assert [one.id for one in log.activities(ActivityFilter(text="A-10"))] == ["c1"]
    assert log.activities(ActivityFilter(text="007")) == []
    assert log.names() == ["add"]


def test_several_writers_share_one_order(sink: PostgresSink, postgres: Postgres) -> None:
    def tell(name: str) -> None:
        with PostgresSink(postgres.url("events")) as own:
            for number in range(50):
                own.emit(event(f"{name}{number}"))

    writers = [threading.Thread(target=tell, args=(name,)) for name in "abc"]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()

    kept = sink.log().since(0)

    assert [one.position for one in kept] == list(range(1, 151))
    assert [one.id for one in kept if one.id.startswith("a")] == [f"a{number}" for number in range(50)]
