"""Step 5: whether somebody has to say yes, and whether somebody has."""

from __future__ import annotations

from inspect import isawaitable
from typing import Any
from uuid import uuid4

from toolcrib.approvals import digest, misfit
from toolcrib.calls import ApprovalRequest, Denial, Failed, Grant, Outcome, Rejected, Suspended, lenient
from toolcrib.errors import ApprovalError, SchemaError
from toolcrib.invoke._failures import hook_failure
from toolcrib.invoke._plan import Prepared
from toolcrib.invoke._scope import RunScope

__all__ = ["answer_of", "ask", "reasons_for", "shown_arguments", "shown_request"]


async def reasons_for(prepared: Prepared, scope: RunScope) -> list[str] | Failed:
    """Return why approval is needed, empty when it is not; a policy that fails is a Failed."""
    plan = prepared.plan
    reasons = list(prepared.asks)
    for policy in plan.approvals:
        answer: Any = policy
        if callable(policy):
            try:
                answer = policy(dict(prepared.arguments), prepared.ctx)
                answer = await answer if isawaitable(answer) else answer
            except Exception as error:  # the policy is the user's code; a gate that fails is shut
                return hook_failure(plan, prepared.call.id, "approval policy", policy, error)
        if answer:
            reasons.append(answer if isinstance(answer, str) else "")
    if scope.asks_for(plan.name):
        reasons.append("")
    return reasons


async def ask(prepared: Prepared, scope: RunScope, reasons: list[str], given: Grant | Denial | None) -> Outcome | Grant:
    """Return the grant that lets the call go on, or the outcome that ends it here.

    Looked for in this order: the answer given with the call, an answer or standing grant in the run's store, the run's
    approver. With none of them the call is suspended.
    """
    asked: object = "get_approval_metadata"
    try:
        request = _request(prepared, scope, reasons)
        answer = given
        if answer is None and scope.approvals is not None:
            asked = scope.approvals
            answer = await scope.approvals.take(request)
        if answer is None and scope.approver is not None:
            asked = scope.approver
            answer = await scope.approver(request)
        if answer is None and scope.approvals is not None:
            asked = scope.approvals
            await scope.approvals.put(request)
        return answer_of(prepared, scope, request, answer)
    except Exception as error:  # tool, store and approver are the user's code; a gate that fails is shut
        return hook_failure(prepared.plan, prepared.call.id, "approval", asked, error)


def answer_of(
    prepared: Prepared, scope: RunScope, request: ApprovalRequest, answer: Grant | Denial | None
) -> Outcome | Grant:
    """Return what an answer to a request comes to.

    Raises:
        TypeError: It is neither a grant nor a denial: a `True` is no signature.
    """
    name, call_id = request.tool, request.call_id
    trace = prepared.trace
    if answer is not None and not isinstance(answer, Grant | Denial):  # pyright: ignore[reportUnnecessaryIsInstance] -- an approver is the user's code
        raise TypeError(f"it answered {type(answer).__name__}; return request.grant(), request.deny(...) or None")
    if answer is None:
        if trace is not None:
            trace.suspended(request)
        return Suspended(name, call_id, request, prepared)
    if trace is not None:
        trace.answered({**_said(answer), "digest": request.digest, "request_id": request.id})
    if isinstance(answer, Denial):
        by = "" if answer.approver in ("host", "deny") else f" by {answer.approver}"
        return Rejected(name, call_id, answer.message or f"`{name}` was denied{by}", "user")
    why = misfit(answer, request)
    if not why and answer.scope == "once" and _mark(answer) in scope.used_grants:
        why = "it was used before; ask again"
    if why:
        error = ApprovalError(name, why)
        return Failed(name, call_id, error.code, str(error), "ApprovalError", exception=error)
    if answer.scope == "once":
        scope.used_grants.add(_mark(answer))
    return answer


def _mark(grant: Grant) -> str:
    return grant.request_id or f"{grant.call_id}:{grant.digest}"


def _said(answer: Grant | Denial) -> dict[str, Any]:
    said = answer.to_dict()
    said.pop("user_input", None)  # what a person typed may be a secret, and so may
    said.pop("override_args", None)  # the arguments they gave: the record has those that came of it, redacted
    return {key: value for key, value in said.items() if value not in (None, "")}


def _request(prepared: Prepared, scope: RunScope, reasons: list[str]) -> ApprovalRequest:
    plan, call = prepared.plan, prepared.call
    source = plan.tool.source
    extra = source.get_approval_metadata() if source is not None else None
    return ApprovalRequest(
        id=f"ask_{uuid4().hex}",
        call_id=call.id,
        tool=plan.name,
        arguments=shown_arguments(prepared),
        digest=digest(plan.name, prepared.arguments),
        requested=shown_request(prepared),
        reason="; ".join(reason for reason in reasons if reason),
        metadata={**(extra or {}), **prepared.ask_metadata},
        scope_id=scope.id,
        principal=scope.principal,
    )


def shown_arguments(prepared: Prepared) -> dict[str, Any]:
    """Return the final arguments for a person or a record: JSON shapes, secrets hidden."""
    try:
        return prepared.plan.spec.dump(prepared.arguments, redact=True)
    except (SchemaError, ValueError):  # a host may pass what has no schema
        return {key: lenient(value) for key, value in prepared.arguments.items()}


def shown_request(prepared: Prepared) -> Any:
    """Return the arguments as they came, as they may be shown; None when they might hold a secret."""
    plan, call = prepared.plan, prepared.call
    try:
        return plan.spec.dump(plan.read(call), redact=True)
    except (SchemaError, ValueError):  # they do not fit
        return _raw(prepared)


def _raw(prepared: Prepared) -> Any:
    try:
        return None if prepared.plan.spec.has_secrets else lenient(prepared.call.arguments)
    except SchemaError:  # what is secret cannot be told
        return None
