"""Suspended calls, kept beside the approval requests that they wait for."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol, TypeVar, runtime_checkable

from toolcrib.calls import now
from toolcrib.database import Execute, StoreTables, Tables

T = TypeVar("T")

MAX_SUSPENDED = 1_000
"""The most suspended calls of one principal that are kept; of more, the oldest are forgotten."""

_TABLE = "toolcrib_suspended_calls"
_COLUMNS = "key, principal, tool, requests, state, since"
_INSERT = f"INSERT INTO {_TABLE} ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)"
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


@dataclass(frozen=True, slots=True)
class SuspendedCall:
    """A suspended call.

    Attributes:
        key: The same for the same call on behalf of the same principal, and for no other.
        requests: The ids of the requests it waits for.
        state: The state it continues from, as JSON shapes; it holds the real arguments.
    """

    key: str
    principal: str
    tool: str
    requests: tuple[str, ...]
    state: Mapping[str, Any] = field(repr=False)
    since: datetime = field(default_factory=now)

    def to_row(self) -> tuple[str, str, str, str, str, str]:
        """Return the call as texts, in the order of the attributes."""
        requests, state = json.dumps(self.requests), json.dumps(self.state)
        return self.key, self.principal, self.tool, requests, state, self.since.isoformat()

    @classmethod
    def from_row(cls, row: tuple[str, str, str, str, str, str]) -> SuspendedCall:
        """Return the call that `to_row` described."""
        key, principal, tool, requests, state, since = row
        ids = tuple(json.loads(requests))
        return cls(key, principal, tool, ids, json.loads(state), datetime.fromisoformat(since))


class SuspendedCallStore(Protocol):
    """Keeps suspended calls, for a server that has to find them again after a restart."""

    async def keep(self, call: SuspendedCall) -> None:
        """Keep a call, in place of the one with its key."""
        ...

    async def replace(self, call: SuspendedCall, before: SuspendedCall | None) -> bool:
        """Keep a call in place of an earlier state of it, if that is still the one with its key.

        Args:
            call: The call.
            before: Its earlier state, as it was found; None where there was none.

        Returns:
            Whether it is kept: of several callers at once, in any processes, one gets True.
        """
        ...

    async def find(self, key: str) -> SuspendedCall | None:
        """Return the call with this key."""
        ...

    async def find_request(self, principal: str, request_id: str) -> SuspendedCall | None:
        """Return the call of a principal that waits for the answer to this request."""
        ...

    async def drop(self, key: str, requests: Collection[str]) -> bool:
        """Forget the call with this key, if it still waits for these requests and not for later ones.

        Returns whether it did: of several callers at once, in any processes, one gets True.
        """
        ...

    async def tools(self) -> frozenset[str]:
        """Return the tools that have suspended calls."""
        ...


@runtime_checkable
class KeepsSuspendedCalls(Protocol):
    """An approval store that can keep the suspended calls, too."""

    def suspended_calls(self) -> SuspendedCallStore:
        """Return the store of the suspended calls whose requests are in this store."""
        ...


def suspended_calls_beside(approvals: object) -> SuspendedCallStore:
    """Return the store of suspended calls for an approval store: in the same database, or in memory."""
    return approvals.suspended_calls() if isinstance(approvals, KeepsSuspendedCalls) else MemorySuspendedCalls()


class MemorySuspendedCalls:
    """Suspended calls in memory: for one process, until it ends."""

    def __init__(self) -> None:
        self._calls: dict[str, SuspendedCall] = {}
        self._lock = threading.Lock()

    @property
    def is_empty(self) -> bool:
        """True if no call is stored."""
        return not self._calls

    async def keep(self, call: SuspendedCall) -> None:
        """Keep a call, in place of the one with its key."""
        with self._lock:
            self._put(call)

    async def replace(self, call: SuspendedCall, before: SuspendedCall | None) -> bool:
        """Keep a call in place of an earlier state of it, if that is still there; return whether it was."""
        with self._lock:
            if self._calls.get(call.key) != before:
                return False
            self._put(call)
            return True

    def _put(self, call: SuspendedCall) -> None:
        self._calls.pop(call.key, None)
        self._calls[call.key] = call
        mine = [key for key, stored in self._calls.items() if stored.principal == call.principal]
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
            stored = self._calls.get(key)
            if stored is None or set(stored.requests) != set(requests):
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
        tables: Tables of a database that `SUSPENDED_CALL_TABLES` are among.
    """

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    async def keep(self, call: SuspendedCall) -> None:
        """Keep a call, in place of the one with its key."""

        def write(execute: Execute) -> None:
            execute(
                f"{_INSERT} ON CONFLICT (key) DO UPDATE SET requests = excluded.requests, state = excluded.state, "
                "since = excluded.since",
                call.to_row(),
            )
            _forget_oldest(execute, call.principal)

        await self._run(write, write=True)

    async def replace(self, call: SuspendedCall, before: SuspendedCall | None) -> bool:
        """Keep a call in place of an earlier state of it, if that is still there; return whether it was."""
        row = call.to_row()

        def write(execute: Execute) -> bool:
            if before is not None:
                earlier = before.to_row()
                update = f"UPDATE {_TABLE} SET requests = ?, state = ?, since = ? WHERE key = ? AND requests = ? "
                values = (*row[3:], call.key, earlier[3], earlier[5])
                return execute(f"{update}AND since = ? RETURNING key", values).fetchone() is not None
            is_kept = execute(f"{_INSERT} ON CONFLICT (key) DO NOTHING RETURNING key", row).fetchone() is not None
            _forget_oldest(execute, call.principal)
            return is_kept

        return await self._run(write, write=True)

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
            stored = _first(execute, "key = ?", key)
            if stored is None or set(stored.requests) != set(requests):
                return False
            delete = f"DELETE FROM {_TABLE} WHERE key = ? AND requests = ? RETURNING key"
            return execute(delete, (key, json.dumps(stored.requests))).fetchone() is not None

        return await self._run(write, write=True)

    async def tools(self) -> frozenset[str]:
        """Return the tools that have suspended calls."""
        query = f"SELECT DISTINCT tool FROM {_TABLE}"
        return await self._run(lambda execute: frozenset(tool for (tool,) in execute(query, ())))

    async def _run(self, work: Callable[[Execute], T], *, write: bool = False) -> T:
        """Work on the database in a thread, so that the event loop never waits for a disk."""

        def run() -> T:
            with self._tables.transaction(write=write) as execute:
                return work(execute)

        return await asyncio.to_thread(run)


def _forget_oldest(execute: Execute, principal: str) -> None:
    execute(
        f"DELETE FROM {_TABLE} WHERE principal = ? AND key NOT IN "
        f"(SELECT key FROM {_TABLE} WHERE principal = ? ORDER BY since DESC LIMIT ?)",
        (principal, principal, MAX_SUSPENDED),
    )


def _first(execute: Execute, where: str, *values: str) -> SuspendedCall | None:
    row = execute(f"SELECT {_COLUMNS} FROM {_TABLE} WHERE {where} ORDER BY since LIMIT 1", values).fetchone()
    return None if row is None else SuspendedCall.from_row(row)
