"""Events on a Postgres server are kept and read back as those in a file are."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest

from tests.postgres import Postgres
from toolcrib.approvals import MemoryApprovalStore
from toolcrib.calls import ActivityEvent, CallEvent, Suspended, ToolCall
from toolcrib.database import Database, StoreTables, transaction
from toolcrib.pipeline import Pipeline, Run
from toolcrib.record import POSTGRES_EVENT_TABLES, ActivityFilter, EventLog, PostgresSink, postgres_events
from toolcrib.record._event_tables import _CHANGE
from toolcrib.tools import ez_tool
from toolcrib.toolsets import Toolset

AT = datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)
_INDEXES = """SELECT indexname FROM pg_indexes WHERE tablename = 'toolcrib_activities'
    AND indexname NOT IN (%s, 'toolcrib_activities_pkey')"""


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


@pytest.mark.parametrize(
    ("wanted", "index"),
    [
        (ActivityFilter(), "first"),
        (ActivityFilter(top=True), "top"),
        (ActivityFilter(sources=("session",)), "source"),
        (ActivityFilter(statuses=("failed",)), "unfinished"),
        (ActivityFilter(sources=("turn", "program"), statuses=("running", "interrupted")), "unfinished"),
        (ActivityFilter(name="add"), "name"),
        (ActivityFilter(principal="ann"), "principal"),
        (ActivityFilter(run_id="run_1"), "run"),
        (ActivityFilter(inner_runs=("run_1",)), "inner_run"),
        (ActivityFilter(parent_id="t1"), "parent"),
        (ActivityFilter(parent_ids=("t1", "t2")), "parent"),
        (ActivityFilter(ids=("c1", "c2")), "pkey"),
        (ActivityFilter(text="oslo", statuses=("failed",)), "words"),
    ],
    ids=lambda value: value if isinstance(value, str) else repr(value),
)
def test_a_server_reads_each_filter_off_its_index(
    sink: PostgresSink, postgres: Postgres, wanted: ActivityFilter, index: str
) -> None:
    log, asked = sink.log(), list[tuple[str, Sequence[Any]]]()
    EventLog(lambda sql, values: asked.append((sql, values)) or [], log.words).activities(wanted)
    ((sql, values),) = asked

    with postgres.connect("events") as connection, connection.transaction(force_rollback=True):
        connection.execute("SET LOCAL enable_seqscan = off")
        for (other,) in connection.execute(_INDEXES, [f"toolcrib_activities_{index}"]).fetchall():
            connection.execute(f"DROP INDEX {other}")  # an empty table is read by any
        rows = connection.execute("EXPLAIN " + sql.replace("%", "%%").replace("?", "%s"), values).fetchall()

    plan = "\n".join(line for (line,) in rows)
    assert f" toolcrib_activities_{index}" in plan
    assert "Seq Scan" not in plan


def test_what_a_running_worker_of_an_older_version_writes_is_read_beside_what_is_written_now(
    postgres: Postgres,
) -> None:
    database = Database.named(postgres.url(f"older_{uuid4().hex[:8]}"))
    engine = database.engine(pool=1)
    at = AT.isoformat()
    for tables in POSTGRES_EVENT_TABLES:
        database.make_tables(engine, StoreTables(tables.store, tables.steps[:-1]))
    with transaction(engine) as execute:
        names = "source, run_id, id, name, entry, status, first_position, last_position, started_at, ended_at, words"
        for number, status in enumerate(("running", "completed"), 1):
            row = ("call", "r", f"old{number}", "add", "", status, number, number, at, at, "add oslo ")
            execute(f"INSERT INTO toolcrib_activities ({names}) VALUES ({', '.join('?' * 11)})", row)
    with PostgresSink(database) as sink:
        sink.emit(event("new", arguments={"city": "oslo"}))
        log = sink.log()
        with transaction(engine) as execute:  # the statement of the older version, on the tables of this one
            execute(
                _CHANGE, ("call", "r", "old1", *(None, "add", "", "completed", None, 1, 9, at, at, 1.0, "", "wet ", ""))
            )

        found = {one.id: one.status for one in log.activities(ActivityFilter(text="oslo"))}

        assert found == {"old1": "completed", "old2": "completed", "new": "running"}
        assert [one.id for one in log.activities(ActivityFilter(text="wet"))] == ["old1"]
        assert log.counts() == {("call", "completed"): 2, ("call", "running"): 1}
    engine.dispose()


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
