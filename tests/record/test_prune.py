"""Old events are removed with their calls; what waits, what has not ended and what holds either stays."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from toolcrib.calls import ActivityEvent, ActivityKind
from toolcrib.database import SqliteTables
from toolcrib.record import ActivityFilter, SqliteSink, prune_events, sqlite_event_tables

AT = datetime.fromisoformat("2026-01-01T00:00:00+00:00")
LATER = AT + timedelta(days=9)


def event(
    kind: Any, run: str, parent: str | None = None, at: datetime = AT, of: ActivityKind = "turn"
) -> ActivityEvent:
    data = {"outcome": "completed"} if kind == "closed" else {"state": "suspended"} if kind == "changed" else {}
    return ActivityEvent(kind, of, run, parent, run, at, data)


def pruned(path: Path, *events: ActivityEvent) -> tuple[int, set[str], int]:
    """Return how many were removed, what is left, and the position of the next event."""
    with SqliteSink(path) as sink:
        for one in events:
            sink.emit_activity(one)
    removed = prune_events(SqliteTables(path, *sqlite_event_tables()), LATER)
    with SqliteSink(path) as sink:
        left = {activity.id for activity in sink.log().activities(ActivityFilter())}
        sink.emit_activity(event("opened", "next"))
        (latest, *_) = sink.log().activities(ActivityFilter())
    return removed, left, latest.first_position


def test_what_ended_before_is_removed_and_positions_go_on(tmp_path: Path) -> None:
    events = [event("opened", "a"), event("closed", "a"), event("opened", "b"), event("closed", "b")]

    assert pruned(tmp_path / "a.db", *events) == (2, set(), 5)


def test_what_waits_runs_or_ended_later_stays(tmp_path: Path) -> None:
    events = [
        event("opened", "runs"),
        event("opened", "waits"),
        event("changed", "waits"),
        event("opened", "later"),
        event("closed", "later", at=LATER),
    ]

    assert pruned(tmp_path / "a.db", *events) == (0, {"runs", "waits", "later"}, 6)


def test_what_holds_something_that_waits_stays(tmp_path: Path) -> None:
    events = [
        event("opened", "outer", of="agent"),
        event("opened", "inner", "outer"),
        event("changed", "inner", "outer"),
        event("closed", "outer", of="agent"),
    ]

    assert pruned(tmp_path / "a.db", *events)[:2] == (0, {"outer", "inner"})


def test_many_are_removed_in_several_transactions(tmp_path: Path) -> None:
    events = [event(kind, f"run {number}") for number in range(1_203) for kind in ("opened", "closed")]

    assert pruned(tmp_path / "a.db", *events)[:2] == (1_203, set())
