"""Step 5, its first half: whether the principal has consented elsewhere to what the tool does for them.

It is asked before approval. An answer of an approver never takes its place: a grant is used up, and what counts is that
the tool says nothing is lacking any more. A denial refuses the call.
"""

from __future__ import annotations

from inspect import isawaitable
from typing import Any
from uuid import uuid4

from toolcrib import approvals, schema
from toolcrib.calls import ApprovalRequest, Consent, Denial, Failed, Grant, Outcome, Rejected, Suspended
from toolcrib.errors import ApprovalError
from toolcrib.pipeline._failures import hook_failure
from toolcrib.pipeline._live_call import LiveCall

__all__ = ["consent_given", "consent_lacking", "waits_for_consent"]

_BY_CONSENT = "the principal's consent"
_WENT_ON = "the call went on by this request before, and may have been done"


def waits_for_consent(call: LiveCall) -> bool:
    """Return whether a call was suspended because consent was lacking."""
    return call.state == "suspended" and call.request is not None and call.request.consent is not None


async def consent_lacking(call: LiveCall) -> Outcome | None:
    """Return what keeps a call from going on where consent is lacking, None where it is not."""
    lacking = await _lacking(call)
    if not isinstance(lacking, Consent):
        return lacking
    request, run = _request(call, lacking), call.run
    try:
        if run.approver is not None:
            answer: Any = await approvals.answer_of(run.approver, request)
            if isinstance(answer, Denial):
                return _refused(call, request, answer)
            if await _lacking(call) is None:
                return None
        if run.approvals is not None:
            await run.approvals.put(request)
            if await _lacking(call) is None:  # they consented while it was put there: it would stay without an answer
                return await _used(call, request, request.grant(_BY_CONSENT))
    except BaseException as error:  # store and approver are the user's code; a gate that fails is shut
        return hook_failure(call.plan, call.id, run, "approval", run.approvals or run.approver, error)
    return _suspended(call, request)


async def consent_given(call: LiveCall, given: Grant | Denial | None) -> Outcome | None:
    """Ask a call that was suspended for want of consent again; None, once, where nothing is lacking any more."""
    request, run = call.request, call.run
    if request is None:
        raise RuntimeError("a call that waits for consent has a request")
    try:
        answer = given
        if answer is None and run.approvals is not None:
            found = await run.approvals.take(request)
            if isinstance(found, approvals.ApprovalEntry) and found.execution is not None:
                raise ApprovalError(request.tool, _WENT_ON)
            answer = None if isinstance(found, approvals.ApprovalEntry) else found
            stored = answer is not None
        else:
            stored = False
        if isinstance(answer, Denial):
            return await _used(call, request, answer, stored=stored) or _refused(call, request, answer)
        lacking = await _lacking(call)
        if isinstance(lacking, Consent):
            if answer is None:
                return _suspended(call, request)
            await _used(call, request, answer, stored=stored)
            call.update_approval(request=None)
            return await consent_lacking(call)  # a yes of somebody's is no consent: another request says so
        if lacking is not None:
            return lacking
        return await _used(call, request, answer or request.grant(_BY_CONSENT), stored=stored)
    except ApprovalError as error:
        return Failed(call.name, call.id, error.code, str(error), "ApprovalError", exception=error)
    except BaseException as error:  # the store is the user's code; a gate that fails is shut
        return hook_failure(call.plan, call.id, run, "approval", run.approvals, error)


async def _lacking(call: LiveCall) -> Consent | Failed | None:
    source = call.plan.tool.source
    if source is None or call.ctx is None:
        return None
    try:
        with call.activate():
            answer = source.get_consent(call.ctx)
            return await answer if isawaitable(answer) else answer
    except BaseException as error:  # the tool's own code; a gate that fails is shut
        return hook_failure(call.plan, call.id, call.run, "method", "get_consent", error)


def _request(call: LiveCall, lacking: Consent) -> ApprovalRequest:
    """Return the request; its digest is that of no question about approval, so that no answer serves for both."""
    plan, run = call.plan, call.run
    return ApprovalRequest(
        id=f"ask_{uuid4().hex}",
        call_id=call.id,
        tool=plan.name,
        arguments=call.args.for_approval,
        digest=schema.digest("consent", {"call": call.args.digest, "reason": lacking.reason}),
        requested=call.shown_request(),
        reason=lacking.reason,
        run_id=run.id,
        principal=run.principal,
        agent=run.agent,
        conversation_id=run.conversation_id,
        definition=plan.definition,
        consent=lacking,
    )


def _suspended(call: LiveCall, request: ApprovalRequest) -> Suspended:
    call.update_approval(request=request)
    if call.trace is not None:
        call.trace.suspended(request)
    call.suspend()
    return Suspended(request.tool, request.call_id, request, call)


async def _used(
    call: LiveCall, request: ApprovalRequest, answer: Grant | Denial, *, stored: bool = False
) -> Failed | None:
    """Use up a request: of all copies of its call, in all processes with the same store, one goes on."""
    run = call.run
    if run.approvals is not None:
        used = request.grant(_BY_CONSENT) if isinstance(answer, Grant) and not stored else answer
        began = None if stored else await run.approvals.use(request, used)
        if began is None and isinstance(used, Grant):
            began = await run.approvals.begin(request, used)
        if began is not None:
            raise ApprovalError(request.tool, _WENT_ON)
        if isinstance(used, Grant):
            await run.approvals.end(request, used)
    else:
        earlier = approvals.used_answers.add(request.id, "used")
        if earlier is not None:
            raise ApprovalError(request.tool, f"it was {earlier} before; ask again")
    if call.trace is not None:
        noted = {"tool": request.tool, "call_id": call.id, "approver": answer.approver, "request_id": request.id}
        call.trace.answered({"kind": "grant" if isinstance(answer, Grant) else "denial", **noted})
    return None


def _refused(call: LiveCall, request: ApprovalRequest, answer: Denial) -> Rejected:
    by = "" if answer.approver in ("host", "deny_all") else f" by {answer.approver}"
    return Rejected(request.tool, call.id, answer.message or f"`{request.tool}` was denied{by}", "user")
