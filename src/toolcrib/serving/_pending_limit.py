"""How many questions one principal may leave for people to answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Protocol, runtime_checkable

from toolcrib.approvals import ApprovalEntry, ApprovalStore
from toolcrib.calls import ApprovalRequest, Denial, Grant, now
from toolcrib.errors import PendingLimitReached

__all__ = ["ListsRequests", "PendingApprovals", "countable"]


@runtime_checkable
class ListsRequests(Protocol):
    """A store that can be looked through, as all of ours can."""

    async def list(self, *, pending: bool = False) -> tuple[ApprovalEntry, ...]:
        """Return every request, oldest first; or those that wait for an answer."""
        ...


def countable(store: ApprovalStore, most: int | None) -> ListsRequests | None:
    """Return the store as what can be looked through, None where nobody counts; ValueError where it cannot be."""
    if most is None:
        return None
    if not isinstance(store, ListsRequests):
        raise ValueError(
            f"{type(store).__name__} cannot list its requests, and those of one principal are counted; give it a "
            "method `list`, or the server max_pending=None"
        )
    return store


class PendingApprovals:
    """The approval store as the calls of one principal have it: so many of their requests may wait at a time.

    Servers that share a store count what is in it, so that two which are asked at the same moment may keep one more.

    Args:
        store: Where the requests of all are kept.
        principal: Whose requests are counted.
        most: How many may wait for an answer; None for any number.
        counts_for: For how long a request counts; the call that waits for it can be taken up that long.

    Raises:
        ValueError: They are to be counted, and the store cannot list them.
    """

    def __init__(self, store: ApprovalStore, principal: str, most: int | None, counts_for: timedelta) -> None:
        self.store = store
        self._principal, self._most, self._counts_for = principal, most, counts_for
        self._forms: set[str] = set()
        self._lock = asyncio.Lock()
        self._listed = countable(store, most)

    @asynccontextmanager
    async def form(self, request: ApprovalRequest) -> AsyncGenerator[None]:
        """Count a request while a client's user has it before them; raises PendingLimitReached."""
        async with self._lock:
            await self._find_room(request)
            self._forms.add(request.id)
        try:
            yield
        finally:
            self._forms.discard(request.id)

    async def put(self, request: ApprovalRequest) -> None:
        """Keep a request until it is answered; raises PendingLimitReached."""
        async with self._lock:
            await self._find_room(request)
            await self.store.put(request)

    async def answer(self, answer: Grant | Denial) -> None:
        await self.store.answer(answer)

    async def take(self, request: ApprovalRequest) -> Grant | Denial | None:
        return await self.store.take(request)

    async def use(self, request: ApprovalRequest, answer: Grant | Denial) -> None:
        await self.store.use(request, answer)

    async def _find_room(self, request: ApprovalRequest) -> None:
        if self._listed is None or self._most is None:
            return
        since = now() - self._counts_for
        asked = [entry.request for entry in await self._listed.list(pending=True)]
        mine = {one.id for one in asked if one.principal == self._principal and one.created_at > since}
        waiting = mine | self._forms
        if request.id not in waiting and len(waiting) >= self._most:
            raise PendingLimitReached(request.tool, self._principal, self._most, self._counts_for)
