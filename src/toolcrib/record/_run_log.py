"""Runs of a log, each with how its calls ended, and the tree of one run or call with its events."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from difflib import get_close_matches
from functools import partial
from typing import Any, cast

from toolcrib._numbers import require_number, time_text
from toolcrib.record._activity_filter import HAS_RUN, ActivityFilter, one_of
from toolcrib.record._brief_event import brief_event
from toolcrib.record._event_log import EventLog, id_batches
from toolcrib.record._event_tables import Activity

_MOST_NODES = 5_000  # of one tree
_MOST_EVENTS = 500  # of one node
_RECENT = 1_000  # ids among which the nearest to a misspelt one is looked for
_PER_RUN = 4  # activities in the first page, for each run that is wanted
_CALLS = f"source = 'call' AND {HAS_RUN}"


@dataclass(frozen=True, slots=True)
class RunFilter:
    """A filter of runs; an empty field lets all through. One call of the run has to pass all fields.

    Attributes:
        principal: On whose behalf, whole.
        tool: The tool's name, whole.
        outcomes: The call's status, any of these: `completed`, `failed`, `rejected`, `suspended`, `resumed`,
            `cancelled`, `running`, `lost`.
        since: The call began then or later; of a run without calls the run itself.
        until: The call began before.
    """

    principal: str = ""
    tool: str = ""
    outcomes: tuple[str, ...] = ()
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class RunSummary:
    """The state of one run.

    Attributes:
        names: The callers, each by its kind and name: `session support`, `agent trips`.
        entry: Which way its calls came.
        started_at: ISO text, like `ended_at`, which is None while something of it goes on or waits.
        duration_ms: From its beginning to its end, people's time included; None before.
        calls: How many of its calls ended in each way, by status.
        waiting: The calls that wait for a person, each by its tool and id, and `at`, when it came, as ISO text.
        usage: The requests, tokens and cost of what made its calls, where they were recorded. The cost is None where
            one of them has none.
        matching: Where the filter names an outcome, the calls that it means, each by its tool, its id, its `status`,
            the `reason` of a rejection or an error, and `at`: when it ended, or else came, as ISO text.
    """

    id: str
    names: tuple[str, ...]
    entry: str
    principal: str | None
    started_at: str
    ended_at: str | None
    duration_ms: float | None
    calls: Mapping[str, int]
    waiting: tuple[Mapping[str, str], ...]
    usage: Mapping[str, Any] | None
    position: int = field(default=0, repr=False)
    matching: tuple[Mapping[str, str], ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON shapes."""
        data = asdict(self)
        del data["position"]
        named = {name: [dict(part) for part in getattr(self, name)] for name in ("waiting", "matching")}
        return {**data, "names": list(self.names), **named}


@dataclass(frozen=True, slots=True)
class TraceNode:
    """One run, activity or call, with what happened in it, and what went on inside.

    Attributes:
        kind: `run`, `call`, or the kind of activity. A call of several runs has inside what it was in each.
        status: As `Activity.status`; of a run, `running`, `suspended` or `ended`.
        events: Its events, each in a line, with `data` as it was kept.
        inside: The activities inside it, in the order they began.
    """

    kind: str
    id: str
    name: str
    status: str
    entry: str
    principal: str | None
    started_at: str
    ended_at: str | None
    duration_ms: float | None
    events: tuple[Mapping[str, Any], ...] = ()
    inside: tuple[TraceNode, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the tree as JSON shapes."""
        values = {name: getattr(self, name) for name in self.__slots__}
        return {
            **values,
            "events": [dict(event) for event in self.events],
            "inside": [node.to_dict() for node in self.inside],
        }


# --- runs


def list_runs(log: EventLog, wanted: RunFilter | None = None, *, limit: int = 50) -> list[RunSummary]:
    """Return runs, the latest first: those that made calls, and what is at the top and has made none."""
    wanted = wanted or RunFilter()
    require_number("list_runs", "limit", limit, least=1)
    named = ActivityFilter(("call",), wanted.outcomes, wanted.tool, wanted.principal)
    calls = replace(named, since=wanted.since, until=wanted.until)
    ids = _latest_runs(log, calls, limit, lambda call: call.run_id, partial(_beginnings, log, _CALLS, "run_id"))
    found: list[RunSummary] = []
    for some in id_batches(ids):
        matching = _matching(log, wanted, some)
        found += [replace(summary, matching=tuple(matching.get(summary.id, ()))) for summary in _summaries(log, some)]
    if not (wanted.tool or wanted.outcomes):
        known = {activity.id for activity in found}
        found += [call for call in _without_calls(log, wanted, limit, found) if call.id not in known]
    return sorted(found, key=lambda activity: activity.position, reverse=True)[:limit]


def _latest_runs(
    log: EventLog,
    wanted: ActivityFilter,
    limit: int,
    run_of: Callable[[Activity], str | None],
    beginnings: Callable[[Iterable[str]], Mapping[str, int]],
    earliest: int = 0,
) -> list[str]:
    """Return the runs of the wanted activities that began last; of the others no more is read than one page.

    Args:
        run_of: The run that an activity is part of.
        beginnings: The positions at which runs began, without those that are not wanted.
        earliest: The position behind which a run has to have begun.
    """
    began, known = dict[str, int](), set[str]()
    for page in _pages(log, wanted, _PER_RUN * limit):
        new = {run for run in map(run_of, page) if run is not None} - known
        known |= new
        began |= beginnings(new)
        end = page[-1].first_position  # the runs of what is behind it began before it
        if end <= earliest or sum(position >= end for position in began.values()) >= limit:
            break
    latest = sorted(began, key=lambda run: began[run], reverse=True)[:limit]
    return [run for run in latest if began[run] > earliest]


def _pages(log: EventLog, wanted: ActivityFilter, size: int) -> Iterator[list[Activity]]:
    """Yield activities in pages, the latest first: the first has `size` of them, the next ones more."""
    page = log.activities(wanted, limit=size)
    while page:
        yield page
        if len(page) < size:
            return
        size = min(2 * size, _MOST_NODES)
        page = log.activities(wanted, before=page[-1].first_position, limit=size)


def _beginnings(
    log: EventLog, condition: str, column: str, values: Iterable[str], having: tuple[str, Sequence[str]] = ("", ())
) -> dict[str, int]:
    """Return the position of the first activity with each of these values in a column, where there is one."""
    return {
        str(value): int(position)
        for some in id_batches(values)
        for value, position in log.rows(
            f"SELECT {column}, MIN(first_position) FROM toolcrib_activities "
            f"WHERE {condition} AND {one_of(column, some)} GROUP BY {column} {having[0]}",
            (*some, *having[1]),
        )
    }


def _fitting(wanted: RunFilter) -> tuple[str, list[str]]:
    """Return the condition of a call of `toolcrib_activities of`, and its values."""
    words = (("principal", wanted.principal), ("name", wanted.tool))
    times = ((">=", wanted.since), ("<", wanted.until))
    asked: list[tuple[str, list[str]]] = [(f"of.{column} = ?", [value]) for column, value in words if value]
    asked += [(one_of("of.status", wanted.outcomes), [*wanted.outcomes])] if wanted.outcomes else []
    asked += [(f"of.started_at {sign} ?", [time_text(at)]) for sign, at in times if at is not None]
    conditions = ["of.source = 'call'", *(condition for condition, _ in asked)]
    return " AND ".join(conditions), [value for _, values in asked for value in values]


def _began(wanted: RunFilter) -> tuple[str, list[str]]:
    """Return the HAVING clause for the time at which a run began, and its values."""
    ends = [(sign, time_text(at)) for sign, at in ((">=", wanted.since), ("<", wanted.until)) if at is not None]
    return (
        f"HAVING {' AND '.join(f'MIN(started_at) {sign} ?' for sign, _ in ends)}" if ends else "",
        [at for _, at in ends],
    )


def _matching(log: EventLog, wanted: RunFilter, ids: Sequence[str]) -> Mapping[str, list[Mapping[str, str]]]:
    """Return the calls of these runs with the outcome wanted, by run, each with the reason with which it ended last."""
    if not wanted.outcomes:
        return {}
    fits, asked = _fitting(wanted)
    rows = log.rows(
        "SELECT of.run_id, of.id, of.name, of.status, COALESCE(of.ended_at, of.started_at), said.data "
        "FROM toolcrib_activities of LEFT JOIN toolcrib_events said "
        "ON said.id = of.id AND said.run_id = of.run_id AND said.source = 'call' AND said.kind = 'ended' "
        f"WHERE {fits} AND of.{HAS_RUN} AND {one_of('of.run_id', ids)} "
        "ORDER BY of.first_position, said.position LIMIT ?",
        (*asked, *ids, _MOST_NODES),
    )
    last: dict[tuple[str, str], Mapping[str, str]] = {}
    for run_id, id, tool, status, at, data in rows:
        outcome: Mapping[str, Any] = {} if data is None else json.loads(data)["data"]["outcome"]
        reason = str(outcome.get("reason") or outcome.get("message") or "")
        call = {"tool": tool, "id": id, "status": status, "at": at, "reason": reason}
        last[str(run_id), str(id)] = {name: str(value) for name, value in call.items()}
    found: dict[str, list[Mapping[str, str]]] = {}
    for (run_id, _), call in last.items():
        found.setdefault(run_id, []).append(call)
    return found


def _summaries(log: EventLog, ids: Sequence[str]) -> list[RunSummary]:
    """Return these runs, by their calls and by the activities that made them."""
    among = f"source = 'call' AND {HAS_RUN} AND {one_of('run_id', ids)}"
    counted = log.rows(
        "SELECT run_id, status, COUNT(*), MIN(first_position), MIN(started_at), MAX(ended_at), MIN(entry), "
        "MAX(principal), SUM(CASE WHEN ended_at IS NULL THEN 1 ELSE 0 END) "
        f"FROM toolcrib_activities WHERE {among} GROUP BY run_id, status",
        tuple(ids),
    )
    waiting = log.rows(
        f"SELECT run_id, name, id, started_at FROM toolcrib_activities WHERE {among} AND status = 'suspended' "
        "ORDER BY first_position",
        tuple(ids),
    )
    makers = log.rows(
        f"SELECT DISTINCT run_id, parent_id FROM toolcrib_activities WHERE {among} AND parent_id IS NOT NULL",
        tuple(ids),
    )
    activities = log.by_id(str(parent) for _, parent in makers)
    parents = {activity.id: activity for activity in activities if activity.source != "call"}
    agents = log.activities(ActivityFilter(sources=("agent",), inner_runs=tuple(ids)), limit=_MOST_NODES)
    asked = _requests(log, ids)
    found: list[RunSummary] = []
    for run_id in ids:
        rows = [row for row in counted if row[0] == run_id]
        outer = [parents[parent] for of, parent in makers if of == run_id and parent in parents]
        outer += [
            agent for agent in agents if agent.inner_run == run_id and agent not in outer
        ]  # that answered without a call
        open_ones = [{"tool": str(name), "id": str(id), "at": str(at)} for of, name, id, at in waiting if of == run_id]
        found.append(_summary(log, run_id, rows, outer, open_ones, asked.get(run_id, ())))
    return found


def _requests(log: EventLog, ids: Sequence[str]) -> Mapping[str, Sequence[Mapping[str, Any]]]:
    """Return the usage of each request to a model that is a part of these runs themselves, and of no session in them.

    An adapter records them of another framework's agent, whose activities are not known here.
    """
    rows = log.rows(
        "SELECT of.parent_id, of.id, said.data FROM toolcrib_activities of JOIN toolcrib_events said "
        "ON said.id = of.id AND said.source = 'run' AND said.kind = 'closed' "
        f"WHERE of.source = 'chat' AND of.parent_id IN ({', '.join('?' * len(ids))}) ORDER BY said.position",
        tuple(ids),
    )
    last = {(str(run_id), str(id)): json.loads(data)["data"].get("usage") for run_id, id, data in rows}
    found: dict[str, list[Mapping[str, Any]]] = {}
    for (run_id, _), usage in last.items():
        if isinstance(usage, Mapping):
            found.setdefault(run_id, []).append(cast("Mapping[str, Any]", usage))
    return found


def _summary(
    log: EventLog,
    run_id: str,
    rows: Sequence[Sequence[Any]],
    makers: Sequence[Activity],
    waiting: Sequence[Mapping[str, str]],
    requests: Sequence[Mapping[str, Any]] = (),
) -> RunSummary:
    open_calls = sum(int(row[8]) for row in rows)
    is_open = bool(open_calls) or any(maker.ended_at is None for maker in makers)
    started = min([*(str(row[4]) for row in rows), *(maker.started_at for maker in makers)])
    ends = [str(row[5]) for row in rows if row[5] is not None] + [maker.ended_at for maker in makers if maker.ended_at]
    ended = None if is_open or not ends else max(ends)
    return RunSummary(
        run_id,
        tuple(dict.fromkeys(" ".join(dict.fromkeys((maker.source, maker.name))) for maker in makers)),
        next((str(row[6]) for row in rows if row[6]), ""),
        next((who for who in (*(row[7] for row in rows), *(maker.principal for maker in makers)) if who), None),
        started,
        ended,
        _milliseconds(started, ended),
        {str(row[1]): int(row[2]) for row in sorted(rows, key=lambda row: str(row[1]))},
        tuple(waiting),
        log.usage(makers, "closed", "changed", besides=requests),
        min([*(int(row[3]) for row in rows), *(maker.first_position for maker in makers)]),
    )


def _without_calls(log: EventLog, wanted: RunFilter, limit: int, called: Sequence[RunSummary]) -> list[RunSummary]:
    """Return the top activities that made no call in their run.

    Args:
        called: The latest runs that made calls.
    """
    kinds = ("agent", "turn", "program", "session", "request")
    at_top = ActivityFilter(kinds, principal=wanted.principal, top=True, since=wanted.since, until=wanted.until)
    of_runs = _uncalled(log, log.activities(at_top, limit=limit))
    positions = {run_id: min(maker.first_position for maker in makers) for run_id, makers in of_runs.items()}
    positions |= {summary.id: summary.position for summary in called}
    earliest = sorted(positions.values(), reverse=True)[limit - 1] if len(positions) >= limit else 0
    for run_id, requests in _uncalled(log, _requests_alone(log, wanted, limit, earliest)).items():
        of_runs.setdefault(run_id, []).extend(requests)
    return [replace(_summary(log, run_id, (), makers, ()), entry=makers[0].entry) for run_id, makers in of_runs.items()]


def _uncalled(log: EventLog, activities: Iterable[Activity]) -> dict[str, list[Activity]]:
    """Return activities by their runs, without the runs that made calls."""
    of_runs: dict[str, list[Activity]] = {}
    for activity in activities:
        of_runs.setdefault(activity.inner_run or activity.id, []).append(activity)
    called = _beginnings(log, _CALLS, "run_id", of_runs)
    return {run_id: makers for run_id, makers in of_runs.items() if run_id not in called}


def _requests_alone(log: EventLog, wanted: RunFilter, limit: int, earliest: int) -> list[Activity]:
    """Return the requests to a model that are a part of runs which made no call, and of no activity.

    Args:
        earliest: The position behind which the runs began.
    """
    chats = ActivityFilter(("chat",), principal=wanted.principal, since=wanted.since, until=wanted.until)

    def beginnings(parents: Iterable[str]) -> Mapping[str, int]:
        alone = set(parents)
        alone -= _beginnings(log, "id <> ''", "id", alone).keys()
        alone -= _beginnings(log, HAS_RUN, "run_id", alone).keys()
        return _beginnings(log, "source || '' = 'chat'", "parent_id", alone, _began(wanted))

    parents = _latest_runs(log, chats, limit, lambda chat: chat.parent_id, beginnings, earliest)
    of_runs = ActivityFilter(("chat",), principal=wanted.principal, parent_ids=tuple(parents))
    return log.activities(of_runs, limit=_MOST_NODES) if parents else []


def _milliseconds(started: str, ended: str | None) -> float | None:
    if ended is None:
        return None
    return round((datetime.fromisoformat(ended) - datetime.fromisoformat(started)).total_seconds() * 1000, 3)


# --- one run or call


def ids_like(log: EventLog, start: str, *, limit: int = 6) -> tuple[list[str], list[str]]:
    """Return the ids of runs and calls that are this or begin so, or else the nearest to it."""
    exact = _ids(log, "= ?", start, limit)
    if start in exact:
        return [start], []
    like = start.replace("!", "!!").replace("%", "!%").replace("_", "!_") + "%"
    found = {id_ for id_ in _ids(log, "LIKE ? ESCAPE '!'", like, limit) if id_.startswith(start)}
    if found:
        return sorted(found)[:limit], []
    recent = {
        id for activity in log.activities(limit=_RECENT) for id in (activity.id, activity.run_id, activity.inner_run)
    }
    return [], get_close_matches(start, sorted(recent - {""}), n=3, cutoff=0.5)


def _ids(log: EventLog, where: str, value: str, limit: int) -> set[str]:
    select = "SELECT DISTINCT {0} FROM toolcrib_activities WHERE {0} <> '' AND {0} {1} LIMIT ?"
    statements = [select.format(column, where) for column in ("id", "run_id", "inner_run")]
    return {str(id_) for statement in statements for (id_,) in log.rows(statement, (value, limit))}


def trace_nodes(log: EventLog, id: str) -> TraceNode | None:
    """Return the tree of a run, activity or call; None for an unknown id."""
    runs = log.activities(ActivityFilter(sources=("call",), run_id=id), limit=_MOST_NODES)
    named = [activity for activity in log.activities(ActivityFilter(ids=(id,)), limit=20) if activity.id == id]
    if not named:
        named = log.activities(ActivityFilter(inner_runs=(id,)), limit=_MOST_NODES)
    if not runs and not named:
        return None
    if not runs and len(named) == 1:
        return _node(log, named[0], _inside(log, named))
    found = [*named, *runs]
    around = {part.parent_id for part in found if part.parent_id} - {part.id for part in found}
    makers = log.around(around, calls=False)
    parts = _once([*makers, *found])
    known, ids = _inside(log, parts), {part.id for part in parts}
    roots = [part for part in parts if part.parent_id not in ids or part.parent_id == part.id]
    nodes = tuple(_node(log, root, known) for root in sorted(roots, key=lambda root: root.first_position))
    summary = next(iter(_summaries(log, [id])), None) if runs else None
    status = "suspended" if any(node.status == "suspended" for node in nodes) else "running"
    ended = summary.ended_at if summary is not None else all(node.ended_at for node in nodes)
    status = "ended" if ended else status
    first = nodes[0]
    return TraceNode(
        "call" if not runs and named[0].source == "call" else "run",
        id,
        "" if summary is None else ", ".join(summary.names),
        status,
        first.entry if summary is None else summary.entry,
        first.principal if summary is None else summary.principal,
        first.started_at if summary is None else summary.started_at,
        None if summary is None else summary.ended_at,
        None if summary is None else summary.duration_ms,
        (),
        nodes,
    )


def _inside(log: EventLog, outer: Sequence[Activity]) -> Mapping[str, list[Activity]]:
    """Return these and the activities inside them, by the id of the one that each is in."""
    by_parent: dict[str, list[Activity]] = {}
    for activity in (*outer, *log.inside(outer, limit=_MOST_NODES)[0]):
        if activity.parent_id is not None:
            by_parent.setdefault(activity.parent_id, []).append(activity)
    return by_parent


def _once(several: Iterable[Activity]) -> list[Activity]:
    return list({activity.key: activity for activity in several}.values())


def _node(log: EventLog, activity: Activity, inside: Mapping[str, Sequence[Activity]]) -> TraceNode:
    within = _once(part for part in inside.get(activity.id, ()) if part is not activity and part.id != activity.id)
    events = log.events(activity, limit=_MOST_EVENTS)
    return TraceNode(
        activity.source,
        activity.id,
        activity.name,
        activity.status,
        activity.entry,
        activity.principal,
        activity.started_at,
        activity.ended_at,
        activity.duration_ms,
        tuple(
            {"kind": event.kind, "at": event.at, "text": brief_event(event)["text"], "data": event.data["data"]}
            for event in events
        ),
        tuple(_node(log, part, inside) for part in sorted(within, key=lambda part: part.first_position)),
    )
