"""Approvals of durable work: the store of a database, and the one on a Postgres server, for processes on many hosts."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path

from toolcrib._tables import Execute, StoreTables
from toolcrib.adapters.dbos._database import Database, PostgresTables
from toolcrib.approvals import SqlApprovalStore, SqliteApprovalStore, SuspendedCallStore
from toolcrib.serving import SUSPENDED_CALL_TABLES, SqlSuspendedCalls

__all__ = ["POSTGRES_APPROVAL_TABLES", "PostgresApprovalStore", "open_store"]

_LOCK = "toolcrib: approvals"
POSTGRES_APPROVAL_TABLES = StoreTables(
    "approvals",
    (
        (
            """CREATE TABLE IF NOT EXISTS toolcrib_requests (
                number BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, id TEXT NOT NULL UNIQUE, call_id TEXT NOT NULL,
                request TEXT NOT NULL, answer TEXT, used_at TEXT)""",
            "CREATE INDEX IF NOT EXISTS toolcrib_requests_by_call ON toolcrib_requests (call_id)",
            "CREATE INDEX IF NOT EXISTS toolcrib_requests_unused ON toolcrib_requests (number) WHERE used_at IS NULL",
            """CREATE TABLE IF NOT EXISTS toolcrib_standing (
                number BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, tool TEXT NOT NULL, answer TEXT NOT NULL)""",
            "CREATE INDEX IF NOT EXISTS toolcrib_standing_by_tool ON toolcrib_standing (tool)",
        ),
        (
            "ALTER TABLE toolcrib_requests ADD COLUMN in_doubt INTEGER NOT NULL DEFAULT 0",
            """UPDATE toolcrib_requests SET in_doubt = 1 WHERE used_at IS NULL AND request LIKE '%"in_doubt": true%'""",
            """CREATE INDEX toolcrib_requests_unanswered ON toolcrib_requests (in_doubt)
                WHERE used_at IS NULL AND answer IS NULL""",
            """CREATE INDEX toolcrib_requests_answered ON toolcrib_requests (number)
                WHERE used_at IS NULL AND answer IS NOT NULL""",
        ),
        ("CREATE TABLE toolcrib_approvers (name TEXT PRIMARY KEY, token TEXT NOT NULL UNIQUE)",),
        (
            "ALTER TABLE toolcrib_requests ADD COLUMN execution TEXT",
            "ALTER TABLE toolcrib_requests ADD COLUMN digest TEXT NOT NULL DEFAULT ''",
            "ALTER TABLE toolcrib_requests ADD COLUMN unended INTEGER NOT NULL DEFAULT 0",
            "CREATE INDEX toolcrib_requests_begun ON toolcrib_requests (digest) WHERE execution IS NOT NULL",
            "CREATE INDEX toolcrib_requests_unended ON toolcrib_requests (number) WHERE unended = 1",
            "CREATE TABLE toolcrib_claims (work TEXT PRIMARY KEY, claim TEXT NOT NULL, ended_at TEXT)",
        ),
        (
            """CREATE TABLE toolcrib_sessions (id TEXT PRIMARY KEY, number INTEGER NOT NULL, state TEXT NOT NULL,
                is_open INTEGER NOT NULL, saved_at TEXT NOT NULL)""",
        ),
    ),
)
"""The tables of `PostgresApprovalStore`."""


class PostgresApprovalStore(SqlApprovalStore):
    """An approval store on a Postgres server; it does what `SqliteApprovalStore` does.

    A grant is used up in a transaction right before its tool runs, and writers come one after another: of any number of
    processes one executes the call.

    Args:
        database: Its URL, or what `Database.named` made of one. Missing tables are made.

    Raises:
        DatabaseError: It is no Postgres database, or no connection can be had.
    """

    table_prefix = "toolcrib_"

    def __init__(self, database: str | Path | Database) -> None:
        self._tables = PostgresTables(database, POSTGRES_APPROVAL_TABLES)

    @property
    def database(self) -> Database:
        """The database."""
        return self._tables.database

    def suspended_calls(self) -> SuspendedCallStore:
        """Return the store of the suspended calls whose requests are here."""
        return SqlSuspendedCalls(PostgresTables(self.database, SUSPENDED_CALL_TABLES, pool=2).transaction)

    def close(self) -> None:
        """Close the connections; the store opens others when it is used again."""
        self._tables.close()

    def _transaction(self, *, write: bool) -> AbstractContextManager[Execute]:
        return self._tables.transaction(_LOCK if write else None)


def open_store(database: str | Path | Database | None = None) -> SqliteApprovalStore | PostgresApprovalStore:
    """Return the approvals that are kept in a database, made when there are none yet.

    Raises:
        DatabaseError: No connection can be had.
    """
    named = database if isinstance(database, Database) else Database.named(database)
    return PostgresApprovalStore(named) if named.path is None else SqliteApprovalStore(named.path)
