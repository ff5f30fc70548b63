"""RunStore: the approvals as a durable run sees them, which may ask twice for one answer, but acts on it once."""

from __future__ import annotations

from toolcrib.adapters.dbos._continuation import AnswerStore
from toolcrib.approvals import ApprovalEntry
from toolcrib.calls import ApprovalRequest, Denial, Grant
from toolcrib.errors import ApprovalError

__all__ = ["RunStore"]


class RunStore:
    """The approval store of a durable run.

    A worker may die after it used an answer up and before it noted that the call has begun. Whoever takes the run up
    then gets the same answer again: the journal says that the call has not begun, and lets one execution begin it.

    Args:
        store: Where requests and answers are.
    """

    def __init__(self, store: AnswerStore) -> None:
        self._store = store

    async def put(self, request: ApprovalRequest) -> None:
        """Keep a request until it is answered."""
        await self._store.put(request)

    async def answer(self, answer: Grant | Denial) -> None:
        """Take a grant or a denial."""
        await self._store.answer(answer)

    async def take(self, request: ApprovalRequest) -> Grant | Denial | None:
        """Return what answers a request and use it up; or what this run used up for it before."""
        used = await self._used(request.id)
        return await self._store.take(request) if used is None else used

    async def use(self, request: ApprovalRequest, answer: Grant | Denial) -> None:
        """Keep an answer that came with the call, and use it up; what this run used up for it before, is."""
        if await self._used(request.id) != answer:
            await self._store.use(request, answer)

    async def answer_to(self, request_id: str) -> Grant | Denial | None:
        """Return what was answered to a request, used up or not; None when it waits, or nobody knows it."""
        entry = await self._entry(request_id)
        return None if entry is None or entry.state == "pending" else entry.answer

    async def _used(self, request_id: str) -> Grant | Denial | None:
        entry = await self._entry(request_id)
        return None if entry is None or entry.used_at is None else entry.answer

    async def _entry(self, request_id: str) -> ApprovalEntry | None:
        try:
            return await self._store.show(request_id)
        except ApprovalError:  # nobody was asked
            return None
