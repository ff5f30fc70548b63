"""Step 5: whether somebody has to say yes, and whether somebody has."""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Mapping
from dataclasses import replace
from inspect import isawaitable
from typing import Any
from uuid import uuid4

from toolcrib.approvals import MemoryApprovalStore, digest, misfit
from toolcrib.calls import ApprovalRequest, Denial, Failed, Grant, Outcome, Rejected, Suspended, lenient
from toolcrib.errors import ApprovalError, SchemaError
from toolcrib.pipeline._failures import hook_failure
from toolcrib.pipeline._plan import Prepared
from toolcrib.pipeline._run import Run
from toolcrib.schema import ToolSpec

__all__ = ["ask", "reasons_for", "shown_arguments", "shown_request", "shown_values"]


async def reasons_for(prepared: Prepared, run: Run) -> list[str] | Failed:
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
    if run.asks_for(plan.name):
        reasons.append("")
    return reasons


async def ask(prepared: Prepared, run: Run, reasons: list[str], given: Grant | Denial | None) -> Outcome | Grant:
    """Return the grant that lets the call go on, or the outcome that ends it here.

    Looked for in this order: the answer given with the call, an answer or standing grant in the run's store, the run's
    approver. With none of them the call is suspended.
    """
    asked: object = "get_approval_metadata"
    try:
        request = _request(prepared, run, reasons)
        answer, taken = given, False
        if answer is None and run.approvals is not None:
            asked = run.approvals
            answer = await run.approvals.take(request)
            taken = answer is not None
        if answer is None and run.approver is not None:
            asked = run.approver
            answer = await _answering(run.approver(request))
        if answer is None:
            return await _suspend(prepared, run, request)
        _note(prepared, request, answer)
        _settle(prepared, run, request, answer)
        if not taken:
            asked = run.approvals
            await _use(run, request, answer)
    except ApprovalError as error:
        return Failed(prepared.plan.name, prepared.call.id, error.code, str(error), "ApprovalError", exception=error)
    except Exception as error:  # tool, store and approver are the user's code; a gate that fails is shut
        return hook_failure(prepared.plan, prepared.call.id, "approval", asked, error)
    if isinstance(answer, Grant):
        return answer
    by = "" if answer.approver in ("host", "deny_all") else f" by {answer.approver}"
    return Rejected(request.tool, request.call_id, answer.message or f"`{request.tool}` was denied{by}", "user")


async def _suspend(prepared: Prepared, run: Run, request: ApprovalRequest) -> Suspended:
    if run.approvals is not None:
        await run.approvals.put(request)
    if prepared.trace is not None:
        prepared.trace.suspended(request)
    return Suspended(request.tool, request.call_id, request, prepared)


def _answering(answer: Any) -> Awaitable[Any]:
    if not isawaitable(answer):
        raise TypeError("an approver is an async function; write `async def`")
    return answer


def _note(prepared: Prepared, request: ApprovalRequest, answer: Grant | Denial) -> None:
    """Put an answer into the record; a TypeError for what is none, since a `True` is no signature."""
    if not isinstance(answer, Grant | Denial):  # pyright: ignore[reportUnnecessaryIsInstance] -- an approver is the user's code
        raise TypeError(f"it answered {type(answer).__name__}; return request.grant(), request.deny(...) or None")
    if prepared.trace is not None:
        prepared.trace.answered({**_said(answer), "digest": request.digest, "request_id": request.id})


def _settle(prepared: Prepared, run: Run, request: ApprovalRequest, answer: Grant | Denial) -> None:
    """Let one call of this process go on with an answer to a request; ApprovalError for one that does not fit."""
    standing = isinstance(answer, Grant) and answer.standing
    if isinstance(answer, Grant) and (why := misfit(answer, request)):
        raise ApprovalError(request.tool, why)
    if isinstance(answer, Grant) and not standing and answer.request_id is None:
        mark = f"{answer.call_id}:{answer.digest}"
        if mark in run.used_grants:
            raise ApprovalError(request.tool, "it was used before; ask again")
        run.used_grants.add(mark)
    word = "used" if isinstance(answer, Grant) else "denied"
    resumed = None if prepared.request is None else prepared.request.id
    for request_id in {resumed, None if standing else answer.request_id} - {None}:
        before = _settled.add(str(request_id), word)
        if before is not None:
            raise ApprovalError(request.tool, f"it was {before} before; ask again")


async def _use(run: Run, request: ApprovalRequest, answer: Grant | Denial) -> None:
    """Have the run's store keep an answer that did not come from it; without one a standing grant holds for the run."""
    if run.approvals is not None:
        await run.approvals.use(request, answer)
    elif isinstance(answer, Grant) and answer.standing:
        run.approvals = MemoryApprovalStore([answer])


class _Settled:
    """The requests that were answered in this process, and how; the oldest are forgotten."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._words: dict[str, str] = {}
        self._lock = threading.Lock()  # programs and agents may run in several threads

    def add(self, request_id: str, word: str) -> str | None:
        """Note how a request was settled; return how it was before, if it was."""
        with self._lock:
            before = self._words.get(request_id)
            if before is None:
                self._words[request_id] = word
                if len(self._words) > self._most:
                    del self._words[next(iter(self._words))]
            return before


# One for the process, because copies of one suspended call may be resumed by different pipelines at once, with no store
# between them. What several processes resume needs a store.
_settled = _Settled(most=50_000)


def _said(answer: Grant | Denial) -> dict[str, Any]:
    said = answer.to_dict()
    said.pop("user_input", None)  # what a person typed may be a secret, and so may
    said.pop("override_args", None)  # the arguments they gave: the record has those that came of it, redacted
    return {key: value for key, value in said.items() if value not in (None, "")}


def _request(prepared: Prepared, run: Run, reasons: list[str]) -> ApprovalRequest:
    plan, call = prepared.plan, prepared.call
    source = plan.tool.source
    extra = source.get_approval_metadata() if source is not None else None
    definition = source.get_definition() if source is not None else None
    request = ApprovalRequest(
        id=f"ask_{uuid4().hex}",
        call_id=call.id,
        tool=plan.name,
        arguments=shown_arguments(prepared),
        digest=digest(plan.name, prepared.arguments),
        requested=shown_request(prepared),
        reason="; ".join(reason for reason in reasons if reason),
        metadata={**(extra or {}), **prepared.ask_metadata},
        run_id=run.id,
        principal=run.principal,
        parameters=_schema_of(prepared),
        definition=None if definition is None else digest(plan.name, definition),
    )
    before = prepared.request
    if before is None or _bound_to(before) != _bound_to(request):
        return request
    return replace(request, id=before.id, created_at=before.created_at)  # a resumed call asks what it asked before


def _bound_to(request: ApprovalRequest) -> tuple[str, str | None, str | None]:
    return request.digest, request.principal, request.definition


def shown_values(spec: ToolSpec, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return a tool's arguments for a person or a record: JSON shapes, secrets hidden."""
    try:
        return spec.dump(arguments, redact=True)
    except (SchemaError, ValueError):  # a host may pass what has no schema
        return {key: lenient(value) for key, value in arguments.items()}


def _schema_of(prepared: Prepared) -> dict[str, Any] | None:
    try:
        return prepared.plan.spec.parameters
    except SchemaError:  # a host may pass what has no schema
        return None


def shown_arguments(prepared: Prepared) -> dict[str, Any]:
    """Return the final arguments for a person or a record: JSON shapes, secrets hidden."""
    return shown_values(prepared.plan.spec, prepared.arguments)


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
