"""Protocols of approval stores: for the pipeline, for a caller that waits, and for a person who looks through one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from toolcrib.approvals._entry import ApprovalEntry
from toolcrib.approvals._executions import Execution
from toolcrib.approvals._saved_sessions import SavedSession
from toolcrib.calls import ApprovalRequest, Denial, Grant, GrantUse
from toolcrib.errors import ApprovalError, explain_options


@runtime_checkable
class ApprovalStore(Protocol):
    """Keeps approval requests and their answers; the pipeline asks it before it asks a person.

    An answer that does not fit is an `ApprovalError`, for the call or for the approver.
    """

    async def put(self, request: ApprovalRequest) -> None:
        """Keep a request until it is answered."""
        ...

    async def answer(self, answer: Grant | Denial) -> None:
        """Store a grant or a denial; raises `ApprovalError` when it answers nothing that is asked."""
        ...

    async def take(self, request: ApprovalRequest) -> Grant | Denial | ApprovalEntry | None:
        """Return the answer to this request; its entry, where its call has begun; or a pending one for the same call.

        A denial is used up by this, and a grant when its call begins; a standing grant stays. The last is an equal
        request about the same call, under another id: the call waits by that one. Raises `ApprovalError` for a closed
        request.
        """
        ...

    async def use(self, request: ApprovalRequest, answer: Grant | Denial) -> ApprovalEntry | None:
        """Keep an answer that came with the call; return the entry by which the call has begun, if it has.

        Raises `ApprovalError` when the answer was used before.
        """
        ...

    async def begin(
        self, request: ApprovalRequest, grant: Grant | None, *, again: bool = False
    ) -> ApprovalEntry | None:
        """Record that a call begins, and use up its grant; return the entry by which it has begun, if it has.

        Of several calls at once, in any processes, one may begin. `again` lets a call in doubt begin once more.
        """
        ...

    async def end(self, request: ApprovalRequest, grant: Grant | None, result: Mapping[str, Any] | None = None) -> None:
        """Record that a call which began here has ended, with its result, as JSON shapes, where that can be stored."""
        ...

    async def break_off(self, request: ApprovalRequest, grant: Grant | None) -> None:
        """Record that a call was broken off, or ended with an error and is to be made again: it is in doubt."""
        ...

    async def undo(self, request: ApprovalRequest) -> None:
        """Forget that a call began, which asked for approval before it did anything."""
        ...

    async def like(self, request: ApprovalRequest) -> tuple[ApprovalEntry, ...]:
        """Return the entries of other, equal calls that are executed now, are in doubt, or ended within an hour."""
        ...


class WrappedApprovalStore:
    """An approval store that does what another one does; a subclass changes some of it.

    Args:
        store: The other one.
    """

    def __init__(self, store: ApprovalStore) -> None:
        self.store = store

    async def put(self, request: ApprovalRequest) -> None:
        await self.store.put(request)

    async def answer(self, answer: Grant | Denial) -> None:
        await self.store.answer(answer)

    async def take(self, request: ApprovalRequest) -> Grant | Denial | ApprovalEntry | None:
        return await self.store.take(request)

    async def use(self, request: ApprovalRequest, answer: Grant | Denial) -> ApprovalEntry | None:
        return await self.store.use(request, answer)

    async def begin(
        self, request: ApprovalRequest, grant: Grant | None, *, again: bool = False
    ) -> ApprovalEntry | None:
        return await self.store.begin(request, grant, again=again)

    async def end(self, request: ApprovalRequest, grant: Grant | None, result: Mapping[str, Any] | None = None) -> None:
        await self.store.end(request, grant, result)

    async def break_off(self, request: ApprovalRequest, grant: Grant | None) -> None:
        await self.store.break_off(request, grant)

    async def undo(self, request: ApprovalRequest) -> None:
        await self.store.undo(request)

    async def like(self, request: ApprovalRequest) -> tuple[ApprovalEntry, ...]:
        return await self.store.like(request)

    async def digest_key(self) -> bytes | None:
        return await self.store.digest_key() if isinstance(self.store, KeepsDigestKey) else None

    async def claim(self, key: str) -> Execution | None:
        return await self.store.claim(key) if isinstance(self.store, ClaimsWork) else None

    async def release(self, key: str, *, ended: bool, result: Mapping[str, Any] | None = None) -> None:
        if isinstance(self.store, ClaimsWork):
            await self.store.release(key, ended=ended, result=result)


@runtime_checkable
class ClaimsWork(Protocol):
    """An approval store by which one process at a time goes on with a piece of work, as all of toolcrib's can."""

    async def claim(self, key: str) -> Execution | None:
        """Claim a piece of work for this process until `release`; return the claim of who works on it, or ended it."""
        ...

    async def release(self, key: str, *, ended: bool, result: Mapping[str, Any] | None = None) -> None:
        """Release a claim; where the work has `ended`, no one may claim it any more, and its result is kept."""
        ...


@runtime_checkable
class KeepsDigestKey(Protocol):
    """An approval store with a key for the digests of secret arguments, as all of toolcrib's are.

    Requests and answers have such a digest: without a key, who reads one finds a PIN of four digits at once.
    """

    async def digest_key(self) -> bytes | None:
        """Return the key, the same in all processes with this store; None where it has none."""
        ...


@runtime_checkable
class KeepsJournals(ClaimsWork, Protocol):
    """An approval store that keeps journals of claimed work, too, as all of toolcrib's can."""

    async def append_lines(self, key: str, journal: str, lines: Sequence[str]) -> bool:
        """Append lines to a journal, if the work is claimed by this store still; return whether it is.

        In one transaction: a process that was taken for lost writes nothing more.
        """
        ...

    async def read_lines(self, journal: str) -> tuple[str, ...]:
        """Return the lines of a journal, in order."""
        ...

    async def remove_lines(self, journal: str) -> None:
        """Remove a journal."""
        ...


@runtime_checkable
class KeepsSessions(ApprovalStore, ClaimsWork, Protocol):
    """An approval store that keeps sessions, too, as all of toolcrib's can."""

    async def load_session(self, session_id: str) -> SavedSession | None:
        """Return the session of this id, or None."""
        ...

    async def save_session(self, session: SavedSession) -> bool:
        """Write a session in place of the one with the number before; return whether that was there."""
        ...

    async def delete_session(self, session_id: str) -> bool:
        """Remove a session; return whether there was one."""
        ...


@runtime_checkable
class WaitableApprovalStore(ApprovalStore, Protocol):
    """An approval store that can wait for an answer, as all of toolcrib's can."""

    async def wait(self, request_id: str, timeout: float | None = None) -> Grant | Denial | None:
        """Return the answer to a request once it has one; None after `timeout` seconds."""
        ...


@runtime_checkable
class ReviewableApprovalStore(WaitableApprovalStore, Protocol):
    """An approval store whose requests and standing grants can be listed, as those of all of toolcrib's can."""

    async def show(self, request_id: str) -> ApprovalEntry:
        """Return a request with its answer; raises `ApprovalError` for an unknown one."""
        ...

    async def answer_each(
        self, request_ids: Iterable[str], make: Callable[[ApprovalEntry], Grant | Denial]
    ) -> dict[str, ApprovalEntry | ApprovalError]:
        """Store the answer that is made for each request; return its entry with it, or why it has none."""
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

    async def grant_uses(self, grants: Iterable[Grant]) -> tuple[GrantUse, ...]:
        """Return how often each standing grant was used, up to which sum, and when last; in their order."""
        ...

    async def revoke(self, grant: Grant) -> bool:
        """Revoke a standing grant; return whether there was one."""
        ...


async def find_entry(store: object, request_id: str) -> ApprovalEntry | None:
    """Return the entry of a request in a store; None without one, or where the store cannot be searched."""
    if not isinstance(store, ReviewableApprovalStore):
        return None
    try:
        return await store.show(request_id)
    except ApprovalError:
        return None


@explain_options()
async def pending_requests(requests: Iterable[ApprovalRequest], store: ApprovalStore) -> list[ApprovalRequest]:
    """Return those of some requests that a store has no answer to: a person has still to decide them."""
    entries = [(request, await find_entry(store, request.id)) for request in requests]
    return [request for request, entry in entries if entry is None or entry.state == "pending"]
