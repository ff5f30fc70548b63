"""SqliteApprovalStore: requests, answers and standing grants in a file that outlives the process and serves several.

Each operation opens the file, does its work in one transaction and closes it, in a worker thread: the event loop never
waits for a disk or for another process's lock, there is nothing to close, and neither a fork nor a second event loop
makes a difference. It costs a few milliseconds, and a person takes longer.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Generator, Iterable
from contextlib import closing, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from toolcrib._sqlite import sqlite3, write_ahead
from toolcrib.approvals._ledger import (
    ApprovalEntry,
    keep_answer,
    keep_request,
    take_answer,
    unknown_request,
    use_answer,
)
from toolcrib.approvals._store import poll
from toolcrib.calls import ApprovalRequest, Denial, Grant
from toolcrib.errors import ApprovalError

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


class SqliteApprovalStore:
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

    async def put(self, request: ApprovalRequest) -> None:
        """Keep a request until it is answered."""
        await self._write(lambda ledger: keep_request(ledger, request))

    async def answer(self, answer: Grant | Denial) -> None:
        """Take a grant or a denial.

        Raises:
            ApprovalError: The request is unknown or answered already, or the grant does not fit it.
        """
        await self._write(lambda ledger: keep_answer(ledger, answer))

    async def take(self, request: ApprovalRequest) -> Grant | Denial | None:
        """Return what answers this request and use it up; a standing grant stays.

        Raises:
            ApprovalError: A call went on with the answer to this request already.
        """
        return await self._write(lambda ledger: take_answer(ledger, request))

    async def use(self, request: ApprovalRequest, answer: Grant | Denial) -> None:
        """Keep an answer that came with the call, and use it up.

        Raises:
            ApprovalError: It was used before, or the request was answered otherwise.
        """
        await self._write(lambda ledger: use_answer(ledger, request, answer))

    async def wait(self, request_id: str, timeout: float | None = None) -> Grant | Denial | None:
        """Return the answer to a request once it has one, without using it up; None after `timeout` seconds."""
        return await poll(lambda: self.show(request_id), timeout)

    async def show(self, request_id: str) -> ApprovalEntry:
        """Return a request with its answer; raises `ApprovalError` for an unknown one."""
        entry = await self._read(lambda ledger: ledger.entry(request_id))
        if entry is None:
            raise unknown_request(request_id)
        return entry

    async def list(self, *, pending: bool = False) -> tuple[ApprovalEntry, ...]:
        """Return every request, oldest first; or those that wait for an answer."""
        entries = await self._read(lambda ledger: ledger.entries(unused=pending))
        return tuple(entry for entry in entries if not pending or entry.state == "pending")

    async def standing(self) -> tuple[Grant, ...]:
        """Return the standing grants, oldest first."""
        return tuple(await self._read(lambda ledger: ledger.standing(None)))

    async def revoke(self, grant: Grant) -> bool:
        """Take a standing grant back; return whether there was one."""
        return await self._write(lambda ledger: ledger.revoke(grant))

    # --- inside

    @contextmanager
    def _connection(self) -> Generator[sqlite3.Connection]:
        with closing(sqlite3.connect(self.path, timeout=_BUSY_SECONDS, isolation_level=None)) as connection:
            yield connection

    async def _read(self, work: Callable[[_SqliteLedger], T]) -> T:
        return await asyncio.to_thread(self._run, "BEGIN", work)

    async def _write(self, work: Callable[[_SqliteLedger], T]) -> T:
        return await asyncio.to_thread(self._run, "BEGIN IMMEDIATE", work)

    def _run(self, begin: str, work: Callable[[_SqliteLedger], T]) -> T:
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
        return [
            ApprovalEntry(
                ApprovalRequest.from_dict(json.loads(request)),
                None if answer is None else _answer_of(answer),
                None if used_at is None else datetime.fromisoformat(used_at),
            )
            for request, answer, used_at in rows
        ]

    def write(self, entry: ApprovalEntry) -> None:
        request, answer, used_at = entry.request, entry.answer, entry.used_at
        self._connection.execute(
            "INSERT INTO requests (id, call_id, request, answer, used_at) VALUES (?, ?, ?, ?, ?) "
            "ON CONFLICT (id) DO UPDATE SET answer = excluded.answer, used_at = excluded.used_at",
            (
                request.id,
                request.call_id,
                _text_of(request),
                None if answer is None else _text_of(answer),
                None if used_at is None else used_at.isoformat(),
            ),
        )

    def standing(self, tool: str | None) -> list[Grant]:
        where = "" if tool is None else "WHERE tool = ?"
        values = () if tool is None else (tool,)
        rows = self._connection.execute(f"SELECT answer FROM standing {where} ORDER BY number", values)
        return [Grant.from_dict(json.loads(answer)) for (answer,) in rows]

    def stand(self, grant: Grant) -> None:
        self._connection.execute("INSERT INTO standing (tool, answer) VALUES (?, ?)", (grant.tool, _text_of(grant)))

    def revoke(self, grant: Grant) -> bool:
        return self._connection.execute("DELETE FROM standing WHERE answer = ?", (_text_of(grant),)).rowcount > 0


def _answer_of(text: str) -> Grant | Denial:
    data: dict[str, Any] = json.loads(text)
    return Denial.from_dict(data) if data["kind"] == "denial" else Grant.from_dict(data)


def _text_of(value: ApprovalRequest | Grant | Denial) -> str:
    try:
        return json.dumps(value.to_dict())
    except (TypeError, ValueError) as error:
        raise ApprovalError(value.tool, f"it cannot be kept in a file: {error}. Give JSON values") from error
