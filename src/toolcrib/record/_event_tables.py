"""Tables of events, append only, and of the state of each call and activity.

One schema for SQLite and Postgres, with `?` where a value goes. A follower that has seen an event has seen all before
it: in a file one writer at a time takes positions and writes, and on a server a follower stops before a batch that is
being written.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from operator import itemgetter
from typing import Any, TypeAlias, cast

from toolcrib._processes import this_process
from toolcrib.calls import CallEvent
from toolcrib.database import StoreTables
from toolcrib.record._batch_sink import RecordedEvent
from toolcrib.record._stored_event import event_text

Rows: TypeAlias = Callable[[str, Sequence[Any]], Sequence[Sequence[Any]]]
"""Runs one statement with its values, and returns its rows."""

_REPLACED = ("last", "by", "source", "parent", "principal", "run")
EVENT_TABLES = StoreTables(
    "events",
    (
        (
            """CREATE TABLE IF NOT EXISTS toolcrib_events (
        position BIGINT PRIMARY KEY, source TEXT NOT NULL, run_id TEXT NOT NULL, id TEXT NOT NULL, kind TEXT NOT NULL,
        name TEXT NOT NULL, at TEXT NOT NULL, data TEXT NOT NULL)""",
            "CREATE INDEX IF NOT EXISTS toolcrib_events_of ON toolcrib_events (id, position)",
            """CREATE TABLE IF NOT EXISTS toolcrib_activities (
        source TEXT NOT NULL, run_id TEXT NOT NULL, id TEXT NOT NULL, parent_id TEXT, name TEXT NOT NULL,
        entry TEXT NOT NULL, status TEXT NOT NULL, principal TEXT, first_position BIGINT NOT NULL,
        last_position BIGINT NOT NULL, started_at TEXT NOT NULL, ended_at TEXT, duration_ms DOUBLE PRECISION,
        words TEXT NOT NULL, PRIMARY KEY (id, source, run_id))""",
            "CREATE INDEX IF NOT EXISTS toolcrib_activities_first ON toolcrib_activities (first_position)",
            "CREATE INDEX IF NOT EXISTS toolcrib_activities_last ON toolcrib_activities (last_position)",
            "CREATE INDEX IF NOT EXISTS toolcrib_activities_by ON toolcrib_activities (source, status, first_position)",
            "CREATE INDEX IF NOT EXISTS toolcrib_activities_source ON toolcrib_activities (source, first_position)",
            """CREATE INDEX IF NOT EXISTS toolcrib_activities_principal
                ON toolcrib_activities (principal, first_position)""",
            "CREATE INDEX IF NOT EXISTS toolcrib_activities_name ON toolcrib_activities (name, first_position)",
            "CREATE INDEX IF NOT EXISTS toolcrib_activities_run ON toolcrib_activities (run_id, first_position)",
            "CREATE INDEX IF NOT EXISTS toolcrib_activities_parent ON toolcrib_activities (parent_id, first_position)",
        ),
        (
            "ALTER TABLE toolcrib_activities ADD COLUMN inner_run TEXT NOT NULL DEFAULT ''",
            """CREATE INDEX IF NOT EXISTS toolcrib_activities_inner_run
                ON toolcrib_activities (inner_run, first_position) WHERE inner_run <> ''""",
        ),
        (
            "ALTER TABLE toolcrib_activities ADD COLUMN process TEXT NOT NULL DEFAULT ''",
            """CREATE INDEX IF NOT EXISTS toolcrib_activities_running
                ON toolcrib_activities (process) WHERE status = 'running' AND process <> ''""",
        ),
        # An index costs more than the row does, as each change of a row enters all: they leave out what no query asks.
        (
            *(f"DROP INDEX IF EXISTS toolcrib_activities_{name}" for name in _REPLACED),
            """CREATE INDEX toolcrib_activities_unfinished
                ON toolcrib_activities (source, status, first_position) WHERE status <> 'completed'""",
            """CREATE INDEX toolcrib_activities_source
                ON toolcrib_activities (source, first_position) WHERE source <> 'call'""",
            "CREATE INDEX toolcrib_activities_top ON toolcrib_activities (first_position) WHERE parent_id IS NULL",
            """CREATE INDEX toolcrib_activities_parent
                ON toolcrib_activities (parent_id, first_position) WHERE parent_id IS NOT NULL""",
            """CREATE INDEX toolcrib_activities_principal
                ON toolcrib_activities (principal, first_position) WHERE principal IS NOT NULL""",
            """CREATE INDEX toolcrib_activities_run
                ON toolcrib_activities (run_id, first_position) WHERE run_id <> ''""",
        ),
    ),
    shares_lock=True,
)
"""The tables of events, on any database."""

_ADD = (
    "INSERT INTO toolcrib_events (position, source, run_id, id, kind, name, at, data) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
)
_SUSPENDED = {"suspended", "paused"}  # over for the process that said it, and not otherwise
_STATE = ("state", "outcome", "duration_ms", "run_id", "entry")  # of an activity; a search has filters for them
_ESCAPE = re.compile(r"\\[nrt]")
_WORDS = 2_000  # characters of one event that can be searched for


@dataclass(frozen=True, slots=True)
class Activity:
    """The state of one call or run.

    Attributes:
        source: `call`, or the kind of run: `agent`, `turn`, `program`, `session`, `request`, `chat`.
        run_id: A call's run; empty for an activity.
        parent_id: The run or call inside which it goes on.
        name: The tool, or what the run is called.
        status: `running`, `suspended`, or its result: a call's outcome, a run's. Of a call that went on in another
            run it is `resumed`, and of what was running in a process that is gone, `lost`.
        first_position: The event that it began with.
        last_position: Its latest event.
        started_at: ISO text, like `ended_at`.
        inner_run: The run that an activity's calls belong to; empty for a call.
    """

    source: str
    run_id: str
    id: str
    parent_id: str | None
    name: str
    entry: str
    status: str
    principal: str | None
    first_position: int
    last_position: int
    started_at: str
    ended_at: str | None
    duration_ms: float | None
    inner_run: str = ""

    @property
    def key(self) -> tuple[str, str, str]:
        """The key, since a call and a run may have one id: its source, id and run."""
        return self.source, self.id, self.run_id


_COLUMNS = (*(field.name for field in fields(Activity)), "words", "process")
# Of two batches that are written at a time, the one that is written last may have the positions before.
_OF_THE_LATER = ", ".join(
    f"{name} = CASE WHEN excluded.last_position < toolcrib_activities.last_position THEN toolcrib_activities.{name} "
    f"ELSE excluded.{name} END"
    for name in ("status", "last_position", "ended_at", "duration_ms", "process")
)
_CHANGE = f"""INSERT INTO toolcrib_activities ({", ".join(_COLUMNS)})
    VALUES ({", ".join("?" * len(_COLUMNS))})
    ON CONFLICT (id, source, run_id) DO UPDATE SET
        parent_id = COALESCE(excluded.parent_id, toolcrib_activities.parent_id),
        principal = COALESCE(excluded.principal, toolcrib_activities.principal),
        {_OF_THE_LATER},
        words = CASE WHEN LENGTH(toolcrib_activities.words) > 8000 THEN toolcrib_activities.words
            ELSE toolcrib_activities.words || excluded.words END"""
_row = itemgetter(*_COLUMNS)
_GO_ON = """UPDATE toolcrib_activities SET status = 'resumed', ended_at = ?, last_position = ?
    WHERE id = ? AND source = 'call' AND run_id = ? AND (ended_at IS NULL OR status = 'lost') RETURNING id"""


def write_events(
    events: Sequence[RecordedEvent],
    positions: Sequence[int],
    rows: Rows,
    run_each: Callable[[str, Sequence[Sequence[Any]]], object],
    process: str | None = None,
) -> None:
    """Write a batch inside a transaction that holds the lock of those who write.

    Args:
        events: The events, in order.
        positions: The position of each, in order.
        rows: Runs one statement.
        run_each: Runs one statement for each of several tuples of values.
        process: The process whose end is the end of what they are of; this one when None, and empty for none.
    """
    placed = list(zip(positions, events, strict=True))
    added, changed = batch_rows(placed, this_process() if process is None else process)
    run_each(_ADD, added)
    run_each(_CHANGE, changed)
    for position, event in placed:
        if isinstance(event, CallEvent):
            for run_id in event.data.get("earlier_runs", ()):
                rows(_GO_ON, (event.at.isoformat(), position, _plain(event.call_id), _plain(run_id)))


def batch_rows(
    placed: Iterable[tuple[int, RecordedEvent]], process: str
) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
    """Return the rows that a batch adds to the first table, and those that it makes or changes in the second.

    The latter are in an order that all batches have, as each waits for the rows that another one changes.
    """
    added: list[tuple[Any, ...]] = []
    changes: dict[tuple[str, str, str], dict[str, Any]] = {}
    for position, event in placed:
        data = event.to_dict()
        change = _call_change(data, position) if isinstance(event, CallEvent) else _run_change(data, position)
        change["process"] = process
        columns = {name: change[name] for name in ("run_id", "id", "name")} | {"kind": data["kind"], "at": data["at"]}
        text = event_text(event, data, columns)
        source = "call" if isinstance(event, CallEvent) else "run"
        added.append((position, source, *(columns[name] for name in ("run_id", "id", "kind", "name", "at")), text))
        key = (change["id"], change["source"], change["run_id"])
        if key in changes:
            _take_in(changes[key], change)
        else:
            changes[key] = change
    return added, [_row(changes[key]) for key in sorted(changes)]


def _take_in(change: dict[str, Any], later: Mapping[str, Any]) -> None:
    """Merge what a later event of the same batch says."""
    change.update((name, later[name]) for name in ("status", "last_position", "ended_at", "duration_ms"))
    change.update((name, later[name] or change[name]) for name in ("parent_id", "principal"))
    if later["words"].strip() not in change["words"]:  # arguments that a call came with, and was executed with
        change["words"] += later["words"]


def _call_change(data: Mapping[str, Any], position: int) -> dict[str, Any]:
    kind, content = str(data["kind"]), cast("Mapping[str, Any]", data["data"])
    record: Mapping[str, Any] = data["record"] or {}
    request: Mapping[str, Any] = content.get("request") or {}
    ended = kind == "ended"
    status = str(content["outcome"]["kind"]) if ended else "suspended" if kind == "suspended" else "running"
    return {
        "source": "call",
        "run_id": _plain(data["run_id"]),
        "id": _plain(data["call_id"]),
        "parent_id": _maybe(data["parent_id"]),
        "name": _plain(data["tool"]),
        "entry": _plain(data["entry"]),
        "status": "suspended" if status in _SUSPENDED else status,
        "principal": _maybe(record.get("principal") or request.get("principal")),
        "first_position": position,
        "last_position": position,
        "started_at": str(data["at"]),
        "ended_at": str(data["at"]) if ended and status not in _SUSPENDED else None,
        "duration_ms": record.get("duration_ms") if ended else None,
        "inner_run": "",
        "words": _call_words(kind, data, content, record.get("principal")),
    }


def _call_words(kind: str, data: Mapping[str, Any], facts: Mapping[str, Any], principal: Any) -> str:
    """Return the searchable text of an event, without the text that another event of the call has."""
    match kind:
        case "yielded" | "progressed" | "answered" | "logged":
            return ""
        case "received":
            return _search_text(data["tool"], data["call_id"], _without(facts, "came"))
        case "started":
            return _search_text(facts.get("arguments"))
        case "suspended":
            asked = _without(facts.get("request") or {}, "parameters", "returns", "call_id", "tool")
            return _search_text(data["tool"], data["call_id"], asked)
        case "ended":
            return _search_text(principal, _without(facts["outcome"], "kind", "tool", "call_id", "source"))
        case _:
            return _search_text(facts)


def _without(values: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name not in names and value not in (None, "", [], {})}


def _run_change(data: Mapping[str, Any], position: int) -> dict[str, Any]:
    kind, content = str(data["kind"]), cast("Mapping[str, Any]", data["data"])
    opened, closed = kind == "opened", kind == "closed"
    status = _state(content.get("outcome"), "completed") if closed else _state(content.get("state"), "running")
    return {
        "source": str(data["activity"]),
        "run_id": "",
        "id": _plain(data["activity_id"]),
        "parent_id": _maybe(data["parent_id"]),
        "name": _plain(data["name"]),
        "entry": _plain(content.get("entry") or ""),
        "status": "suspended" if status in _SUSPENDED else status,
        "principal": _maybe(content.get("principal")),
        "first_position": position,
        "last_position": position,
        "started_at": str(data["at"]),
        "ended_at": str(data["at"]) if closed and status not in _SUSPENDED else None,
        "duration_ms": content.get("duration_ms") if closed else None,
        "inner_run": _plain(content.get("run_id") or ""),
        "words": _search_text(*((data["name"], data["activity_id"]) if opened else ()), _without(content, *_STATE)),
    }


def _state(state: Any, otherwise: str) -> str:
    """Return a run's state or outcome as one word; an outcome may be an object with its kind."""
    word = cast("Mapping[str, Any]", state).get("kind") if isinstance(state, Mapping) else state
    return _plain(word).lower() if word else otherwise


def _search_text(*parts: Any) -> str:
    """Return the searchable text of some parts: lower case, cut."""
    texts = (
        part if isinstance(part, str) else json.dumps(part, ensure_ascii=False, default=repr) for part in parts if part
    )
    text = _ESCAPE.sub(" ", " ".join(texts))  # which would be a part of the word behind it
    return _plain(text)[:_WORDS].lower() + " " if text else ""


def _maybe(value: Any) -> str | None:
    return None if value is None else _plain(value)


def _plain(value: Any) -> str:
    """Return text that any database takes: no half surrogate pairs, no zero characters."""
    return str(value).encode("utf-8", "backslashreplace").decode().replace("\x00", "\\x00")
