"""Log of kept events: new ones, the state of each call and run, and the events of one."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from datetime import timedelta
from typing import Any, TypeAlias, get_args

from toolcrib._numbers import require_number
from toolcrib.calls import ActivityKind
from toolcrib.database import Tables
from toolcrib.record._event_tables import Activity, Rows
from toolcrib.record._lost import LostWork
from toolcrib.record._word_index import WordIndex

__all__ = ["QUIET", "ActivityFilter", "EventLog", "KeptEvent", "event_log"]

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
        sources: Kinds: `call`, `agent`, `turn`, `program`, `session`, `request`, `chat`.
        statuses: Any of these.
        name: The tool's or run's name, whole.
        principal: On whose behalf, whole.
        text: Words that stand in names, ids, arguments, outcomes, programs, each from the beginning of a word on; upper
            and lower case are the same.
        run_id: The calls of this run.
        inner_runs: The activities whose calls belong to any of these runs, also where they made none.
        parent_id: What goes on inside this run or call.
        parent_ids: What goes on inside any of these.
        ids: These calls or runs.
        top: Only what goes on inside nothing else.
    """

    sources: tuple[str, ...] = ()
    statuses: tuple[str, ...] = ()
    name: str = ""
    principal: str = ""
    text: str = ""
    run_id: str = ""
    inner_runs: tuple[str, ...] = ()
    parent_id: str = ""
    parent_ids: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()
    top: bool = False


_EVENT = "SELECT position, source, run_id, id, kind, name, at, data FROM toolcrib_events"
_TABLE = "toolcrib_activities"
_COLUMNS = ", ".join(field.name for field in fields(Activity))
_SOURCES = (*get_args(ActivityKind), "call")
_NAMES = """WITH RECURSIVE found (name) AS (
    SELECT MIN(name) FROM toolcrib_activities
    UNION ALL SELECT (SELECT MIN(name) FROM toolcrib_activities WHERE name > found.name) FROM found
        WHERE name IS NOT NULL)
    SELECT name FROM found WHERE name IS NOT NULL LIMIT ?"""  # one look into the index for each name
_DEEPEST = 4  # runs and calls inside one another that are looked at
_LATEST = 20


class EventLog:
    """Reads what sinks kept in a database; any number of readers, beside any number of writers.

    Args:
        rows: Runs one SELECT, with `?` where a value goes, and returns its rows.
        words: The index of the database's words; without one, a search reads every activity.

    Attributes:
        rows: Runs one SELECT.
        words: The index, or None.
    """

    def __init__(self, rows: Rows, words: WordIndex | None = None) -> None:
        self.rows, self.words = rows, words

    def last(self) -> int:
        """Return the position of the latest event; 0 when there is none."""
        ((position,),) = self.rows("SELECT COALESCE(MAX(position), 0) FROM toolcrib_events", ())
        return int(position)

    def since(self, position: int, limit: int = 500) -> list[KeptEvent]:
        """Return the events after a position, in order, the first `limit` of them."""
        require_number("EventLog", "limit", limit, least=1)
        return self._events("WHERE position > ? ORDER BY position LIMIT ?", position, limit)

    def events(self, activity: Activity, *, after: int = 0, limit: int = 500) -> list[KeptEvent]:
        """Return what happened in one call or run, in order, the first `limit` events after a position."""
        require_number("EventLog", "limit", limit, least=1)
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
        return [Activity(*row) for row in self.rows(*self._select(wanted or ActivityFilter(), before, limit))]

    def _select(self, wanted: ActivityFilter, before: int | None, limit: int) -> tuple[str, tuple[Any, ...]]:
        """Return the statement that reads what is wanted, and its values."""
        require_number("EventLog", "limit", limit, least=1)
        query = "" if self.words is None else self.words.query(wanted.text.lower())
        if self.words is not None and query:
            conditions, values = _conditions(wanted, before)
            words = self.words
            return _latest(words.source, [words.condition, *conditions], [query, *values], limit, words.order)
        return _any_of([_conditions(one, before) for one in _parts(wanted)], limit)

    def changed(self, position: int, limit: int = 500) -> list[Activity]:
        """Return the calls and runs that have an event after a position, by their latest event."""
        where = "WHERE last_position > ? ORDER BY last_position LIMIT ?"
        return [Activity(*row) for row in self.rows(f"SELECT {_COLUMNS} FROM {_TABLE} {where}", (position, limit))]

    def activity(self, source: str, id: str, run_id: str | None = None) -> Activity | None:
        """Return how one call or run stands: of several calls with that id the latest, unless its run is given."""
        found = self.activities(replace(ActivityFilter(sources=(source,), ids=(id,)), run_id=run_id or ""), limit=1)
        return found[0] if found else None

    def last_event_at(self, activity: Activity) -> str:
        """Return the time of the last event of a call or run, or of what goes on inside it; ISO text.

        Of what goes on inside, the twenty that began last are looked at; and twenty inside those that have not ended.
        """
        latest, inside, seen = activity.last_position, {activity.id}, set[str]()
        for _ in range(_DEEPEST):
            seen |= inside
            found = [
                Activity(*row)
                for row in self.rows(*_any_of([(["parent_id = ?"], [one]) for one in sorted(inside)], _LATEST))
            ]
            latest = max(latest, *(one.last_position for one in found), 0)
            inside = {one.id for one in found if one.ended_at is None} - seen
            if not inside:
                break
        ((at,),) = self.rows("SELECT at FROM toolcrib_events WHERE position = ?", (latest,))
        return str(at)

    def counts(self) -> dict[tuple[str, str], int]:
        """Return how many there are, by source and status."""
        rows = self.rows("SELECT source, status, COUNT(*) FROM toolcrib_activities GROUP BY source, status", ())
        return {(str(source), str(status)): int(number) for source, status, number in rows}

    def names(self, limit: int = 500) -> list[str]:
        """Return the names of tools and runs, in alphabetical order."""
        return [str(name) for (name,) in self.rows(_NAMES, (limit,))]

    # --- inside

    def _events(self, where: str, *values: Any) -> list[KeptEvent]:
        rows = self.rows(f"{_EVENT} {where}", values)
        return [
            KeptEvent(int(position), source, run_id, id, kind, name, at, json.loads(data))
            for position, source, run_id, id, kind, name, at, data in rows
        ]


def event_log(tables: Tables, words: WordIndex | None) -> EventLog:
    """Return the log of the events in a database; reading it closes the work of processes that are gone."""
    lost = LostWork()

    def rows(sql: str, values: Sequence[Any]) -> list[Any]:
        with suppress(tables.error):  # where it may only be read
            lost.close(tables)
        with tables.transaction(write=False) as execute:
            return execute(sql, values).fetchall()

    return EventLog(rows, words)


_Part: TypeAlias = tuple[list[str], list[Any]]


def _latest(
    source: str, conditions: Sequence[str], values: Sequence[Any], limit: int, order: str
) -> tuple[str, tuple[Any, ...]]:
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    return f"SELECT {_COLUMNS} FROM {source}{where} ORDER BY {order} DESC LIMIT ?", (*values, limit)


def _any_of(parts: Sequence[_Part], limit: int) -> tuple[str, tuple[Any, ...]]:
    """Return what reads the latest of several parts: of each part, as its index has them, no more than `limit`."""
    read = [_latest(_TABLE, *part, limit, "first_position") for part in parts]
    if len(read) == 1:
        return read[0]
    several = " UNION ALL ".join(f"SELECT * FROM ({sql}) AS part_{number}" for number, (sql, _) in enumerate(read))
    values = [value for _, given in read for value in given]
    return f"SELECT * FROM ({several}) AS parts ORDER BY first_position DESC LIMIT ?", (*values, limit)


def _parts(wanted: ActivityFilter) -> list[ActivityFilter]:
    """Return filters for one source and status each, where nothing else that is asked for has an index of its own."""
    narrow = (
        wanted.text
        or wanted.name
        or wanted.principal
        or wanted.run_id
        or wanted.inner_runs
        or wanted.parent_id
        or wanted.ids
        or wanted.parent_ids
    )
    if narrow or not (wanted.statuses or wanted.sources):
        return [wanted]
    statuses = [(one,) for one in wanted.statuses] or [()]
    return [
        replace(wanted, sources=(source,), statuses=status)
        for source in wanted.sources or _SOURCES
        for status in statuses
    ]


def _conditions(wanted: ActivityFilter, before: int | None) -> _Part:
    conditions: list[str] = []
    values: list[Any] = []
    for column, several in (
        ("source", wanted.sources),
        ("status", wanted.statuses),
        ("id", wanted.ids),
        ("parent_id", wanted.parent_ids),
    ):
        if several:  # of few ids SQLite would read the index of all sources, for its order
            conditions.append(_in(f"{column} || ''" if wanted.ids and column != "id" else column, several))
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
    if wanted.inner_runs:
        conditions.append(f"inner_run <> '' AND {_in('inner_run', wanted.inner_runs)}")  # as the index has it
        values.extend(wanted.inner_runs)
    if wanted.top:
        conditions.append("parent_id IS NULL")
    for word in wanted.text.lower().split():
        conditions.append("toolcrib_activities.words LIKE ? ESCAPE '!'")
        values.append("%" + word.replace("!", "!!").replace("%", "!%").replace("_", "!_") + "%")
    if before is not None:
        conditions.append("first_position < ?")
        values.append(before)
    return conditions, values


def _in(column: str, several: Sequence[str]) -> str:
    return f"{column} IN ({', '.join('?' * len(several))})"
