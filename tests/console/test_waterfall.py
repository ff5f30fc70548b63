"""Waterfall: what went on inside a run, each under its parent and in the order of time."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

from tests.console.test_api import AT
from toolcrib.calls import ActivityEvent, CallEvent
from toolcrib.console._views import waterfall
from toolcrib.record import Activity, EventLog, SqliteSink


def call(call_id: str, parent: str, second: int, kind: Any = "received", **data: Any) -> CallEvent:
    return CallEvent(kind, call_id, "add", "run", "code", AT + timedelta(seconds=second), data, None, parent)


def kept(path: Path, *events: CallEvent | ActivityEvent) -> tuple[EventLog, Activity]:
    """Return a log with these events, and its program."""
    with SqliteSink(path) as sink:
        sink.emit_activity(ActivityEvent("opened", "program", "p", None, "program", AT, {}))
        for one in events:
            sink.emit(one) if isinstance(one, CallEvent) else sink.emit_activity(one)
        log = sink.log()
    program = log.activity("program", "p")
    assert program is not None
    return log, program


def shown(found: dict[str, Any]) -> list[tuple[str, int]]:
    return [(row["id"], row["depth"]) for row in found["rows"]]


def test_calls_stand_under_what_made_them(tmp_path: Path) -> None:
    done = {"outcome": {"kind": "completed"}}
    log, program = kept(
        tmp_path / "events.db",
        call("a", "p", 1),
        call("b", "p", 2),
        call("a1", "a", 3),
        call("b1", "b", 4),
        call("a2", "a", 5),
        call("a1x", "a1", 6),
        call("a", "p", 7, "ended", **done),
    )

    found = waterfall(log, program)

    assert shown(found) == [("p", 0), ("a", 1), ("a1", 2), ("a1x", 3), ("a2", 2), ("b", 1), ("b1", 2)]
    first = found["rows"][1]
    assert (first["status"], first["started_at"][17:19], first["ended_at"][17:19]) == ("completed", "06", "12")
    assert not found["more"]


def test_of_many_the_latest_are_shown(tmp_path: Path) -> None:
    log, program = kept(tmp_path / "events.db", *[call(f"c{number}", "p", number) for number in range(510)])

    found = waterfall(log, program)

    assert (len(found["rows"]), found["more"]) == (501, True)
    assert [row["id"] for row in found["rows"][1:3]] == ["c10", "c11"]


def test_a_run_inside_itself_ends(tmp_path: Path) -> None:
    log, program = kept(tmp_path / "events.db", call("p", "p", 1), call("a", "p", 2), call("p", "a", 3))

    assert len(shown(waterfall(log, program))) <= 4


def test_it_takes_a_query_for_each_level(tmp_path: Path) -> None:
    log, program = kept(tmp_path / "events.db", *[call(f"c{number}", "p", number) for number in range(200)])
    asked: list[str] = []

    def rows(sql: str, values: Any) -> Any:
        asked.append(sql)
        return log.rows(sql, values)

    waterfall(EventLog(rows, log.words), program)

    assert len(asked) == 2
