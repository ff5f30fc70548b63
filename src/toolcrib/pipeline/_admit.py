"""Steps 1 to 5 in order: a call is resolved, validated, decided, edited and approved, by the gates that it has."""

from __future__ import annotations

from toolcrib.calls import Denial, Grant, Outcome
from toolcrib.errors import InvalidArguments, SchemaError, exception_of
from toolcrib.hooks import HookSet
from toolcrib.pipeline._approve import approve
from toolcrib.pipeline._came import came_with
from toolcrib.pipeline._failures import failure
from toolcrib.pipeline._gates import ask_gates, decide, gates_of
from toolcrib.pipeline._live_call import LiveCall

__all__ = ["admit_at_once", "pass_edited", "pass_gates", "pass_more"]


async def pass_gates(
    call: LiveCall, grant: Grant | Denial | None = None, *, read: bool = False, ask: bool = True
) -> Outcome | None:
    """Take a call through every gate before the tool, and admit it; or return the outcome that one of them gave.

    Args:
        grant: The answer to its approval request, if it is known.
        read: The arguments were read before.
        ask: Ask for approval too.
    """
    plan, run = call.plan, call.run
    refused: Outcome | None = None
    try:
        gates = gates_of(call)
        _enter(call)
        if gates.before:
            refused = await ask_gates(call, gates.before)
        if refused is None:
            try:
                if not read:
                    call.read(gated=gates.read_host_arguments)
            except (InvalidArguments, SchemaError) as error:
                refused = failure(plan, call.id, run, error)
            if call.trace is not None:
                _note_arrival(call, fits=refused is None)
        elif call.trace is not None:
            call.trace.received(call.shown_mismatch(), came=came_with(call))
        if refused is None and gates.after:
            with call.activate():
                refused = await ask_gates(call, gates.after)
        if refused is None and ask and (gates.approve or call.approval.reasons or run.store is not None):
            refused = await approve(call, grant)
    except BaseException as error:  # quicker than `with call:`, on the way of every call
        call.close_cancelled()
        raise exception_of(error)  # noqa: B904 -- it is the same error, or has it as its cause
    if refused is None and call.state == "received":
        call.admit(gated=gates.read_host_arguments)
        return None
    return _admitted(call, refused)


def admit_at_once(call: LiveCall) -> bool:
    """Admit a call that was read and of which no sink hears, where no gate is asked about it; return whether it is."""
    gates = gates_of(call)
    if gates.before or gates.after or gates.approve or call.approval.reasons or call.run.store is not None:
        return False
    _enter(call)
    call.admit(gated=gates.read_host_arguments)
    return True


def _enter(call: LiveCall) -> None:
    """Make the context of a call, where its gates or its tool are given one."""
    run = call.run
    if call.plan.wants_ctx or run.deps is not None or run.provide or run.gate_steps:
        call.enter()


async def pass_edited(call: LiveCall) -> Outcome | None:
    """Take an admitted call that the host edited through steps 3 to 5 again."""
    with call:
        with call.activate():
            refused = await ask_gates(call, gates_of(call, "edited").after)
        refused = await approve(call, None, occasion="edited") if refused is None else refused
    return _admitted(call, refused)


async def pass_more(call: LiveCall, hooks: HookSet) -> Outcome | None:
    """Ask further decision hooks about an admitted call, and for approval where they change what it was given for."""
    before, reasons = call.args, call.approval.reasons
    with call:
        with call.activate():
            own = hooks.decisions_for(call.name)
            refused = await decide(call, own, given=len(own))
            if refused is None and call.args is not before:
                authorize = (step for step in gates_of(call, "edited").after if step.stage == "authorize")
                refused = await ask_gates(call, authorize)
        if refused is None and (call.args is not before or call.approval.reasons != reasons):  # else it stays approved
            call.update_approval(digest=None)
            if call.ctx is not None:
                call.ctx.approved = False
            refused = await approve(call, None, occasion="edited")
    return _admitted(call, refused)


def _admitted(call: LiveCall, refused: Outcome | None) -> Outcome | None:
    if refused is not None:
        return call.close(refused)
    if call.state != "executed":  # as the run's store or an approver says
        call.admit(gated=gates_of(call).read_host_arguments)
    return None


def _note_arrival(call: LiveCall, *, fits: bool) -> None:
    """Emit the arguments that came, and how the call came."""
    if call.trace is not None:
        call.trace.received(call.shown_request() if fits else call.shown_mismatch(), came=came_with(call, fits=fits))
