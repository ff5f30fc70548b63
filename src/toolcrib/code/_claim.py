"""Claim on a paused program: of several processes with one approval store, one resumes it, once."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from toolcrib.approvals import ApprovalStore, ClaimsWork
from toolcrib.code._paused import PausedProgram
from toolcrib.errors import PausedProgramError

__all__ = ["ProgramClaim", "claimed"]


@dataclass(slots=True)
class ProgramClaim:
    """A claim on a paused program.

    Attributes:
        ended: Whether the program got past a call that it waited for, so that it cannot be resumed from here again.
    """

    ended: bool = False

    def pause(self, before: PausedProgram, after: PausedProgram | None) -> None:
        """Note that the program ended, or paused as `after`."""
        self.ended = after is None or _requests(before) != _requests(after)


@asynccontextmanager
async def claimed(store: ApprovalStore | None, paused: PausedProgram) -> AsyncGenerator[ProgramClaim]:
    """Claim a paused program while the body resumes it.

    Raises:
        PausedProgramError: Another process resumes it now, or it was resumed from here before.
    """
    claim, requests = ProgramClaim(), _requests(paused)
    if not isinstance(store, ClaimsWork) or not requests:
        yield claim
        return
    key = f"program:{hashlib.sha256(' '.join(sorted(requests)).encode()).hexdigest()}"
    found = await store.claim(key)
    if found is not None:
        since = found.begun_at.isoformat(timespec="seconds")
        raise PausedProgramError(
            f"it was resumed from here before, at {since}; this copy is out of date"
            if found.state == "ended"
            else f"it is being resumed since {since}, by another process or task"
        )
    try:
        yield claim
    finally:
        await asyncio.shield(asyncio.ensure_future(store.release(key, ended=claim.ended)))


def _requests(paused: PausedProgram) -> set[str]:
    return {call.request.id for call in paused.suspended_calls}
