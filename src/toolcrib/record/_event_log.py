"""Log of kept events: new ones, the state of each call and run, and the events of one."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import timedelta
from typing import Any

from toolcrib.record._event_tables import Activity, Rows

__all__ = ["QUIET", "ActivityFilter", "EventLog", "KeptEvent"]

QUIET = timedelta(seconds=60)
"""A call or activity that has not ended, and of which no event came for so long, is not taken to be alive."""


@dataclass(frozen=True, slots=True)
class KeptEvent:
    """One event as it was kept.

    Attributes:
        position: Its place in the order of all events; a reader that has seen it has seen all before it.
        source: Whether it is of a `call` or a `run`.
        run_id: A call's run; empty for an activity.
        id: The call's id, or the run's.
        data: `CallEvent.to_dict()` or `ActivityEvent.to_dict()`.
    """

    position: int
    source: str
    run_id: str
    id: str
    kind: str
    name: str
    at: str
    data: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ActivityFilter:
    """Which activities are wanted; an empty field asks nothing.

    Attributes:
        sources: Kinds: `call`, `agent`, `turn`, `program`, `session`, `request`.
        statuses: Any of these.
        name: The tool's or run's name, whole.
        principal: On whose behalf, whole.
        text: Stands anywhere in names, ids, arguments, outcomes, programs; upper and lower case are the same.
        run_id: The calls of this run.
        parent_id: What goes on inside this run or call.
        ids: These calls or runs.
        top: Only what goes on inside nothing else.
    """

    sources: tuple[str, ...] = ()
    statuses: tuple[str, ...] = ()
    name: str = ""
    principal: str = ""
    text: str = ""
    run_id: str = ""
    parent_id: str = ""
    ids: tuple[str, ...] = ()
    top: bool = False


_EVENT = "SELECT position, source, run_id, id, kind, name, at, data FROM toolcrib_events"
_ACTIVITY = f"SELECT {', '.join(field.name for field in fields(Activity))} FROM toolcrib_activities"
_INSIDE = "SELECT id, last_position FROM toolcrib_activities WHERE parent_id = ? ORDER BY first_position DESC LIMIT 20"
_DEEPEST = 4  # runs and calls inside one another that are looked at


class EventLog:
    """Reads what sinks kept in a database; any number of readers, beside any number of writers.

    Args:
        rows: Runs one SELECT, with `?` where a value goes, and returns its rows.
    """

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def last(self) -> int:
        """Return the position of the latest event; 0 when there is none."""
        ((position,),) = self._rows("SELECT COALESCE(MAX(position), 0) FROM toolcrib_events", ())
        return int(position)

    def since(self, position: int, limit: int = 500) -> list[KeptEvent]:
        """Return the events after a position, in order, the first `limit` of them."""
        return self._events("WHERE position > ? ORDER BY position LIMIT ?", position, limit)

    def events(self, activity: Activity, *, after: int = 0, limit: int = 500) -> list[KeptEvent]:
        """Return what happened in one call or run, in order, the first `limit` events after a position."""
        source = "source = 'call'" if activity.source == "call" else "source = 'run'"
        where = f"WHERE id = ? AND {source} AND run_id = ? AND position > ? ORDER BY position LIMIT ?"
        return self._events(where, activity.id, activity.run_id, after, limit)

    def latest(self, activity: Activity, *kinds: str) -> KeptEvent | None:
        """Return the latest event of one call or run that is of one of these kinds."""
        source = "source = 'call'" if activity.source == "call" else "source = 'run'"
        where = f"WHERE id = ? AND {source} AND run_id = ? AND {_in('kind', kinds)} ORDER BY position DESC LIMIT 1"
        return next(iter(self._events(where, activity.id, activity.run_id, *kinds)), None)

    def activities(
        self, wanted: ActivityFilter | None = None, *, before: int | None = None, limit: int = 100
    ) -> list[Activity]:
        """Return calls and runs, the latest first: the first `limit` that began before a position."""
        conditions, values = _conditions(wanted or ActivityFilter())
        if before is not None:
            conditions.append("first_position < ?")
            values.append(before)
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        return self._activities(f"{where} ORDER BY first_position DESC, id LIMIT ?", *values, limit)

    def changed(self, position: int, limit: int = 500) -> list[Activity]:
        """Return the calls and runs that have an event after a position, by their latest event."""
        return self._activities(" WHERE last_position > ? ORDER BY last_position LIMIT ?", position, limit)

    def activity(self, source: str, id: str, run_id: str | None = None) -> Activity | None:
        """Return how one call or run stands: of several calls with that id the latest, unless its scope is given."""
        found = self.activities(replace(ActivityFilter(sources=(source,), ids=(id,)), run_id=run_id or ""), limit=1)
        return found[0] if found else None

    def last_told(self, activity: Activity) -> str:
        """Return the time of the last event of a call or run, or of what goes on inside it; ISO text.

        Of what goes on inside, the latest twenty of each are looked at, and what goes on inside those.
        """
        latest, inside, seen = activity.last_position, {activity.id}, set[str]()
        for _ in range(_DEEPEST):
            seen |= inside
            rows = [row for one in sorted(inside) for row in self._rows(_INSIDE, (one,))]
            latest = max(latest, *(int(position) for _, position in rows), 0)
            inside = {str(id) for id, _ in rows} - seen
        ((at,),) = self._rows("SELECT at FROM toolcrib_events WHERE position = ?", (latest,))
        return str(at)

    def counts(self) -> dict[tuple[str, str], int]:
        """Return how many there are, by source and status."""
        rows = self._rows("SELECT source, status, COUNT(*) FROM toolcrib_activities GROUP BY source, status", ())
        return {(str(source), str(status)): int(number) for source, status, number in rows}

    def names(self, limit: int = 500) -> list[str]:
        """Return the tools that were called, in alphabetical order."""
        rows = self._rows("SELECT DISTINCT name FROM toolcrib_activities WHERE source = 'call' LIMIT ?", (limit,))
        return sorted(str(name) for (name,) in rows)

    # --- inside

    def _events(self, where: str, *values: Any) -> list[KeptEvent]:
        rows = self._rows(f"{_EVENT} {where}", values)
        return [
            KeptEvent(int(position), source, run_id, id, kind, name, at, json.loads(data))
            for position, source, run_id, id, kind, name, at, data in rows
        ]

    def _activities(self, where: str, *values: Any) -> list[Activity]:
        return [Activity(*row) for row in self._rows(_ACTIVITY + where, values)]


def _conditions(wanted: ActivityFilter) -> tuple[list[str], list[Any]]:
    conditions: list[str] = []
    values: list[Any] = []
    for column, several in (("source", wanted.sources), ("status", wanted.statuses), ("id", wanted.ids)):
        if several:
            conditions.append(_in(column, several))
            values.extend(several)
    for column, one in (
        ("name", wanted.name),
        ("principal", wanted.principal),
        ("run_id", wanted.run_id),
        ("parent_id", wanted.parent_id),
    ):
        if one:
            conditions.append(f"{column} = ?")
            values.append(one)
    if wanted.top:
        conditions.append("parent_id IS NULL")
    for word in wanted.text.lower().split():
        conditions.append("words LIKE ? ESCAPE '!'")
        values.append("%" + word.replace("!", "!!").replace("%", "!%").replace("_", "!_") + "%")
    return conditions, values


def _in(column: str, several: Sequence[str]) -> str:
    return f"{column} IN ({', '.join('?' * len(several))})"
