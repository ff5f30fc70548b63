"""Approval requests, answers and standing grants in an SQL database."""

from __future__ import annotations

import asyncio
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any, TypeAlias, TypeVar

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

__all__ = ["Execute", "SqlApprovalStore"]

T = TypeVar("T")

Execute: TypeAlias = Callable[[str, Sequence[Any]], Any]
"""Runs a statement, which has `?` for each value, and returns its cursor."""


class SqlApprovalStore(ABC):
    """An approval store in the tables `requests` and `standing` of a database; each kind of database is a subclass.

    Attributes:
        table_prefix: What the names of the tables begin with.
    """

    table_prefix = ""

    @abstractmethod
    def _transaction(self, *, write: bool) -> AbstractContextManager[Execute]:
        """Begin a transaction, in a worker thread, that is taken back if the body raises.

        Args:
            write: Whether the body writes; no other transaction writes meanwhile.
        """

    async def _run(self, work: Callable[[_Ledger], T], *, write: bool) -> T:
        def run() -> T:
            with self._transaction(write=write) as execute:
                return work(_Ledger(execute, self.table_prefix))

        return await asyncio.to_thread(run)

    async def put(self, request: ApprovalRequest) -> None:
        """Keep a request until it is answered."""
        await self._run(lambda ledger: keep_request(ledger, request), write=True)

    async def answer(self, answer: Grant | Denial) -> None:
        """Take a grant or a denial.

        Raises:
            ApprovalError: The request is unknown or answered already, or the grant does not fit it.
        """
        await self._run(lambda ledger: keep_answer(ledger, answer), write=True)

    async def take(self, request: ApprovalRequest) -> Grant | Denial | None:
        """Return the answer to this request and use it up; a standing grant stays.

        Raises:
            ApprovalError: A call used the answer to this request already.
        """
        return await self._run(lambda ledger: take_answer(ledger, request), write=True)

    async def use(self, request: ApprovalRequest, answer: Grant | Denial) -> None:
        """Store an answer that came with the call, and use it up.

        Raises:
            ApprovalError: It was used before, or the request was answered otherwise.
        """
        await self._run(lambda ledger: use_answer(ledger, request, answer), write=True)

    async def wait(self, request_id: str, timeout: float | None = None) -> Grant | Denial | None:
        """Return the answer to a request once it has one, without using it up; None after `timeout` seconds."""
        return await poll(lambda: self.show(request_id), timeout)

    async def show(self, request_id: str) -> ApprovalEntry:
        """Return a request with its answer; raises `ApprovalError` for an unknown one."""
        entry = await self._run(lambda ledger: ledger.entry(request_id), write=False)
        if entry is None:
            raise unknown_request(request_id)
        return entry

    async def list(self, *, pending: bool = False) -> tuple[ApprovalEntry, ...]:
        """Return every request, oldest first; or those that wait for an answer."""
        entries = await self._run(lambda ledger: ledger.entries(unused=pending), write=False)
        return tuple(entry for entry in entries if not pending or entry.state == "pending")

    async def answered(self) -> tuple[ApprovalEntry, ...]:
        """Return the requests that have an answer which no call has used, oldest first."""
        entries = await self._run(lambda ledger: ledger.entries(unused=True), write=False)
        return tuple(entry for entry in entries if entry.state == "answered")

    async def standing(self) -> tuple[Grant, ...]:
        """Return the standing grants, oldest first."""
        return tuple(await self._run(lambda ledger: ledger.standing(None), write=False))

    async def revoke(self, grant: Grant) -> bool:
        """Take a standing grant back; return whether there was one."""
        return await self._run(lambda ledger: ledger.revoke(grant), write=True)


class _Ledger:
    """The tables inside one transaction."""

    def __init__(self, execute: Execute, prefix: str) -> None:
        self._execute, self._requests, self._standing = execute, f"{prefix}requests", f"{prefix}standing"

    def entry(self, request_id: str) -> ApprovalEntry | None:
        return next(iter(self._entries("WHERE id = ?", request_id)), None)

    def entries_of(self, call_id: str) -> Iterable[ApprovalEntry]:
        return self._entries("WHERE call_id = ?", call_id)

    def entries(self, *, unused: bool) -> Iterable[ApprovalEntry]:
        return self._entries("WHERE used_at IS NULL" if unused else "")

    def _entries(self, where: str, *values: str) -> list[ApprovalEntry]:
        query = f"SELECT request, answer, used_at FROM {self._requests} {where} ORDER BY number"
        return [_entry_of(*row) for row in self._execute(query, values).fetchall()]

    def write(self, entry: ApprovalEntry) -> None:
        request, answer, used_at = entry.request, entry.answer, entry.used_at
        self._execute(
            f"INSERT INTO {self._requests} (id, call_id, request, answer, used_at) VALUES (?, ?, ?, ?, ?) "
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
        where, values = ("", ()) if tool is None else ("WHERE tool = ?", (tool,))
        rows = self._execute(f"SELECT answer FROM {self._standing} {where} ORDER BY number", values).fetchall()
        return [Grant.from_dict(json.loads(answer)) for (answer,) in rows]

    def stand(self, grant: Grant) -> None:
        self._execute(f"INSERT INTO {self._standing} (tool, answer) VALUES (?, ?)", (grant.tool, _text_of(grant)))

    def revoke(self, grant: Grant) -> bool:
        return self._execute(f"DELETE FROM {self._standing} WHERE answer = ?", (_text_of(grant),)).rowcount > 0


def _entry_of(request: str, answer: str | None, used_at: str | None) -> ApprovalEntry:
    return ApprovalEntry(
        ApprovalRequest.from_dict(json.loads(request)),
        None if answer is None else _answer_of(answer),
        None if used_at is None else datetime.fromisoformat(used_at),
    )


def _answer_of(text: str) -> Grant | Denial:
    data: dict[str, Any] = json.loads(text)
    return Denial.from_dict(data) if data["kind"] == "denial" else Grant.from_dict(data)


def _text_of(value: ApprovalRequest | Grant | Denial) -> str:
    """Return a value as JSON text; raises ApprovalError when it has no JSON form."""
    try:
        return json.dumps(value.to_dict())
    except (TypeError, ValueError) as error:
        raise ApprovalError(value.tool, f"it cannot be stored: {error}. Give JSON values") from error
