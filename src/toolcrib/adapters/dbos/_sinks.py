"""Sinks of durable work: events on a Postgres server, as SqliteSink keeps them in a file, and those of a worker."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from functools import cache, partial
from pathlib import Path
from typing import Any

from sqlalchemy.exc import DBAPIError

from toolcrib._tables import StoreTables
from toolcrib.adapters.dbos._database import Database, PostgresTables
from toolcrib.calls import ActivityEvent, CallEvent
from toolcrib.errors import SandboxLost
from toolcrib.record import (
    EVENT_TABLES,
    BatchSink,
    EventLog,
    LostWork,
    RecordedEvent,
    Rows,
    SqliteSink,
    WordIndex,
    prune_events,
    prune_sqlite_events,
    write_events,
)

__all__ = [
    "INTERRUPTED",
    "POSTGRES_EVENT_TABLES",
    "PostgresSink",
    "WorkerSink",
    "keeps_events_in",
    "open_sink",
    "postgres_events",
    "prune_kept_events",
]

_FLOAT = "double precision"
_VALUES = re.compile(r"VALUES \([?, ]+\)")
_LOCK = "toolcrib: events"  # held by the writer, so that positions become visible in order
_VECTOR = "to_tsvector('simple', regexp_replace(words, '[^a-z0-9]+', ' ', 'g'))"
_WORDS = WordIndex(
    StoreTables(
        "words",
        ((f"CREATE INDEX IF NOT EXISTS toolcrib_activities_words ON toolcrib_activities USING gin (({_VECTOR}))",),),
    ),
    "toolcrib_activities",
    f"{_VECTOR} @@ to_tsquery('simple', ?)",
    "first_position",
    "{}",
    "{}:*",
    " & ",
)
POSTGRES_EVENT_TABLES = (EVENT_TABLES, _WORDS.tables)
"""The tables of `PostgresSink`."""


class PostgresSink(BatchSink):
    """Keeps events of calls and runs on a Postgres server; it does what `SqliteSink` does.

    Args:
        database: Its URL, or what `Database.named` made of one. Missing tables are made.

    Attributes:
        process: The process whose end is the end of the calls and runs; this one when None, empty for durable work.

    Raises:
        DatabaseError: It is no Postgres database, or no connection can be had.
    """

    process: str | None = None

    def __init__(self, database: str | Path | Database) -> None:
        self._tables = PostgresTables(database, *POSTGRES_EVENT_TABLES, pool=2)
        super().__init__(self._write_batch)

    @property
    def database(self) -> Database:
        """The database."""
        return self._tables.database

    def log(self) -> EventLog:
        """Return a log of the database, this sink's latest events included."""
        self.flush()
        return _log(self._tables)

    def close(self) -> None:
        """Write what is left, and close the connections; closing twice does nothing."""
        super().close()
        self._tables.close()

    def _write_batch(self, batch: Sequence[RecordedEvent]) -> None:
        with self._tables.transaction(_LOCK) as execute:
            write_events(
                batch,
                lambda sql, values: execute(sql, values).fetchall(),
                lambda sql, rows: execute(_of_arrays(sql), _as_arrays(sql, rows)),
                self.process,
            )


# A statement for each row costs the worker and the server more than the row itself.


@cache
def _of_arrays(sql: str) -> str:
    """Return an INSERT of one row as that of any number, with an array for each column."""
    arrays = ", ".join(f"?::{kind}[]" for kind in _kinds(sql))
    return _VALUES.sub(f"SELECT * FROM unnest({arrays})", sql)


def _as_arrays(sql: str, rows: Sequence[Sequence[Any]]) -> tuple[list[Any], ...]:
    columns = zip(*rows, strict=True)
    return tuple(
        [None if value is None else float(value) for value in column] if kind == _FLOAT else list(column)
        for kind, column in zip(_kinds(sql), columns, strict=True)
    )


@cache
def _kinds(sql: str) -> list[str]:
    """Return the types of the columns that an INSERT names."""
    names = sql[sql.index("(") + 1 : sql.index(")")].split(", ")
    return [_FLOAT if name == "duration_ms" else "bigint" if name.endswith("position") else "text" for name in names]


def postgres_events(database: str | Path | Database) -> EventLog:
    """Return the events that the sinks of all processes keep on a Postgres server; missing tables are made.

    Raises:
        DatabaseError: It is no Postgres database, or no connection can be had.
    """
    return _log(PostgresTables(database, *POSTGRES_EVENT_TABLES, pool=2))


def _log(tables: PostgresTables) -> EventLog:
    lost = LostWork()

    def write(work: Callable[[Rows], None]) -> None:
        with tables.transaction(_LOCK) as execute:
            work(lambda sql, values: execute(sql, values).fetchall())

    def read(sql: str, values: Sequence[Any]) -> list[Any]:
        with tables.transaction() as execute:
            return execute(sql, values).fetchall()

    def rows(sql: str, values: Sequence[Any]) -> list[Any]:
        with suppress(DBAPIError):  # a user who may only read
            lost.close(read, write)
        return read(sql, values)

    return EventLog(rows, _WORDS)


def prune_kept_events(database: Database, before: datetime, *, dry_run: bool) -> int:
    """Remove the events of calls and runs that ended before a time, and return how many calls and runs there were.

    Raises:
        DatabaseError: No connection can be had.
    """
    if database.path is not None:
        return prune_sqlite_events(database.path, before, dry_run=dry_run)
    tables = PostgresTables(database, *POSTGRES_EVENT_TABLES, pool=1)
    try:
        return prune_events(partial(tables.transaction, _LOCK), before, dry_run=dry_run)
    finally:
        tables.close()


# --- of a worker

INTERRUPTED = "interrupted"
"""The state of a turn or program whose worker was stopped, or whose process was lost; any worker takes it up again."""


class WorkerSink:
    """A sink of a worker, which calls work `interrupted`, and not cancelled, when the worker is stopped.

    Attributes:
        sink: Keeps the events.
        leaving: Whether the worker stops, and cuts off what does not end in time.
        lost: Whether its work was handed over to others, which emit its events now.
    """

    def __init__(self, sink: SqliteSink | PostgresSink) -> None:
        self.sink = sink
        sink.process = ""  # another worker takes the work up
        self.leaving = self.lost = False

    def emit(self, event: CallEvent) -> None:
        """Take an event of a call."""
        cut_off = self.leaving and event.kind == "ended" and event.data["outcome"]["kind"] == "cancelled"
        if not (self.lost or cut_off):
            self.sink.emit(event)

    def emit_activity(self, event: ActivityEvent) -> None:
        """Take an event of a run."""
        if self.lost:
            return
        is_cut_off = event.kind == "closed" and (
            (self.leaving and event.data["outcome"] == "cancelled")
            or event.data.get("error_type") == SandboxLost.__qualname__  # it is run again
        )
        if is_cut_off:
            event = replace(event, kind="changed", data={"state": INTERRUPTED})
        self.sink.emit_activity(event)


def open_sink(database: Database) -> WorkerSink:
    """Return a worker's sink that keeps events of calls and runs in a database; missing tables are made.

    Raises:
        DatabaseError: No connection can be had.
    """
    return WorkerSink(PostgresSink(database) if database.path is None else SqliteSink(database.path))


def keeps_events_in(sink: object, database: Database) -> bool:
    """Return whether a sink keeps events in this database."""
    if isinstance(sink, WorkerSink):
        sink = sink.sink
    if isinstance(sink, PostgresSink):
        return sink.database == database
    return isinstance(sink, SqliteSink) and database.path is not None and sink.path.resolve() == database.path.resolve()
