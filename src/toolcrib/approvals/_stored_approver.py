"""stored_approver: an approver for people who are not here."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from toolcrib.approvals._policy import Approver
from toolcrib.approvals._store import ApprovalStore
from toolcrib.calls import ApprovalRequest, Denial, Grant

__all__ = ["WaitableApprovalStore", "stored_approver"]


@runtime_checkable
class WaitableApprovalStore(ApprovalStore, Protocol):
    """A store that can wait for an answer, as all of toolcrib's can."""

    async def wait(self, request_id: str, timeout: float | None = None) -> Grant | Denial | None:
        """Return the answer to a request once it has one; None after `timeout` seconds."""
        ...


def stored_approver(store: WaitableApprovalStore, timeout: float | None = None) -> Approver:
    """Return an approver that keeps each request in a store, and waits until somebody answers it there.

    So a run goes on waiting while a person looks at the console, or types `toolcrib approvals approve`, wherever. Give
    the run the store as well, so that an answer is used once: `Run(approvals=store, approver=stored_approver(store))`.

    Args:
        store: Where the answer is looked for.
        timeout: Seconds to wait at most; then the call is suspended.
    """

    async def approver(request: ApprovalRequest) -> Grant | Denial | None:
        await store.put(request)
        return await store.wait(request.id, timeout)

    return approver
