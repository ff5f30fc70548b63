"""PostgresSink: events of calls and runs on a Postgres server, as SqliteSink keeps them in a file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from toolcrib.adapters.dbos._database import Database
from toolcrib.adapters.dbos._pool import Pool
from toolcrib.record import EVENT_TABLES, BatchSink, EventLog, Rows, Told, write_events

__all__ = ["PostgresSink", "postgres_events"]

_LOCK = "toolcrib: events"  # held by whoever writes, so that positions become visible in order


class PostgresSink(BatchSink):
    """Keeps events of calls and runs on a Postgres server; it does what `SqliteSink` does.

    Args:
        database: Its URL, or what `Database.named` made of one. Missing tables are made.

    Raises:
        DatabaseError: It is no Postgres database, or no connection can be had.
    """

    def __init__(self, database: str | Path | Database) -> None:
        self._pool = Pool(database, EVENT_TABLES, size=2)
        super().__init__(self._write_batch)

    @property
    def database(self) -> Database:
        """Where it keeps them."""
        return self._pool.database

    def log(self) -> EventLog:
        """Return what the database holds, this sink's latest events included."""
        self.flush()
        return EventLog(_reader(self._pool))

    def close(self) -> None:
        """Write what is left, and close the connections; closing twice does nothing."""
        super().close()
        self._pool.close()

    def _write_batch(self, batch: Sequence[Told]) -> None:
        with self._pool.transaction(lock=_LOCK) as connection:

            def rows(sql: Any, values: Sequence[Any]) -> list[Any]:
                return connection.execute(_postgres(sql), values).fetchall()

            def each(sql: str, values: Sequence[Sequence[Any]]) -> None:
                with connection.cursor() as cursor:
                    cursor.executemany(_postgres(sql), values)

            write_events(batch, rows, each)


def postgres_events(database: str | Path | Database) -> EventLog:
    """Return what the sinks of all processes kept on a Postgres server; missing tables are made.

    Raises:
        DatabaseError: It is no Postgres database, or no connection can be had.
    """
    return EventLog(_reader(Pool(database, EVENT_TABLES, size=2)))


def _reader(pool: Pool) -> Rows:
    def rows(sql: str, values: Sequence[Any]) -> list[Any]:
        with pool.transaction() as connection:
            return connection.execute(_postgres(sql), values).fetchall()

    return rows


def _postgres(sql: str) -> Any:
    """Return a statement with psycopg's marks for values; ours hold no question mark besides."""
    return sql.replace("%", "%%").replace("?", "%s")
