"""Claim on a paused program: of several processes with one approval store, one resumes it, once."""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from toolcrib.approvals import ApprovalStore, ClaimsWork, KeepsJournals
from toolcrib.calls import StoredFields, jsonable, revived, versioned
from toolcrib.code._journal import JournalEntry
from toolcrib.code._paused import PausedProgram
from toolcrib.code._result import ExecutionResult
from toolcrib.errors import PausedProgramError, ResultNotSerializable

_MOST_CHARS = 1_000_000  # of a result that is kept, as JSON
_SHAPES = ("output", "error_output", "return_value", "tool_calls", "success", "error", "isolation")
_MOST_LOG_CHARS = 16_000_000  # of the results that are kept, as JSON
_RESULTS = ("ended", "value")


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


class ClaimLog:
    """Lines of a journal, which the holder of a claim alone can write.

    Once the results in it are too long, no more of them are kept: a call without one counts as begun, and is in doubt.

    Args:
        store: The store of the claim.
        key: The claim's.
        journal: The name of the journal.
    """

    def __init__(self, store: KeepsJournals, key: str, journal: str) -> None:
        self._store, self._key, self._journal = store, key, journal
        self._lines: list[str] = []
        self._chars, self._waited = 0, 0.0
        self._saving: asyncio.Future[None] | None = None
        self._has_started = False  # a call: until then nothing is lost where the lines are

    @property
    def waited(self) -> float:
        """The seconds so far in which the program waited for the store."""
        return self._waited

    def write(self, line: Mapping[str, Any]) -> None:
        """Append one line, of JSON shapes, unless it is a result too many."""
        self._has_started = self._has_started or line["t"] == "started"
        text = json.dumps(line, separators=(",", ":"))
        if line["t"] in _RESULTS:
            if self._chars + len(text) > _MOST_LOG_CHARS:
                return
            self._chars += len(text)
        self._lines.append(text)

    async def flush(self) -> None:
        """Return when every line so far is in the store.

        Raises:
            PausedProgramError: Another process writes there, which took this one for lost.
        """
        begun = time.monotonic()
        try:
            while (self._lines and self._has_started) or self._saving is not None:
                if self._saving is None:
                    self._saving = asyncio.ensure_future(self._save())
                await asyncio.shield(self._saving)  # it comes to its end also where the program is cancelled meanwhile
        finally:
            self._waited += time.monotonic() - begun

    async def _save(self) -> None:
        lines, self._lines = f"[{','.join(self._lines)}]", []
        try:
            if not await self._store.append_line(self._key, self._journal, lines):
                raise PausedProgramError("another process resumes it now, which took this one for lost")
        finally:
            self._saving = None

    async def load(self) -> list[Mapping[str, Any]]:
        """Return the lines of earlier resumptions; those of this one come after them."""
        stored = await self._store.read_lines(self._journal)
        self._chars += sum(map(len, stored))
        return [line for lines in stored for line in json.loads(lines)]

    async def delete(self) -> None:
        """Remove all lines."""
        await self._store.remove_lines(self._journal)
