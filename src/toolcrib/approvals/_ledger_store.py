"""Approval stores over a ledger: their common part, and the one in memory."""

from __future__ import annotations

import asyncio
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from functools import cached_property, partial
from typing import Any, ClassVar, TypeVar

from toolcrib._numbers import require_seconds
from toolcrib.approvals._claims import (
    MOST_BEGUN,
    claim_work,
    executions_like,
    release_work,
    renew_claims,
    renew_executions,
)
from toolcrib.approvals._executions import Execution, Heartbeat, active_executions
from toolcrib.approvals._ledger import (
    ApprovalEntry,
    Ledger,
    begin_execution,
    deny_expired,
    end_execution,
    keep_answer,
    keep_request,
    take_answer,
    undo_execution,
    unknown_request,
    use_answer,
)
from toolcrib.approvals._saved_sessions import SavedSession
from toolcrib.calls import ApprovalRequest, Denial, Grant, GrantUse
from toolcrib.clock import WALL_CLOCK, Clock, time_of, wait_until_set
from toolcrib.errors import explain_missing, explain_options

__all__ = ["LedgerStore", "MemoryApprovalStore"]

T = TypeVar("T")

_CLAIM = "claim:"


@explain_missing(
    {
        "approve": "`store.answer(entry.request.grant(by=...))`, of the entry `await store.show(request_id)`",
        "deny": "`store.answer(entry.request.deny(by=...))`, of the entry `await store.show(request_id)`",
    }
)
class LedgerStore(ABC):
    """An approval store over a ledger; each kind of ledger is a subclass."""

    _polling: ClassVar[float | None] = 0.1
    """Seconds between two looks for what other processes wrote; None for a ledger that no other process has."""

    _clock: Clock = WALL_CLOCK

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

    @abstractmethod
    async def _run(self, work: Callable[[Ledger], T], *, write: bool) -> T:
        """Return the result of `work` in a transaction, which is taken back if `work` raises.

        Args:
            write: Whether `work` writes; no other transaction writes meanwhile.
        """

    async def _commit(self, work: Callable[[Ledger], T]) -> T:
        """Return the result of `work` in a transaction, and wake what waits in this process.

        What has expired is denied in the same transaction, before it.
        """
        at = time_of(self._clock)

        def write(ledger: Ledger) -> T:
            deny_expired(ledger, at)
            return work(ledger)

        result = await self._run(write, write=True)
        self._wake()
        return result

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
    def _waiter(self) -> Generator[asyncio.Event]:
        """Return an event that is set at each write of this store."""
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
        """
        await self._commit(lambda ledger: keep_answer(ledger, answer))

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
            grant: What the call begins by; None for one that needs no approval.
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
        try:
            await self._commit(partial(end_execution, request=request, grant=grant, result=result))
        finally:
            self._forget(request.id)

    async def break_off(self, request: ApprovalRequest, grant: Grant | None) -> None:
        """Record that a call which began here was broken off: it is in doubt."""
        self._forget(request.id)
        await self._commit(partial(end_execution, request=request, grant=grant, broken_off=True))

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

    async def append_line(self, key: str, journal: str, line: str) -> bool:
        """Append a line to a journal of claimed work, if the work is claimed by this store still.

        Returns:
            False where another process has claimed it, which took this one for lost: nothing is written then.
        """

        def append(ledger: Ledger) -> bool:
            claim = ledger.claim(key)
            if claim is None or claim.ended_at is not None or claim.id != self._executing.get(f"{_CLAIM}{key}"):
                return False
            ledger.append_line(journal, line)
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
                with self._waiter() as written:
                    while True:
                        written.clear()
                        entry = await self.show(request_id)
                        if entry.state != "pending" and entry.execution_state != "running":
                            return entry.answer
                        await self._pause(written, entry.closes_at)
        except TimeoutError:
            return None

    async def _pause(self, written: asyncio.Event, closes_at: datetime | None) -> None:
        """Return when this store has written, when others may have, or when the request that is waited for expires."""
        left = None if closes_at is None else max(0.0, (closes_at - time_of(self._clock)).total_seconds())
        pauses = [seconds for seconds in (self._polling, left) if seconds is not None]
        if pauses:
            await wait_until_set(written, min(pauses), self._clock)
        else:
            await written.wait()

    async def show(self, request_id: str) -> ApprovalEntry:
        """Return a request with its answer; raises `ApprovalError` for an unknown one."""
        entry = await self._read_current(lambda ledger: ledger.entry(request_id))
        if entry is None:
            raise unknown_request(request_id)
        return entry

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

    async def used(self, request_ids: Iterable[str]) -> frozenset[str]:
        """Return those of the requests whose answers are used up."""
        return frozenset(await self._run(lambda ledger: ledger.used(request_ids), write=False))

    async def count_pending(self) -> tuple[int, int]:
        """Return how many requests are pending, and how many of these are about calls in doubt."""
        return await self._read_current(_count_pending)

    async def standing(self) -> tuple[Grant, ...]:
        """Return the standing grants, oldest first."""
        return tuple(await self._run(lambda ledger: ledger.standing(None), write=False))

    async def grant_use(self, grant: Grant) -> GrantUse:
        """Return how much of a standing grant was used; of one without limits, nothing is counted."""
        return await self._run(lambda ledger: ledger.grant_use(grant.request_id or ""), write=False)

    async def revoke(self, grant: Grant) -> bool:
        """Revoke a standing grant; return whether there was one."""
        return await self._commit(lambda ledger: ledger.revoke(grant))


def _count_pending(ledger: Ledger) -> tuple[int, int]:
    expired = [entry.request for entry in ledger.answered() if entry.state == "pending"]
    total, in_doubt = ledger.unanswered()
    return total + len(expired), in_doubt + sum(request.in_doubt for request in expired)


@explain_options()
class MemoryApprovalStore(LedgerStore):
    """An approval store in memory, for one process.

    Args:
        grants: Standing grants to begin with; a ValueError for any other.
        clock: The clock by which requests expire, whose seconds are those since 1970.
    """

    _polling = None

    def __init__(self, grants: Iterable[Grant] = (), *, clock: Clock = WALL_CLOCK) -> None:
        self._clock = clock
        self._ledger = _MemoryLedger()
        self._lock = threading.Lock()  # programs and agents may run in several threads
        for grant in grants:
            if not grant.standing:
                raise ValueError(f"the grant for `{grant.tool}` is for one call; answer its request with it")
            self._ledger.stand(grant)

    async def _run(self, work: Callable[[Ledger], T], *, write: bool) -> T:
        with self._lock:
            return work(self._ledger)


class _MemoryLedger:
    def __init__(self) -> None:
        self._entries: dict[str, ApprovalEntry] = {}
        self._grants: list[Grant] = []
        self._claims: dict[str, Execution] = {}
        self._calls: dict[str, list[str]] = {}
        self._digests: dict[str, dict[str, None]] = {}  # requests by digest, oldest first
        self._journals: dict[str, list[str]] = {}
        self._sessions: dict[str, SavedSession] = {}
        self._grant_uses: dict[str, GrantUse] = {}
        self._closing: dict[str, datetime] = {}

    def due(self, at: datetime) -> Iterable[ApprovalEntry]:
        return [self._entries[request_id] for request_id, closes_at in self._closing.items() if closes_at <= at]

    def entry(self, request_id: str) -> ApprovalEntry | None:
        return self._entries.get(request_id)

    def entries_of(self, call_id: str) -> Iterable[ApprovalEntry]:
        return [self._entries[request_id] for request_id in self._calls.get(call_id, ())]

    def write(self, entry: ApprovalEntry) -> None:
        request = entry.request
        if request.id not in self._entries:
            self._calls.setdefault(request.call_id, []).append(request.id)
        self._digests.setdefault(request.digest, {}).setdefault(request.id)
        self._entries[request.id] = entry
        self._closing.pop(request.id, None)
        if (closes_at := entry.closes_at) is not None:
            self._closing[request.id] = closes_at

    def entries(self, *, unused: bool) -> Iterable[ApprovalEntry]:
        return list(self._entries.values())

    def answered(self) -> Iterable[ApprovalEntry]:
        return [entry for entry in self._entries.values() if entry.answer is not None and entry.used_at is None]

    def used(self, request_ids: Iterable[str]) -> Iterable[str]:
        found = (self._entries.get(request_id) for request_id in request_ids)
        return [entry.request.id for entry in found if entry is not None and entry.used_at is not None]

    def unended(self) -> Iterable[ApprovalEntry]:
        executions = ((entry, entry.execution) for entry in self._entries.values())
        return [entry for entry, execution in executions if execution is not None and execution.ended_at is None]

    def begun(self, digest: str) -> Iterable[ApprovalEntry]:
        counts, found = {True: 0, False: 0}, list[ApprovalEntry]()
        for request_id in reversed(self._digests.get(digest, {})):
            entry = self._entries[request_id]
            if entry.execution is None or entry.request.digest != digest:
                continue
            ended = entry.execution.ended_at is not None
            counts[ended] += 1
            if counts[ended] <= MOST_BEGUN:
                found.append(entry)
        return reversed(found)

    def unanswered(self) -> tuple[int, int]:
        requests = [e.request for e in self._entries.values() if e.answer is None and e.used_at is None]
        return len(requests), sum(request.in_doubt for request in requests)

    def standing(self, tool: str | None) -> Iterable[Grant]:
        return [grant for grant in self._grants if tool in (None, grant.tool)]

    def stand(self, grant: Grant) -> None:
        self._grants.append(grant)

    def revoke(self, grant: Grant) -> bool:
        before, self._grants = self._grants, [kept for kept in self._grants if kept != grant]
        return len(self._grants) < len(before)

    def grant_use(self, request_id: str) -> GrantUse:
        return self._grant_uses.get(request_id, GrantUse())

    def write_grant_use(self, request_id: str, use: GrantUse) -> None:
        self._grant_uses[request_id] = use

    def claim(self, key: str) -> Execution | None:
        return self._claims.get(key)

    def write_claim(self, key: str, claim: Execution | None) -> None:
        if claim is None:
            self._claims.pop(key, None)
        else:
            self._claims[key] = claim

    def lines(self, journal: str) -> list[str]:
        return list(self._journals.get(journal, ()))

    def append_line(self, journal: str, line: str) -> None:
        self._journals.setdefault(journal, []).append(line)

    def remove_lines(self, journal: str) -> None:
        self._journals.pop(journal, None)

    def session(self, session_id: str) -> SavedSession | None:
        return self._sessions.get(session_id)

    def write_session(self, session: SavedSession) -> None:
        self._sessions[session.id] = session

    def remove_session(self, session_id: str) -> bool:
        return self._sessions.pop(session_id, None) is not None
