"""Consent of a principal, given elsewhere, to what a tool does for them: the gate of a tool that may need it.

It is asked before approval. An answer of an approver never takes its place: a grant is used up, and what counts is that
the tool says nothing is lacking any more. A denial refuses the call.
"""

from __future__ import annotations

from inspect import isawaitable
from typing import Any
from uuid import uuid4

from toolcrib import approvals, calls, schema
from toolcrib.calls import Failed, Outcome, Rejected
from toolcrib.errors import ApprovalError
from toolcrib.hooks import WITH_ARGUMENTS, GateStep, refused_by
from toolcrib.tools import BaseTool

_BY_CONSENT = "the principal's consent"
_WENT_ON = "the call went on by this request before, and may have been done"


def consent_step(source: BaseTool) -> GateStep:
    """Return the gate of a tool that may need consent."""
    gate = _Consents(source)
    return GateStep("consent", "approve", gate.check, WITH_ARGUMENTS, resume=gate.resume)


class _Consents:
    def __init__(self, source: BaseTool) -> None:
        self._source = source

    async def check(self, call: Any) -> Outcome | None:
        """Return the outcome of a call whose consent is missing; None where it may go on."""
        lacking = await self._lacking(call)
        if not isinstance(lacking, calls.Consent):
            return lacking
        # its digest is that of no question about approval, so that no answer serves for both
        digest = schema.digest("consent", {"call": call.digest, "reason": lacking.reason})
        request = call.request_about(f"ask_{uuid4().hex}", lacking.reason, digest=digest, consent=lacking)
        run = call.run
        try:
            if run.approver is not None:
                answer: Any = await approvals.answer_of(run.approver, request)
                if isinstance(answer, calls.Denial):
                    return _refused(call, request, answer)
                if await self._lacking(call) is None:
                    return None
            if run.approvals is not None:
                await run.approvals.put(request)
                if await self._lacking(call) is None:  # they consented meanwhile: it would stay without an answer
                    return await _used(call, request, request.grant(_BY_CONSENT))
        except ApprovalError as error:
            return refused_by(call, error)
        except BaseException as error:  # store and approver are the user's code; a gate that fails is shut
            return call.hook_failure("approval", run.approvals or run.approver, error)
        return call.suspend(request)

    async def resume(self, call: Any, given_answer: calls.Grant | calls.Denial | None) -> Outcome | None:
        """Ask a call that was suspended for want of consent again; None, once, where nothing is lacking any more."""
        request, run = call.request, call.run
        try:
            answer, stored = given_answer, False
            if answer is None and run.approvals is not None:
                found = await run.approvals.take(request)
                if isinstance(found, approvals.ApprovalEntry) and found.execution is not None:
                    raise ApprovalError(request.tool, _WENT_ON)
                answer = None if isinstance(found, approvals.ApprovalEntry) else found
                stored = answer is not None
            if isinstance(answer, calls.Denial):
                return await _used(call, request, answer, stored=stored) or _refused(call, request, answer)
            lacking = await self._lacking(call)
            if isinstance(lacking, calls.Consent):
                if answer is None:
                    return call.suspend(request)
                await _used(call, request, answer, stored=stored)
                return await self.check(call)  # a yes of somebody's is not a consent: another request says so
            if lacking is not None:
                return lacking
            return await _used(call, request, answer or request.grant(_BY_CONSENT), stored=stored)
        except ApprovalError as error:
            return refused_by(call, error)
        except BaseException as error:  # the store is the user's code; a gate that fails is shut
            return call.hook_failure("approval", run.approvals, error)

    async def _lacking(self, call: Any) -> calls.Consent | Failed | None:
        if call.ctx is None:
            return None
        try:
            with call.activate():
                answer: Any = self._source.get_consent(call.ctx)
                return await answer if isawaitable(answer) else answer
        except BaseException as error:  # the tool's own code; a gate that fails is shut
            return call.hook_failure("method", "get_consent", error)


async def _used(
    call: Any, request: calls.ApprovalRequest, answer: calls.Grant | calls.Denial, *, stored: bool = False
) -> Failed | None:
    """Use up a request: of all copies of its call, in all processes with the same store, one goes on."""
    run = call.run
    if run.approvals is not None:
        used = request.grant(_BY_CONSENT) if isinstance(answer, calls.Grant) and not stored else answer
        began = None if stored else await run.approvals.use(request, used)
        if began is None and isinstance(used, calls.Grant):
            began = await run.approvals.begin(request, used)
        if began is not None:
            raise ApprovalError(request.tool, _WENT_ON)
        if isinstance(used, calls.Grant):
            await run.approvals.end(request, used)
    else:
        earlier = approvals.used_answers.add(request.id, "used")
        if earlier is not None:
            raise ApprovalError(request.tool, f"it was {earlier} before; ask again")
    noted = {"tool": request.tool, "call_id": call.id, "approver": answer.by, "request_id": request.id}
    call.note_answer({"kind": "grant" if isinstance(answer, calls.Grant) else "denial", **noted})
    return None


def _refused(call: Any, request: calls.ApprovalRequest, answer: calls.Denial) -> Rejected:
    by = "" if answer.by in ("host", "deny_all") else f" by {answer.by}"
    return Rejected(request.tool, call.id, answer.message or f"`{request.tool}` was denied{by}", "user")
