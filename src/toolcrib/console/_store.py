"""Desk: what the console needs of an approval store."""

from __future__ import annotations

from typing import Protocol

from toolcrib.approvals import ApprovalEntry
from toolcrib.calls import Denial, Grant

__all__ = ["Desk"]


class Desk(Protocol):
    """An approval store that a person can look through, as those in files and on servers are."""

    async def answer(self, answer: Grant | Denial) -> None:
        """Take a grant or a denial; raises `ApprovalError` when it answers nothing that is asked."""
        ...

    async def show(self, request_id: str) -> ApprovalEntry:
        """Return a request with its answer; raises `ApprovalError` for an unknown one."""
        ...

    async def list(self, *, pending: bool = False) -> tuple[ApprovalEntry, ...]:
        """Return every request, oldest first; or those that wait."""
        ...

    async def standing(self) -> tuple[Grant, ...]:
        """Return the standing grants, oldest first."""
        ...

    async def revoke(self, grant: Grant) -> bool:
        """Take a standing grant back; return whether there was one."""
        ...
