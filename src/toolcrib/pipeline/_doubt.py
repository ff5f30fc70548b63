"""Questions about a call in doubt: one that was begun and is not known to have ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from toolcrib.calls import DOUBT_ANSWERS, ApprovalRequest, now
from toolcrib.errors import ModelRetry
from toolcrib.pipeline._live_call import LiveCall

__all__ = ["next_request", "reason_of_doubt", "stored_error"]

_CUT_OFF = "this call was begun and is not known to have ended, so it may have been done"
_FAILED = 'this call was begun and failed: "{error}". It may have been done in part'
_LOST = "this call was executed, and its result was not stored"
_ANSWERS = f"The answers are: {'; '.join(DOUBT_ANSWERS.values())}"
_CHANGED = (
    "The tool has changed since and does not take the arguments any more ({error}). Give its result if it was done, "
    "other arguments to have it done now, or deny it"
)


def reason_of_doubt(call: LiveCall, *, ended: bool = False) -> str:
    """Return why a person is asked about a call in doubt, and what they may answer.

    Args:
        ended: Whether the call is known to have ended, and only its result is not.
    """
    error = call.run.begun.get(call.id, {}).get("failed with")
    doubt = _LOST if ended else _CUT_OFF if error is None else _FAILED.format(error=error)
    return f"{doubt}. {_ANSWERS if call.history.mismatch is None else _CHANGED.format(error=call.history.mismatch)}"


def next_request(call: LiveCall, before: ApprovalRequest) -> ApprovalRequest:
    """Return what a call in doubt asks that began by a request: the same in each process that has the same tool."""
    definition = call.plan.definition
    id = uuid5(NAMESPACE_URL, f"toolcrib:in-doubt:{before.id}:{definition}").hex
    bound: dict[str, Any] = {"digest": call.args.digest, "principal": call.run.principal, "definition": definition}
    return replace(before, id=f"ask_{id}", created_at=now(), in_doubt=True, follows=before.id, **bound)


def stored_error(data: Mapping[str, str]) -> Exception:
    """Return an exception that reads as the one that a tool raised in another process."""
    name = data["type"]
    kind = ModelRetry if name == ModelRetry.__name__ else type(name, (Exception,), {})
    return kind(data["message"])
