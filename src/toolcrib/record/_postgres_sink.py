"""PostgresSink: events of calls and runs on a Postgres server, for processes on many hosts.

Any number of processes write at a time, and take positions from a sequence. So a batch may be committed after one with
later positions, and a follower, who continues after the last position that it has seen, would miss it. Therefore each
transaction that writes first shows a position before all of its own, by an advisory lock on the table and that
position, and a follower reads up to the first of those that are shown. It waits for no transaction but those that write
events, and a lock ends with its transaction, whatever becomes of the process.

Versions up to 0.2 took the next position after the latest event, one transaction at a time. They hold alone the lock
that the transactions of this version share, so that none of them writes beside one of these; and the sequence is moved
behind what they wrote.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from toolcrib.database import Database, Execute, PostgresTables, StoreTables, take_lock
from toolcrib.record._batch_sink import BatchSink, RecordedEvent
from toolcrib.record._event_log import EventLog, event_log
from toolcrib.record._event_tables import EVENT_TABLES, write_events
from toolcrib.record._word_index import POSTGRES_WORDS

_FLOAT = "double precision"
_VALUES = re.compile(r"VALUES \([?, ]+\)")
_SEQUENCE = "toolcrib_event_positions"
_POSITIONS = StoreTables(  # not a version of `events`: a worker of the version before goes on beside this one
    "event positions", ((f"CREATE SEQUENCE IF NOT EXISTS {_SEQUENCE} OWNED BY toolcrib_events.position",),)
)
POSTGRES_EVENT_TABLES = (EVENT_TABLES, POSTGRES_WORDS.tables, _POSITIONS)
"""The tables of `PostgresSink`."""
_GIVEN = "last_value - (NOT is_called)::int"  # the last position that the sequence has given
_LATEST = "SELECT COALESCE(MAX(position), 0) AS latest FROM toolcrib_events"
_BITS = 2**31 - 1  # of a position are in the second part of a lock: enough for those near the latest
_TAKE = f"""WITH shown AS MATERIALIZED (
    SELECT pg_advisory_xact_lock_shared('toolcrib_events'::regclass::oid::int, (({_GIVEN}) & {_BITS})::int)
    FROM {_SEQUENCE} WHERE {_GIVEN} >= ({_LATEST}))
    SELECT nextval('{_SEQUENCE}') FROM shown CROSS JOIN generate_series(1, ?)"""
_CATCH_UP = f"""SELECT setval('{_SEQUENCE}', latest) FROM ({_LATEST}) AS events CROSS JOIN {_SEQUENCE}
    WHERE {_GIVEN} < latest"""
# The latest event is looked up before the locks are, as a statement's view of tables is older than all that it calls.
_HORIZON = f"""SELECT latest - COALESCE((SELECT MAX((latest - objid::bigint) & {_BITS}) FROM pg_locks
    WHERE locktype = 'advisory' AND objsubid = 2 AND classid = 'toolcrib_events'::regclass
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND (latest - objid::bigint) & {_BITS} <= {_BITS // 2}), 0), latest FROM ({_LATEST}) AS events"""
_DEADLOCK = "40P01"


class PostgresSink(BatchSink):
    """Keeps events of calls and runs on a Postgres server; it does what `SqliteSink` does.

    It needs the extra `postgres`.

    Args:
        database: Its URL, or what `Database.named` made of one. Missing tables are made.

    Attributes:
        process: The process whose end is the end of the calls and runs; this one when None, empty for durable work.

    Raises:
        DatabaseError: It is not a Postgres database, or it cannot be connected to.
    """

    process: str | None = None

    def __init__(self, database: str | Path | Database) -> None:
        self._tables = PostgresTables(database, *POSTGRES_EVENT_TABLES, pool=2)
        self.database = self._tables.database
        super().__init__(self._write_batch)

    def log(self) -> EventLog:
        """Return a log of the database, this sink's latest events included."""
        self.flush()
        return event_log(self._tables, POSTGRES_WORDS, _HORIZON)

    def close(self) -> None:
        """Write the remaining events, and close the connections; closing twice does nothing."""
        super().close()
        self._tables.close()

    def _write_batch(self, batch: Sequence[RecordedEvent]) -> None:
        while True:
            try:
                return self._write_once(batch)
            except self._tables.error as error:  # two batches that change the same calls, and each waits for the other
                if getattr(getattr(error, "orig", None), "sqlstate", None) != _DEADLOCK:
                    raise

    def _write_once(self, batch: Sequence[RecordedEvent]) -> None:
        with self._tables.transaction(write=True) as execute:
            write_events(
                batch,
                _take_positions(execute, len(batch)),
                lambda sql, values: execute(sql, values).fetchall(),
                lambda sql, rows: execute(_of_arrays(sql), _as_arrays(sql, rows)),
                self.process,
            )


def _take_positions(execute: Execute, count: int) -> list[int]:
    """Return so many positions in ascending order, after a position before them is shown to readers."""
    while not (rows := execute(_TAKE, (count,)).fetchall()):  # the sequence is new, or a version up to 0.2 has written
        take_lock(execute, _POSITIONS.lock)
        execute(_CATCH_UP, ())
    return sorted(int(position) for (position,) in rows)


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
        DatabaseError: It is not a Postgres database, or it cannot be connected to.
    """
    return event_log(PostgresTables(database, *POSTGRES_EVENT_TABLES, pool=2), POSTGRES_WORDS, _HORIZON)
