"""Claim on a paused program: of several processes with one approval store, one resumes it, once."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from toolcrib.approvals import ApprovalStore, ClaimsWork, KeepsJournals
from toolcrib.calls import StoredFields, jsonable, revived, versioned
from toolcrib.code._claim_log import ClaimLog
from toolcrib.code._journal import JournalEntry
from toolcrib.code._paused import PausedProgram
from toolcrib.code._result import ExecutionResult
from toolcrib.errors import PausedProgramError, ResultNotSerializable

_MOST_CHARS = 1_000_000  # of a result that is kept, as JSON
_SHAPES = ("output", "error_output", "return_value", "tool_calls", "success", "error", "isolation")


@dataclass(slots=True)
class ProgramClaim:
    """A claim on a paused program.

    Attributes:
        result: The result that the program has had, where another resumption has ended; None where it has to be run.
        ended: Whether the program got past a call that it waited for, so that it cannot be resumed from here again.
        result_data: The result for who resumes it from here again; None where it has no JSON form, or too long a one.
        log: Where its calls are kept for who resumes it from here again, if this resumption does not end; None where
            the store has no place for them.
        lines: The lines that an earlier resumption without an end kept there.
    """

    result: ExecutionResult | None = None
    ended: bool = False
    result_data: dict[str, Any] | None = None
    log: ClaimLog | None = None
    lines: list[Mapping[str, Any]] = field(default_factory=list[Mapping[str, Any]])

    def close(self, before: PausedProgram, result: ExecutionResult) -> None:
        """Store the result of the program that was paused as `before`."""
        after = result.paused
        self.ended = after is None or _requests(before) != _requests(after)
        if self.ended and not result.artifacts:
            self.result_data = _result_data(result)


@asynccontextmanager
async def claimed(store: ApprovalStore | None, paused: PausedProgram) -> AsyncGenerator[ProgramClaim]:
    """Claim a paused program while the body resumes it; one that was resumed from here before has its result.

    Raises:
        PausedProgramError: Another process resumes it now, or it was resumed from here before, and the result was not
            kept.
    """
    claim, requests = ProgramClaim(), sorted(_requests(paused))
    if not isinstance(store, ClaimsWork) or not requests:
        yield claim
        return
    key = f"program:{_digest(requests)}"
    found = await store.claim(key)
    if found is not None and found.result is not None:
        claim.result = _result_of(found.result)
        yield claim
        return
    if found is not None:
        since = found.begun_at.isoformat(timespec="seconds")
        raise PausedProgramError(
            f"it was resumed from here before, at {since}; this copy is out of date"
            if found.state == "ended"
            else f"it is being resumed since {since}, by another process or task"
        )
    try:
        if isinstance(store, KeepsJournals):
            claim.log = ClaimLog(store, key, f"{key}/{_digest([_facts(entry) for entry in paused.journal])}")
            claim.lines = await claim.log.load()
        yield claim
    finally:
        await asyncio.shield(asyncio.ensure_future(_release(store, key, claim)))


async def _release(store: ClaimsWork, key: str, claim: ProgramClaim) -> None:
    """Release the claim once all lines are written; those of a resumption that ended are not needed any more."""
    try:
        if claim.log is not None:
            await claim.log.flush()
    finally:
        await store.release(key, ended=claim.ended, result=claim.result_data)
    if claim.log is not None and claim.ended:
        await claim.log.delete()


def _digest(parts: list[Any]) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _facts(entry: JournalEntry) -> list[Any]:
    """Return the facts by which a call is compared with the same call in another journal."""
    return [entry.id, entry.digest, entry.is_open, entry.cancelled, entry.in_doubt, entry.begun, len(entry.values)]


def _requests(paused: PausedProgram) -> set[str]:
    return {call.request.id for call in paused.suspended_calls}


def _result_data(result: ExecutionResult) -> dict[str, Any] | None:
    shapes = {name: getattr(result, name) for name in _SHAPES}
    try:
        paused = None if result.paused is None else result.paused.to_dict()
        data = jsonable(versioned("ProgramClaim", {**shapes, "paused": paused}), media=True)
        return data if len(json.dumps(data)) <= _MOST_CHARS else None
    except (ResultNotSerializable, TypeError, ValueError):
        return None


def _result_of(data: Mapping[str, Any]) -> ExecutionResult:
    data = StoredFields("ProgramClaim", data)
    shapes: dict[str, Any] = {name: revived(data[name]) for name in _SHAPES}
    shapes["isolation"] = tuple(shapes["isolation"])
    paused = None if data["paused"] is None else PausedProgram.from_dict(data["paused"])
    waiting = () if paused is None else paused.suspended_calls
    return ExecutionResult(
        **shapes,
        suspended=tuple(call.request for call in waiting),
        suspended_calls=waiting,
        paused=paused,
    )
