"""Results in a SQLite file, which outlives the process and serves several, or in the memory of this process."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Generator
from contextlib import closing, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TypedDict, Unpack

from toolcrib._sqlite import sqlite3
from toolcrib._tables import Execute, StoreTables, make_file
from toolcrib.results._store import ResultStore

__all__ = ["SQLITE_RESULT_TABLES", "MemoryResultStore", "ResultStoreOptions", "SqliteResultStore", "result_tables"]

_BUSY_SECONDS = 30.0  # how long to wait for another process's write


def result_tables(data: str) -> StoreTables:
    """Return the tables of a result store, with the database's name for a column of bytes."""
    return StoreTables(
        "results",
        (
            (
                """CREATE TABLE IF NOT EXISTS toolcrib_results (handle TEXT PRIMARY KEY, identity TEXT UNIQUE,
                    principal TEXT NOT NULL, tool TEXT NOT NULL, created DOUBLE PRECISION NOT NULL,
                    expires DOUBLE PRECISION NOT NULL, chars BIGINT NOT NULL, size BIGINT NOT NULL,
                    form TEXT NOT NULL, counts TEXT NOT NULL, shape TEXT NOT NULL)""",
                "CREATE INDEX IF NOT EXISTS toolcrib_results_by_principal ON toolcrib_results (principal, created)",
                "CREATE INDEX IF NOT EXISTS toolcrib_results_by_expiry ON toolcrib_results (expires)",
                f"""CREATE TABLE IF NOT EXISTS toolcrib_result_pieces (handle TEXT NOT NULL, number BIGINT NOT NULL,
                    start BIGINT NOT NULL, form TEXT NOT NULL, member TEXT NOT NULL, first BIGINT NOT NULL,
                    count BIGINT NOT NULL, data {data} NOT NULL, PRIMARY KEY (handle, number))""",
            ),
        ),
    )


SQLITE_RESULT_TABLES = result_tables("BLOB")
"""The tables of `SqliteResultStore`."""


class ResultStoreOptions(TypedDict, total=False):
    """The keywords of every result store; see `ResultStore` for what each means."""

    max_result_chars: int | None
    expires: timedelta
    max_bytes: int
    max_principal_bytes: int


class SqliteResultStore(ResultStore):
    """A result store in a SQLite file, made for its owner alone to read.

    Args:
        path: The file; it is made when missing. It may be that of approvals and records. Its folder has to be on a
            local disk.
        options: Those of `ResultStore`.

    Raises:
        ValueError: The path is no file.
        DatabaseError: A newer version of Toolcrib wrote it.
    """

    def __init__(self, path: str | Path, **options: Unpack[ResultStoreOptions]) -> None:
        super().__init__(**options)
        if str(path) in ("", ":memory:"):
            raise ValueError("this store is for a file; MemoryResultStore keeps results in memory")
        self.path = Path(path)
        if self.path.is_dir():
            raise ValueError(f"{path} is a folder; name a file in it: {self.path / 'toolcrib.db'}")
        make_file(self.path, SQLITE_RESULT_TABLES)

    @contextmanager
    def _transaction(self, *, write: bool) -> Generator[Execute]:
        with closing(sqlite3.connect(self.path, timeout=_BUSY_SECONDS, isolation_level=None)) as connection:
            connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")  # closing without COMMIT takes all back
            yield connection.execute
            connection.execute("COMMIT")


class MemoryResultStore(ResultStore):
    """A result store in memory, for one process.

    Args:
        options: Those of `ResultStore`; it holds 250 MB unless they say otherwise.
    """

    def __init__(self, **options: Unpack[ResultStoreOptions]) -> None:
        smaller: ResultStoreOptions = {"max_bytes": 250_000_000, "max_principal_bytes": 125_000_000, **options}
        super().__init__(**smaller)
        self._lock = threading.Lock()
        self._connection = sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None)
        weakref.finalize(self, self._connection.close)
        SQLITE_RESULT_TABLES.make(self._connection.execute, "sqlite", "memory")

    @contextmanager
    def _transaction(self, *, write: bool) -> Generator[Execute]:
        with self._lock:
            self._connection.execute("BEGIN")
            try:
                yield self._connection.execute
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")
