"""PostgresApprovalStore: requests, answers and standing grants on a Postgres server, for processes on many hosts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from toolcrib.adapters.dbos._database import Database
from toolcrib.adapters.dbos._pool import Connection, Pool
from toolcrib.adapters.dbos._suspended_calls import PostgresSuspendedCalls
from toolcrib.approvals import ApprovalEntry, SuspendedCallStore
from toolcrib.approvals._ledger_store import KeptLedger, LedgerStore, entry_of, grant_of, row_of, text_of
from toolcrib.calls import Grant

__all__ = ["PostgresApprovalStore"]

T = TypeVar("T")

_LOCK = "toolcrib: approvals"
_TABLES = (
    """CREATE TABLE IF NOT EXISTS toolcrib_requests (
        number BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, id TEXT NOT NULL UNIQUE, call_id TEXT NOT NULL,
        request TEXT NOT NULL, answer TEXT, used_at TEXT)""",
    "CREATE INDEX IF NOT EXISTS toolcrib_requests_by_call ON toolcrib_requests (call_id)",
    "CREATE INDEX IF NOT EXISTS toolcrib_requests_unused ON toolcrib_requests (number) WHERE used_at IS NULL",
    """CREATE TABLE IF NOT EXISTS toolcrib_standing (
        number BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, tool TEXT NOT NULL, answer TEXT NOT NULL)""",
    "CREATE INDEX IF NOT EXISTS toolcrib_standing_by_tool ON toolcrib_standing (tool)",
)


class PostgresApprovalStore(LedgerStore):
    """An approval store on a Postgres server; it does what `SqliteApprovalStore` does.

    A grant is used up in the transaction that looks it up, before its tool runs, and writers come one after another:
    of any number of processes one gets the grant.

    Args:
        database: Its URL, or what `Database.named` made of one. Missing tables are made.

    Raises:
        DatabaseError: It is no Postgres database, or no connection can be had.
    """

    def __init__(self, database: str | Path | Database) -> None:
        self._pool = Pool(database, _TABLES)

    @property
    def database(self) -> Database:
        """Where it keeps them."""
        return self._pool.database

    def suspended_calls(self) -> SuspendedCallStore:
        """Return where the calls wait whose questions are here, for a server that takes them up again."""
        return PostgresSuspendedCalls(self.database)

    def close(self) -> None:
        """Close its connections; it opens others when it is used again."""
        self._pool.close()

    async def _read(self, work: Callable[[KeptLedger], T]) -> T:
        return await asyncio.to_thread(self._run, None, work)

    async def _write(self, work: Callable[[KeptLedger], T]) -> T:
        return await asyncio.to_thread(self._run, _LOCK, work)

    def _run(self, lock: str | None, work: Callable[[KeptLedger], T]) -> T:
        with self._pool.transaction(lock=lock) as connection:
            return work(_PostgresLedger(connection))


class _PostgresLedger:
    """The tables inside one transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def entry(self, request_id: str) -> ApprovalEntry | None:
        return next(iter(self._entries("WHERE id = %s", request_id)), None)

    def entries_of(self, call_id: str) -> list[ApprovalEntry]:
        return self._entries("WHERE call_id = %s", call_id)

    def entries(self, *, unused: bool) -> list[ApprovalEntry]:
        return self._entries("WHERE used_at IS NULL" if unused else "")

    def _entries(self, where: str, *values: str) -> list[ApprovalEntry]:
        rows = self._rows(f"SELECT request, answer, used_at FROM toolcrib_requests {where} ORDER BY number", values)
        return [entry_of(*row) for row in rows]

    def write(self, entry: ApprovalEntry) -> None:
        self._connection.execute(
            "INSERT INTO toolcrib_requests (id, call_id, request, answer, used_at) VALUES (%s, %s, %s, %s, %s) "
            "ON CONFLICT (id) DO UPDATE SET answer = excluded.answer, used_at = excluded.used_at",
            row_of(entry),
        )

    def standing(self, tool: str | None) -> list[Grant]:
        where, values = ("", ()) if tool is None else ("WHERE tool = %s", (tool,))
        rows = self._rows(f"SELECT answer FROM toolcrib_standing {where} ORDER BY number", values)
        return [grant_of(answer) for (answer,) in rows]

    def stand(self, grant: Grant) -> None:
        self._connection.execute(
            "INSERT INTO toolcrib_standing (tool, answer) VALUES (%s, %s)", (grant.tool, text_of(grant))
        )

    def revoke(self, grant: Grant) -> bool:
        removed = self._connection.execute("DELETE FROM toolcrib_standing WHERE answer = %s", (text_of(grant),))
        return removed.rowcount > 0

    def _rows(self, sql: Any, values: tuple[str, ...]) -> list[tuple[Any, ...]]:
        return self._connection.execute(sql, values).fetchall()
