"""Approval requests, answers and standing grants in a SQLite file, which outlives the process and serves several.

Each operation opens the file, does its work in one transaction and closes it, in a worker thread: the event loop never
waits for a disk or for another process's lock, there is nothing to close, and neither a fork nor a second event loop
makes a difference. It costs a few milliseconds, and a person takes longer.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path

from toolcrib._sqlite import sqlite3, write_ahead
from toolcrib.approvals._sql_store import Execute, SqlApprovalStore

__all__ = ["SqliteApprovalStore"]

_BUSY_SECONDS = 30.0  # how long to wait for another process's write
_VERSION = 1
_SCHEMA = """
CREATE TABLE IF NOT EXISTS requests (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    call_id TEXT NOT NULL,
    request TEXT NOT NULL,
    answer TEXT,
    used_at TEXT
);
CREATE INDEX IF NOT EXISTS requests_by_call ON requests (call_id);
CREATE INDEX IF NOT EXISTS requests_unused ON requests (number) WHERE used_at IS NULL;
CREATE TABLE IF NOT EXISTS standing (number INTEGER PRIMARY KEY, tool TEXT NOT NULL, answer TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS standing_by_tool ON standing (tool);
"""


class SqliteApprovalStore(SqlApprovalStore):
    """An approval store in a SQLite file.

    A grant is used up in the transaction that looks it up, before its tool runs: should the process die in between, the
    call is not made, and never twice. The file holds what people typed, so it is made for its owner alone to read.

    Args:
        path: The file; it is made when missing. Its folder has to be on a local disk.

    Raises:
        ValueError: The path is no file, or a newer version of Toolcrib wrote it.
    """

    def __init__(self, path: str | Path) -> None:
        if str(path) in ("", ":memory:"):
            raise ValueError("this store is for a file; MemoryApprovalStore keeps approvals in memory")
        self.path = Path(path)
        if not self.path.exists():
            os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600))
        with self._connection() as connection:
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            if version > _VERSION:
                raise ValueError(f"{self.path} was written by a newer version of Toolcrib (format {version})")
            if version < _VERSION:
                write_ahead(connection, _BUSY_SECONDS)
                connection.executescript(f"BEGIN IMMEDIATE; {_SCHEMA} PRAGMA user_version = {_VERSION}; COMMIT;")

    # --- inside

    @contextmanager
    def _connection(self) -> Generator[sqlite3.Connection]:
        with closing(sqlite3.connect(self.path, timeout=_BUSY_SECONDS, isolation_level=None)) as connection:
            yield connection

    @contextmanager
    def _transaction(self, *, write: bool) -> Generator[Execute]:
        with self._connection() as connection:
            connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")  # closing without COMMIT takes all back
            yield connection.execute
            connection.execute("COMMIT")
