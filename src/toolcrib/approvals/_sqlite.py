"""Approval requests, answers and standing grants in a SQLite file, which outlives the process and serves several.

Each operation opens the file, does its work in one transaction and closes it, in a worker thread: the event loop never
waits for a disk or for another process's lock, there is nothing to close, and neither a fork nor a second event loop
makes a difference. It costs a few milliseconds, and a person takes longer.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path

from toolcrib._sqlite import sqlite3
from toolcrib._tables import Execute, StoreTables, make_file
from toolcrib.approvals._sql_store import SqlApprovalStore

__all__ = ["SQLITE_APPROVAL_TABLES", "SqliteApprovalStore"]

_BUSY_SECONDS = 30.0  # how long to wait for another process's write
SQLITE_APPROVAL_TABLES = StoreTables(
    "approvals",
    (
        (
            """CREATE TABLE IF NOT EXISTS requests (number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE,
                call_id TEXT NOT NULL, request TEXT NOT NULL, answer TEXT, used_at TEXT)""",
            "CREATE INDEX IF NOT EXISTS requests_by_call ON requests (call_id)",
            "CREATE INDEX IF NOT EXISTS requests_unused ON requests (number) WHERE used_at IS NULL",
            """CREATE TABLE IF NOT EXISTS standing (
                number INTEGER PRIMARY KEY, tool TEXT NOT NULL, answer TEXT NOT NULL)""",
            "CREATE INDEX IF NOT EXISTS standing_by_tool ON standing (tool)",
        ),
        (
            "ALTER TABLE requests ADD COLUMN in_doubt INTEGER NOT NULL DEFAULT 0",
            """UPDATE requests SET in_doubt = 1 WHERE used_at IS NULL AND request LIKE '%"in_doubt": true%'""",
            """CREATE INDEX requests_unanswered ON requests (in_doubt)
                WHERE used_at IS NULL AND answer IS NULL""",
            """CREATE INDEX requests_answered ON requests (number)
                WHERE used_at IS NULL AND answer IS NOT NULL""",
        ),
        ("CREATE TABLE approvers (name TEXT PRIMARY KEY, token TEXT NOT NULL UNIQUE)",),
        (
            "ALTER TABLE requests ADD COLUMN execution TEXT",
            "ALTER TABLE requests ADD COLUMN digest TEXT NOT NULL DEFAULT ''",
            "ALTER TABLE requests ADD COLUMN unended INTEGER NOT NULL DEFAULT 0",
            "CREATE INDEX requests_begun ON requests (digest) WHERE execution IS NOT NULL",
            "CREATE INDEX requests_unended ON requests (number) WHERE unended = 1",
            "CREATE TABLE claims (work TEXT PRIMARY KEY, claim TEXT NOT NULL, ended_at TEXT)",
        ),
        (
            """CREATE TABLE sessions (id TEXT PRIMARY KEY, number INTEGER NOT NULL, state TEXT NOT NULL,
                is_open INTEGER NOT NULL, saved_at TEXT NOT NULL)""",
        ),
    ),
)
"""The tables of `SqliteApprovalStore`."""


class SqliteApprovalStore(SqlApprovalStore):
    """An approval store in a SQLite file.

    A grant is used up in a transaction right before its tool runs, and another one notes the end with the result: a
    call of which the second is missing is in doubt. The file holds what people typed and what tools returned, so it is
    made for its owner alone to read.

    Args:
        path: The file; it is made when missing. Its folder has to be on a local disk.

    Raises:
        ValueError: The path is no file.
        DatabaseError: A newer version of Toolcrib wrote it.
    """

    def __init__(self, path: str | Path) -> None:
        if str(path) in ("", ":memory:"):
            raise ValueError("this store is for a file; MemoryApprovalStore keeps approvals in memory")
        self.path = Path(path)
        make_file(self.path, SQLITE_APPROVAL_TABLES)

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
