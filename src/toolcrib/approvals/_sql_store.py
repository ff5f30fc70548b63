"""Approval requests, answers and standing grants in an SQL database."""

from __future__ import annotations

import asyncio
import hashlib
import json
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

from toolcrib._numbers import time_text
from toolcrib._short_repr import FileRepr
from toolcrib.approvals._claims import MOST_BEGUN
from toolcrib.approvals._entry import ApprovalEntry
from toolcrib.approvals._executions import Execution
from toolcrib.approvals._ledger import Ledger
from toolcrib.approvals._ledger_store import LedgerStore
from toolcrib.approvals._saved_sessions import SavedSession
from toolcrib.approvals._suspended_calls import SqlSuspendedCalls, SuspendedCallStore
from toolcrib.approvals._tables import SQLITE_APPROVAL_TABLES, TABLES_BESIDE
from toolcrib.calls import ApprovalRequest, Denial, Grant, GrantUse
from toolcrib.clock import WALL_CLOCK, Clock
from toolcrib.database import JOURNAL_LINES, Execute, SqliteTables, Tables
from toolcrib.errors import ApprovalError, NewerForm, explain_options

T = TypeVar("T")

_BATCH = 500  # requests in one statement


class SqlApprovalStore(LedgerStore):
    """An approval store in tables of a database.

    A grant is used up in a transaction right before its tool runs, and another one notes the end with the result: a
    call of which the second is missing is in doubt. Writers come one after another: of any number of processes one
    executes the call.

    Args:
        tables: The tables of a SQLite file or of a Postgres server.
        table_prefix: The prefix of the names of the tables.
        clock: The clock by which requests expire, whose seconds are those since 1970.

    Attributes:
        place: The path of the file or the address of the server, for errors.
        announcement: The end of each statement that writes a request which nothing waits for any more.
    """

    place: str
    announcement: ClassVar[str] = ""

    def __init__(self, tables: Tables, table_prefix: str, *, clock: Clock = WALL_CLOCK) -> None:
        self._clock, self._prefix = clock, table_prefix
        self._tables, self._transaction = tables, tables.transaction

    def suspended_calls(self) -> SuspendedCallStore:
        """Return the store of the suspended calls whose requests are here."""
        return SqlSuspendedCalls(self._tables)

    def over(self, tables: Callable[[Tables], Tables]) -> Self:
        """Return a view of this store with the tables that are made of its own: others, or checked ones."""
        view = copy(self)
        shared = {"_executing": self._executing, "_heartbeat": self._heartbeat, "_waiters": self._waiters}
        vars(view).update(shared)  # one for both, made here or before
        view._tables = tables(self._tables)
        view._transaction = view._tables.transaction
        return view

    async def _run(self, work: Callable[[Ledger], T], *, write: bool) -> T:
        def run() -> T:
            with self._transaction(write=write) as execute:
                return work(_SqlLedger(execute, self._prefix, self))

        return await asyncio.to_thread(run)

    def _renew(self, ids: Iterable[str]) -> None:
        with self._transaction(write=True) as execute:
            self._renew_in(_SqlLedger(execute, self._prefix, self), ids)

    @explain_options()
    async def prune(self, before: datetime, *, dry_run: bool = False) -> int:
        """Remove the requests whose answers were used before a time, and return how many there were.

        A pending request stays, and so do an answer that no call has used, a call that is executed now or is in doubt,
        and standing grants. Other writers get their turn after some hundreds.

        Args:
            dry_run: Remove nothing.
        """
        old = f"FROM {self._prefix}requests WHERE used_at < ? AND unended = 0 AND number > ?"

        def run(after: int) -> list[int]:
            with self._transaction(write=not dry_run) as execute:
                chosen = execute(f"SELECT number {old} ORDER BY number LIMIT {_BATCH}", (time_text(before), after))
                numbers = [number for (number,) in chosen.fetchall()]
                if numbers and not dry_run:
                    execute(f"DELETE {old} AND number <= ?", (time_text(before), after, numbers[-1]))
                return numbers

        count = after = 0
        while numbers := await asyncio.to_thread(run, after):
            count, after = count + len(numbers), numbers[-1]
        if not dry_run:
            lines = "toolcrib_claim_lines WHERE journal LIKE 'program:%' AND at"
            for table in (f"{self._prefix}claims WHERE ended_at", lines):
                await self._run_sql(f"DELETE FROM {table} < ?", time_text(before), write=True)
        return count

    async def prune_ended(self, call_ids: Iterable[str], *, dry_run: bool = False) -> int:
        """Remove the requests with an answer that no call has used, of calls that will not be made again; count them.

        Args:
            dry_run: Remove nothing.
        """
        old = f"FROM {self._prefix}requests WHERE answer IS NOT NULL AND used_at IS NULL AND call_id IN"

        def run() -> int:
            count = 0
            with self._transaction(write=not dry_run) as execute:
                for marks, some in _batches(call_ids):
                    if dry_run:
                        count += execute(f"SELECT COUNT(*) {old} {marks}", some).fetchone()[0]
                    else:
                        count += execute(f"DELETE {old} {marks}", some).rowcount
            return count

        return await asyncio.to_thread(run)

    @explain_options()
    async def prune_sessions(self, before: datetime, *, dry_run: bool = False) -> int:
        """Remove the sessions that were saved last before a time, and return how many there were.

        One whose round waits for a person, or was under way, stays.

        Args:
            dry_run: Remove nothing.
        """

        def run() -> int:
            old = f"FROM {self._prefix}sessions WHERE saved_at < ? AND is_open = 0"
            with self._transaction(write=not dry_run) as execute:
                if dry_run:
                    return execute(f"SELECT COUNT(*) {old}", (time_text(before),)).fetchone()[0]
                return execute(f"DELETE {old}", (time_text(before),)).rowcount

        return await asyncio.to_thread(run)

    # --- approvers who show who they are by a token

    async def issue_token(self, name: str) -> str:
        """Return a new token of an approver, in place of an older one; only a hash of it is kept.

        Raises:
            ValueError: The name is empty.
        """
        if not name.strip():
            raise ValueError("an approver needs a name")
        token = secrets.token_urlsafe(24)
        sql = "(name, token) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET token = excluded.token"
        await self._run_sql(f"INSERT INTO {self._prefix}approvers {sql}", name.strip(), _hash(token), write=True)
        return token

    async def revoke_token(self, name: str) -> bool:
        """Revoke the token of an approver; return whether there was one."""
        sql = f"DELETE FROM {self._prefix}approvers WHERE name = ? RETURNING name"
        return bool(await self._run_sql(sql, name, write=True))

    async def holder_of(self, token: str) -> str | None:
        """Return the approver who holds a token; None where it is not an approver's."""
        sql = f"SELECT name FROM {self._prefix}approvers WHERE token = ?"
        found = await self._run_sql(sql, _hash(token), write=False)
        return found[0][0] if found else None

    async def _run_sql(self, sql: str, *values: str, write: bool) -> list[Any]:
        """Return the rows of one statement; none of one that returns no rows."""

        def run() -> list[Any]:
            with self._transaction(write=write) as execute:
                done = execute(sql, values)
                return list(done.fetchall()) if "RETURNING" in sql or not write else []

        return await asyncio.to_thread(run)


@explain_options()
class SqliteApprovalStore(FileRepr, SqlApprovalStore):
    """An approval store in a SQLite file, which outlives the process and serves several.

    The file holds what people typed and what tools returned, so it is made for its owner alone to read.

    Args:
        path: The file; it is made when missing. Its folder has to be on a local disk.
        clock: The clock by which requests expire, whose seconds are those since 1970.

    Raises:
        DatabaseError: The path is not that of a file that can be used, or a newer version of Toolcrib wrote it.
    """

    def __init__(self, path: str | Path, *, clock: Clock = WALL_CLOCK) -> None:
        tables = SqliteTables(path, SQLITE_APPROVAL_TABLES, *TABLES_BESIDE)
        super().__init__(tables, "", clock=clock)
        self.path = tables.path
        self.place = str(tables.path.absolute())


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()  # 24 random bytes need no slow hash


class _SqlLedger:
    """The tables inside one transaction."""

    def __init__(self, execute: Execute, prefix: str, store: SqlApprovalStore) -> None:
        self._store = store
        self._execute, self._requests, self._standing = execute, f"{prefix}requests", f"{prefix}standing"
        self._claims, self._sessions = f"{prefix}claims", f"{prefix}sessions"

    def entry(self, request_id: str) -> ApprovalEntry | None:
        return next(iter(self._entries("WHERE id = ?", request_id)), None)

    def place(self) -> str:
        is_empty = self._execute(f"SELECT 1 FROM {self._requests} LIMIT 1", ()).fetchone() is None
        return f"{self._store.place}{', which has none: the call keeps its own in another store' if is_empty else ''}"

    def due(self, at: datetime) -> Iterable[ApprovalEntry]:
        where = "WHERE used_at IS NULL AND id IN (SELECT request FROM toolcrib_expiry WHERE closes_at <= ?)"
        return self._entries(where, _sortable(at), leaves_newer=True)

    def entries_of(self, call_id: str) -> Iterable[ApprovalEntry]:
        return self._entries("WHERE call_id = ?", call_id)

    def entries(self, *, unused: bool) -> Iterable[ApprovalEntry]:
        return self._entries("WHERE used_at IS NULL" if unused else "", leaves_newer=True)

    def answered(self) -> Iterable[ApprovalEntry]:
        return self._entries("WHERE used_at IS NULL AND answer IS NOT NULL", leaves_newer=True)

    def used(self, request_ids: Iterable[str]) -> Iterable[str]:
        query = f"SELECT id FROM {self._requests} WHERE used_at IS NOT NULL AND id IN"
        return [request_id for (request_id,) in self._rows_in(query, request_ids)]

    def unended(self) -> Iterable[ApprovalEntry]:
        return self._entries("WHERE unended = 1", leaves_newer=True)

    def begun(self, digest: str) -> Iterable[ApprovalEntry]:
        latest = (
            f"SELECT number FROM {self._requests} WHERE digest = ? AND execution IS NOT NULL AND unended = {{}} "
            f"ORDER BY number DESC LIMIT {MOST_BEGUN}"
        )
        where = " OR ".join(f"number IN ({latest.format(unended)})" for unended in (1, 0))
        return self._entries(f"WHERE {where}", digest, digest)

    def unanswered(self) -> tuple[int, int]:
        query = f"SELECT COUNT(*), SUM(in_doubt) FROM {self._requests} WHERE used_at IS NULL AND answer IS NULL"
        total, in_doubt = self._execute(query, ()).fetchone()
        return total, int(in_doubt or 0)

    def _entries(self, where: str, *values: str, leaves_newer: bool = False) -> list[ApprovalEntry]:
        """Return entries; of those in a newer form, none where they are listed, and else a NewerForm."""
        query = f"SELECT request, answer, used_at, execution FROM {self._requests} {where} ORDER BY number"
        entries = list[ApprovalEntry]()
        for row in self._execute(query, values).fetchall():
            try:
                entries.append(_entry_of(*row))
            except NewerForm:
                if not leaves_newer:
                    raise
        return entries

    def _rows_in(self, query: str, keys: Iterable[str], *before: str) -> Iterator[Any]:
        """Yield the rows of a query that ends with `IN`, over keys; `before` are the values that stand before these."""
        for marks, some in _batches(keys):
            yield from self._execute(f"{query} {marks}", (*before, *some)).fetchall()

    def write(self, entry: ApprovalEntry) -> None:
        request, answer, used_at, execution = entry.request, entry.answer, entry.used_at, entry.execution
        columns = ("digest", "request", "answer", "used_at", "execution", "unended")
        self._execute(
            f"INSERT INTO {self._requests} (id, call_id, in_doubt, {', '.join(columns)}) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) "
            f"ON CONFLICT (id) DO UPDATE SET {', '.join(f'{name} = excluded.{name}' for name in columns)}"
            f"{'' if entry.is_awaited else self._store.announcement}",
            (
                request.id,
                request.call_id,
                int(request.in_doubt),
                request.digest,
                _text_of(request),
                None if answer is None else _text_of(answer),
                None if used_at is None else used_at.isoformat(),
                None if execution is None else json.dumps(execution.to_dict()),
                int(execution is not None and execution.ended_at is None),
            ),
        )
        if request.expires_at is not None:
            self._write_expiry(request.id, entry.closes_at)
        if answer is not None and execution is None:
            self._execute("DELETE FROM toolcrib_notices WHERE request = ?", (request.id,))

    def _write_expiry(self, request_id: str, closes_at: datetime | None) -> None:
        if closes_at is None:
            self._execute("DELETE FROM toolcrib_expiry WHERE request = ?", (request_id,))
            return
        self._execute(
            "INSERT INTO toolcrib_expiry (request, closes_at) VALUES (?, ?) "
            "ON CONFLICT (request) DO UPDATE SET closes_at = excluded.closes_at",
            (request_id, _sortable(closes_at)),
        )

    def standing(self, tool: str | None) -> list[Grant]:
        where, values = ("", ()) if tool is None else ("WHERE tool = ?", (tool,))
        rows = self._execute(f"SELECT answer FROM {self._standing} {where} ORDER BY number", values).fetchall()
        return [Grant.from_dict(json.loads(answer)) for (answer,) in rows]

    def stand(self, grant: Grant) -> None:
        self._execute(f"INSERT INTO {self._standing} (tool, answer) VALUES (?, ?)", (grant.tool, _text_of(grant)))

    def revoke(self, grant: Grant) -> bool:
        return self._execute(f"DELETE FROM {self._standing} WHERE answer = ?", (_text_of(grant),)).rowcount > 0

    def grant_uses(self, keys: Iterable[str]) -> dict[str, GrantUse]:
        rows = self._rows_in("SELECT request, used FROM toolcrib_grant_uses WHERE request IN", keys)
        return {key: GrantUse.from_dict(json.loads(used)) for key, used in rows}

    def write_grant_use(self, key: str, use: GrantUse) -> None:
        self._execute(
            "INSERT INTO toolcrib_grant_uses (request, used) VALUES (?, ?) "
            "ON CONFLICT (request) DO UPDATE SET used = excluded.used",
            (key, json.dumps(use.to_dict())),
        )

    def notices(self, address: str, request_ids: Iterable[str]) -> list[tuple[str, str]]:
        query = "SELECT request, name FROM toolcrib_notices WHERE address = ? AND request IN"
        return [(request_id, name) for request_id, name in self._rows_in(query, request_ids, address)]

    def write_notice(self, address: str, request_id: str, name: str) -> None:
        sql = "INSERT INTO toolcrib_notices (request, address, name) VALUES (?, ?, ?)"
        self._execute(sql, (request_id, address, name))

    def remove_notice(self, address: str, request_id: str, name: str) -> None:
        where = "request = ? AND address = ? AND name = ?"
        self._execute(f"DELETE FROM toolcrib_notices WHERE {where}", (request_id, address, name))

    def claim(self, key: str) -> Execution | None:
        row = self._execute(f"SELECT claim FROM {self._claims} WHERE work = ?", (key,)).fetchone()
        return None if row is None else Execution.from_dict(json.loads(row[0]))

    def write_claim(self, key: str, claim: Execution | None) -> None:
        if claim is None:
            self._execute(f"DELETE FROM {self._claims} WHERE work = ?", (key,))
            return
        values = (key, json.dumps(claim.to_dict()), None if claim.ended_at is None else claim.ended_at.isoformat())
        self._execute(
            f"INSERT INTO {self._claims} (work, claim, ended_at) VALUES (?, ?, ?) "
            "ON CONFLICT (work) DO UPDATE SET claim = excluded.claim, ended_at = excluded.ended_at",
            values,
        )

    def digest_key(self) -> str | None:
        row = self._execute("SELECT key FROM toolcrib_digest_keys", ()).fetchone()
        return None if row is None else row[0]

    def write_digest_key(self, key: str) -> None:
        self._execute("INSERT INTO toolcrib_digest_keys (number, key) VALUES (1, ?)", (key,))

    def lines(self, journal: str) -> list[str]:
        return JOURNAL_LINES.read(self._execute, journal)

    def append_lines(self, journal: str, lines: Sequence[str]) -> None:
        JOURNAL_LINES.append(self._execute, journal, lines)

    def remove_lines(self, journal: str) -> None:
        JOURNAL_LINES.remove(self._execute, journal)

    def session(self, session_id: str) -> SavedSession | None:
        sql = f"SELECT id, number, state, is_open, saved_at FROM {self._sessions} WHERE id = ?"
        row = self._execute(sql, (session_id,)).fetchone()
        if row is None:
            return None
        id, number, state, is_open, saved_at = row
        return SavedSession(id, number, state, bool(is_open), datetime.fromisoformat(saved_at))

    def write_session(self, session: SavedSession) -> None:
        columns = ("number", "state", "is_open", "saved_at")
        self._execute(
            f"INSERT INTO {self._sessions} (id, {', '.join(columns)}) VALUES (?, ?, ?, ?, ?) "
            f"ON CONFLICT (id) DO UPDATE SET {', '.join(f'{name} = excluded.{name}' for name in columns)}",
            (session.id, session.number, session.state, int(session.is_open), session.saved_at.isoformat()),
        )

    def remove_session(self, session_id: str) -> bool:
        return self._execute(f"DELETE FROM {self._sessions} WHERE id = ?", (session_id,)).rowcount > 0


def _batches(keys: Iterable[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield keys, as many as one statement takes at a time, each time after the marks that stand for them in SQL."""
    rest = iter(keys)
    while some := tuple(islice(rest, _BATCH)):
        yield f"({', '.join('?' * len(some))})", some


def _entry_of(request: str, answer: str | None, used_at: str | None, execution: str | None) -> ApprovalEntry:
    return ApprovalEntry(
        ApprovalRequest.from_dict(json.loads(request)),
        None if answer is None else _answer_of(answer),
        None if used_at is None else datetime.fromisoformat(used_at),
        None if execution is None else Execution.from_dict(json.loads(execution)),
    )


def _sortable(at: datetime) -> str:
    """Return a time as a text that sorts as the time does."""
    return at.astimezone(UTC).isoformat(timespec="microseconds")


def _answer_of(text: str) -> Grant | Denial:
    data: dict[str, Any] = json.loads(text)
    return Denial.from_dict(data) if data["kind"] == "denial" else Grant.from_dict(data)


def _text_of(value: ApprovalRequest | Grant | Denial) -> str:
    """Return a value as JSON text; raises ApprovalError when it has no JSON form."""
    try:
        return json.dumps(value.to_dict())
    except (TypeError, ValueError) as error:
        raise ApprovalError(value.tool, f"it cannot be stored: {error}. Give JSON values") from error
