"""An approver that stores each request and waits for the answer."""

from __future__ import annotations

from toolcrib.approvals._policy import Approver
from toolcrib.approvals._store import WaitableApprovalStore
from toolcrib.calls import ApprovalRequest, Denial, Grant

__all__ = ["stored_approver"]


def stored_approver(store: WaitableApprovalStore, timeout: float | None = None) -> Approver:
    """Return an approver that stores each request, and waits until it is answered there.

    The call waits while a person looks at the console, or types `toolcrib approvals approve` on another machine. Give
    the run the store as well, so that an answer is used once: `Run(approvals=store, approver=stored_approver(store))`.

    Args:
        store: The store of requests and answers.
        timeout: Seconds to wait at most; then the call is suspended.
    """

    async def approver(request: ApprovalRequest) -> Grant | Denial | None:
        await store.put(request)
        return await store.wait(request.id, timeout)

    return approver
