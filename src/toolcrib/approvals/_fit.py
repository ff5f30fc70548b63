"""Fit of answers: which request a grant or a denial is meant for, and why a grant does not fit one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, TypeVar

from toolcrib._numbers import count_text
from toolcrib.approvals._required import approvers_problem, count_people, identities_in
from toolcrib.calls import ApprovalRequest, Denial, Grant, GrantUse, fits_amounts, now
from toolcrib.errors import ApprovalError

T = TypeVar("T")

EVERYBODY = "*"
"""The principal of a standing grant that serves all of them."""


def misfit(grant: Grant, request: ApprovalRequest, at: datetime | None = None) -> str:
    """Return why a grant does not fit a request, in words for a person; empty when it fits."""
    if grant.covers_nothing:
        return f"its scope is {grant.scope!r:.80}, which is not known here"
    if grant.tool != request.tool:
        return f"it was given for `{grant.tool}`"
    if why := grant.time_problem(at or now()):
        return why
    if not _serves(grant, request.principal):
        granted_for, asked_for = (principal or "no principal" for principal in (grant.principal, request.principal))
        return f"it was given on behalf of {granted_for}, and this call is on behalf of {asked_for}"
    if grant.definition is not None and grant.definition != request.definition:
        return _other_definition(grant.definition, request.definition or "")
    if request.consent is not None and (grant.standing or grant.override_args is not None):
        return "the principal's consent is needed, which is for one call as it is"
    if request.in_doubt and grant.standing:
        return "it was not given for a call in doubt, which may have been done; answer its own request"
    if grant.scope == "values" and grant.request_id != request.id and (why := _other_values(grant, request)):
        return why
    if request.origins and grant.scope in ("tool", "within") and grant.request_id != request.id:
        known = grant.scope == "within" and all(origin.get("mark") in grant.values for origin in request.origins)
        if not known:
            return "it was given for the tool, and not for values that others wrote; answer the call's own request"
    if grant.scope == "within" and (why := grant.limit_reached(request, GrantUse())):
        return why
    if grant.done is not None and not request.in_doubt:
        return "it gives a result of the call, and the call is not in doubt: it was not executed"
    if grant.done is None and request.approvals_needed > 1 and people_behind(grant, request) < request.approvals_needed:
        return f"it needs {count_text(request.approvals_needed, 'approver')}, each of whom approves it as it is"
    if request.required and (why := approvers_problem(grant, request, at or now())):
        return why
    if why := _edit_problem(grant, request, at or now()):
        return why
    if grant.scope == "once" and grant.call_id != request.call_id:
        return f"it was given for the call {grant.call_id}, and this is the call {request.call_id}"
    is_bound = grant.scope in ("once", "arguments")
    if is_bound and grant.override_args is None and grant.digest != request.digest:
        shown = ", ".join(f"{name}={value!r}" for name, value in request.arguments.items())
        return f"the arguments changed after it was given; they are now {shown or 'none'}. Ask again"
    return ""


def _edit_problem(grant: Grant, request: ApprovalRequest, at: datetime) -> str:
    """Return why those who give a grant may not approve the arguments that it has; empty where they may."""
    if grant.override_args is None:
        return ""
    known: Mapping[str, Any] = (request.parameters or {}).get("properties", {})
    defaults = {name: part["default"] for name, part in known.items() if part is not True and "default" in part}
    arguments = {**defaults, **grant.override_args}
    for rule in request.required_if_edited:
        if fits_amounts(arguments, rule.over, rule.up_to) and (why := approvers_problem(grant, request, at, [rule])):
            shown = ", ".join(f"`{name}` is {arguments.get(name)!r:.80}" for name in {**rule.over, **rule.up_to})
            return f"{shown} after the edit, and {why}"
    return ""


def people_behind(grant: Grant, request: ApprovalRequest) -> int:
    """Return how many people give a grant."""
    return count_people((*grant.also, grant.by), identities_in(grant), request)


def _other_definition(before: str, now: str) -> str:
    """Return why a grant for one definition does not fit another; the server's identity follows the tool's."""
    if before.partition("@")[2] != now.partition("@")[2]:
        return "the server or object behind the tool is another one than that it was given for. Ask again"
    return "the tool has changed after it was given: what it takes, or says that it does, is something else. Ask again"


def _other_values(grant: Grant, request: ApprovalRequest) -> str:
    """Return why a grant for values does not answer a later request."""
    if not request.values_alone:
        return "it was given for values of others, and the call needs approval for more than these"
    if not all(origin.get("mark") and origin["mark"] in grant.values for origin in request.origins):
        return "it was given for other values, or for values that come from elsewhere"
    return ""


def is_answer_to(answer: Grant | Denial, request: ApprovalRequest) -> bool:
    """Return whether an answer is meant for a request: it names the request or its call, or names neither and fits."""
    if answer.request_id is not None:
        return answer.request_id == request.id
    if answer.call_id is not None:
        return answer.call_id == request.call_id
    if isinstance(answer, Grant):
        return answer.standing and not misfit(answer, request)
    return answer.tool == request.tool


def require_own_answer(answer: Grant | Denial | None, before: ApprovalRequest | None, request: ApprovalRequest) -> None:
    """Check that an answer which comes with a call that waits is of its own request: ids of calls repeat between runs.

    Args:
        answer: The answer; nothing is checked without one.
        before: The request by which the call waits; None for one that does not.
        request: The request as it stands now.

    Raises:
        ApprovalError: It answers the request of another call.
    """
    if answer is None or answer.request_id is None or before is None:
        return
    known = {related for asked in (before, request) for related in (asked.id, asked.replaces, asked.follows)}
    if answer.request_id not in known:
        raise ApprovalError(
            request.tool,
            f"it answers the request {answer.request_id}, and this call waits for the answer to {before.id}",
        )


def is_outdated(answer: Grant | Denial | None, request: ApprovalRequest) -> bool:
    """Return whether a grant is for a request that this one replaces, and does not fit it."""
    if not isinstance(answer, Grant) or answer.request_id is None:
        return False
    return answer.request_id == request.replaces and bool(misfit(answer, request))


def meant_by(answer: Grant | Denial, asked: Iterable[tuple[T, ApprovalRequest]]) -> list[T]:
    """Return the pending calls that an answer is for, of some, each with its request.

    Raises:
        ApprovalError: It is meant for nothing of it.
    """
    found = [thing for thing, request in asked if is_answer_to(answer, request)]
    if not found:
        raise ApprovalError(answer.tool, f"no call that waits is meant by it ({answer.request_id or answer.call_id})")
    return found


def require_agreement(answer: Grant | Denial, others: Iterable[Grant | Denial]) -> None:
    """Raise ApprovalError where other answers to the request of an answer say something else.

    A standing grant that names no request is an answer to any that it fits, and stands beside another.
    """
    for other in others:
        if type(other) is not type(answer):
            raise ApprovalError(answer.tool, "a grant and a denial of one request are given; give one of them")
        is_named = answer.request_id is not None and answer.request_id == other.request_id
        if is_named and replace(answer, at=other.at) != other:
            kind = "grants" if isinstance(answer, Grant) else "denials"
            problem = f"two different {kind} of one request are given; give one of them"
            raise ApprovalError(answer.tool, f"{problem}. A store puts the approvals of several people together")


def counts_before(stored: Grant | Denial, attached: Grant | Denial) -> bool:
    """Return whether the answer that a store has counts in the place of one that comes with the call.

    That is a denial, and a grant that says the same: a request may be answered in both places.
    """
    if isinstance(stored, Denial):
        return True
    return isinstance(attached, Grant) and all(
        getattr(stored, name) == getattr(attached, name) for name in ("scope", "override_args", "user_input", "done")
    )


def _serves(grant: Grant, principal: str | None) -> bool:
    """Return whether a grant is for a principal; one for a single call is bound to that call in any case."""
    return grant.principal in (principal, EVERYBODY) or (grant.principal is None and not grant.standing)
