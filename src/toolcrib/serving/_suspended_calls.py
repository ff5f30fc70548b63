"""Calls that wait for a person, kept until the same call is made again."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Collection
from contextlib import closing
from pathlib import Path
from typing import TypeVar

from toolcrib._sqlite import sqlite3
from toolcrib.approvals import (
    ApprovalStore,
    KeepsSuspendedCalls,
    SqliteApprovalStore,
    SuspendedCall,
    SuspendedCallStore,
)
from toolcrib.approvals._suspended_calls import MOST_SUSPENDED

__all__ = ["MemorySuspendedCalls", "SqliteSuspendedCalls", "waiting_calls_beside"]

T = TypeVar("T")

_BUSY_SECONDS = 30.0
_SCHEMA = """
CREATE TABLE IF NOT EXISTS mcp_waiting (
    key TEXT PRIMARY KEY,
    principal TEXT NOT NULL,
    tool TEXT NOT NULL,
    requests TEXT NOT NULL,
    state TEXT NOT NULL,
    since TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS mcp_waiting_by_principal ON mcp_waiting (principal, since);
"""


def waiting_calls_beside(approvals: ApprovalStore) -> SuspendedCallStore:
    """Return where calls wait whose questions are in this store: in the same database, or in memory."""
    if isinstance(approvals, SqliteApprovalStore):
        return SqliteSuspendedCalls(approvals.path)
    return approvals.suspended_calls() if isinstance(approvals, KeepsSuspendedCalls) else MemorySuspendedCalls()


class MemorySuspendedCalls:
    """Calls that wait, in memory: for one process, until it ends."""

    def __init__(self) -> None:
        self._calls: dict[str, SuspendedCall] = {}
        self._lock = threading.Lock()

    async def keep(self, call: SuspendedCall) -> None:
        """Keep a call, in place of the one with its key."""
        with self._lock:
            self._calls.pop(call.key, None)
            self._calls[call.key] = call
            mine = [key for key, kept in self._calls.items() if kept.principal == call.principal]
            for key in mine[:-MOST_SUSPENDED]:
                del self._calls[key]

    async def find(self, key: str) -> SuspendedCall | None:
        """Return the call with this key."""
        return self._calls.get(key)

    async def find_request(self, principal: str, request_id: str) -> SuspendedCall | None:
        """Return the call of a principal that waits for this question."""
        with self._lock:
            mine = (call for call in self._calls.values() if call.principal == principal)
            return next((call for call in mine if request_id in call.requests), None)

    async def drop(self, key: str, requests: Collection[str]) -> None:
        """Forget the call with this key, if it still waits for these questions and not for later ones."""
        with self._lock:
            kept = self._calls.get(key)
            if kept is not None and set(kept.requests) == set(requests):
                del self._calls[key]

    async def tools(self) -> frozenset[str]:
        """Return the tools of which calls wait."""
        with self._lock:
            return frozenset(call.tool for call in self._calls.values())


class SqliteSuspendedCalls:
    """Calls that wait, in a SQLite file: for several processes, and across restarts.

    The file holds the real arguments of the calls; that of a `SqliteApprovalStore` is its owner's alone to read.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        with closing(self._connect()) as connection:
            connection.executescript(f"BEGIN IMMEDIATE; {_SCHEMA} COMMIT;")

    async def keep(self, call: SuspendedCall) -> None:
        """Keep a call, in place of the one with its key."""

        def write(connection: sqlite3.Connection) -> None:
            connection.execute(
                "INSERT INTO mcp_waiting (key, principal, tool, requests, state, since) VALUES (?, ?, ?, ?, ?, ?) "
                "ON CONFLICT (key) DO UPDATE SET requests = excluded.requests, state = excluded.state, "
                "since = excluded.since",
                call.to_row(),
            )
            connection.execute(
                "DELETE FROM mcp_waiting WHERE principal = ? AND key NOT IN "
                "(SELECT key FROM mcp_waiting WHERE principal = ? ORDER BY since DESC LIMIT ?)",
                (call.principal, call.principal, MOST_SUSPENDED),
            )

        await self._run(write, "BEGIN IMMEDIATE")

    async def find(self, key: str) -> SuspendedCall | None:
        """Return the call with this key."""
        return await self._run(lambda connection: _first(connection, "key = ?", key))

    async def find_request(self, principal: str, request_id: str) -> SuspendedCall | None:
        """Return the call of a principal that waits for this question."""
        quoted = json.dumps(request_id)
        where = "principal = ? AND instr(requests, ?)"
        return await self._run(lambda connection: _first(connection, where, principal, quoted))

    async def drop(self, key: str, requests: Collection[str]) -> None:
        """Forget the call with this key, if it still waits for these questions and not for later ones."""

        def write(connection: sqlite3.Connection) -> None:
            kept = _first(connection, "key = ?", key)
            if kept is not None and set(kept.requests) == set(requests):
                connection.execute("DELETE FROM mcp_waiting WHERE key = ?", (key,))

        await self._run(write, "BEGIN IMMEDIATE")

    async def tools(self) -> frozenset[str]:
        """Return the tools of which calls wait."""
        query = "SELECT DISTINCT tool FROM mcp_waiting"
        return await self._run(lambda connection: frozenset(tool for (tool,) in connection.execute(query)))

    # --- inside

    def _connect(self) -> sqlite3.Connection:
        return sqlite3.connect(self.path, timeout=_BUSY_SECONDS, isolation_level=None)

    async def _run(self, work: Callable[[sqlite3.Connection], T], begin: str = "BEGIN") -> T:
        """Do some work on the file in a thread, so that the event loop never waits for a disk."""

        def run() -> T:
            with closing(self._connect()) as connection:
                connection.execute(begin)
                result = work(connection)
                connection.execute("COMMIT")
                return result

        return await asyncio.to_thread(run)


def _first(connection: sqlite3.Connection, where: str, *values: str) -> SuspendedCall | None:
    query = f"SELECT key, principal, tool, requests, state, since FROM mcp_waiting WHERE {where} ORDER BY since"
    row = connection.execute(query, values).fetchone()
    return None if row is None else SuspendedCall.from_row(row)
