"""Stop reasons of turns, and the exceptions that stand for outcomes."""

from __future__ import annotations

from enum import StrEnum

from toolcrib.calls import Completed, Failed, Outcome, Rejected, Suspended
from toolcrib.errors import ApprovalDenied, ApprovalRequired, ToolcribError, TurnTimeoutError

__all__ = ["StopReason", "error_of", "reason_of"]


class StopReason(StrEnum):
    """How a turn's last run ended; `SUSPENDED` waits for a person."""

    COMPLETED = "completed"
    TIMEOUT = "timeout"
    ERROR = "error"
    CANCELLED = "cancelled"
    SUSPENDED = "suspended"


def reason_of(outcome: Outcome | None, error: Exception | None) -> StopReason:
    """Return how a run ended that came to `outcome`, or raised `error`, or neither."""
    if error is not None:
        return StopReason.TIMEOUT if isinstance(error, TurnTimeoutError) else StopReason.ERROR
    if outcome is None:
        return StopReason.CANCELLED
    if isinstance(outcome, Completed):
        return StopReason.COMPLETED
    return StopReason.SUSPENDED if isinstance(outcome, Suspended) else StopReason.ERROR


def error_of(outcome: Outcome) -> Exception:
    """Return what a host raises for an outcome: the tool's own exception, where there was one."""
    match outcome:
        case Failed(exception=Exception() as error):
            return error
        case Failed(tool=tool, message=message):
            return ToolcribError(f"`{tool}` failed: {message}")
        case Rejected(tool=tool, reason=reason):
            return ApprovalDenied(tool, reason)
        case Suspended(request=request):
            return ApprovalRequired({**request.metadata, "request": request})
        case _:
            return ToolcribError(f"`{outcome.tool}` completed")
