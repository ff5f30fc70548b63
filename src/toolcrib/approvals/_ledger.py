"""Approval requests, grants, claims and sessions inside one transaction of a store."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from toolcrib.approvals._entry import ApprovalEntry
from toolcrib.approvals._executions import Execution
from toolcrib.approvals._saved_sessions import SavedSession
from toolcrib.calls import Grant, GrantUse


class Ledger(Protocol):
    """Entries and standing grants inside one transaction, which is the only writer."""

    def entry(self, request_id: str) -> ApprovalEntry | None:
        """Return the entry of a request."""
        ...

    def place(self) -> str:
        """Return where the requests are kept, and whether there are none, for the error about an unknown one."""
        ...

    def due(self, at: datetime) -> Iterable[ApprovalEntry]:
        """Return the entries that expire by a time: those whose `closes_at` is not after it."""
        ...

    def entries_of(self, call_id: str) -> Iterable[ApprovalEntry]:
        """Return the entries of a call, oldest first."""
        ...

    def write(self, entry: ApprovalEntry) -> None:
        """Keep an entry, in place of the one that its request has."""
        ...

    def entries(self, *, unused: bool) -> Iterable[ApprovalEntry]:
        """Return all entries, oldest first; `unused` ones may be all that no call has used."""
        ...

    def answered(self) -> Iterable[ApprovalEntry]:
        """Return the entries with an answer that no call has used, oldest first."""
        ...

    def used(self, request_ids: Iterable[str]) -> Iterable[str]:
        """Return those of the requests whose answers are used up."""
        ...

    def unended(self) -> Iterable[ApprovalEntry]:
        """Return the entries with an execution that is not known to have ended, oldest first."""
        ...

    def begun(self, digest: str) -> Iterable[ApprovalEntry]:
        """Return the latest entries with an execution whose requests have a digest, oldest first.

        At most `MOST_BEGUN` of those that are not known to have ended, and as many of the others.
        """
        ...

    def unanswered(self) -> tuple[int, int]:
        """Return how many requests have no answer, and how many of these are about calls in doubt."""
        ...

    def standing(self, tool: str | None) -> Iterable[Grant]:
        """Return the standing grants for a tool or all of them, oldest first."""
        ...

    def stand(self, grant: Grant) -> None:
        """Keep a standing grant."""
        ...

    def revoke(self, grant: Grant) -> bool:
        """Remove a standing grant; return whether there was one."""
        ...

    def grant_uses(self, keys: Iterable[str]) -> Mapping[str, GrantUse]:
        """Return the uses of the standing grants of these keys; without those that were not used."""
        ...

    def write_grant_use(self, key: str, use: GrantUse) -> None:
        """Keep the use of a standing grant, in place of what was kept of it."""
        ...

    def notices(self, address: str, request_ids: Iterable[str]) -> Iterable[tuple[str, str]]:
        """Return the names of the notices of requests that were sent to an address, each after its request."""
        ...

    def write_notice(self, address: str, request_id: str, name: str) -> None:
        """Keep that a notice was sent, until its request is answered."""
        ...

    def remove_notice(self, address: str, request_id: str, name: str) -> None:
        """Remove the entry of a notice."""
        ...

    def claim(self, key: str) -> Execution | None:
        """Return the claim on a piece of work."""
        ...

    def write_claim(self, key: str, claim: Execution | None) -> None:
        """Keep the claim on a piece of work, in place of the one that it has; None removes that."""
        ...

    def digest_key(self) -> str | None:
        """Return the key of the digests of secret arguments, in hex; None before there is one."""
        ...

    def write_digest_key(self, key: str) -> None:
        """Keep the key of the digests of secret arguments."""
        ...

    def lines(self, journal: str) -> Sequence[str]:
        """Return the lines of a journal of claimed work, in order."""
        ...

    def append_lines(self, journal: str, lines: Sequence[str]) -> None:
        """Append lines to a journal."""
        ...

    def remove_lines(self, journal: str) -> None:
        """Remove a journal."""
        ...

    def session(self, session_id: str) -> SavedSession | None:
        """Return the session of this id."""
        ...

    def write_session(self, session: SavedSession) -> None:
        """Write a session in place of the one with its id."""
        ...

    def remove_session(self, session_id: str) -> bool:
        """Remove a session; return whether there was one."""
        ...
