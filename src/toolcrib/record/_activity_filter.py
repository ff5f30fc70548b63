"""Filter of activities, and the statements that read those that it lets through."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from typing import Any, TypeAlias, get_args

from toolcrib._numbers import time_text
from toolcrib.calls import ActivityKind
from toolcrib.errors import explain_options
from toolcrib.record._event_tables import Activity
from toolcrib.record._word_index import WordIndex

_TABLE = "toolcrib_activities"
_SOURCES = (*get_args(ActivityKind), "call")
# A planner takes a partial index where the statement has its condition, in these words.
_LEFT_OUT = {"source": "call", "status": "completed"}  # values of most rows, which an index of the column leaves out
HAS_RUN = "run_id <> ''"
"""The condition of the index of runs."""
ACTIVITY_COLUMNS = ", ".join(field.name for field in fields(Activity))
"""The columns of an `Activity`, in its order."""


@explain_options()
@dataclass(frozen=True, slots=True)
class ActivityFilter:
    """A filter of activities; an empty field lets all through.

    Attributes:
        sources: Kinds: `call`, `agent`, `turn`, `program`, `session`, `request`, `chat`.
        statuses: Any of these.
        name: The tool's or run's name, whole.
        principal: On whose behalf, whole.
        text: Words that stand in names, ids, arguments, outcomes, programs, each from the beginning of a word on; upper
            and lower case are the same.
        run_id: The calls of this run.
        inner_runs: The activities whose calls belong to any of these runs, also where they made none.
        parent_id: Activities inside this run or call.
        parent_ids: Activities inside any of these.
        ids: These calls or runs.
        top: Only activities that are inside no other.
        since: Activities that began then or later.
        until: Activities that began before.
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
    since: datetime | None = None
    until: datetime | None = None


def select_activities(
    wanted: ActivityFilter, words: WordIndex | None, before: int | None, limit: int
) -> tuple[str, tuple[Any, ...]]:
    """Return the statement that reads what is wanted, and its values."""
    query = "" if words is None else words.query(wanted.text.lower())
    if words is None or not query:
        return latest_of_any([_conditions(part, before) for part in _parts(wanted)], limit)
    parts = [(wanted, [f"status <> '{words.left_out}'"] if words.left_out else list[str]())]
    if words.left_out and words.left_out in (wanted.statuses or (words.left_out,)):  # they are read one by one
        parts.append((replace(wanted, sources=wanted.sources or _SOURCES, statuses=(words.left_out,)), []))
    read: list[tuple[str, tuple[Any, ...]]] = []
    for part, more in parts:
        conditions, values = _conditions(part, before)
        has_words = [words.condition, *more, *conditions]
        read.append(_latest(words.source, has_words, [query, *values], limit, words.order))
    return _latest_of(read, limit)


_Part: TypeAlias = tuple[list[str], list[Any]]


def _latest(
    source: str, conditions: Sequence[str], values: Sequence[Any], limit: int, order: str
) -> tuple[str, tuple[Any, ...]]:
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    return f"SELECT {ACTIVITY_COLUMNS} FROM {source}{where} ORDER BY {order} DESC LIMIT ?", (*values, limit)


def latest_of_any(parts: Sequence[_Part], limit: int) -> tuple[str, tuple[Any, ...]]:
    """Return a query for the latest of several parts: of each part, by its index, no more than `limit`."""
    return _latest_of([_latest(_TABLE, *part, limit, "first_position") for part in parts], limit)


def _latest_of(read: Sequence[tuple[str, tuple[Any, ...]]], limit: int) -> tuple[str, tuple[Any, ...]]:
    if len(read) == 1:
        return read[0]
    several = " UNION ALL ".join(f"SELECT * FROM ({sql}) AS part_{number}" for number, (sql, _) in enumerate(read))
    values = [value for _, parameters in read for value in parameters]
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
    statuses = [(status,) for status in wanted.statuses] or [()]
    return [
        replace(wanted, sources=(source,), statuses=status)
        for source in wanted.sources or _SOURCES
        for status in statuses
    ]


def _conditions(wanted: ActivityFilter, before: int | None) -> _Part:
    conditions: list[str] = []
    values: list[Any] = []
    is_of_few = bool(wanted.ids or wanted.parent_ids)
    for column, several in (
        ("source", wanted.sources),
        ("status", wanted.statuses),
        ("id", wanted.ids),
        ("parent_id", wanted.parent_ids),
    ):
        if several:  # of few ids SQLite would read the index of all sources, for its order
            conditions.append(one_of(f"{column} || ''" if is_of_few and column in _LEFT_OUT else column, several))
            values.extend(several)
            if column in _LEFT_OUT and _LEFT_OUT[column] not in several and not is_of_few:
                conditions.append(f"{column} <> '{_LEFT_OUT[column]}'")
    for column, text in (
        ("name", wanted.name),
        ("principal", wanted.principal),
        ("run_id", wanted.run_id),
        ("parent_id", wanted.parent_id),
    ):
        if text:
            conditions.append(f"{column} = ?" if column != "run_id" else f"{HAS_RUN} AND run_id = ?")
            values.append(text)
    if wanted.inner_runs:
        conditions.append(f"inner_run <> '' AND {one_of('inner_run', wanted.inner_runs)}")  # as the index has it
        values.extend(wanted.inner_runs)
    if wanted.top:
        conditions.append("parent_id IS NULL")
    for sign, at in ((">=", wanted.since), ("<", wanted.until)):
        if at is not None:
            conditions.append(f"started_at {sign} ?")
            values.append(time_text(at))
    for word in wanted.text.lower().split():
        conditions.append("toolcrib_activities.words LIKE ? ESCAPE '!'")
        values.append("%" + word.replace("!", "!!").replace("%", "!%").replace("_", "!_") + "%")
    if before is not None:
        conditions.append("first_position < ?")
        values.append(before)
    return conditions, values


def one_of(column: str, several: Sequence[str]) -> str:
    return f"{column} IN ({', '.join('?' * len(several))})"
