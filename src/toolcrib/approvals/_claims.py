"""Claims of executions and other work by processes, over a ledger of any kind, and whether the processes still live."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final

from toolcrib._processes import this_process
from toolcrib.approvals._entry import ApprovalEntry
from toolcrib.approvals._executions import Execution
from toolcrib.approvals._ledger import Ledger
from toolcrib.calls import ApprovalRequest, now

_RECENT = timedelta(hours=1)
MOST_BEGUN: Final = 20  # executions of equal calls that are read, of each kind: a person is shown three


def claim_work(ledger: Ledger, key: str, claim: Execution) -> Execution | None:
    """Claim a piece of work; return the claim of another that works on it, or has ended it."""
    found = ledger.claim(key)
    if found is not None and found.state != "in doubt":
        return found
    ledger.write_claim(key, claim)
    return None


def release_work(ledger: Ledger, key: str, *, ended: bool, result: Mapping[str, Any] | None = None) -> None:
    """Release a claim, or keep it for good with the result of the work, as that has ended."""
    found = ledger.claim(key)
    if found is not None and found.process == this_process():
        ledger.write_claim(key, replace(found, ended_at=now(), result=result) if ended else None)


def renew_claims(ledger: Ledger, keys: Iterable[str]) -> None:
    """Renew the claims of this process."""
    for key in keys:
        found = ledger.claim(key)
        if found is not None and found.ended_at is None and found.process == this_process():
            ledger.write_claim(key, replace(found, seen_at=now()))


def renew_executions(ledger: Ledger, request_ids: Iterable[str]) -> None:
    """Renew the executions of this process."""
    for begun in filter(None, map(ledger.entry, request_ids)):
        execution = begun.execution
        if execution is None or execution.ended_at is not None or execution.process != this_process():
            continue
        for entry in ledger.entries_of(begun.request.call_id):  # that of its own request, and of its grant's
            if entry.execution is not None and entry.execution.id == execution.id:
                ledger.write(replace(entry, execution=replace(execution, seen_at=now())))


def executions_like(ledger: Ledger, request: ApprovalRequest) -> tuple[ApprovalEntry, ...]:
    """Return the entries of other, equal calls that are executed now, are in doubt, or ended within the last hour.

    Equal are calls of the same tool with the same arguments, on behalf of the same principal.
    """
    since = now() - _RECENT
    return tuple(
        entry
        for entry in ledger.begun(request.digest)
        if _is_like(entry.request, request)
        and entry.request.id not in (request.id, request.follows)
        and (entry.execution is None or _is_recent(entry.execution, since))
    )


def _is_recent(execution: Execution, since: datetime) -> bool:
    """Return whether an execution has not ended, or did so in its process; of another, a later request says more."""
    return execution.ended_at is None or (execution.ended_at > since and execution.process != "")


def _is_like(request: ApprovalRequest, other: ApprovalRequest) -> bool:
    return (request.tool, request.digest, request.principal) == (other.tool, other.digest, other.principal)
