"""Removal of old events: of calls and runs that ended before a time."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, closing, contextmanager
from datetime import datetime
from pathlib import Path

from toolcrib._sqlite import sqlite3
from toolcrib._tables import Execute, make_file
from toolcrib.record._sqlite_sink import sqlite_event_tables

__all__ = ["prune_events", "prune_sqlite_events"]

_BUSY_SECONDS = 30.0  # how long to wait for another process's write
_BATCH = 500  # calls and runs removed in one transaction, for which a writer of events may have to wait
# What ended before, and holds nothing that did not. What was suspended and is not taken up again has not ended.
_OLD = """FROM toolcrib_activities a WHERE a.ended_at < ? AND NOT EXISTS (
    SELECT 1 FROM toolcrib_activities c WHERE c.parent_id = a.id AND (c.ended_at IS NULL OR c.ended_at >= ?))"""
# The latest event stays: the position of the next is counted from it.
_FORGET = """DELETE FROM toolcrib_events WHERE id = ? AND run_id = ? AND source = ?
    AND position < (SELECT MAX(position) FROM toolcrib_events)"""


def prune_events(
    writing: Callable[[], AbstractContextManager[Execute]], before: datetime, *, dry_run: bool = False
) -> int:
    """Remove the calls and runs that ended before a time, with their events, and return how many there were.

    What waits for a person stays, what is not known to have ended, and what holds either.

    Args:
        writing: Begins a transaction that holds the writers' lock.
        dry_run: Remove nothing.
    """
    count, after, at = 0, -1, before.isoformat()
    if dry_run:
        with writing() as execute:
            return int(execute(f"SELECT COUNT(*) {_OLD}", (at, at)).fetchone()[0])
    while True:
        with writing() as execute:
            chosen = f"SELECT source, run_id, id, first_position {_OLD} AND a.first_position > ?"
            rows = execute(f"{chosen} ORDER BY a.first_position LIMIT {_BATCH}", (at, at, after)).fetchall()
            for source, run_id, activity_id, _ in rows:
                kept = "call" if source == "call" else "run"
                execute(_FORGET, (activity_id, run_id, kept))
                mine = (activity_id, source, run_id)
                execute("DELETE FROM toolcrib_activities WHERE id = ? AND source = ? AND run_id = ?", mine)
        count += len(rows)
        if len(rows) < _BATCH:
            return count
        after = rows[-1][3]


def prune_sqlite_events(path: str | Path, before: datetime, *, dry_run: bool = False) -> int:
    """Do the same in the file of a `SqliteSink`.

    Raises:
        OSError: The file cannot be made.
    """
    for tables in sqlite_event_tables():
        make_file(Path(path), tables)

    @contextmanager
    def writing() -> Generator[Execute]:
        with closing(sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None)) as connection:
            connection.execute("BEGIN IMMEDIATE")  # closing without COMMIT takes all back
            yield connection.execute
            connection.execute("COMMIT")

    return prune_events(writing, before, dry_run=dry_run)
