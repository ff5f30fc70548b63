"""Removal of old events: of calls and runs that ended before a time."""

from __future__ import annotations

from datetime import datetime

from toolcrib.database import Tables

_BATCH = 500  # calls and runs removed in one transaction, for which a writer of events may have to wait
# What ended before, and holds nothing that did not. What was suspended and is not taken up again has not ended.
_OLD = """FROM toolcrib_activities a WHERE a.ended_at < ? AND NOT EXISTS (
    SELECT 1 FROM toolcrib_activities c WHERE c.parent_id = a.id AND (c.ended_at IS NULL OR c.ended_at >= ?))"""
# The latest event stays: the position of the next is counted from it.
_FORGET = """DELETE FROM toolcrib_events WHERE id = ? AND run_id = ? AND source = ?
    AND position < (SELECT MAX(position) FROM toolcrib_events)"""


def prune_events(tables: Tables, before: datetime, *, dry_run: bool = False) -> int:
    """Remove the calls and runs that ended before a time, with their events, and return how many there were.

    What waits for a person stays, what is not known to have ended, and what holds either.

    Args:
        tables: The tables of events.
        dry_run: Remove nothing.
    """
    count, after, at = 0, -1, before.isoformat()
    if dry_run:
        with tables.transaction(write=False) as execute:
            return int(execute(f"SELECT COUNT(*) {_OLD}", (at, at)).fetchone()[0])
    while True:
        with tables.transaction(write=True) as execute:
            chosen = f"SELECT source, run_id, id, first_position {_OLD} AND a.first_position > ?"
            rows = execute(f"{chosen} ORDER BY a.first_position LIMIT {_BATCH}", (at, at, after)).fetchall()
            for source, run_id, activity_id, _ in rows:
                table = "call" if source == "call" else "run"
                execute(_FORGET, (activity_id, run_id, table))
                mine = (activity_id, source, run_id)
                execute("DELETE FROM toolcrib_activities WHERE id = ? AND source = ? AND run_id = ?", mine)
        count += len(rows)
        if len(rows) < _BATCH:
            return count
        after = rows[-1][3]
