"""Answers that let paused work go on, as an approval store lists them."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Protocol, runtime_checkable

from toolcrib.approvals import ApprovalEntry, ReviewableApprovalStore, misfit
from toolcrib.errors import ApprovalError, NewerForm


@runtime_checkable
class AnswerStore(ReviewableApprovalStore, Protocol):
    """An approval store that can also list the answers that no call has used."""

    async def answered(self) -> tuple[ApprovalEntry, ...]:
        """Return the requests with an answer that no call has used, oldest first."""
        ...

    async def used(self, request_ids: Iterable[str]) -> frozenset[str]:
        """Return those of the requests whose answers are used up."""
        ...


def require_answer_store(who: str, store: object) -> None:
    """Raise TypeError for what is given as the option `approvals` and is not a store, such as the path of one."""
    if not isinstance(store, AnswerStore | None):
        raise TypeError(
            f"{who}: approvals must be a store, as in approvals=SqliteApprovalStore('approvals.db'), not {store!r:.80}"
        )


async def answered_entries(store: AnswerStore) -> list[ApprovalEntry]:
    """Return the requests whose work can go on: those with an answer that no call has used, and `allowed_meanwhile`."""
    return [*await store.answered(), *await allowed_meanwhile(store)]


async def allowed_meanwhile(store: AnswerStore) -> list[ApprovalEntry]:
    """Return the requests that wait, though a standing grant allows by now what they ask for.

    Not those about a call in doubt: "always" was not said of making one twice.
    """
    try:
        standing = await store.standing()
    except NewerForm:  # a newer worker reads them
        return []
    if not standing:
        return []
    waiting = [entry for entry in await store.list(pending=True) if not entry.request.in_doubt]
    return [entry for entry in waiting if any(not misfit(grant, entry.request) for grant in standing)]


async def deny_cancelled(store: AnswerStore, request_id: str, what: str) -> None:
    """Deny the request of work that was cancelled, unless it is answered; no work will use the answer."""
    with suppress(ApprovalError):  # it is used, or missing
        entry = await store.show(request_id)
        denied = entry.request.deny(message=f"the {what} was cancelled", by="cancel")
        await store.use(entry.request, entry.answer if entry.state == "answered" and entry.answer else denied)
