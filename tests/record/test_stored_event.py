"""Event in its row: what the columns say already is left out, and put back when the event is read."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from toolcrib.calls import ActivityEvent, CallEvent, ToolCall
from toolcrib.pipeline import Pipeline, Run
from toolcrib.record import ListSink, SqliteSink, sqlite_events
from toolcrib.tools import tool

AT = datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)


@tool
async def add(left: int, right: int = 1) -> int:
    """Add."""
    return left + right


async def test_every_event_is_read_as_it_was_written(tmp_path: Path) -> None:
    path, sink = tmp_path / "events.db", ListSink()
    with SqliteSink(path) as kept:
        pipeline = Pipeline([add], sinks=[sink, kept])
        for arguments in ({"left": 1}, {"left": "one"}, {"left": 2, "right": 3}):
            await pipeline.run(ToolCall("add", arguments, f"call-{arguments['left']}"), Run("run_1", principal="ann"))
        events = kept.log().since(0)

    assert [event.data for event in events] == [event.to_dict() for event in sink.events]
    assert {event.kind for event in events} >= {"received", "started", "ended"}


def test_an_id_that_a_column_cannot_hold_is_read_as_it_was(tmp_path: Path) -> None:
    event = CallEvent("received", "c\x00\ud800", "add", "run_1", "test", AT, {})
    run = ActivityEvent("opened", "turn", "t\x00", None, "add", AT, {"tool": "add"})
    with SqliteSink(tmp_path / "events.db") as sink:
        sink.emit(event)
        sink.emit_activity(run)
        read = sink.log().since(0)

    assert [one.data for one in read] == [event.to_dict(), run.to_dict()]


async def test_a_row_repeats_nothing_of_its_columns_and_no_outcome(tmp_path: Path) -> None:
    with SqliteSink(tmp_path / "events.db") as kept:
        await Pipeline([add], sinks=[kept]).run(ToolCall("add", {"left": 41}, "call-1"), Run("run_1"))
        kept.flush()

    with closing(sqlite3.connect(tmp_path / "events.db")) as connection:
        rows = dict(connection.execute("SELECT kind, data FROM toolcrib_events"))
    assert "run_1" not in "".join(rows.values())
    assert "".join(rows.values()).count("call-1") == 1  # in the outcome
    assert rows["ended"].count('"value":42') == 1
    assert {"call_id", "tool", "run_id", "entry", "outcome", "ended_at"}.isdisjoint(json.loads(rows["ended"])["record"])


async def test_what_an_older_version_wrote_whole_is_read_as_it_is(tmp_path: Path) -> None:
    path, sink = tmp_path / "events.db", ListSink()
    with SqliteSink(path) as kept:
        await Pipeline([add], sinks=[sink, kept]).run(ToolCall("add", {"left": 1}, "call-1"), Run("run_1"))
    whole = [(json.dumps(event.to_dict()), event.kind) for event in sink.events]
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executemany("UPDATE toolcrib_events SET data = ? WHERE kind = ?", whole)

    read = sqlite_events(path).since(0)

    assert [event.data for event in read] == [event.to_dict() for event in sink.events]
