"""The way back of a call: its state restored, availability, limits and approval asked again, hooks not.

A call that was begun and is not known to have ended is in doubt: it is executed again only when its tool is idempotent.
A call that was executed comes back with its result.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolcrib.calls import (
    ApprovalRequest,
    DecisionNote,
    Denial,
    Failed,
    Grant,
    Outcome,
    StoredFields,
    Suspended,
    ToolCall,
    revived,
)
from toolcrib.errors import ApprovalError, CallStateError, InvalidArguments, SchemaError
from toolcrib.pipeline._admit import pass_gates
from toolcrib.pipeline._approve import answered, approve, override
from toolcrib.pipeline._arguments import changed_since, restored_arguments, unread_arguments
from toolcrib.pipeline._call import Approval, Call, History
from toolcrib.pipeline._doubt import reason_of_doubt, stored_error
from toolcrib.pipeline._failures import failure
from toolcrib.pipeline._gates import ask_gates, gates_of, reasons_for, run_steps
from toolcrib.pipeline._live_call import LiveCall
from toolcrib.pipeline._plan import Plan
from toolcrib.pipeline._run import Run

__all__ = ["begun_before", "named", "pass_again", "restored", "taken_up"]


def named(state: Any) -> tuple[str, str]:
    """Return the names of the tool and of the call that a state is of."""
    if isinstance(state, Suspended):
        return state.tool, state.call_id
    if isinstance(state, LiveCall):
        return state.received.name, state.id
    if isinstance(state, ToolCall):
        return state.name, state.id
    fields = StoredFields("Call", state)
    return fields["name"], fields["id"]


def taken_up(plan: Plan, state: Any, run: Run) -> LiveCall:
    """Return the call to ask again: of a suspended call, of its JSON, or the one that was restored; else as `restored`.

    Raises:
        CallStateError: It has ended.
    """
    if not isinstance(state, Suspended):
        call = state if isinstance(state, LiveCall) else restored(plan, state, run)
    else:
        call = restored(plan, state.call, run)
    if call.state == "closed":
        raise CallStateError(plan.name, call.id, call.state)
    if isinstance(state, Suspended):
        call.state = "suspended"
        call.update_approval(request=state.request)
    return call


def restored(plan: Plan, state: Any, run: Run) -> LiveCall:
    """Return the call that a state describes: the call itself, or its JSON; no gate is asked.

    Raises:
        InvalidArguments: The tool does not take the arguments any more, or makes others of them than it did.
        SchemaError: The tool has no schema any more.
        ApprovalError: It does not take them any more, and a person was asked about them.
        ValueError: It is no state of a call: a field is missing.
    """
    if isinstance(state, LiveCall) and state.plan.entry.tool is plan.entry.tool:
        again = state.copied()
        again.plan, again.run = plan, run
        return again
    data = StoredFields("Call", state.to_dict() if isinstance(state, LiveCall) else state)
    received = ToolCall(data["name"], data["arguments"], data["id"], data["origin"])
    call = LiveCall(received, plan, run)
    call.history = History(
        runs=tuple(data["runs"]),
        trace=data.get("trace", {}),
        revealed=data.get("revealed", False),
        hooks_lost=data.get("extra_hooks", False),
        doubts=data.get("doubts", 0),
        key=data.get("key", ""),
    )
    _read_stored(call, data)
    call.enter(dict(data["metadata"]))
    if call.ctx is not None:
        call.ctx.idempotency_key = data.get("idempotency_key") or received.id
    call.notes = tuple(DecisionNote(**StoredFields(DecisionNote, note)) for note in data["decisions"])
    call.approval = Approval(
        reasons=tuple(data["asks"]),
        metadata=dict(data["ask_metadata"]),
        origins={name: tuple(values) for name, values in data.get("origins", {}).items()},
        request=None if data.get("request") is None else ApprovalRequest.from_dict(data["request"]),
        waits_for=data.get("waits_for", ""),
    )
    call.state = data.get("state", "admitted")
    if call.state in ("executed", "closed"):
        call.begun, call.value = data.get("begun", True), revived(data.get("value"))
        call.error = None if data.get("error") is None else stored_error(data["error"])
        call.update_execution(delivered=data.get("delivered", False))
    return call


def _read_stored(call: LiveCall, data: Mapping[str, Any]) -> None:
    """Read the arguments, which have to be those that were seen, unless the call was begun: then it is asked about.

    Of a call that was executed nothing runs any more, and of one in doubt only what its approver says.
    """
    try:
        call.args = args = restored_arguments(call.plan, data)
        runs_no_more = data["state"] in ("executed", "closed")
        if not runs_no_more and args.digest != data["digest"] and not _asked_anew(call, data):
            raise changed_since(call.plan, data["arguments"], args.canonical.values)
    except (InvalidArguments, SchemaError) as error:
        begun = data["state"] in ("executing", "executed", "closed") or data.get("doubts", 0) > 0
        if begun and not call.tool.options.idempotent:
            call.args = unread_arguments(call.plan, data)
            call.update_history(mismatch=error)
            return
        if data["request"] is None:
            raise
        changed = f"the tool or the arguments have changed since it was asked ({error})"
        raise ApprovalError(call.name, changed) from error


def _asked_anew(call: LiveCall, data: Mapping[str, Any]) -> bool:
    """Return whether a person is asked about the arguments again: the tool has changed since they were asked."""
    asked: Mapping[str, Any] = data["request"] or {}
    waits = data["state"] == "suspended" and data.get("doubts", 0) == 0 and not data.get("waits_for")
    return waits and len(asked) > 0 and asked.get("definition") != call.plan.definition


async def pass_again(call: LiveCall, given: Grant | Denial | None) -> Call | Outcome:
    """Ask availability, limits and approval once more for a call that comes back; return what `Pipeline.recover` does.

    Nothing is asked about a call that was executed.
    """
    with call:
        refused = await _pass_again(call, given)
    return _recovered(call, refused)


async def begun_before(call: LiveCall, given: Grant | Denial | None, begun: int, used: Grant | None) -> Call | Outcome:
    """Ask all gates of a call that was begun up to `begun` times, by a grant if it needed one."""
    refused = await pass_gates(call, ask=False)
    if refused is not None:
        return refused
    with call:
        call.state = "executing"
        call.update_history(doubts=0 if call.plan.tool.options.idempotent else begun - 1)
        edited = None if used is None or call.plan.tool.options.idempotent else used.override_args
        refused = None if edited is None else await override(call, edited)  # it began with these
        if refused is None:
            refused = await _resolve_doubt(call, given, used)
    return _recovered(call, refused)


def _recovered(call: LiveCall, refused: Outcome | None) -> Call | Outcome:
    if refused is not None:
        return call.close(refused)
    if call.state != "executed":  # as its approver says it was
        call.admit(gated=gates_of(call).read_host_arguments)
    return call


async def _pass_again(call: LiveCall, given: Grant | Denial | None) -> Outcome | None:
    if call.state == "executed":
        if call.trace is not None:
            call.trace.received(call.shown_request(), call.history.trace, earlier_runs=call.history.runs)
        return None
    refused = await _offered_again(call)
    if refused is not None:
        return refused
    asked_as = call.id if call.request is None else call.request.call_id
    if given is not None and given.call_id not in (None, call.id, asked_as):
        error = ApprovalError(call.name, f"it answers the call {given.call_id}, and this is {call.id}")
        return Failed(call.name, call.id, error.code, str(error), "ApprovalError", exception=error)
    if call.state == "suspended" and call.approval.waits_for:
        refused = await _resume(call, given)
        if refused is not None:
            return refused
        call.update_approval(request=None, waits_for="")
        call.state, given = "received", None
        return await (_resolve_doubt(call, None) if call.history.doubts else approve(call, None, occasion="recovered"))
    if call.state == "executing" or (call.history.doubts and call.state == "suspended"):
        return await _resolve_doubt(call, given)
    if call.state == "suspended":
        reasons = await reasons_for(call, "recovered")
        if not isinstance(reasons, list):
            return reasons
        asked = call.request.reason if call.request is not None else ""
        return await answered(call, reasons or [asked], given, lapsed=not reasons)
    return await approve(call, given, occasion="recovered")


async def _resume(call: LiveCall, given: Grant | Denial | None) -> Outcome | None:
    """Return what the gate says that suspended a call by a request of its own; None where the call may go on."""
    name, steps = call.approval.waits_for, (*call.plan.steps, *run_steps(call.run))
    resume = next((step.resume for step in steps if step.name == name and step.resume is not None), None)
    if resume is None:
        gone = f"the gate `{name}` that it waits for is not there any more; make the call anew"
        return failure(call.plan, call.id, call.run, ApprovalError(call.name, gone))
    return await resume(call, given)


async def _resolve_doubt(call: LiveCall, given: Grant | Denial | None, used: Grant | None = None) -> Outcome | None:
    """Ask about a call that was begun and is not known to have ended; an idempotent tool needs its approval alone."""
    if call.plan.tool.options.idempotent:
        return await approve(call, given, used, occasion="recovered")
    if call.state == "executing":
        # so that the request is another than that of an earlier doubt about the same call
        call.update_history(doubts=call.history.doubts + 1)
    refused = await answered(call, [reason_of_doubt(call)], given)
    if call.history.mismatch is None:
        return refused
    edited = call.grant is not None and call.grant.override_args is not None
    if refused is None and call.state != "executed" and not edited:
        return failure(call.plan, call.id, call.run, ApprovalError(call.name, str(call.history.mismatch)))
    return refused


async def _offered_again(call: LiveCall) -> Outcome | None:
    if call.trace is not None:
        call.trace.received(call.shown_request(), call.history.trace, earlier_runs=call.history.runs)
    if call.history.revealed:
        call.run.revealed[call.name] = None  # it was found in the run that asked, which this one goes on with
    gates = gates_of(call, "recovered")
    refused = await ask_gates(call, gates.before)
    if refused is None and gates.after:
        with call.activate():
            refused = await ask_gates(call, gates.after)
    return refused
