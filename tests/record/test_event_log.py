"""Log of kept events: how much of the tables it reads, and what a search finds."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from toolcrib.calls import ActivityEvent, CallEvent
from toolcrib.record import ActivityFilter, EventLog, SqliteSink, list_runs, sqlite_events
from toolcrib.record._event_log import _COUNTS

AT = datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)


def event(call_id: str, kind: Any = "received", tool: str = "add", **data: Any) -> CallEvent:
    return CallEvent(kind, call_id, tool, "run_1", "test", AT, data)


def kept(path: Path, *events: CallEvent | ActivityEvent) -> EventLog:
    with SqliteSink(path) as sink:
        for one in events:
            sink.emit(one) if isinstance(one, CallEvent) else sink.emit_activity(one)
        return sink.log()


def plan_of(path: Path, read: Any) -> str:
    """Return how SQLite would run what `read` asks a log for."""
    asked: list[tuple[str, Sequence[Any]]] = []
    log = sqlite_events(path)
    read(EventLog(lambda sql, values: asked.append((sql, values)) or list(log.rows(sql, values)), log.words))
    with closing(sqlite3.connect(path)) as connection, connection:
        return "\n".join(
            str(row[3]) for sql, values in asked for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}", values)
        )


def test_of_calls_that_are_named_no_other_call_is_read(tmp_path: Path) -> None:
    kept(tmp_path / "events.db", event("c1"))
    wanted = ActivityFilter(sources=("call",), statuses=("failed",), ids=tuple(f"c{number}" for number in range(60)))

    plan = plan_of(tmp_path / "events.db", lambda log: log.activities(wanted))
    read = kept(tmp_path / "events.db", event("c2")).activities(ActivityFilter(sources=("call",), ids=("c2", "c3")))

    assert "(id=?)" in plan
    assert [one.id for one in read] == ["c2"]


@pytest.mark.parametrize(
    "wanted",
    [
        ActivityFilter(sources=("session",)),
        ActivityFilter(statuses=("failed", "error")),
        ActivityFilter(sources=("turn", "agent"), statuses=("failed",)),
        ActivityFilter(name="add"),
        ActivityFilter(principal="ann"),
        ActivityFilter(run_id="run_1"),
        ActivityFilter(parent_id="turn_1"),
        ActivityFilter(ids=("c1", "c2")),
        ActivityFilter(sources=("chat",), parent_ids=("run_1", "run_2")),
        ActivityFilter(text="oslo"),
        ActivityFilter(text="oslo a-1007", sources=("call",), statuses=("failed", "error")),
    ],
    ids=str,
)
@pytest.mark.parametrize("before", [None, 900])
def test_no_filter_reads_the_whole_table(tmp_path: Path, wanted: ActivityFilter, before: int | None) -> None:
    kept(tmp_path / "events.db", event("c1"))

    plan = plan_of(tmp_path / "events.db", lambda log: log.activities(wanted, before=before))

    assert "SEARCH toolcrib_activities" in plan
    assert "SCAN toolcrib_activities" not in plan


@pytest.mark.parametrize("before", [None, 900])
def test_what_is_at_the_top_is_read_off_an_index_of_nothing_else(tmp_path: Path, before: int | None) -> None:
    kept(tmp_path / "events.db", event("c1"))

    plan = plan_of(tmp_path / "events.db", lambda log: log.activities(ActivityFilter(top=True), before=before))

    assert plan.split(" USING ")[1:] == [f"INDEX toolcrib_activities_top{' (first_position<?)' if before else ''}"]


def test_no_page_is_sorted_before_its_rows_are_chosen(tmp_path: Path) -> None:
    kept(tmp_path / "events.db", event("c1"))
    for wanted in (ActivityFilter(), ActivityFilter(top=True), ActivityFilter(name="add"), ActivityFilter(text="oslo")):
        assert "TEMP B-TREE" not in plan_of(tmp_path / "events.db", lambda log, w=wanted: log.activities(w))


def test_the_latest_of_many_runs_are_listed_by_their_own_calls(tmp_path: Path) -> None:
    path = tmp_path / "events.db"
    alone = [ActivityEvent("opened", "chat", f"chat_{n}", f"alone_{n}", "model", AT, {}) for n in range(400)]
    kept(path, *alone, *[replace(event(f"c{n}"), run_id=f"run_{n}") for n in range(400)])
    read = list[str]()

    def listed(log: EventLog) -> list[str]:
        def rows(sql: str, values: Sequence[Any]) -> Sequence[Sequence[Any]]:
            found = log.rows(sql, values)
            read.extend(str(row) for row in found)
            return found

        return [run.id for run in list_runs(EventLog(rows), limit=3)]

    latest = listed(sqlite_events(path))
    plan = plan_of(path, listed)

    assert latest == ["run_399", "run_398", "run_397"]
    assert not any("chat_300" in row or "run_300" in row for row in read)
    assert [line for line in plan.splitlines() if "SCAN toolcrib_activities" in line] == [
        "SCAN toolcrib_activities USING INDEX toolcrib_activities_first"  # for as many rows as a page has
    ]


def test_what_changed_is_read_by_the_events_after_a_position(tmp_path: Path) -> None:
    log = kept(tmp_path / "events.db", *[event(f"c{number}") for number in range(5)], event("c1", "started"))

    plan = plan_of(tmp_path / "events.db", lambda log: log.changed(3))
    changed = [[one.id for one in log.changed(position, limit)] for position, limit in ((3, 500), (0, 2), (0, 500))]

    assert "SCAN toolcrib" not in plan
    assert changed == [["c3", "c4", "c1"], ["c0", "c2"], ["c0", "c2", "c3", "c4", "c1"]]


def test_calls_and_runs_are_counted_off_indexes(tmp_path: Path) -> None:
    path = tmp_path / "events.db"
    done = {"kind": "completed", "value": 1}
    log = kept(
        path,
        *[event(f"c{number}", "ended", outcome=done) for number in range(3)],
        event("c3"),
        ActivityEvent("closed", "turn", "t1", None, "add", AT, {"outcome": "completed"}),
        ActivityEvent("closed", "turn", "t2", None, "add", AT, {"outcome": "error"}),
    )

    plan = plan_of(path, lambda log: log.rows(_COUNTS, ()))

    assert log.counts() == {
        ("call", "completed"): 3,
        ("call", "running"): 1,
        ("turn", "completed"): 1,
        ("turn", "error"): 1,
    }
    assert all("INDEX" in line for line in plan.splitlines() if "toolcrib_activities" in line)


def test_names_are_read_off_an_index(tmp_path: Path) -> None:
    log = kept(tmp_path / "events.db", *[event(f"c{number}", tool=f"tool_{number % 3}") for number in range(9)])

    assert log.names() == ["tool_0", "tool_1", "tool_2"]
    assert log.names(limit=2) == ["tool_0", "tool_1"]
    assert "SCAN toolcrib_activities" not in plan_of(tmp_path / "events.db", lambda log: log.names())


def test_news_of_an_agent_with_many_turns_takes_few_queries(tmp_path: Path) -> None:
    path = tmp_path / "events.db"
    opened: list[ActivityEvent | CallEvent] = [ActivityEvent("opened", "agent", "a", None, "support", AT, {})]
    for number in range(60):
        opened.append(ActivityEvent("opened", "turn", f"t{number}", "a", "add", AT, {}))
        opened += [CallEvent("received", f"c{number}", "add", "r", "turn", AT, {}, None, f"t{number}")]
    log = kept(path, *opened)
    asked: list[str] = []
    with closing(sqlite3.connect(path)) as connection, connection:
        counting = EventLog(lambda sql, values: asked.append(sql) or connection.execute(sql, values).fetchall())
        (agent,) = log.activities(ActivityFilter(ids=("a",)))

        assert counting.last_event_at(agent) == AT.isoformat()

    assert len(asked) <= 5


# --- what a search finds


def found(log: EventLog, text: str) -> list[str]:
    return [one.id for one in log.activities(ActivityFilter(text=text))]


def test_a_search_finds_words_by_their_beginning(tmp_path: Path) -> None:
    log = kept(
        tmp_path / "events.db",
        event("c1", arguments={"order": "A-1007", "customer_id": 5}),
        event("c2", arguments={"order": "A-1008", "note": 'say "hello" to 東京都'}),
        ActivityEvent("opened", "program", "p1", None, "program", AT, {"source": "x = 1\nprint(x)"}),
    )

    assert found(log, "A-100") == ["c2", "c1"]
    assert found(log, "a-1007 CUSTOM") == ["c1"]
    assert found(log, "1007-a") == []  # both words are there, and not so
    assert found(log, "ustomer") == []
    assert found(log, "print(x)") == ["p1"]  # the line begins with it
    assert found(log, "京") == ["c2"]
    assert found(log, '"hello" OR') == []
    assert found(log, '"hel*') == []
    assert found(log, '"') == ["p1", "c2", "c1"]


def test_what_several_events_say_is_indexed_once(tmp_path: Path) -> None:
    path = tmp_path / "events.db"
    kept(path, event("c1", arguments={"city": "oslo"}), event("c1", "started", arguments={"city": "oslo"}))
    kept(path, ActivityEvent("opened", "turn", "t1", None, "add", AT, {"tool": "add", "run_id": "run_1"}))
    log = kept(
        path, event("c1", "ended", outcome={"kind": "completed", "tool": "add", "call_id": "c1", "value": "dry"})
    )
    log = kept(path, ActivityEvent("closed", "turn", "t1", None, "add", AT, {"outcome": "completed"}))

    with closing(sqlite3.connect(path)) as connection:
        words = dict(connection.execute("SELECT id, words FROM toolcrib_activities"))
    assert words == {"c1": 'add c1 {"arguments": {"city": "oslo"}} {"value": "dry"} ', "t1": 'add t1 {"tool": "add"} '}
    assert found(log, "add oslo dry") == ["c1"]


def test_what_came_later_is_found_too(tmp_path: Path) -> None:
    path = tmp_path / "events.db"
    kept(path, event("c1", arguments={"city": "oslo"}))
    log = kept(path, event("c1", "ended", outcome={"kind": "completed", "value": "sunny"}))

    assert found(log, "sunny oslo") == ["c1"]


def test_what_was_deleted_is_not_found(tmp_path: Path) -> None:
    path = tmp_path / "events.db"
    log = kept(path, event("c1", arguments={"city": "oslo"}))
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DELETE FROM toolcrib_activities")
        connection.execute("INSERT INTO toolcrib_words (toolcrib_words) VALUES ('integrity-check')")

        assert connection.execute("SELECT rowid FROM toolcrib_words WHERE toolcrib_words MATCH 'oslo'").fetchall() == []
    assert found(log, "oslo") == []


def test_a_file_that_was_kept_before_there_was_an_index_is_searched(tmp_path: Path) -> None:
    path = tmp_path / "events.db"
    kept(path, event("c1", arguments={"city": "oslo"}))
    with closing(sqlite3.connect(path)) as connection, connection:
        for name in ("made", "gone", "more"):
            connection.execute(f"DROP TRIGGER toolcrib_words_{name}")
        connection.execute("DROP TABLE toolcrib_words")
        connection.execute("DELETE FROM toolcrib_versions WHERE store = 'words'")

    log = kept(path, event("c2", arguments={"city": "oslo"}))

    assert found(log, "oslo") == ["c2", "c1"]


def test_a_log_without_an_index_finds_the_same(tmp_path: Path) -> None:
    path = tmp_path / "events.db"
    kept(path, event("c1", arguments={"city": "Oslo"}), event("c2"))
    with closing(sqlite3.connect(path)) as connection, connection:
        log = EventLog(lambda sql, values: connection.execute(sql, values).fetchall())

        assert found(log, "oslo") == ["c1"]


def test_the_beginnings_of_calls_are_read_in_order_without_very_long_ones(tmp_path: Path) -> None:
    log = kept(
        tmp_path / "events.db",
        event("c1", arguments={"a": 1}),
        event("c1", "started", arguments={"a": 2}),
        event("c1", "ended", outcome={"kind": "completed"}),
        event("c2", arguments={"a": "x" * 20_000}),
        event("c3", arguments={"a": 3}),
    )

    assert log.beginnings(["c1", "c2"]) == [
        ("c1", {"arguments": {"a": 1}}),
        ("c1", {"arguments": {"a": 2}}),
    ]
    assert log.beginnings([]) == []
