"""Log of kept events: new ones, the state of each call and run, and the events of one."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from operator import attrgetter, itemgetter
from typing import Any, TypeAlias, cast

from toolcrib._numbers import require_number, time_text
from toolcrib._processes import is_running
from toolcrib.calls import now
from toolcrib.database import Tables
from toolcrib.errors import explain_options
from toolcrib.record._activity_filter import (
    ACTIVITY_COLUMNS,
    ActivityFilter,
    latest_of_any,
    one_of,
    select_activities,
)
from toolcrib.record._event_tables import Activity, Rows
from toolcrib.record._stored_event import event_data
from toolcrib.record._word_index import WordIndex

QUIET = timedelta(seconds=60)
"""A call or activity that has not ended, and of which no event came for so long, is not taken to be alive."""
_LOOK_SECONDS = 5.0
_RUNNING = "SELECT DISTINCT process FROM toolcrib_activities WHERE status = 'running' AND process <> ''"
_CLOSE = """UPDATE toolcrib_activities SET status = 'lost', ended_at =
    (SELECT at FROM toolcrib_events WHERE position = toolcrib_activities.last_position)
    WHERE status = 'running' AND process = ? RETURNING id"""
_LONGEST = 20_000  # characters of an event whose data is read with those of many others
_PRUNE_BATCH = 500  # calls and runs removed in one transaction, for which a writer to a file has to wait
# What ended before, and holds nothing that did not. What was suspended and is not taken up again has not ended.
_OLD = """FROM toolcrib_activities a WHERE a.ended_at < ? AND NOT EXISTS (
    SELECT 1 FROM toolcrib_activities c WHERE c.parent_id = a.id AND (c.ended_at IS NULL OR c.ended_at >= ?))"""
# A batch that is written beside it on a server may have begun it again.
_REMOVE = "DELETE FROM toolcrib_activities WHERE id = ? AND source = ? AND run_id = ? AND ended_at < ?"
# The latest event stays: the position of the next is counted from it, or checked against it.
_FORGET = """DELETE FROM toolcrib_events WHERE id = ? AND run_id = ? AND source = ?
    AND position < (SELECT MAX(position) FROM toolcrib_events)"""


@dataclass(frozen=True, slots=True)
class KeptEvent:
    """One event as it was kept.

    Attributes:
        position: Its place in the order of all events; a follower that has seen it has seen all before it.
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


Ancestors: TypeAlias = tuple[Activity, ...]
"""The activities around a call, the outermost first; empty where none is recorded."""

_EVENT = "SELECT position, source, run_id, id, kind, name, at, data FROM toolcrib_events"
_HORIZON = "SELECT latest, latest FROM (SELECT COALESCE(MAX(position), 0) AS latest FROM toolcrib_events) AS events"
_CHANGED = f"""SELECT {", ".join(f"a.{name}" for name in ACTIVITY_COLUMNS.split(", "))} FROM
    (SELECT position, id FROM toolcrib_events WHERE position > ? AND position <= ?) e
    CROSS JOIN toolcrib_activities a WHERE a.id = e.id AND a.last_position = e.position ORDER BY e.position"""
_MOST_IDS = 200  # in one statement
_COUNTS = """SELECT source, status, COUNT(*) FROM toolcrib_activities WHERE status <> 'completed'
    GROUP BY source, status
    UNION ALL SELECT source, '', COUNT(*) FROM toolcrib_activities WHERE source <> 'call' GROUP BY source
    UNION ALL SELECT '', '', COUNT(*) FROM toolcrib_activities"""  # each read off an index
_NAMES = """WITH RECURSIVE found (name) AS (
    SELECT MIN(name) FROM toolcrib_activities
    UNION ALL SELECT (SELECT MIN(name) FROM toolcrib_activities WHERE name > found.name) FROM found
        WHERE name IS NOT NULL)
    SELECT name FROM found WHERE name IS NOT NULL LIMIT ?"""  # one look into the index for each name
_DEEPEST = 4  # runs and calls inside one another that are looked at
_LATEST = 20
_BATCH = 5_000  # events in one statement


class EventLog:
    """Reads what sinks kept in a database; any number of readers, beside any number of writers.

    Args:
        rows: Runs one SELECT, with `?` where a value goes, and returns its rows.
        words: The index of the database's words; without one, a search reads every activity.
        horizon: The SELECT of a position behind which no event is missing, and of the latest event's. They differ where
            several transactions write at a time.

    Attributes:
        rows: Runs one SELECT.
        words: The index, or None.
    """

    def __init__(self, rows: Rows, words: WordIndex | None = None, horizon: str = _HORIZON) -> None:
        self.rows, self.words = rows, words
        self._horizon, self._complete_until = horizon, 0

    def last(self) -> int:
        """Return the position of the latest event before which none is still to come; 0 without one.

        On a server it is behind the latest event for as long as the batch of another process is being written.
        """
        ((horizon, latest),) = self.rows(self._horizon, ())
        earlier = self._complete_until if self._complete_until <= latest else 0  # of a database that was replaced
        self._complete_until = max(earlier, int(horizon))
        return self._complete_until

    def since(self, position: int, limit: int = 500) -> list[KeptEvent]:
        """Return the events after a position up to `last`, in order, the first `limit` of them: for a follower."""
        require_number("EventLog", "limit", limit, least=1)
        return self._between(position, self.last(), limit)

    def all(self, after: int = 0) -> Iterator[KeptEvent]:
        """Yield every event after a position that is there at the beginning, in order."""
        ((_, latest),) = self.rows(self._horizon, ())
        while events := self._between(after, latest, _BATCH):
            yield from events
            after = events[-1].position

    def events(self, activity: Activity, *, after: int = 0, limit: int = 500) -> list[KeptEvent]:
        """Return the events of one call or run, in order, the first `limit` after a position."""
        require_number("EventLog", "limit", limit, least=1)
        source = "source = 'call'" if activity.source == "call" else "source = 'run'"
        where = f"WHERE id = ? AND {source} AND run_id = ? AND position > ? ORDER BY position LIMIT ?"
        return self._events(where, activity.id, activity.run_id, after, limit)

    def latest(self, activity: Activity, *kinds: str) -> KeptEvent | None:
        """Return the latest event of one call or run that is of one of these kinds."""
        source = "source = 'call'" if activity.source == "call" else "source = 'run'"
        where = f"WHERE id = ? AND {source} AND run_id = ? AND {one_of('kind', kinds)} ORDER BY position DESC LIMIT 1"
        return next(iter(self._events(where, activity.id, activity.run_id, *kinds)), None)

    def activities(
        self, wanted: ActivityFilter | None = None, *, before: int | None = None, limit: int = 100
    ) -> list[Activity]:
        """Return calls and runs, the latest first: the first `limit` that began before a position."""
        require_number("EventLog", "limit", limit, least=1)
        return [
            Activity(*row)
            for row in self.rows(*select_activities(wanted or ActivityFilter(), self.words, before, limit))
        ]

    def changed(self, position: int, limit: int = 500) -> list[Activity]:
        """Return the calls and runs that have an event after a position, by their latest event."""
        require_number("EventLog", "limit", limit, least=1)
        found: list[Activity] = []
        while len(found) < limit and (events := self.since(position, limit)):
            found += [Activity(*row) for row in self.rows(_CHANGED, (position, events[-1].position))]
            position = events[-1].position
        return found[:limit]

    def activity(self, source: str, id: str, run_id: str | None = None) -> Activity | None:
        """Return how one call or run stands: of several calls with that id the latest, unless its run is given."""
        found = self.activities(ActivityFilter(sources=(source,), ids=(id,), run_id=run_id or ""), limit=1)
        return found[0] if found else None

    def last_event_at(self, activity: Activity) -> str:
        """Return the time of the last event of a call or run, or of an activity inside it; ISO text.

        Of the activities inside, the twenty that began last are looked at; and twenty inside those that have not ended.
        """
        latest, inside, known = activity.last_position, {activity.id}, set[str]()
        for _ in range(_DEEPEST):
            known |= inside
            found = [
                Activity(*row)
                for row in self.rows(*latest_of_any([(["parent_id = ?"], [id_]) for id_ in sorted(inside)], _LATEST))
            ]
            latest = max(latest, *(part.last_position for part in found), 0)
            inside = {part.id for part in found if part.ended_at is None} - known
            if not inside:
                break
        ((at,),) = self.rows("SELECT at FROM toolcrib_events WHERE position = ?", (latest,))
        return str(at)

    def by_id(self, ids: Iterable[str], **wanted: Any) -> list[Activity]:
        """Return the calls and runs with these ids, however many.

        Args:
            ids: The ids.
            wanted: Further fields of `ActivityFilter`.
        """
        filters = (ActivityFilter(ids=batch, **wanted) for batch in id_batches(ids))
        return [activity for filter_ in filters for activity in self.activities(filter_, limit=5 * _MOST_IDS)]

    def parent_of(self, activity: Activity) -> Activity | None:
        """Return the run or call that an activity is part of."""
        if activity.parent_id is None:
            return None
        return _parent_among(activity, self.activities(ActivityFilter(ids=(activity.parent_id,)), limit=5))

    def around(self, ids: Iterable[str], *, depth: int | None = None, calls: bool = True) -> list[Activity]:
        """Return the activities with these ids, those that they are part of, and so on.

        Args:
            ids: The ids.
            depth: How many levels are read, the first among them; all of them when None.
            calls: Whether calls are returned; else what is around a call is not read, either.
        """
        found: dict[tuple[str, str, str], Activity] = {}
        missing, known = set(ids), set[str]()
        while missing and depth != 0:
            depth = None if depth is None else depth - 1
            level = [activity for activity in self.by_id(missing) if calls or activity.source != "call"]
            found.update((activity.key, activity) for activity in level)
            known |= missing
            missing = {activity.parent_id for activity in level if activity.parent_id is not None} - known
        return list(found.values())

    def ancestors(self, calls: Iterable[tuple[str, str]], *, depth: int = 5) -> dict[tuple[str, str], Ancestors]:
        """Return the ancestors of each of several calls, by the call's id and run.

        Args:
            calls: The calls, each by its id and run.
            depth: How many activities around one another are read.
        """
        wanted = list(calls)
        by_id: dict[str, list[Activity]] = {}
        for activity in self.around((id for id, _ in wanted), depth=depth):
            by_id.setdefault(activity.id, []).append(activity)
        return {(id, run_id): _ancestors(id, run_id, by_id, depth) for id, run_id in wanted}

    def inside(self, outer: Iterable[Activity], *, limit: int, depth: int | None = None) -> tuple[list[Activity], bool]:
        """Return the activities inside others, level by level, and whether there are more.

        Args:
            outer: The activities, which are not returned.
            limit: At most this many: of a level that has more, the latest.
            depth: How many levels are read; all of them when None.
        """
        reached = {activity.key for activity in outer}
        ids, known, found, more = {id for _, id, _ in reached}, len(reached), list[Activity](), False
        while ids and depth != 0 and len(found) < limit:
            depth, rest = None if depth is None else depth - 1, limit - len(found)
            filters = (ActivityFilter(parent_ids=batch) for batch in id_batches(ids))
            read = [activity for wanted in filters for activity in self.activities(wanted, limit=rest + 1 + known)]
            level = [activity for activity in read if activity.key not in reached]
            level.sort(key=attrgetter("first_position"), reverse=True)
            more, level = more or len(level) > rest, level[:rest]
            reached |= {activity.key for activity in level}
            found += level
            ids = {activity.id for activity in level}
        return found, more

    def usage(
        self, activities: Iterable[Activity], *kinds: str, besides: Iterable[Mapping[str, Any]] = ()
    ) -> Mapping[str, Any] | None:
        """Return the sum of the models' usage in the latest event of each activity; None where there is no usage.

        Args:
            activities: The activities.
            kinds: The kinds of events that say it.
            besides: Further usages that are counted. The cost is None where one of all has none.
        """
        events = (self.latest(activity, *kinds) for activity in activities)
        usages = [event.data["data"].get("usage") for event in events if event is not None]
        usages = [*(cast("Mapping[str, Any]", usage) for usage in usages if isinstance(usage, Mapping)), *besides]
        if not usages:
            return None
        counts = {name: sum(int(usage.get(name) or 0) for usage in usages) for name in usages[0] if name != "cost"}
        costs = [usage.get("cost") for usage in usages]
        return {**counts, "cost": None if None in costs else str(sum(Decimal(str(cost)) for cost in costs))}

    def quiet_since(self, activity: Activity, quiet: timedelta = QUIET) -> str | None:
        """Return the time of the last event of an activity that has had none for so long, as ISO text."""
        last = self.last_event_at(activity)
        return last if now() - datetime.fromisoformat(last) >= quiet else None

    def state(self, activity: Activity) -> tuple[str, str | None]:
        """Return the status of an activity, and since when it is quiet, as ISO text, if it is.

        One that is quiet may be running or dead: it is `lost` when the activity around it has ended.
        """
        last = self.quiet_since(activity) if activity.status == "running" else None
        if last is None:
            return activity.status, None
        parent = self.parent_of(activity)
        return "lost" if parent is not None and parent.ended_at else "running", last

    def beginnings(self, ids: Sequence[str]) -> list[tuple[str, Mapping[str, Any]]]:
        """Return the ids and the data of the events with which calls and activities began, without very long ones."""
        rows = self.rows(
            "SELECT id, data FROM toolcrib_events WHERE kind IN ('received', 'started', 'opened') "
            f"AND LENGTH(data) < ? AND id IN ({', '.join('?' * len(ids)) or 'NULL'}) ORDER BY position",
            (_LONGEST, *ids),
        )
        return [(str(id), json.loads(data)["data"]) for id, data in rows]

    def counts(self) -> dict[tuple[str, str], int]:
        """Return how many there are, by source and status."""
        counts = {(str(source), str(status)): int(number) for source, status, number in self.rows(_COUNTS, ())}
        totals = {source: counts.pop((source, "")) for source, status in list(counts) if not status}
        totals["call"] = totals.pop("") - sum(totals.values())
        for source, total in totals.items():
            counts[source, "completed"] = total - sum(counts[key] for key in counts if key[0] == source)
        return {key: number for key, number in counts.items() if number}

    def names(self, limit: int = 500) -> list[str]:
        """Return the names of tools and runs, in alphabetical order."""
        return [str(name) for (name,) in self.rows(_NAMES, (limit,))]

    # --- inside

    def _between(self, after: int, until: int, limit: int) -> list[KeptEvent]:
        return self._events("WHERE position > ? AND position <= ? ORDER BY position LIMIT ?", after, until, limit)

    def _events(self, where: str, *values: Any) -> list[KeptEvent]:
        rows = self.rows(f"{_EVENT} {where}", values)
        return [_event(*row) for row in rows]


def _event(position: int, source: str, run_id: str, id: str, kind: str, name: str, at: str, text: str) -> KeptEvent:
    columns = {"run_id": run_id, "id": id, "kind": kind, "name": name, "at": at}
    return KeptEvent(int(position), data=event_data(text, source, columns), source=source, **columns)


def event_log(tables: Tables, words: WordIndex | None, horizon: str = _HORIZON) -> EventLog:
    """Return the log of the events in a database; reading it closes the work of processes that are gone."""
    lost = LostWork()

    def rows(sql: str, values: Sequence[Any]) -> list[Any]:
        with suppress(tables.error, ConnectionError):  # where it may only be read
            lost.close(tables)
        with tables.transaction(write=False) as execute:
            return execute(sql, values).fetchall()

    return EventLog(rows, words, horizon)


def id_batches(ids: Iterable[str]) -> list[tuple[str, ...]]:
    """Return ids in order, as many at a time as one statement has."""
    ordered = sorted(set(ids))
    return [tuple(ordered[at : at + _MOST_IDS]) for at in range(0, len(ordered), _MOST_IDS)]


def _parent_among(activity: Activity, several: Iterable[Activity]) -> Activity | None:
    """Return which of several the activity is part of: a run before a call of the same id."""
    above = [
        other
        for other in several
        if other.id == activity.parent_id and (other.source, other.id) != (activity.source, activity.id)
    ]
    return next((other for other in above if other.source != "call"), above[0] if above else None)


def _ancestors(id: str, run_id: str, by_id: Mapping[str, Sequence[Activity]], depth: int) -> Ancestors:
    same = by_id.get(id, ())
    call = next((activity for activity in same if activity.source == "call" and activity.run_id == run_id), None)
    at = call or next((activity for activity in same if activity.source != "call"), None)
    around: list[Activity] = [] if at is None or at is call else [at]
    while at is not None and at.parent_id is not None and len(around) < depth:
        at = _parent_among(at, by_id.get(at.parent_id, ()))
        around += [] if at is None else [at]
    return tuple(reversed(around))


class LostWork:
    """Closes the calls and runs of processes that are gone, every few seconds at most.

    A process of another machine may still be at work, and another worker continues durable work: neither is lost.
    """

    def __init__(self) -> None:
        self._looked_at = float("-inf")

    def close(self, tables: Tables) -> None:
        """Close what is lost in the tables of events, unless that was looked for a moment ago."""
        if time.monotonic() - self._looked_at < _LOOK_SECONDS:
            return
        self._looked_at = time.monotonic()
        with tables.transaction(write=False) as execute:
            ended = [process for (process,) in execute(_RUNNING, ()).fetchall() if is_running(process) is False]
        if ended:
            with tables.transaction(write=True) as execute:
                for process in ended:
                    execute(_CLOSE, (process,)).fetchall()


@explain_options()
def prune_events(tables: Tables, before: datetime, *, dry_run: bool = False) -> int:
    """Remove the calls and runs that ended before a time, with their events, and return how many there were.

    What waits for a person stays, what is not known to have ended, and what holds either.

    Args:
        tables: The tables of events.
        dry_run: Remove nothing.
    """
    count, after, at = 0, -1, time_text(before)
    if dry_run:
        with tables.transaction(write=False) as execute:
            return int(execute(f"SELECT COUNT(*) {_OLD}", (at, at)).fetchone()[0])
    while True:
        with tables.transaction(write=True) as execute:
            chosen = f"SELECT source, run_id, id, first_position {_OLD} AND a.first_position > ?"
            rows = execute(f"{chosen} ORDER BY a.first_position LIMIT {_PRUNE_BATCH}", (at, at, after)).fetchall()
            for source, run_id, activity_id, _ in sorted(rows, key=itemgetter(2, 0, 1)):  # as batches change them
                if execute(_REMOVE, (activity_id, source, run_id, at)).rowcount:
                    execute(_FORGET, (activity_id, run_id, "call" if source == "call" else "run"))
                    count += 1
        if len(rows) < _PRUNE_BATCH:
            return count
        after = rows[-1][3]
