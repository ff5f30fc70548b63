"""SqliteSink: events of calls and runs in a SQLite file that several processes write and read."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path

from toolcrib._short_repr import FileRepr
from toolcrib.database import SqliteConnection, SqliteTables, StoreTables, connect_file
from toolcrib.record._batch_sink import BatchSink, RecordedEvent
from toolcrib.record._event_log import EventLog, event_log
from toolcrib.record._event_tables import EVENT_TABLES, Rows, write_events
from toolcrib.record._word_index import SQLITE_WORDS

_NEXT = "SELECT COALESCE(MAX(position), 0) + 1 FROM toolcrib_events"


class SqliteSink(FileRepr, BatchSink):
    """Keeps events of calls and runs in a SQLite file, which may be the one that holds the approvals, too.

    It is what the console shows. A call does not wait for the disk: a thread writes what came within some 20 ms at
    once. The end of the process, `close` and `flush` wait for it. The file holds what people and models wrote, so it is
    made for its owner alone to read.

    Args:
        path: The file; it is made when missing, and added to. Its folder has to be on a local disk.

    Attributes:
        process: The process whose end is the end of the calls and runs; this one when None, empty for durable work.

    Raises:
        DatabaseError: The path is not that of a file that can be used.
    """

    process: str | None = None

    def __init__(self, path: str | Path) -> None:
        self.path = SqliteTables(path, *sqlite_event_tables()).path
        self._connection: SqliteConnection | None = None
        super().__init__(self._write_events, self._connected)

    def log(self) -> EventLog:
        """Return the events in the file, the latest of this sink included."""
        self.flush()
        return sqlite_events(self.path)

    @contextmanager
    def _connected(self) -> Generator[None]:
        with closing(connect_file(self.path, shared=True)) as connection:
            connection.execute("PRAGMA synchronous = NORMAL")  # a crash of the process loses nothing that is written
            self._connection = connection
            try:
                yield
            finally:
                self._connection = None

    def _write_events(self, events: Sequence[RecordedEvent]) -> None:
        connection = self._connection
        if connection is None:
            raise RuntimeError("a batch is written inside `_connected`")
        connection.execute("BEGIN IMMEDIATE")
        try:
            rows: Rows = lambda sql, values: connection.execute(sql, values).fetchall()  # noqa: E731
            ((first,),) = rows(_NEXT, ())
            write_events(events, range(first, first + len(events)), rows, connection.executemany, self.process)
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:  # of a full disk, SQLite has rolled back by itself
                connection.execute("ROLLBACK")
            raise


def sqlite_events(path: str | Path) -> EventLog:
    """Return the events that the sinks of all processes wrote to a file, which is created when missing.

    Raises:
        DatabaseError: The path is not that of a file that can be used.
    """
    return event_log(SqliteTables(path, *sqlite_event_tables()), SQLITE_WORDS if _has_fts5() else None)


def sqlite_event_tables() -> tuple[StoreTables, ...]:
    """Return the tables of a file: those of events, and of their words where the SQLite library has FTS5."""
    return (EVENT_TABLES, SQLITE_WORDS.tables) if _has_fts5() else (EVENT_TABLES,)


@cache
def _has_fts5() -> bool:
    with closing(connect_file(":memory:")) as connection:
        return connection.execute("SELECT 1 FROM pragma_module_list WHERE name = 'fts5'").fetchone() is not None
