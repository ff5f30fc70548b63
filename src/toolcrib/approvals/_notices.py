"""Notices of a request to those who may answer it: that it is pending, a reminder, and its escalation."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Literal, Protocol, TypeAlias, runtime_checkable

from toolcrib.approvals._ledger import Ledger
from toolcrib.calls import ApprovalRequest

NoticeKind: TypeAlias = Literal["pending", "reminder", "escalated"]
"""Kinds of notice: a request is pending, it is so still, or further people may answer it."""


@dataclass(frozen=True, slots=True)
class Notice:
    """A notice of a request to one address.

    Attributes:
        kind: Its kind.
        request: The request.
        covers: The notices that are sent with it, as of a request that was escalated before anyone was told of it.
    """

    kind: NoticeKind
    request: ApprovalRequest
    covers: tuple[str, ...]


@runtime_checkable
class KeepsNotices(Protocol):
    """An approval store that keeps which notices were sent, as all of toolcrib's can: each is sent once."""

    async def notices_due(self, address: str, groups: Collection[str] = ()) -> tuple[Notice, ...]:
        """Return the notices that are to be sent to an address now, oldest request first.

        Args:
            address: Names the address among all.
            groups: Groups whose people read there: they are notified of what they may answer. When
                empty, of everything.
        """
        ...

    async def begin_notices(self, address: str, notices: Collection[Notice]) -> tuple[Notice, ...]:
        """Record that notices are sent now; return those that are: their requests wait, and no other process sent them.

        A process that ends before it has sent them sends them never.
        """
        ...

    async def undo_notices(self, address: str, notices: Collection[Notice]) -> None:
        """Record that notices which began were not sent."""
        ...


def due_notices(ledger: Ledger, address: str, groups: Collection[str], at: datetime) -> tuple[Notice, ...]:
    """Return the notices that are to be sent to an address at a time."""
    pending = [entry.request for entry in ledger.entries(unused=True) if entry.state == "pending"]
    sent: dict[str, set[str]] = {}
    for request_id, name in ledger.notices(address, [request.id for request in pending]):
        sent.setdefault(request_id, set()).add(name)
    due = (_due_notice(request, sent.get(request.id, ()), at, groups) for request in pending)
    return tuple(notice for notice in due if notice is not None)


def begin_notices(ledger: Ledger, address: str, notices: Collection[Notice]) -> tuple[Notice, ...]:
    """Record that notices are sent now; return those that are: of requests that wait, and not sent before."""
    sent = set(ledger.notices(address, [notice.request.id for notice in notices]))
    begun: list[Notice] = []
    for notice in notices:
        entry = ledger.entry(notice.request.id)
        names = [name for name in notice.covers if (notice.request.id, name) not in sent]
        if entry is None or entry.state != "pending" or len(names) < len(notice.covers):
            continue
        for name in names:
            ledger.write_notice(address, notice.request.id, name)
        begun.append(replace(notice, request=entry.request))
    return tuple(begun)


def undo_notices(ledger: Ledger, address: str, notices: Collection[Notice]) -> None:
    """Record that notices which began were not sent."""
    for notice in notices:
        for name in notice.covers:
            ledger.remove_notice(address, notice.request.id, name)


def _due_notice(
    request: ApprovalRequest, sent: Collection[str], at: datetime, groups: Collection[str] = ()
) -> Notice | None:
    """Return the notice of a pending request that is due at a time; None where all were sent that are.

    Of several that are due it is the last one; the first one, where none was sent before.

    Args:
        request: The request.
        sent: The notices that were sent, as their `covers` name them.
        at: The time.
        groups: Groups whose people read it; when empty, of everybody.
    """
    due = [notice for notice in _notices(request, groups) if notice[0] <= at and notice[2] not in sent]
    if not due:
        return None
    _, kind, _ = due[-1 if sent else 0]
    return Notice(kind, request, tuple(name for _, _, name in due))


def _notices(request: ApprovalRequest, groups: Collection[str]) -> list[tuple[datetime, NoticeKind, str]]:
    """Return the notices of a request in the order of their times, each with its name."""
    asked = {group for rule in request.required for group in rule.of}
    found: list[tuple[datetime, NoticeKind, str]] = []
    if not groups or asked.intersection(groups):
        found.append((datetime.min.replace(tzinfo=UTC), "pending", "pending"))  # also where a clock has gone back
    for at, group in request.escalations:
        if not groups or group in groups:
            found.append((at, "escalated", f"escalated:{group}"))
    remind_at = request.remind_at
    if remind_at is not None and any(at < remind_at for at, _, _ in found):
        found.append((remind_at, "reminder", "reminder"))
    return sorted(found, key=lambda notice: notice[0])
