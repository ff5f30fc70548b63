"""Several approvers of one request: their approvals put together, and whether more are needed."""

from __future__ import annotations

from dataclasses import replace

from toolcrib._numbers import count_text
from toolcrib.approvals._fit import misfit, people_behind
from toolcrib.approvals._people import people_of
from toolcrib.approvals._required import approvers_lacking, count_people, identities_in, is_of_use, who_counts_not
from toolcrib.calls import ApprovalRequest, Grant
from toolcrib.errors import ApprovalError


def with_others(grant: Grant, request: ApprovalRequest) -> Grant:
    """Return a grant together with who approved the same request before.

    Raises:
        ApprovalError: It does not fit, it is of someone who approved it before, or it approves something else.
    """
    if _is_single(request):
        return grant
    if grant.override_args is not None or grant.user_input is not None:
        raise ApprovalError(
            grant.tool,
            f"it needs {count_text(request.approvals_needed, 'approver')}, each of whom approves it as it is",
        )
    if why := misfit(grant, replace(request, approvals_needed=1, required=())):
        raise ApprovalError(grant.tool, why)
    also = tuple(dict.fromkeys((*request.approved_by, *grant.also)))
    together = replace(grant, also=also, identities=(*request.approved_as, *grant.identities))
    if why := _of_no_use(grant, request):
        raise ApprovalError(grant.tool, why)
    before = count_people(request.approved_by, request.approved_as, request)
    if people_behind(together, request) <= (before if request.approved_as or not identities_in(grant) else 0):
        raise ApprovalError(grant.tool, f"{_why_not_another(grant, request)}; it needs another approver")
    return together


def _why_not_another(grant: Grant, request: ApprovalRequest) -> str:
    """Return why who gives a grant does not count beside the approvers before."""
    if people_behind(grant, request) == 0:
        is_model = any(identity.is_model for identity in identities_in(grant))
        return f"{grant.by} {'is a model, which counts for no person' if is_model else 'asked for it'}"
    if request.approved_as and not identities_in(grant):
        return f"{grant.by} is a name by which nobody has logged in, as the approvers before have"
    is_same = people_of(grant.by) <= people_of(*request.approved_by)
    return f"{grant.by} {'approved it before' if is_same else 'counts as one person with an approver before'}"


def _of_no_use(grant: Grant, request: ApprovalRequest) -> str:
    """Return the rule that a further approver brings no nearer to be met; empty where they do, for one at least."""
    added, so_far = identities_in(grant), request.approved_as
    unmet = [rule for rule in request.required if approvers_lacking(rule, so_far, request.created_at)]
    if not unmet or any(is_of_use(rule, added, so_far, request.created_at) for rule in unmet):
        return ""
    return f"{who_counts_not(grant)} {unmet[0].text()}"


def lacks_approvers(grant: Grant, request: ApprovalRequest) -> bool:
    """Return whether others have to approve a request, too."""
    if people_behind(grant, request) < request.approvals_needed:
        return True
    identities, rules = identities_in(grant), request.required
    return any(approvers_lacking(rule, identities, request.created_at) for rule in rules) and not _is_single(request)


def _is_single(request: ApprovalRequest) -> bool:
    return request.approvals_needed == 1 and len(request.required) < 2
