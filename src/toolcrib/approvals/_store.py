"""Where requests wait and answers are found: each answer once, each standing grant as long as it holds."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterable
from typing import Protocol

from toolcrib.approvals._ledger import (
    ApprovalEntry,
    keep_answer,
    keep_request,
    take_answer,
    unknown_request,
    use_answer,
)
from toolcrib.calls import ApprovalRequest, Denial, Grant

__all__ = ["ApprovalStore", "MemoryApprovalStore", "poll"]

_POLL_SECONDS = 0.1


class ApprovalStore(Protocol):
    """Keeps what was asked and what was answered; the pipeline asks it before it asks a person.

    What does not fit is an `ApprovalError`: the call fails with it, or whoever answers is told.
    """

    async def put(self, request: ApprovalRequest) -> None:
        """Keep a request until it is answered."""
        ...

    async def answer(self, answer: Grant | Denial) -> None:
        """Take a grant or a denial; raises `ApprovalError` when it answers nothing that is asked."""
        ...

    async def take(self, request: ApprovalRequest) -> Grant | Denial | None:
        """Return what answers this request and use it up; a standing grant stays.

        Of several who ask at once, in whatever process, one gets the answer; raises `ApprovalError` for a request that
        a call went on with before.
        """
        ...

    async def use(self, request: ApprovalRequest, answer: Grant | Denial) -> None:
        """Keep an answer that came with the call and use it up; raises `ApprovalError` when it was used before."""
        ...


async def poll(look: Callable[[], Awaitable[ApprovalEntry]], timeout: float | None) -> Grant | Denial | None:
    """Return the answer to a request once it has one; None when it has none after `timeout` seconds."""
    try:
        async with asyncio.timeout(timeout):
            while True:  # the answer may come from another process, which cannot set an event here
                entry = await look()
                if entry.state != "pending":
                    return entry.answer
                await asyncio.sleep(_POLL_SECONDS)
    except TimeoutError:
        return None


class MemoryApprovalStore:
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

    async def put(self, request: ApprovalRequest) -> None:
        """Keep a request until it is answered."""
        with self._lock:
            keep_request(self._ledger, request)

    async def answer(self, answer: Grant | Denial) -> None:
        """Take a grant or a denial.

        Raises:
            ApprovalError: The request is unknown or answered already, or the grant does not fit it.
        """
        with self._lock:
            keep_answer(self._ledger, answer)

    async def take(self, request: ApprovalRequest) -> Grant | Denial | None:
        """Return what answers this request and use it up; a standing grant stays.

        Raises:
            ApprovalError: A call went on with the answer to this request already.
        """
        with self._lock:
            return take_answer(self._ledger, request)

    async def use(self, request: ApprovalRequest, answer: Grant | Denial) -> None:
        """Keep an answer that came with the call, and use it up.

        Raises:
            ApprovalError: It was used before, or the request was answered otherwise.
        """
        with self._lock:
            use_answer(self._ledger, request, answer)

    async def wait(self, request_id: str, timeout: float | None = None) -> Grant | Denial | None:
        """Return the answer to a request once it has one, without using it up; None after `timeout` seconds."""
        return await poll(lambda: self.show(request_id), timeout)

    async def show(self, request_id: str) -> ApprovalEntry:
        """Return a request with its answer; raises `ApprovalError` for an unknown one."""
        entry = self._ledger.entry(request_id)
        if entry is None:
            raise unknown_request(request_id)
        return entry

    async def list(self, *, pending: bool = False) -> tuple[ApprovalEntry, ...]:
        """Return every request, oldest first; or those that wait for an answer."""
        return tuple(e for e in self._ledger.entries.values() if not pending or e.state == "pending")

    async def answered(self) -> tuple[ApprovalEntry, ...]:
        """Return the requests that have an answer which no call has used, oldest first."""
        return tuple(e for e in self._ledger.entries.values() if e.state == "answered")

    async def standing(self) -> tuple[Grant, ...]:
        """Return the standing grants, oldest first."""
        return tuple(self._ledger.grants)

    async def revoke(self, grant: Grant) -> bool:
        """Take a standing grant back; return whether there was one."""
        with self._lock:
            kept = [g for g in self._ledger.grants if g != grant]
            found = len(kept) < len(self._ledger.grants)
            self._ledger.grants = kept
            return found


class _MemoryLedger:
    def __init__(self) -> None:
        self.entries: dict[str, ApprovalEntry] = {}
        self.grants: list[Grant] = []
        self._calls: dict[str, list[str]] = {}

    def entry(self, request_id: str) -> ApprovalEntry | None:
        return self.entries.get(request_id)

    def entries_of(self, call_id: str) -> Iterable[ApprovalEntry]:
        return [self.entries[request_id] for request_id in self._calls.get(call_id, ())]

    def write(self, entry: ApprovalEntry) -> None:
        request = entry.request
        if request.id not in self.entries:
            self._calls.setdefault(request.call_id, []).append(request.id)
        self.entries[request.id] = entry

    def standing(self, tool: str) -> Iterable[Grant]:
        return [grant for grant in self.grants if grant.tool == tool]

    def stand(self, grant: Grant) -> None:
        self.grants.append(grant)
