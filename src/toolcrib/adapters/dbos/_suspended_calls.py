"""PostgresSuspendedCalls: calls that wait for a person, on a Postgres server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Collection
from typing import Any, TypeVar, cast

from toolcrib.adapters.dbos._database import Database
from toolcrib.adapters.dbos._pool import Connection, Pool
from toolcrib.approvals import SuspendedCall
from toolcrib.approvals._suspended_calls import MOST_SUSPENDED

__all__ = ["PostgresSuspendedCalls"]

T = TypeVar("T")

_TABLES = (
    """CREATE TABLE IF NOT EXISTS toolcrib_waiting (
        key TEXT PRIMARY KEY, principal TEXT NOT NULL, tool TEXT NOT NULL, requests TEXT NOT NULL,
        state TEXT NOT NULL, since TEXT NOT NULL)""",
    "CREATE INDEX IF NOT EXISTS toolcrib_waiting_by_principal ON toolcrib_waiting (principal, since)",
)


class PostgresSuspendedCalls:
    """Calls that wait, on a Postgres server: for processes on many hosts. Made by `PostgresApprovalStore`."""

    def __init__(self, database: Database) -> None:
        self._pool = Pool(database, _TABLES, size=2)

    async def keep(self, call: SuspendedCall) -> None:
        """Keep a call, in place of the one with its key."""

        def write(connection: Connection) -> None:
            connection.execute(
                "INSERT INTO toolcrib_waiting (key, principal, tool, requests, state, since) "
                "VALUES (%s, %s, %s, %s, %s, %s) ON CONFLICT (key) DO UPDATE "
                "SET requests = excluded.requests, state = excluded.state, since = excluded.since",
                call.to_row(),
            )
            connection.execute(
                "DELETE FROM toolcrib_waiting WHERE principal = %s AND key NOT IN "
                "(SELECT key FROM toolcrib_waiting WHERE principal = %s ORDER BY since DESC LIMIT %s)",
                (call.principal, call.principal, MOST_SUSPENDED),
            )

        await self._run(write)

    async def find(self, key: str) -> SuspendedCall | None:
        """Return the call with this key."""
        return await self._run(lambda connection: _first(connection, "key = %s", key))

    async def find_request(self, principal: str, request_id: str) -> SuspendedCall | None:
        """Return the call of a principal that waits for this question."""
        quoted = json.dumps(request_id)
        where = "principal = %s AND position(%s IN requests) > 0"
        return await self._run(lambda connection: _first(connection, where, principal, quoted))

    async def drop(self, key: str, requests: Collection[str]) -> None:
        """Forget the call with this key, if it still waits for these questions and not for later ones."""

        def write(connection: Connection) -> None:
            kept = _first(connection, "key = %s", key, lock="FOR UPDATE")
            if kept is not None and set(kept.requests) == set(requests):
                connection.execute("DELETE FROM toolcrib_waiting WHERE key = %s", (key,))

        await self._run(write)

    async def tools(self) -> frozenset[str]:
        """Return the tools of which calls wait."""

        def read(connection: Connection) -> frozenset[str]:
            return frozenset(tool for (tool,) in connection.execute("SELECT DISTINCT tool FROM toolcrib_waiting"))

        return await self._run(read)

    async def _run(self, work: Callable[[Connection], T]) -> T:
        def run() -> T:
            with self._pool.transaction() as connection:
                return work(connection)

        return await asyncio.to_thread(run)


def _first(connection: Connection, where: str, *values: str, lock: str = "") -> SuspendedCall | None:
    columns = "key, principal, tool, requests, state, since"
    query: Any = f"SELECT {columns} FROM toolcrib_waiting WHERE {where} ORDER BY since LIMIT 1 {lock}"
    row = connection.execute(query, values).fetchone()
    return None if row is None else SuspendedCall.from_row(cast("tuple[str, str, str, str, str, str]", row))
