"""PostgresSink: events of calls and runs on a Postgres server, for processes on many hosts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from toolcrib.database import Database, PostgresTables
from toolcrib.record._batch_sink import BatchSink, RecordedEvent
from toolcrib.record._event_log import EventLog, event_log
from toolcrib.record._event_tables import EVENT_TABLES, write_events
from toolcrib.record._word_index import POSTGRES_WORDS

_FLOAT = "double precision"
_VALUES = re.compile(r"VALUES \([?, ]+\)")
POSTGRES_EVENT_TABLES = (EVENT_TABLES, POSTGRES_WORDS.tables)
"""The tables of `PostgresSink`."""


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
        return event_log(self._tables, POSTGRES_WORDS)

    def close(self) -> None:
        """Write the remaining events, and close the connections; closing twice does nothing."""
        super().close()
        self._tables.close()

    def _write_batch(self, batch: Sequence[RecordedEvent]) -> None:
        with self._tables.transaction(write=True) as execute:
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
        DatabaseError: It is not a Postgres database, or it cannot be connected to.
    """
    return event_log(PostgresTables(database, *POSTGRES_EVENT_TABLES, pool=2), POSTGRES_WORDS)
