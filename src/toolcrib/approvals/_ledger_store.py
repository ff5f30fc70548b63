"""LedgerStore: what the stores have in common that keep approvals outside the process."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any, Protocol, TypeVar

from toolcrib.approvals._ledger import (
    ApprovalEntry,
    Ledger,
    keep_answer,
    keep_request,
    take_answer,
    unknown_request,
    use_answer,
)
from toolcrib.approvals._store import poll
from toolcrib.calls import ApprovalRequest, Denial, Grant
from toolcrib.errors import ApprovalError

__all__ = ["KeptLedger", "LedgerStore", "entry_of", "grant_of", "row_of", "text_of"]

T = TypeVar("T")


class KeptLedger(Ledger, Protocol):
    """A ledger that can be looked through, inside one transaction."""

    def entries(self, *, unused: bool) -> Iterable[ApprovalEntry]:
        """Return all entries, oldest first; or those that no call has used."""
        ...

    def standing(self, tool: str | None) -> Iterable[Grant]:
        """Return the standing grants, for a tool or all of them, oldest first."""
        ...

    def revoke(self, grant: Grant) -> bool:
        """Remove a standing grant; return whether there was one."""
        ...


class LedgerStore(ABC):
    """An approval store over a ledger; how a transaction on that is made is what each kind of store says."""

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

    async def answered(self) -> tuple[ApprovalEntry, ...]:
        """Return the requests that have an answer which no call has used, oldest first."""
        entries = await self._read(lambda ledger: ledger.entries(unused=True))
        return tuple(entry for entry in entries if entry.state == "answered")

    async def standing(self) -> tuple[Grant, ...]:
        """Return the standing grants, oldest first."""
        return tuple(await self._read(lambda ledger: ledger.standing(None)))

    async def revoke(self, grant: Grant) -> bool:
        """Take a standing grant back; return whether there was one."""
        return await self._write(lambda ledger: ledger.revoke(grant))

    # --- what each kind says

    @abstractmethod
    async def _read(self, work: Callable[[KeptLedger], T]) -> T:
        """Return what `work` finds in a transaction that sees one moment."""

    @abstractmethod
    async def _write(self, work: Callable[[KeptLedger], T]) -> T:
        """Return what `work` does in a transaction beside which nobody writes; should it raise, nothing is done."""


def entry_of(request: str, answer: str | None, used_at: str | None) -> ApprovalEntry:
    """Return the entry of a row."""
    return ApprovalEntry(
        ApprovalRequest.from_dict(json.loads(request)),
        None if answer is None else _answer_of(answer),
        None if used_at is None else datetime.fromisoformat(used_at),
    )


def row_of(entry: ApprovalEntry) -> tuple[str, str, str, str | None, str | None]:
    """Return an entry as a row: the request's id and its call's, the request, the answer, when it was used."""
    request, answer, used_at = entry.request, entry.answer, entry.used_at
    return (
        request.id,
        request.call_id,
        text_of(request),
        None if answer is None else text_of(answer),
        None if used_at is None else used_at.isoformat(),
    )


def grant_of(text: str) -> Grant:
    """Return the standing grant of a row."""
    return Grant.from_dict(json.loads(text))


def _answer_of(text: str) -> Grant | Denial:
    data: dict[str, Any] = json.loads(text)
    return Denial.from_dict(data) if data["kind"] == "denial" else Grant.from_dict(data)


def text_of(value: ApprovalRequest | Grant | Denial) -> str:
    """Return what is kept of a value; raises ApprovalError when it is no JSON."""
    try:
        return json.dumps(value.to_dict())
    except (TypeError, ValueError) as error:
        raise ApprovalError(value.tool, f"it cannot be kept in a file: {error}. Give JSON values") from error
