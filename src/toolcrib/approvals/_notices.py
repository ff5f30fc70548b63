"""Notices of a request to those who may answer it: that it is pending, a reminder, and its escalation."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol, TypeAlias, runtime_checkable

from toolcrib.calls import ApprovalRequest

__all__ = ["KeepsNotices", "Notice", "NoticeKind", "due_notice"]

NoticeKind: TypeAlias = Literal["pending", "reminder", "escalated"]
"""What a notice says: that a request is pending, that it is so still, or that further people may answer it."""


@dataclass(frozen=True, slots=True)
class Notice:
    """A notice of a request to one address.

    Attributes:
        kind: What it says.
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
            groups: Groups whose people read there: they are told of what they may answer. When empty, of everything.
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


def due_notice(
    request: ApprovalRequest, sent: Collection[str], at: datetime, groups: Collection[str] = ()
) -> Notice | None:
    """Return the notice of a pending request that is due at a time; None where all were sent that are.

    Of several that are due it is the last one; the first one, where none was sent before.

    Args:
        request: The request.
        sent: What the notices that were sent cover.
        at: The time.
        groups: Groups whose people read it; when empty, of everybody.
    """
    due = [(when, kind, name) for when, kind, name in _notices(request, groups) if when <= at and name not in sent]
    if not due:
        return None
    _, kind, _ = due[-1 if sent else 0]
    return Notice(kind, request, tuple(name for _, _, name in due))


def _notices(request: ApprovalRequest, groups: Collection[str]) -> list[tuple[datetime, NoticeKind, str]]:
    """Return the notices of a request in the order of their times, each with its name."""
    asked = {group for rule in request.required for group in rule.of}
    found: list[tuple[datetime, NoticeKind, str]] = []
    if not groups or asked.intersection(groups):
        found.append((request.created_at, "pending", "pending"))
    found += [
        (at, "escalated", f"escalated:{group}") for at, group in request.escalations if not groups or group in groups
    ]
    remind_at = request.remind_at
    if remind_at is not None and any(at < remind_at for at, _, _ in found):
        found.append((remind_at, "reminder", "reminder"))
    return sorted(found, key=lambda one: one[0])
