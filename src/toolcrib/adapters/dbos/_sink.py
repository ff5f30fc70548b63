"""Events of calls and runs on a Postgres server, as SqliteSink keeps them in a file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from toolcrib.adapters.dbos._database import Database, PostgresTables
from toolcrib.record import EVENT_TABLES, BatchSink, EventLog, Told, write_events

__all__ = ["PostgresSink", "postgres_events"]

_LOCK = "toolcrib: events"  # held by the writer, so that positions become visible in order


class PostgresSink(BatchSink):
    """Keeps events of calls and runs on a Postgres server; it does what `SqliteSink` does.

    Args:
        database: Its URL, or what `Database.named` made of one. Missing tables are made.

    Raises:
        DatabaseError: It is no Postgres database, or no connection can be had.
    """

    def __init__(self, database: str | Path | Database) -> None:
        self._tables = PostgresTables(database, EVENT_TABLES, pool=2)
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

    def _write_batch(self, batch: Sequence[Told]) -> None:
        with self._tables.transaction(_LOCK) as execute:
            write_events(batch, lambda sql, values: execute(sql, values).fetchall(), execute)


def postgres_events(database: str | Path | Database) -> EventLog:
    """Return the events that the sinks of all processes keep on a Postgres server; missing tables are made.

    Raises:
        DatabaseError: It is no Postgres database, or no connection can be had.
    """
    return _log(PostgresTables(database, EVENT_TABLES, pool=2))


def _log(tables: PostgresTables) -> EventLog:
    def rows(sql: str, values: Sequence[Any]) -> list[Any]:
        with tables.transaction() as execute:
            return execute(sql, values).fetchall()

    return EventLog(rows)
