"""Protocols of approval stores: for the pipeline, for a caller that waits, and for a person who looks through one."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from toolcrib.approvals._ledger import ApprovalEntry
from toolcrib.calls import ApprovalRequest, Denial, Grant

__all__ = ["ApprovalStore", "ReviewableApprovalStore", "WaitableApprovalStore"]


@runtime_checkable
class ApprovalStore(Protocol):
    """Keeps approval requests and their answers; the pipeline asks it before it asks a person.

    An answer that does not fit is an `ApprovalError`, for the call or for the approver.
    """

    async def put(self, request: ApprovalRequest) -> None:
        """Keep a request until it is answered."""
        ...

    async def answer(self, answer: Grant | Denial) -> None:
        """Take a grant or a denial; raises `ApprovalError` when it answers nothing that is asked."""
        ...

    async def take(self, request: ApprovalRequest) -> Grant | Denial | None:
        """Return what answers this request and use it up; a standing grant stays.

        Of several calls at once, in any processes, one gets the answer; raises `ApprovalError` for a used request.
        """
        ...

    async def use(self, request: ApprovalRequest, answer: Grant | Denial) -> None:
        """Keep an answer that came with the call and use it up; raises `ApprovalError` when it was used before."""
        ...


@runtime_checkable
class WaitableApprovalStore(ApprovalStore, Protocol):
    """An approval store that can wait for an answer, as all of toolcrib's can."""

    async def wait(self, request_id: str, timeout: float | None = None) -> Grant | Denial | None:
        """Return the answer to a request once it has one; None after `timeout` seconds."""
        ...


class ReviewableApprovalStore(WaitableApprovalStore, Protocol):
    """An approval store whose requests and standing grants can be listed, as those of all of toolcrib's can."""

    async def show(self, request_id: str) -> ApprovalEntry:
        """Return a request with its answer; raises `ApprovalError` for an unknown one."""
        ...

    async def list(self, *, pending: bool = False) -> tuple[ApprovalEntry, ...]:
        """Return every request, oldest first; or those that are pending."""
        ...

    async def count_pending(self) -> tuple[int, int]:
        """Return how many requests are pending, and how many of these are about calls in doubt."""
        ...

    async def standing(self) -> tuple[Grant, ...]:
        """Return the standing grants, oldest first."""
        ...

    async def revoke(self, grant: Grant) -> bool:
        """Take a standing grant back; return whether there was one."""
        ...
