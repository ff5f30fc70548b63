"""Answers to requests, as another framework hands back what a person said."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from toolcrib.calls import ApprovalRequest, Denial, Grant
from toolcrib.errors import ApprovalError

__all__ = ["answer_of", "is_as_seen"]


def answer_of(request: ApprovalRequest, said: object) -> Grant | Denial:
    """Return the answer to a request that a person's word is.

    Args:
        said: A `Grant` or `Denial`, the JSON of one, True or False, or a decision as front ends for agents give it:
            `{"type": "approve"}`, `{"type": "edit", "edited_action": {"args": {...}}}`, and `{"type": "reject"}` or
            `{"type": "respond"}` with a `message`. A list of one decision counts as that decision.

    Raises:
        ApprovalError: It is none of them.
    """
    match said:
        case Grant() | Denial():
            return said
        case bool():
            return request.grant() if said else request.deny()
        case list() if len(cast("list[Any]", said)) == 1:
            return answer_of(request, cast("list[Any]", said)[0])
        case Mapping():
            answer = _decided(request, cast("Mapping[str, Any]", said))
        case _:
            answer = None
    if answer is None:
        forms = 'a grant or a denial, True, False, or {"type": "approve"}, "edit" or "reject"'
        raise ApprovalError(request.tool, f"{said!r:.80} is no answer; give {forms}")
    return answer


def _decided(request: ApprovalRequest, said: Mapping[str, Any]) -> Grant | Denial | None:
    edited: Any = said.get("edited_action")
    match said.get("kind") or said.get("type") or "":
        case "grant":
            return Grant.from_dict(said)
        case "denial":
            return Denial.from_dict(said)
        case "approve":
            return request.grant()
        case "edit" if isinstance(edited, Mapping) and "args" in edited:
            return request.grant(override_args=dict(cast("Mapping[str, Any]", edited)["args"]))
        case "reject" | "respond":
            return request.deny(str(said.get("message") or ""))
        case "" if "decisions" in said:
            return answer_of(request, said["decisions"])
        case _:
            return None


def is_as_seen(request: ApprovalRequest) -> bool:
    """Return whether the arguments that a framework shows of a call are all that is asked about.

    An approval of the framework's own, of which no request is known, counts for nothing else.
    """
    return not (request.changes() or request.origins or request.in_doubt)
