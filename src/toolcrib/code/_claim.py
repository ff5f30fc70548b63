"""Claim on a paused program: of several processes with one approval store, one resumes it, once."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from toolcrib.approvals import ApprovalStore, ClaimsWork, KeepsJournals
from toolcrib.calls import StoredFields, jsonable, revived, versioned
from toolcrib.code._journal import JournalEntry, StoredJournal
from toolcrib.code._paused import PausedProgram
from toolcrib.code._program_calls import ProgramCall
from toolcrib.code._result import ExecutionResult
from toolcrib.errors import PausedProgramError, ResultNotSerializable

_MOST_CHARS = 1_000_000  # of a result that is kept, as JSON
_SHAPES = ("output", "error_output", "return_value", "tool_calls", "success", "error", "isolation")
_MOST_JOURNAL_CHARS = 16_000_000  # of the results in a journal, as JSON
_STORE_KNOWS = {"store_knows": True}  # which of the calls that were approved have begun


@dataclass(slots=True)
class ProgramClaim:
    """A claim on a paused program.

    Attributes:
        result: The result that the program has had, where another resumption has ended; None where it has to be run.
        ended: Whether the program got past a call that it waited for, so that it cannot be resumed from here again.
        result_data: The result for who resumes it from here again; None where it has no JSON form, or too long a one.
        journal: Where its calls are kept for who resumes it from here again, if this resumption does not end; None
            where the store has no place for them.
        entries: The entries that an earlier resumption without an end kept there.
    """

    result: ExecutionResult | None = None
    ended: bool = False
    result_data: dict[str, Any] | None = None
    journal: ClaimJournal | None = None
    entries: Sequence[JournalEntry] = ()

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
            claim.journal = ClaimJournal(store, key, f"{key}/{_digest([_facts(call) for call in paused.calls])}")
            claim.entries = await claim.journal.read()
        yield claim
    finally:
        await asyncio.shield(asyncio.ensure_future(_release(store, key, claim)))


async def _release(store: ClaimsWork, key: str, claim: ProgramClaim) -> None:
    """Release the claim once all entries are written; those of a resumption that ended are not needed any more."""
    try:
        if claim.journal is not None:
            await claim.journal.flush()
    finally:
        await store.release(key, ended=claim.ended, result=claim.result_data)
    if claim.journal is not None and claim.ended:
        await claim.journal.delete()


def _digest(parts: list[Any]) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _facts(call: ProgramCall) -> list[Any]:
    """Return the facts by which a call is compared with the same call in another journal."""
    return [call.id, call.digest, call.is_open, call.cancelled, call.in_doubt, call.begun, len(call.values)]


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


class ClaimJournal(StoredJournal):
    """Journal of a resumption, which the holder of a claim alone can write.

    Args:
        store: The store of the claim.
        key: The claim's.
        name: The name of the journal.
    """

    def __init__(self, store: KeepsJournals, key: str, name: str) -> None:
        super().__init__(stamp=lambda: _STORE_KNOWS, most_chars=_MOST_JOURNAL_CHARS)
        self._store, self._key, self._name = store, key, name

    async def write_lines(self, number: int, lines: Sequence[str]) -> None:
        """Append lines.

        Raises:
            PausedProgramError: Another process writes there, which took this one for lost.
        """
        if not await self._store.append_lines(self._key, self._name, lines):
            raise PausedProgramError("another process resumes it now, which took this one for lost")

    async def read_lines(self) -> Sequence[str]:
        """Return the lines of all resumptions."""
        return await self._store.read_lines(self._name)

    async def delete(self) -> None:
        """Remove all lines."""
        await self._store.remove_lines(self._name)
