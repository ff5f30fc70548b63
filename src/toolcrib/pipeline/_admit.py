"""Steps 1 to 5 in order: a call is resolved, validated, decided, edited and approved."""

from __future__ import annotations

from inspect import isawaitable

from toolcrib.calls import Denial, Failed, Grant, Outcome, Rejected
from toolcrib.errors import InvalidArguments, NotAvailable, SchemaError
from toolcrib.hooks import HookSet
from toolcrib.pipeline._approve import approve
from toolcrib.pipeline._came import came_with
from toolcrib.pipeline._decide import decide, decide_and_edit
from toolcrib.pipeline._failures import failure, hook_failure, not_allowed, not_offered, offered, out_of_scope
from toolcrib.pipeline._live_call import LiveCall
from toolcrib.pipeline._weigh import weigh

__all__ = ["available", "pass_edited", "pass_gates", "pass_more", "refusal"]


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
        if plan.off or plan.scopes or run.available is not None or run.limits is not None or call.received.caller:
            refused = refusal(call)
            call.revealed = plan.name in run.revealed
        if refused is None and (plan.wants_ctx or run.deps is not None or run.provide):
            call.enter()
            refused = await available(call) if plan.availability else None
        if refused is None and (call.trace is not None or not read):
            refused = _validate(call, read)
        elif refused is not None and call.trace is not None:
            call.trace.received(call.shown_misfit(), came=came_with(call))
        if refused is None and (plan.guarded or call.extra_hooks):
            refused = await decide_and_edit(call)
        if refused is None and run.provenance is not None:
            refused = await weigh(call)
        if (
            refused is None
            and ask
            and (plan.approvals or plan.consents or call.asks or run.deps is not None or run.store is not None)
        ):
            refused = await approve(call, grant)
    except BaseException:  # quicker than `with call:`, on the way of every call
        call.cut_off()
        raise
    return _admitted(call, refused)


async def pass_edited(call: LiveCall) -> Outcome | None:
    """Take an admitted call that the host edited through steps 3 to 5 again."""
    refused: Outcome | None = None
    with call:
        if call.guarded:
            refused = await decide_and_edit(call)
        if refused is None and call.run.provenance is not None:
            refused = await weigh(call)
        refused = await approve(call, None) if refused is None else refused
    return _admitted(call, refused)


async def pass_more(call: LiveCall, hooks: HookSet) -> Outcome | None:
    """Ask further decision hooks about an admitted call, and for approval where they change what it was given for."""
    before, asks = call.bound, call.asks
    with call:
        with call.within():
            own = hooks.decisions_for(call.name)
            refused = await decide(call, own, given=len(own))
        if refused is None and call.run.provenance is not None:
            refused = await weigh(call)
        if refused is None and (call.bound is not before or call.asks != asks):  # else it stays approved
            call.approved = None
            if call.ctx is not None:
                call.ctx.approved = False
            refused = await approve(call, None)
    return _admitted(call, refused)


def _admitted(call: LiveCall, refused: Outcome | None) -> Outcome | None:
    if refused is not None:
        return call.close(refused)
    if call.state != "executed":  # as the run's store or an approver says
        call.admit()
    return None


def refusal(call: LiveCall, *, counted: bool = False) -> Outcome | None:
    """Return why the run does not offer the tool, or has no budget for it; a new call is counted."""
    if not offered(call.plan.entry, call.run):
        return not_offered(call.name, call.id)
    if (refused := not_allowed(call.plan.entry, call.received)) is not None:
        return refused
    if (refused := out_of_scope(call.plan.entry, call.run, call.id)) is not None:
        return refused
    if call.run.limits is None or counted:
        return None
    spent = call.run.admit(call.name)
    return None if spent is None else Rejected(call.name, call.id, str(spent), "limit")


async def available(call: LiveCall) -> Failed | None:
    """Ask every condition of the tool; return the refusal, if one says no or fails."""
    plan, ctx = call.plan, call.ctx
    for condition in plan.availability:
        if ctx is None:
            raise RuntimeError("a plan with conditions always has a context")
        try:
            answer = condition(ctx)
            answer = await answer if isawaitable(answer) else answer
        except Exception as error:  # the condition is the user's code; a gate that fails is shut
            return hook_failure(plan, call.id, call.run, "availability check", condition, error)
        if not answer:
            refused = NotAvailable(plan.name)
            return Failed(plan.name, call.id, refused.code, str(refused), "NotAvailable", exception=refused)
    return None


def _validate(call: LiveCall, read: bool) -> Failed | None:
    """Read the arguments, unless they were read before, and emit what came."""
    refused: Failed | None = None
    plan = call.plan
    try:
        if not read:
            call.read()
    except (InvalidArguments, SchemaError) as error:
        refused = failure(plan, call.id, call.run, error)
    if call.trace is not None:
        fits = refused is None
        call.trace.received(call.shown_request() if fits else call.shown_misfit(), came=came_with(call, fits=fits))
    return refused
