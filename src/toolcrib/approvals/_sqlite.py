"""SqliteApprovalStore: requests, answers and standing grants in a file that outlives the process and serves several.

Each operation opens the file, does its work in one transaction and closes it, in a worker thread: the event loop never
waits for a disk or for another process's lock, there is nothing to close, and neither a fork nor a second event loop
makes a difference. It costs a few milliseconds, and a person takes longer.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Generator, Iterable
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TypeVar

from toolcrib._sqlite import sqlite3, write_ahead
from toolcrib.approvals._ledger import ApprovalEntry
from toolcrib.approvals._ledger_store import KeptLedger, LedgerStore, entry_of, grant_of, row_of, text_of
from toolcrib.calls import Grant

__all__ = ["SqliteApprovalStore"]

T = TypeVar("T")

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


class SqliteApprovalStore(LedgerStore):
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

    async def _read(self, work: Callable[[KeptLedger], T]) -> T:
        return await asyncio.to_thread(self._run, "BEGIN", work)

    async def _write(self, work: Callable[[KeptLedger], T]) -> T:
        return await asyncio.to_thread(self._run, "BEGIN IMMEDIATE", work)

    def _run(self, begin: str, work: Callable[[KeptLedger], T]) -> T:
        with self._connection() as connection:
            connection.execute(begin)  # closing without COMMIT takes everything back
            result = work(_SqliteLedger(connection))
            connection.execute("COMMIT")
            return result


class _SqliteLedger:
    """The file inside one transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def entry(self, request_id: str) -> ApprovalEntry | None:
        return next(iter(self._entries("WHERE id = ?", request_id)), None)

    def entries_of(self, call_id: str) -> Iterable[ApprovalEntry]:
        return self._entries("WHERE call_id = ?", call_id)

    def entries(self, *, unused: bool) -> Iterable[ApprovalEntry]:
        return self._entries("WHERE used_at IS NULL" if unused else "")

    def _entries(self, where: str, *values: str) -> list[ApprovalEntry]:
        rows = self._connection.execute(
            f"SELECT request, answer, used_at FROM requests {where} ORDER BY number", values
        )
        return [entry_of(*row) for row in rows]

    def write(self, entry: ApprovalEntry) -> None:
        self._connection.execute(
            "INSERT INTO requests (id, call_id, request, answer, used_at) VALUES (?, ?, ?, ?, ?) "
            "ON CONFLICT (id) DO UPDATE SET answer = excluded.answer, used_at = excluded.used_at",
            row_of(entry),
        )

    def standing(self, tool: str | None) -> list[Grant]:
        where = "" if tool is None else "WHERE tool = ?"
        values = () if tool is None else (tool,)
        rows = self._connection.execute(f"SELECT answer FROM standing {where} ORDER BY number", values)
        return [grant_of(answer) for (answer,) in rows]

    def stand(self, grant: Grant) -> None:
        self._connection.execute("INSERT INTO standing (tool, answer) VALUES (?, ?)", (grant.tool, text_of(grant)))

    def revoke(self, grant: Grant) -> bool:
        return self._connection.execute("DELETE FROM standing WHERE answer = ?", (text_of(grant),)).rowcount > 0
