"""Limit of the approval requests of one principal that wait for an answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Protocol, runtime_checkable

from toolcrib.approvals import ApprovalEntry, ApprovalStore, WrappedApprovalStore
from toolcrib.calls import ApprovalRequest, now
from toolcrib.errors import PendingLimitReached


@runtime_checkable
class ListsRequests(Protocol):
    """A store that can list its requests, as all of toolcrib's can."""

    async def list(self, *, pending: bool = False) -> tuple[ApprovalEntry, ...]:
        """Return every request, oldest first; or those that wait for an answer."""
        ...


def check_countable(store: ApprovalStore, limit: int | None) -> ListsRequests | None:
    """Return the store as one that can list its requests; None where there is no limit.

    Raises:
        ValueError: There is a limit, and the store cannot list its requests.
    """
    if limit is None:
        return None
    if not isinstance(store, ListsRequests):
        raise ValueError(
            f"{type(store).__name__} cannot list its requests, and those of one principal are counted; give it a "
            "method `list`, or the server max_pending=None"
        )
    return store


class PendingApprovals(WrappedApprovalStore):
    """The approval store as the calls of one principal see it: a limited number of their requests may be pending.

    Servers that share a store count what is in it, so two that are called at the same moment may keep one more.

    Args:
        store: The store of all requests.
        principal: The principal whose requests are counted.
        limit: How many may be pending; None for any number.
        counts_for: For how long a request counts; its suspended call can be continued that long.

    Raises:
        ValueError: There is a limit, and the store cannot list its requests.
    """

    def __init__(self, store: ApprovalStore, principal: str, limit: int | None, counts_for: timedelta) -> None:
        super().__init__(store)
        self._principal, self._limit, self._counts_for = principal, limit, counts_for
        self._forms: set[str] = set()
        self._lock = asyncio.Lock()
        self._listed = check_countable(store, limit)

    @asynccontextmanager
    async def form(self, request: ApprovalRequest) -> AsyncGenerator[None]:
        """Count a request while a client shows it as a form; raises PendingLimitReached."""
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

    async def _find_room(self, request: ApprovalRequest) -> None:
        if self._listed is None or self._limit is None:
            return
        since = now() - self._counts_for
        listed = [entry.request for entry in await self._listed.list(pending=True)]
        pending = {other.id for other in listed if other.principal == self._principal and other.created_at > since}
        pending |= self._forms
        if request.id not in pending and len(pending) >= self._limit:
            raise PendingLimitReached(request.tool, self._principal, self._limit, self._counts_for)
