"""Stop reasons of turns."""

from __future__ import annotations

from enum import StrEnum

from toolcrib.calls import Completed, Outcome, Suspended
from toolcrib.errors import TurnTimeoutError


class StopReason(StrEnum):
    """The end of a turn's last run; `SUSPENDED` waits for a person."""

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
