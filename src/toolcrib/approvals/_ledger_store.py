"""Approval stores over a ledger: their common part."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from functools import cached_property, partial
from typing import Any, TypeVar

from toolcrib._numbers import require_seconds
from toolcrib.approvals._claims import (
    claim_work,
    executions_like,
    release_work,
    renew_claims,
    renew_executions,
)
from toolcrib.approvals._entry import ApprovalEntry
from toolcrib.approvals._executions import Execution, Heartbeat, active_executions
from toolcrib.approvals._ledger import Ledger
from toolcrib.approvals._ledger_rules import (
    begin_execution,
    deny_expired,
    end_execution,
    keep_answer,
    keep_request,
    kept_digest_key,
    revoke_grant,
    take_answer,
    undo_execution,
    unknown_request,
    use_answer,
    uses_of,
)
from toolcrib.approvals._notices import Notice, begin_notices, due_notices, undo_notices
from toolcrib.approvals._policy import require_answer
from toolcrib.approvals._saved_sessions import SavedSession
from toolcrib.calls import ApprovalRequest, Denial, Grant, GrantUse
from toolcrib.clock import WALL_CLOCK, Clock, time_of, wait_until_set
from toolcrib.errors import ApprovalError, explain_missing, explain_options

T = TypeVar("T")

_CLAIM = "claim:"


@explain_missing(
    {
        **dict.fromkeys(("__enter__", "__aenter__"), "`store = ...`, which opens its database when it is used"),
        "approve": "`store.answer(entry.request.grant(by=...))`, of the entry `await store.show(request_id)`",
        "deny": "`store.answer(entry.request.deny(by=...))`, of the entry `await store.show(request_id)`",
    }
)
class LedgerStore(ABC):
    """An approval store over a ledger; each kind of ledger is a subclass."""

    _polling: float | None = 0.1
    """Seconds between two looks for what other processes wrote; None for a ledger that no other process has."""

    _clock: Clock = WALL_CLOCK
    _digest_key: bytes | None = None

    @cached_property
    def _executing(self) -> dict[str, str]:
        """The executions of this process, by their requests."""
        return {}

    @cached_property
    def _heartbeat(self) -> Heartbeat:
        return Heartbeat(self._renew)

    def _renew(self, ids: Iterable[str]) -> None:
        """Renew executions and claims of this process, where other processes read the ledger."""
        return

    @staticmethod
    def _renew_in(ledger: Ledger, ids: Iterable[str]) -> None:
        claims = {id for id in ids if id.startswith(_CLAIM)}
        renew_claims(ledger, (id.removeprefix(_CLAIM) for id in claims))
        renew_executions(ledger, {*ids} - claims)

    async def digest_key(self) -> bytes:
        """Return the key of the digests of secret arguments, which is made when it is first asked for."""
        if self._digest_key is None:
            known = await self._run(lambda ledger: ledger.digest_key(), write=False)
            self._digest_key = bytes.fromhex(known or await self._run(kept_digest_key, write=True))
        return self._digest_key

    @abstractmethod
    async def _run(self, work: Callable[[Ledger], T], *, write: bool) -> T:
        """Return the result of `work` in a transaction, which is taken back if `work` raises.

        Args:
            write: Whether `work` writes; no other transaction writes meanwhile.
        """

    async def _commit(self, work: Callable[[Ledger], T]) -> T:
        """Return the result of `work` in a transaction, and wake what waits in this process.

        What has expired is denied in the same transaction, before it, and in one of its own where `work` raises.
        """
        at = time_of(self._clock)

        def write(ledger: Ledger) -> T:
            deny_expired(ledger, at)
            return work(ledger)

        try:
            return await self._run(write, write=True)
        except ApprovalError:
            await self._run(lambda ledger: deny_expired(ledger, at), write=True)  # else a clock that goes back opens it
            raise
        finally:
            self._wake()

    async def _read_current(self, work: Callable[[Ledger], T]) -> T:
        """Return the result of `work` in a transaction which reads; what has expired is denied before."""
        at = time_of(self._clock)

        def read(ledger: Ledger) -> tuple[bool, T]:
            return not any(True for _ in ledger.due(at)), work(ledger)

        is_current, found = await self._run(read, write=False)
        return found if is_current else await self._commit(work)

    def _wake(self) -> None:
        for loop, written in tuple(self._waiters):
            with suppress(RuntimeError):  # its loop has been closed
                loop.call_soon_threadsafe(written.set)

    @property
    def _waiters(self) -> set[tuple[asyncio.AbstractEventLoop, asyncio.Event]]:
        return vars(self).setdefault("_waiters", set())  # in one step: threads may ask for it at once

    @contextmanager
    def _waiter(self, request_id: str) -> Generator[asyncio.Event]:
        """Return an event that is set at each write of this store, and when another may have written of a request."""
        waiter = asyncio.get_running_loop(), asyncio.Event()
        self._waiters.add(waiter)
        try:
            yield waiter[1]
        finally:
            self._waiters.discard(waiter)

    async def put(self, request: ApprovalRequest) -> None:
        """Keep a request until it is answered."""
        await self._commit(lambda ledger: keep_request(ledger, request))

    async def answer(self, answer: Grant | Denial) -> None:
        """Store a grant or a denial.

        Raises:
            ApprovalError: The request is unknown or answered already, or the grant does not fit it.
            TypeError: It is not an answer.
        """
        require_answer("the answer", answer)
        at = time_of(self._clock)
        await self._commit(lambda ledger: keep_answer(ledger, answer, at))

    @explain_options()
    async def answer_each(
        self, request_ids: Iterable[str], make: Callable[[ApprovalEntry], Grant | Denial]
    ) -> dict[str, ApprovalEntry | ApprovalError]:
        """Store the answer that is made for each request, in one transaction.

        Returns:
            The entry of each request with its answer, or why it has none; the others are answered all the same.
        """
        at, ids = time_of(self._clock), dict.fromkeys(request_ids)
        return await self._commit(lambda ledger: _answer_each(ledger, ids, make, at))

    async def take(self, request: ApprovalRequest) -> Grant | Denial | ApprovalEntry | None:
        """Return the answer to this request, its entry where its call has begun, or one that asks the same already.

        Raises:
            ApprovalError: The request is closed.
        """
        return await self._commit(lambda ledger: take_answer(ledger, request))

    async def use(self, request: ApprovalRequest, answer: Grant | Denial) -> ApprovalEntry | None:
        """Store an answer that came with the call; return the entry by which the call has begun, if it has.

        Raises:
            ApprovalError: It was used before, or the request was answered otherwise.
        """
        return await self._commit(lambda ledger: use_answer(ledger, request, answer))

    async def begin(
        self, request: ApprovalRequest, grant: Grant | None, *, again: bool = False
    ) -> ApprovalEntry | None:
        """Record that the call of a request begins, and use up its grant.

        Args:
            grant: The grant by which the call begins; None for one that needs no approval.
            again: Whether a call in doubt may begin once more, as its tool is idempotent.

        Returns:
            The entry by which the call has begun before: then it may not begin now.

        Raises:
            ApprovalError: The request was denied, or is closed.
        """
        execution = Execution()
        active_executions.add(execution.id)  # before another task can read the entry
        begun: ApprovalEntry | None = None
        try:
            begun = await self._commit(lambda ledger: begin_execution(ledger, request, grant, execution, again=again))
        except BaseException:
            active_executions.discard(execution.id)
            raise
        if begun is not None:
            active_executions.discard(execution.id)
            return begun
        self._executing[request.id] = execution.id
        self._heartbeat.add(request.id)
        return None

    async def end(self, request: ApprovalRequest, grant: Grant | None, result: Mapping[str, Any] | None = None) -> None:
        """Record that a call which began here has ended, with its result, as JSON shapes, where that can be stored."""
        begun = self._executing.get(request.id)
        try:
            await self._commit(partial(end_execution, request=request, grant=grant, execution_id=begun, result=result))
        finally:
            self._forget(request.id)

    async def break_off(self, request: ApprovalRequest, grant: Grant | None) -> None:
        """Record that a call which began here was broken off: it is in doubt."""
        begun = self._executing.get(request.id)
        self._forget(request.id)
        await self._commit(partial(end_execution, request=request, grant=grant, execution_id=begun, broken_off=True))

    async def undo(self, request: ApprovalRequest) -> None:
        """Forget that a call began, which asked for approval before it did anything."""
        self._forget(request.id)
        await self._commit(partial(undo_execution, request=request))

    async def claim(self, key: str) -> Execution | None:
        """Claim a piece of work for this process until `release`; return the claim of who works on it, or ended it."""
        claim = Execution()
        active_executions.add(claim.id)
        found: Execution | None = claim
        try:
            found = await self._commit(lambda ledger: claim_work(ledger, key, claim))
        finally:
            if found is not None:
                active_executions.discard(claim.id)
        if found is None:
            self._executing[f"{_CLAIM}{key}"] = claim.id
            self._heartbeat.add(f"{_CLAIM}{key}")
        return found

    async def release(self, key: str, *, ended: bool, result: Mapping[str, Any] | None = None) -> None:
        """Release a claim; where the work has `ended`, no one may claim it any more, and its result is kept."""
        self._forget(f"{_CLAIM}{key}")
        await self._commit(lambda ledger: release_work(ledger, key, ended=ended, result=result))

    async def append_lines(self, key: str, journal: str, lines: Sequence[str]) -> bool:
        """Append lines to a journal of claimed work, if the work is claimed by this store still.

        Returns:
            False where another process has claimed it, which took this one for lost: nothing is written then.
        """

        def append(ledger: Ledger) -> bool:
            claim = ledger.claim(key)
            if claim is None or claim.ended_at is not None or claim.id != self._executing.get(f"{_CLAIM}{key}"):
                return False
            ledger.append_lines(journal, lines)
            return True

        return await self._run(append, write=True)

    async def read_lines(self, journal: str) -> tuple[str, ...]:
        """Return the lines of a journal of claimed work, in order."""
        return tuple(await self._run(lambda ledger: ledger.lines(journal), write=False))

    async def remove_lines(self, journal: str) -> None:
        """Remove a journal of claimed work."""
        await self._run(lambda ledger: ledger.remove_lines(journal), write=True)

    async def load_session(self, session_id: str) -> SavedSession | None:
        """Return the session of this id, or None."""
        return await self._run(lambda ledger: ledger.session(session_id), write=False)

    async def save_session(self, session: SavedSession) -> bool:
        """Write a session in place of the one with the number before; return whether that was there."""

        def save(ledger: Ledger) -> bool:
            found = ledger.session(session.id)
            if session.number != (1 if found is None else found.number + 1):
                return False
            ledger.write_session(session)
            return True

        return await self._commit(save)

    async def delete_session(self, session_id: str) -> bool:
        """Remove a session; return whether there was one. The requests and executions of its calls stay."""
        return await self._commit(lambda ledger: ledger.remove_session(session_id))

    def _forget(self, request_id: str) -> None:
        active_executions.discard(self._executing.pop(request_id, ""))
        self._heartbeat.discard(request_id)
        self._wake()

    async def like(self, request: ApprovalRequest) -> tuple[ApprovalEntry, ...]:
        """Return the entries of other, equal calls that are executed now, are in doubt, or ended within an hour."""
        return await self._run(partial(executions_like, request=request), write=False)

    async def wait(self, request_id: str, timeout: float | None = None) -> Grant | Denial | None:
        """Return the answer to a request once it has one, without using it up; None after `timeout` seconds.

        While the call of the request is executed, it waits for the end of that.
        """
        require_seconds("wait", "timeout", timeout, from_zero=True)
        try:
            async with asyncio.timeout(timeout):
                with self._waiter(request_id) as written:
                    while True:
                        written.clear()
                        entry = await self.show(request_id)
                        if not entry.is_awaited:
                            return entry.answer
                        await self._pause(written, entry.closes_at)
        except TimeoutError:
            return None

    async def _pause(self, written: asyncio.Event, closes_at: datetime | None) -> None:
        """Return when this store has written, when others may have, or when the request that is waited for expires."""
        remaining = None if closes_at is None else max(0.0, (closes_at - time_of(self._clock)).total_seconds())
        pauses = [seconds for seconds in (self._polling, remaining) if seconds is not None]
        if pauses:
            await wait_until_set(written, min(pauses), self._clock)
        else:
            await written.wait()

    async def show(self, request_id: str) -> ApprovalEntry:
        """Return a request with its answer; raises `ApprovalError` for an unknown one."""
        return await self._read_current(lambda ledger: _known(ledger, request_id))

    async def unended(self) -> tuple[ApprovalEntry, ...]:
        """Return the requests whose calls are executed now, or are in doubt, oldest first."""
        return tuple(await self._run(lambda ledger: ledger.unended(), write=False))

    async def list(self, *, pending: bool = False) -> tuple[ApprovalEntry, ...]:
        """Return every request, oldest first; or those that wait for an answer."""
        entries = await self._read_current(lambda ledger: ledger.entries(unused=pending))
        return tuple(entry for entry in entries if not pending or entry.state == "pending")

    async def answered(self) -> tuple[ApprovalEntry, ...]:
        """Return the requests that have an answer which no call has used, oldest first."""
        entries = await self._read_current(lambda ledger: ledger.answered())
        return tuple(entry for entry in entries if entry.state == "answered")

    @explain_options()
    async def used(self, request_ids: Iterable[str]) -> frozenset[str]:
        """Return those of the requests whose answers are used up."""
        return frozenset(await self._run(lambda ledger: ledger.used(request_ids), write=False))

    async def count_pending(self) -> tuple[int, int]:
        """Return how many requests are pending, and how many of these are about calls in doubt."""
        return await self._read_current(_count_pending)

    async def notices_due(self, address: str, groups: Collection[str] = ()) -> tuple[Notice, ...]:
        """Return the notices that are to be sent to an address now, oldest request first.

        Args:
            address: Names the address among all.
            groups: Groups whose people read there: they are notified of what they may answer. When
                empty, of everything.
        """
        at = time_of(self._clock)
        return await self._read_current(lambda ledger: due_notices(ledger, address, groups, at))

    async def begin_notices(self, address: str, notices: Collection[Notice]) -> tuple[Notice, ...]:
        """Record that notices are sent now; return those that are: their requests wait, and no other process sent them.

        A process that ends before it has sent them sends them never.
        """
        return await self._commit(lambda ledger: begin_notices(ledger, address, notices))

    async def undo_notices(self, address: str, notices: Collection[Notice]) -> None:
        """Record that notices which began were not sent."""
        await self._commit(lambda ledger: undo_notices(ledger, address, notices))

    async def standing(self) -> tuple[Grant, ...]:
        """Return the standing grants, oldest first."""
        return tuple(await self._run(lambda ledger: ledger.standing(None), write=False))

    async def grant_use(self, grant: Grant) -> GrantUse:
        """Return how often a standing grant was used, up to which sum, and when last."""
        return (await self.grant_uses([grant]))[0]

    @explain_options()
    async def grant_uses(self, grants: Iterable[Grant]) -> tuple[GrantUse, ...]:
        """Return the use of each standing grant, in their order, by one read."""
        return await self._run(lambda ledger: uses_of(ledger, grants), write=False)

    @explain_options()
    async def revoke(self, grant: Grant) -> bool:
        """Revoke a standing grant, also for the calls that wait with it; return whether there was one."""
        return await self._commit(lambda ledger: revoke_grant(ledger, grant))


def _known(ledger: Ledger, request_id: str) -> ApprovalEntry:
    if (entry := ledger.entry(request_id)) is None:
        raise unknown_request(ledger, request_id)
    return entry


def _answer_each(
    ledger: Ledger, ids: Iterable[str], make: Callable[[ApprovalEntry], Grant | Denial], at: datetime
) -> dict[str, ApprovalEntry | ApprovalError]:
    """Keep the answer that is made for each request; all are made before one is kept."""
    answers = list[Grant | Denial]()
    found: dict[str, ApprovalEntry | ApprovalError] = {}
    for id in ids:
        try:
            answers.append(make(_known(ledger, id)))
        except ApprovalError as error:
            found[id] = error
    for answer in answers:
        id = answer.request_id or ""
        try:
            keep_answer(ledger, answer, at)
            found[id] = _known(ledger, id)
        except ApprovalError as error:
            found[id] = error
    return found


def _count_pending(ledger: Ledger) -> tuple[int, int]:
    expired = [entry.request for entry in ledger.answered() if entry.state == "pending"]
    total, in_doubt = ledger.unanswered()
    return total + len(expired), in_doubt + sum(request.in_doubt for request in expired)
