"""Suspended calls, kept until the same call is made again."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Collection, Generator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import TypeVar

from toolcrib._sqlite import sqlite3
from toolcrib._tables import Execute, StoreTables, make_file
from toolcrib.approvals import (
    MAX_SUSPENDED,
    ApprovalStore,
    KeepsSuspendedCalls,
    SqliteApprovalStore,
    SuspendedCall,
    SuspendedCallStore,
)

__all__ = [
    "SUSPENDED_CALL_TABLES",
    "MemorySuspendedCalls",
    "SqlSuspendedCalls",
    "SqliteSuspendedCalls",
    "suspended_calls_beside",
]

T = TypeVar("T")

_BUSY_SECONDS = 30.0
_TABLE = "toolcrib_suspended_calls"
SUSPENDED_CALL_TABLES = StoreTables(
    "suspended calls",
    (
        (
            f"CREATE TABLE IF NOT EXISTS {_TABLE} (key TEXT PRIMARY KEY, principal TEXT NOT NULL, tool TEXT NOT NULL, "
            "requests TEXT NOT NULL, state TEXT NOT NULL, since TEXT NOT NULL)",
            f"CREATE INDEX IF NOT EXISTS {_TABLE}_by_principal ON {_TABLE} (principal, since)",
        ),
    ),
)
"""The table of `SqlSuspendedCalls`."""


def suspended_calls_beside(approvals: ApprovalStore) -> SuspendedCallStore:
    """Return the store of suspended calls for an approval store: in the same database, or in memory."""
    if isinstance(approvals, SqliteApprovalStore):
        return SqliteSuspendedCalls(approvals.path)
    return approvals.suspended_calls() if isinstance(approvals, KeepsSuspendedCalls) else MemorySuspendedCalls()


class MemorySuspendedCalls:
    """Suspended calls in memory: for one process, until it ends."""

    def __init__(self) -> None:
        self._calls: dict[str, SuspendedCall] = {}
        self._lock = threading.Lock()

    @property
    def is_empty(self) -> bool:
        """Whether no call is kept."""
        return not self._calls

    async def keep(self, call: SuspendedCall) -> None:
        """Keep a call, in place of the one with its key."""
        with self._lock:
            self._calls.pop(call.key, None)
            self._calls[call.key] = call
            mine = [key for key, kept in self._calls.items() if kept.principal == call.principal]
            for key in mine[:-MAX_SUSPENDED]:
                del self._calls[key]

    async def find(self, key: str) -> SuspendedCall | None:
        """Return the call with this key."""
        return self._calls.get(key)

    async def find_request(self, principal: str, request_id: str) -> SuspendedCall | None:
        """Return the call of a principal that waits for the answer to this request."""
        with self._lock:
            mine = (call for call in self._calls.values() if call.principal == principal)
            return next((call for call in mine if request_id in call.requests), None)

    async def drop(self, key: str, requests: Collection[str]) -> bool:
        """Forget the call with this key, if it still waits for these requests; return whether it did."""
        with self._lock:
            kept = self._calls.get(key)
            if kept is None or set(kept.requests) != set(requests):
                return False
            del self._calls[key]
            return True

    async def tools(self) -> frozenset[str]:
        """Return the tools that have suspended calls."""
        with self._lock:
            return frozenset(call.tool for call in self._calls.values())


class SqlSuspendedCalls:
    """Suspended calls in a database: for several processes, and across restarts.

    Args:
        connect: Gives a connection to the database for one thread; each statement may be committed by itself.
    """

    def __init__(self, connect: Callable[[], AbstractContextManager[Execute]]) -> None:
        self._connect = connect

    async def keep(self, call: SuspendedCall) -> None:
        """Keep a call, in place of the one with its key."""

        def write(execute: Execute) -> None:
            execute(
                f"INSERT INTO {_TABLE} (key, principal, tool, requests, state, since) VALUES (?, ?, ?, ?, ?, ?) "
                "ON CONFLICT (key) DO UPDATE SET requests = excluded.requests, state = excluded.state, "
                "since = excluded.since",
                call.to_row(),
            )
            execute(
                f"DELETE FROM {_TABLE} WHERE principal = ? AND key NOT IN "
                f"(SELECT key FROM {_TABLE} WHERE principal = ? ORDER BY since DESC LIMIT ?)",
                (call.principal, call.principal, MAX_SUSPENDED),
            )

        await self._run(write)

    async def find(self, key: str) -> SuspendedCall | None:
        """Return the call with this key."""
        return await self._run(lambda execute: _first(execute, "key = ?", key))

    async def find_request(self, principal: str, request_id: str) -> SuspendedCall | None:
        """Return the call of a principal that waits for the answer to this request."""
        quoted = json.dumps(request_id)
        where = "principal = ? AND replace(requests, ?, '') <> requests"
        return await self._run(lambda execute: _first(execute, where, principal, quoted))

    async def drop(self, key: str, requests: Collection[str]) -> bool:
        """Forget the call with this key, if it still waits for these requests; return whether it did."""

        def write(execute: Execute) -> bool:
            kept = _first(execute, "key = ?", key)
            if kept is None or set(kept.requests) != set(requests):
                return False
            delete = f"DELETE FROM {_TABLE} WHERE key = ? AND requests = ? RETURNING key"
            return execute(delete, (key, json.dumps(kept.requests))).fetchone() is not None

        return await self._run(write)

    async def tools(self) -> frozenset[str]:
        """Return the tools that have suspended calls."""
        query = f"SELECT DISTINCT tool FROM {_TABLE}"
        return await self._run(lambda execute: frozenset(tool for (tool,) in execute(query, ())))

    async def _run(self, work: Callable[[Execute], T]) -> T:
        """Work on the database in a thread, so that the event loop never waits for a disk."""

        def run() -> T:
            with self._connect() as execute:
                return work(execute)

        return await asyncio.to_thread(run)


class SqliteSuspendedCalls(SqlSuspendedCalls):
    """Suspended calls in a SQLite file.

    The file holds the real arguments of the calls; only its owner can read the file of a `SqliteApprovalStore`.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        super().__init__(self._open)
        make_file(self.path, SUSPENDED_CALL_TABLES)

    @contextmanager
    def _open(self) -> Generator[Execute]:
        with closing(sqlite3.connect(self.path, timeout=_BUSY_SECONDS, isolation_level=None)) as connection:
            yield connection.execute


def _first(execute: Execute, where: str, *values: str) -> SuspendedCall | None:
    columns = "key, principal, tool, requests, state, since"
    row = execute(f"SELECT {columns} FROM {_TABLE} WHERE {where} ORDER BY since LIMIT 1", values).fetchone()
    return None if row is None else SuspendedCall.from_row(row)
