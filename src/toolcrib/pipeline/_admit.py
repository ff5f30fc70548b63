"""Admission of a call, steps 1 to 5: of one that arrives, and of one that comes back from a store or another process.

A call that comes back is asked about availability, limits and approval again, and hooks are not. One that was begun and
is not known to have ended is in doubt: it is executed again only when its tool is idempotent. A call that was executed
comes back with its result.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from typing import Any

from toolcrib import approvals, calls, tools
from toolcrib.calls import Failed, Outcome, StoredFields, Suspended, ToolCall, revived
from toolcrib.errors import ApprovalError, CallStateError, InvalidArguments, SchemaError, exception_of
from toolcrib.hooks import HookSet
from toolcrib.pipeline._approve import Answer, approve, reason_of_doubt, settle, wrong_edit
from toolcrib.pipeline._arguments import changed_since, restored_arguments, unread_arguments
from toolcrib.pipeline._call import Approval, Call, History
from toolcrib.pipeline._compiled_tool import CompiledTool, GateList
from toolcrib.pipeline._failures import failure, invalid_arguments, stored_error
from toolcrib.pipeline._finish import close, refuse
from toolcrib.pipeline._gates import (
    ask_gates,
    gates_of,
    override,
    pass_edited,
    pass_gates,
    pass_more,
    read_arrival,
    reasons_for,
    run_steps,
)
from toolcrib.pipeline._live_call import LiveCall, began_by
from toolcrib.pipeline._run import Run


def admit_at_once(call: LiveCall, read: bool = False) -> LiveCall | Outcome | None:
    """Return a call that no gate is asked about, admitted; or the outcome where its arguments do not fit.

    None for a call with a gate, which stays `received`: `admit` asks it.

    Args:
        call: The call, `received`.
        read: The arguments were read before.
    """
    gates = gates_of(call)
    if not gates.is_empty or call.run.durability.store is not None:
        return None
    try:
        if call.plan.wants_ctx or call.run.wants_ctx:
            call.enter()
        refused = read_arrival(call, gates, read)
    except BaseException as error:  # quicker than `with call:`, on the way of every call
        call.close_cancelled()
        raise exception_of(error)  # noqa: B904 -- it is the same error, or has it as its cause
    return _close_or_admit(call, refused, gates)


async def admit(
    call: LiveCall, grant: Answer | None = None, *, read: bool = False, ask: bool = True
) -> LiveCall | Outcome:
    """Return a call that passed every gate before the tool, admitted; or the outcome that one of them gave.

    Args:
        call: The call, `received`.
        grant: The answer to its approval request, if it is known.
        read: The arguments were read before.
        ask: Ask for approval too.
    """
    gates = gates_of(call)
    try:
        refused = await pass_gates(call, gates, read)
        has_reasons = gates.approve or call.approval.reasons or call.run.durability.store is not None
        if refused is None and ask and has_reasons:
            refused = await approve(call, grant)
    except BaseException as error:  # as above
        call.close_cancelled()
        raise exception_of(error)  # noqa: B904 -- as above
    return _close_or_admit(call, refused, gates)


async def admit_edited(call: LiveCall) -> LiveCall | Outcome:
    """Pass an admitted call that the host edited through steps 3 to 5 again."""
    with call:
        refused = await pass_edited(call)
        refused = await approve(call, None, occasion="edited") if refused is None else refused
    return _close_or_admit(call, refused, gates_of(call, "edited"))


async def admit_more(call: LiveCall, hooks: HookSet) -> LiveCall | Outcome:
    """Ask further decision hooks about an admitted call, and for approval where they change what it was given for."""
    before, reasons = call.args, call.approval.reasons
    with call:
        refused = await pass_more(call, hooks)
        if refused is None and (call.args is not before or call.approval.reasons != reasons):  # else it stays approved
            call.approval = replace(call.approval, digest=None)
            if call.ctx is not None:
                call.ctx.approved = False
            refused = await approve(call, None, occasion="edited")
    return _close_or_admit(call, refused, gates_of(call, "edited"))


def _close_or_admit(call: LiveCall, refused: Outcome | None, gates: GateList) -> LiveCall | Outcome:
    """Close a call that a gate refused; move any other to `admitted`: its arguments are final from here on."""
    if refused is not None:
        return close(call, refused)
    if call.state != "executed":  # as the run's store or an approver says
        call.state = "admitted"
        is_seen = gates.read_host_arguments and (call.plan.has_wrappers or call.args.is_shared)
        if is_seen or call.approval.digest is not None:
            call.execution = replace(call.execution, seal=call.args.digest)
    return call


# --- a call that comes back


def ids_of(state: Any) -> tuple[str, str]:
    """Return the names of the tool and of the call that a state is of."""
    if isinstance(state, Suspended):
        return state.tool, state.call_id
    if isinstance(state, LiveCall):
        return state.received.name, state.id
    if isinstance(state, ToolCall):
        return state.name, state.id
    fields = StoredFields("Call", state)
    if "state" not in fields:
        raise ValueError(
            "this dict is not the state of a call, as `call.to_dict()` returns it: its `state` is missing. A new call "
            "is ToolCall(name, arguments)"
        )
    return fields["name"], fields["id"]


def check_answer(plan: CompiledTool | None, name: str, answer: Any, state: Any = None, run: Run | None = None) -> None:
    """Check an answer about a call of a tool of this name; raises what `Pipeline.check_answer` does."""
    if answer is None:
        return
    approvals.require_answer(f"the answer about `{name}`", answer)
    if plan is None or not isinstance(answer, calls.Grant):
        return
    if answer.done is not None:
        tools.checked_output(plan.tool, plan.name, answer.done.value)
    if answer.override_args is not None and state is not None:
        _require_fitting_edit(plan, state, Run() if run is None else run, answer)


def _require_fitting_edit(plan: CompiledTool, state: Any, run: Run, grant: calls.Grant) -> None:
    """Check the arguments that a grant gives for a call; raises what `Pipeline.check_answer` does.

    Nothing is checked where the call cannot be loaded, as what loads it says why; of a question during a call, which
    is about fields; or where the grant is for another call.
    """
    try:
        call = LiveCall(state, plan, run) if isinstance(state, ToolCall) else _load_call(plan, state, run)
        if isinstance(state, ToolCall):
            call.read_arguments()
    except (ApprovalError, CallStateError, InvalidArguments, SchemaError):
        return
    request = call.request
    asked_as = call.id if request is None else request.call_id
    is_other = grant.call_id not in (None, call.id, asked_as) or (request is not None and request.asked_by is not None)
    if not is_other and (why := wrong_edit(call, grant)):
        raise ApprovalError(plan.name, why)


def _load_call(plan: CompiledTool, state: Any, run: Run) -> LiveCall:
    """Return the call to ask again: of a suspended call, of its JSON, or the one that was restored.

    Else as `restored_call`.

    Raises:
        CallStateError: It has ended.
    """
    if not isinstance(state, Suspended):
        call = state if isinstance(state, LiveCall) else restored_call(plan, state, run)
    else:
        call = restored_call(plan, state.call, run)
    if call.state == "closed":
        raise CallStateError(plan.name, call.id, call.state)
    if isinstance(state, Suspended):
        call.state = "suspended"
        call.approval = replace(call.approval, request=state.request)
    return call


def restored_call(plan: CompiledTool, state: Any, run: Run) -> LiveCall:
    """Return the call that a state describes: the call itself, or its JSON; no gate is asked.

    Raises:
        InvalidArguments: The tool no longer takes the arguments, or makes others of them than it did.
        SchemaError: The tool has no schema any more.
        ApprovalError: It does not take them any more, and a person was asked about them.
        ValueError: It is not the state of a call: a field is missing.
    """
    if isinstance(state, LiveCall) and state.plan.entry.tool is plan.entry.tool:
        return _copied(state, plan, run)
    data = StoredFields("Call", state.to_dict() if isinstance(state, LiveCall) else state)
    received = ToolCall(data["name"], data["arguments"], data["id"], data["origin"])
    call = LiveCall(received, plan, run)
    call.history = History.from_dict(data)
    _read_stored(call, data)
    call.enter(dict(data["metadata"]))
    if call.ctx is not None:
        call.ctx.idempotency_key = data.get("idempotency_key") or received.id
    call.notes = tuple(calls.DecisionNote(**StoredFields(calls.DecisionNote, note)) for note in data["decisions"])
    call.approval = Approval.from_dict(data)
    call.state = data.get("state", "admitted")
    if call.state in ("executed", "closed"):
        call.begun, call.value = data.get("begun", True), revived(data.get("value"))
        call.error = None if data.get("error") is None else stored_error(data["error"])
        call.execution = replace(call.execution, delivered=data.get("delivered", False))
    return call


def _copied(call: LiveCall, plan: CompiledTool, run: Run) -> LiveCall:
    """Return a copy of a call, which goes on in a run: one may be recovered twice, and one of the copies goes on."""
    again = copy(call)
    again.outcome = None
    again.history = replace(
        again.history,
        original=call.history.original or call,
        runs=call.runs,
        revealed=call.was_revealed,
        trace={} if call.trace is None else call.trace.carry(),
    )
    again.plan, again.run = plan, run
    return again


def _read_stored(call: LiveCall, data: Mapping[str, Any]) -> None:
    """Read the arguments, which have to be those that were seen, unless the call was begun: then it is asked about.

    Of a call that was executed nothing runs any more, and of one in doubt only what its approver says.
    """
    try:
        is_seen = data["state"] not in ("executed", "closed") and not _asked_anew(call, data)
        call.args = args = restored_arguments(call.plan, data, is_seen=is_seen)
        if is_seen and args.digest != data["digest"]:
            raise changed_since(call.plan, data["arguments"], args.canonical.values)
    except (InvalidArguments, SchemaError) as error:
        begun = data["state"] in ("executing", "executed", "closed") or data.get("doubts", 0) > 0
        if begun and not call.tool.options.idempotent:
            call.args = unread_arguments(call.plan, data)
            call.history = replace(call.history, mismatch=error)
            return
        if data["request"] is None or data.get("same_process"):
            raise
        changed = f"the tool or the arguments have changed since it was asked ({error})"
        raise ApprovalError(call.name, changed) from error


def _asked_anew(call: LiveCall, data: Mapping[str, Any]) -> bool:
    """Return whether a person is asked about the arguments again: the tool has changed since they were asked."""
    request: Mapping[str, Any] = data["request"] or {}
    waits = data["state"] == "suspended" and data.get("doubts", 0) == 0 and not data.get("waits_for")
    return waits and len(request) > 0 and request.get("definition") != call.plan.definition


async def recover_call(
    new: LiveCall, state: Any, grant: Answer | None, begun: int, used: calls.Grant | None
) -> Call | Outcome:
    """Return the outcome or the next step of a stored call: see `Pipeline.recover`.

    Args:
        new: A call of the same tool and id in the run that it goes on in, without arguments.
    """
    plan, run, trace = new.plan, new.run, new.trace
    if isinstance(state, ToolCall):
        return await _recover_in_doubt(LiveCall(state, plan, run, trace), grant, begun, used)
    try:
        call = _load_call(plan, state, run)
    except (ApprovalError, InvalidArguments, SchemaError) as error:  # the tool has changed since
        return refuse(run, new.received, trace, invalid_arguments(plan.name, new.id, error), plan.entry)
    call.run, call.trace = run, trace
    call.enter(dict(call.metadata))
    with call:
        refused = await _recheck(call, grant)
    return _close_or_admit(call, refused, gates_of(call, "recovered"))


async def _recover_in_doubt(
    call: LiveCall, attached: Answer | None, begun: int, used: calls.Grant | None
) -> Call | Outcome:
    """Ask all gates of a call that was begun up to `begun` times, by a grant if it needed one."""
    admitted = await admit(call, ask=False)
    if admitted is not call:
        return admitted
    with call:
        call.state = "executing"
        if call.run.durability.fence is None:
            call.history = replace(call.history, doubts=0 if call.tool.options.idempotent else begun - 1)
        elif not call.tool.options.idempotent:  # its request has the same id in each execution of the work
            call.approval = replace(call.approval, request=began_by(call, used))
        edited = None if used is None or call.tool.options.idempotent else used.override_args
        refused = None if edited is None else await override(call, edited)  # it began with these
        if refused is None:
            refused = await _resolve_doubt(call, attached, used)
    return _close_or_admit(call, refused, gates_of(call, "recovered"))


async def _recheck(call: LiveCall, attached: Answer | None) -> Outcome | None:
    if call.state == "executed":
        if call.trace is not None:
            call.trace.received(call.shown_request(), None, call.history.trace, call.history.runs)
        return None
    refused = await _offered_again(call)
    if refused is not None:
        return refused
    asked_as = call.id if call.request is None else call.request.call_id
    if attached is not None and attached.call_id not in (None, call.id, asked_as):
        error = ApprovalError(call.name, f"it answers the call {attached.call_id}, and this is {call.id}")
        return Failed(call.name, call.id, error.code, str(error), "ApprovalError", exception=error)
    if call.state == "suspended" and call.approval.waits_for:
        refused = await _resume(call, attached)
        if refused is not None:
            return refused
        call.approval = replace(call.approval, request=None, waits_for="")
        call.state, attached = "received", None
        return await (_resolve_doubt(call, None) if call.history.doubts else approve(call, None, occasion="recovered"))
    if call.state == "executing" or (call.history.doubts and call.state == "suspended"):
        return await _resolve_doubt(call, attached)
    if call.state == "suspended":
        reasons = await reasons_for(call, "recovered")
        if not isinstance(reasons, list):
            return reasons
        reason = call.request.reason if call.request is not None else ""
        return await settle(call, reasons or [reason], attached, lapsed=not reasons)
    return await approve(call, attached, occasion="recovered")


async def _resume(call: LiveCall, attached: Answer | None) -> Outcome | None:
    """Return the answer of the gate that suspended a call by a request of its own; None where the call may go on."""
    name, steps = call.approval.waits_for, (*call.plan.steps, *run_steps(call.run))
    resume = next((step.resume for step in steps if step.name == name and step.resume is not None), None)
    if resume is None:
        problem = f"the gate `{name}` that it waits for no longer exists; make the call again"
        return failure(call, ApprovalError(call.name, problem))
    return await resume(call, attached)


async def _resolve_doubt(call: LiveCall, attached: Answer | None, used: calls.Grant | None = None) -> Outcome | None:
    """Ask about a call that was begun and is not known to have ended; an idempotent tool needs its approval alone."""
    if call.tool.options.idempotent:
        return await approve(call, attached, used, occasion="recovered")
    if call.state == "executing":
        # so that the request is another than that of an earlier doubt about the same call
        call.history = replace(call.history, doubts=call.history.doubts + 1)
    refused = await settle(call, [reason_of_doubt(call)], attached)
    if call.history.mismatch is None:
        return refused
    edited = call.grant is not None and call.grant.override_args is not None
    if refused is None and call.state != "executed" and not edited:
        return failure(call, ApprovalError(call.name, str(call.history.mismatch)))
    return refused


async def _offered_again(call: LiveCall) -> Outcome | None:
    if call.trace is not None:
        call.trace.received(call.shown_request(), None, call.history.trace, call.history.runs)
    if call.history.revealed:
        call.run.revealed[call.name] = None  # it was found in the run that asked, which this one goes on with
    gates = gates_of(call, "recovered")
    refused = await ask_gates(call, gates.before)
    if refused is None and gates.after:
        with call.activate():
            refused = await ask_gates(call, gates.after)
    return refused
