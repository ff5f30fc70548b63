"""Approval requests, answers and standing grants in memory."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import TypeVar

from toolcrib._numbers import count_text
from toolcrib.approvals._claims import MOST_BEGUN
from toolcrib.approvals._entry import ApprovalEntry
from toolcrib.approvals._executions import Execution
from toolcrib.approvals._ledger import Ledger
from toolcrib.approvals._ledger_store import LedgerStore
from toolcrib.approvals._saved_sessions import SavedSession
from toolcrib.calls import Grant, GrantUse
from toolcrib.clock import WALL_CLOCK, Clock
from toolcrib.errors import explain_options

T = TypeVar("T")


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

    def __repr__(self) -> str:
        return f"<MemoryApprovalStore of {count_text(self._ledger.size, 'request')}>"

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
        self._digest_key: str | None = None
        self._notices: dict[str, set[tuple[str, str]]] = {}  # by request: the address and the name of each

    def due(self, at: datetime) -> Iterable[ApprovalEntry]:
        return [self._entries[request_id] for request_id, closes_at in self._closing.items() if closes_at <= at]

    def entry(self, request_id: str) -> ApprovalEntry | None:
        return self._entries.get(request_id)

    def entries_of(self, call_id: str) -> Iterable[ApprovalEntry]:
        return [self._entries[request_id] for request_id in self._calls.get(call_id, ())]

    def place(self) -> str:
        return f"this process{'' if self._entries else ', which has none: the call keeps its own in another store'}"

    def write(self, entry: ApprovalEntry) -> None:
        request = entry.request
        if request.id not in self._entries:
            self._calls.setdefault(request.call_id, []).append(request.id)
        self._digests.setdefault(request.digest, {}).setdefault(request.id)
        self._entries[request.id] = entry
        self._closing.pop(request.id, None)
        if (closes_at := entry.closes_at) is not None:
            self._closing[request.id] = closes_at
        if entry.answer is not None:
            self._notices.pop(request.id, None)

    @property
    def size(self) -> int:
        return len(self._entries)

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
        before, self._grants = self._grants, [stored for stored in self._grants if stored != grant]
        return len(self._grants) < len(before)

    def grant_uses(self, keys: Iterable[str]) -> Mapping[str, GrantUse]:
        return self._grant_uses

    def write_grant_use(self, key: str, use: GrantUse) -> None:
        self._grant_uses[key] = use

    def notices(self, address: str, request_ids: Iterable[str]) -> Iterable[tuple[str, str]]:
        return [(id, name) for id in request_ids for known, name in self._notices.get(id, ()) if known == address]

    def write_notice(self, address: str, request_id: str, name: str) -> None:
        self._notices.setdefault(request_id, set()).add((address, name))

    def remove_notice(self, address: str, request_id: str, name: str) -> None:
        self._notices.get(request_id, set()).discard((address, name))

    def claim(self, key: str) -> Execution | None:
        return self._claims.get(key)

    def write_claim(self, key: str, claim: Execution | None) -> None:
        if claim is None:
            self._claims.pop(key, None)
        else:
            self._claims[key] = claim

    def digest_key(self) -> str | None:
        return self._digest_key

    def write_digest_key(self, key: str) -> None:
        self._digest_key = key

    def lines(self, journal: str) -> list[str]:
        return list(self._journals.get(journal, ()))

    def append_lines(self, journal: str, lines: Sequence[str]) -> None:
        self._journals.setdefault(journal, []).extend(lines)

    def remove_lines(self, journal: str) -> None:
        self._journals.pop(journal, None)

    def session(self, session_id: str) -> SavedSession | None:
        return self._sessions.get(session_id)

    def write_session(self, session: SavedSession) -> None:
        self._sessions[session.id] = session

    def remove_session(self, session_id: str) -> bool:
        return self._sessions.pop(session_id, None) is not None
