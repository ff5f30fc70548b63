"""Approval stores over a ledger: their common part, and the one in memory."""

from __future__ import annotations

import asyncio
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import TypeVar

from toolcrib.approvals._ledger import (
    ApprovalEntry,
    Ledger,
    keep_answer,
    keep_request,
    take_answer,
    unknown_request,
    use_answer,
)
from toolcrib.calls import ApprovalRequest, Denial, Grant

__all__ = ["LedgerStore", "MemoryApprovalStore"]

T = TypeVar("T")

_POLL_SECONDS = 0.1


class LedgerStore(ABC):
    """An approval store over a ledger; each kind of ledger is a subclass."""

    @abstractmethod
    async def _run(self, work: Callable[[Ledger], T], *, write: bool) -> T:
        """Return the result of `work` in a transaction, which is taken back if `work` raises.

        Args:
            write: Whether `work` writes; no other transaction writes meanwhile.
        """

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
        try:
            async with asyncio.timeout(timeout):
                while True:  # the answer may come from another process, which cannot set an event here
                    entry = await self.show(request_id)
                    if entry.state != "pending":
                        return entry.answer
                    await asyncio.sleep(_POLL_SECONDS)
        except TimeoutError:
            return None

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
        entries = await self._run(lambda ledger: ledger.answered(), write=False)
        return tuple(entry for entry in entries if entry.state == "answered")

    async def count_pending(self) -> tuple[int, int]:
        """Return how many requests are pending, and how many of these are about calls in doubt."""
        return await self._run(_count_pending, write=False)

    async def standing(self) -> tuple[Grant, ...]:
        """Return the standing grants, oldest first."""
        return tuple(await self._run(lambda ledger: ledger.standing(None), write=False))

    async def revoke(self, grant: Grant) -> bool:
        """Take a standing grant back; return whether there was one."""
        return await self._run(lambda ledger: ledger.revoke(grant), write=True)


def _count_pending(ledger: Ledger) -> tuple[int, int]:
    expired = [entry.request for entry in ledger.answered() if entry.state == "pending"]
    total, in_doubt = ledger.unanswered()
    return total + len(expired), in_doubt + sum(request.in_doubt for request in expired)


class MemoryApprovalStore(LedgerStore):
    """An approval store in memory, for one process.

    Args:
        grants: Standing grants to begin with; a ValueError for any other.
    """

    def __init__(self, grants: Iterable[Grant] = ()) -> None:
        self._ledger = _MemoryLedger()
        self._lock = threading.Lock()  # programs and agents may run in several threads
        for grant in grants:
            if not grant.standing:
                raise ValueError(f"the grant for `{grant.tool}` is for one call; answer its request with it")
            self._ledger.stand(grant)

    async def _run(self, work: Callable[[Ledger], T], *, write: bool) -> T:
        with self._lock:
            return work(self._ledger)


class _MemoryLedger:
    def __init__(self) -> None:
        self._entries: dict[str, ApprovalEntry] = {}
        self._grants: list[Grant] = []
        self._calls: dict[str, list[str]] = {}

    def entry(self, request_id: str) -> ApprovalEntry | None:
        return self._entries.get(request_id)

    def entries_of(self, call_id: str) -> Iterable[ApprovalEntry]:
        return [self._entries[request_id] for request_id in self._calls.get(call_id, ())]

    def write(self, entry: ApprovalEntry) -> None:
        request = entry.request
        if request.id not in self._entries:
            self._calls.setdefault(request.call_id, []).append(request.id)
        self._entries[request.id] = entry

    def entries(self, *, unused: bool) -> Iterable[ApprovalEntry]:
        return list(self._entries.values())

    def answered(self) -> Iterable[ApprovalEntry]:
        return [entry for entry in self._entries.values() if entry.answer is not None and entry.used_at is None]

    def unanswered(self) -> tuple[int, int]:
        requests = [entry.request for entry in self._entries.values() if entry.answer is None]
        return len(requests), sum(request.in_doubt for request in requests)

    def standing(self, tool: str | None) -> Iterable[Grant]:
        return [grant for grant in self._grants if tool in (None, grant.tool)]

    def stand(self, grant: Grant) -> None:
        self._grants.append(grant)

    def revoke(self, grant: Grant) -> bool:
        before, self._grants = self._grants, [kept for kept in self._grants if kept != grant]
        return len(self._grants) < len(before)
