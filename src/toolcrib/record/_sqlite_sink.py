"""SqliteSink: events of calls and runs in a SQLite file that several processes write and read."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import closing, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

from toolcrib._sqlite import sqlite3
from toolcrib._tables import StoreTables, make_file
from toolcrib.record._batch_sink import BatchSink, RecordedEvent
from toolcrib.record._event_log import EventLog
from toolcrib.record._event_tables import EVENT_TABLES, Rows, write_events
from toolcrib.record._lost import LostWork
from toolcrib.record._word_index import SQLITE_WORDS, WordIndex

__all__ = ["SqliteSink", "sqlite_event_tables", "sqlite_events"]

_BUSY_SECONDS = 30.0  # how long to wait for another process's write


class SqliteSink(BatchSink):
    """Keeps events of calls and runs in a SQLite file, which may be the one that holds the approvals, too.

    It is what the console shows. A call does not wait for the disk: a thread writes what came within some 20 ms at
    once. The end of the process, `close` and `flush` wait for it. The file holds what people and models wrote, so it is
    made for its owner alone to read.

    Args:
        path: The file; it is made when missing, and added to. Its folder has to be on a local disk.

    Attributes:
        process: The process whose end is the end of the calls and runs; this one when None, empty for durable work.

    Raises:
        ValueError: The path is no file.
        OSError: The file cannot be made.
    """

    process: str | None = None

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        _make_tables(self.path)
        self._connection: sqlite3.Connection | None = None
        super().__init__(self._write_events, self._connected)

    def log(self) -> EventLog:
        """Return what the file holds, this sink's latest events included."""
        self.flush()
        return sqlite_events(self.path)

    @contextmanager
    def _connected(self) -> Generator[None]:
        with closing(_connect(self.path, shared=True)) as connection:
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
            write_events(events, rows, connection.executemany, self.process)
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:  # of a full disk, SQLite has rolled back by itself
                connection.execute("ROLLBACK")
            raise


def sqlite_events(path: str | Path) -> EventLog:
    """Return what the sinks of all processes kept in a file; it is made when missing.

    Raises:
        ValueError: The path is no file.
        OSError: The file cannot be made.
    """
    path, lost = Path(path), LostWork()
    words = _make_tables(path)

    def rows(sql: str, values: Sequence[Any]) -> list[Any]:
        with closing(_connect(path)) as connection:  # quick, and neither threads nor forks make a difference
            run: Rows = lambda sql, values: connection.execute(sql, values).fetchall()  # noqa: E731
            with suppress(sqlite3.OperationalError):  # a file that may only be read
                lost.close(run, lambda work: work(run))
            return run(sql, values)

    return EventLog(rows, words)


def _connect(path: Path, *, shared: bool = False) -> sqlite3.Connection:
    """Return a connection, for this thread alone unless it is shared by threads that take turns."""
    return sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=not shared)


def _make_tables(path: Path) -> WordIndex | None:
    """Make what is missing; return the index of words, or None for a SQLite library that was built without FTS5."""
    if str(path) in ("", ".", ":memory:"):
        raise ValueError("events are kept in a file; name one: SqliteSink('toolcrib.db')")
    for tables in sqlite_event_tables():
        make_file(path, tables)
    return SQLITE_WORDS if _has_fts5() else None


def sqlite_event_tables() -> tuple[StoreTables, ...]:
    """Return the tables of a file: those of events, and of their words where the SQLite library has FTS5."""
    return (EVENT_TABLES, SQLITE_WORDS.tables) if _has_fts5() else (EVENT_TABLES,)


@cache
def _has_fts5() -> bool:
    with closing(sqlite3.connect(":memory:")) as connection:
        return connection.execute("SELECT 1 FROM pragma_module_list WHERE name = 'fts5'").fetchone() is not None
