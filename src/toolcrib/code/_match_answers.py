"""Which answer goes to which of the calls that a paused program waits for."""

from __future__ import annotations

from collections.abc import Iterable

from toolcrib.approvals import misfit
from toolcrib.calls import Denial, Grant
from toolcrib.code._paused import PausedProgram, SuspendedProgramCall
from toolcrib.errors import ApprovalError

__all__ = ["answers_for"]


def answers_for(paused: PausedProgram, answers: Iterable[Grant | Denial]) -> dict[str, Grant | Denial]:
    """Return the answers by call id; a standing grant that names no call answers every one that it fits.

    Raises:
        ApprovalError: One answers nothing that waits or does not fit it, or a call has two answers; nothing ran.
    """
    found: dict[str, Grant | Denial] = {}
    for answer in answers:
        calls = [call for call in paused.suspended_calls if _meant(answer, call)]
        if not calls:
            raise ApprovalError(answer.tool, "no call that waits in this program is meant by it")
        for call in calls:
            if isinstance(answer, Grant) and (why := misfit(answer, call.request)):
                raise ApprovalError(answer.tool, why)
            if call.call_id in found:
                raise ApprovalError(answer.tool, f"there is another answer to the call {call.call_id}")
            found[call.call_id] = answer
    return found


def _meant(answer: Grant | Denial, call: SuspendedProgramCall) -> bool:
    if answer.request_id is not None:
        return answer.request_id == call.request_id
    if answer.call_id is not None:
        return answer.call_id == call.call_id
    # whether a call in doubt is repeated is a question of its own
    return isinstance(answer, Grant) and answer.standing and not call.in_doubt and not misfit(answer, call.request)
