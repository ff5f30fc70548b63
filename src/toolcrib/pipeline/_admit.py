"""Admission of a call, steps 1 to 5: its gates in order, and approval where one of them asks for it."""

from __future__ import annotations

from dataclasses import replace

from toolcrib.calls import Outcome
from toolcrib.errors import exception_of
from toolcrib.hooks import HookSet
from toolcrib.pipeline._approve import Answer, approve
from toolcrib.pipeline._finish import close
from toolcrib.pipeline._gates import gates_of, pass_edited, pass_gates, pass_more, read_arrival
from toolcrib.pipeline._live_call import LiveCall


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
    return close_or_admit(call, refused)


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
    return close_or_admit(call, refused)


async def admit_edited(call: LiveCall) -> LiveCall | Outcome:
    """Pass an admitted call that the host edited through steps 3 to 5 again."""
    with call:
        refused = await pass_edited(call)
        refused = await approve(call, None, occasion="edited") if refused is None else refused
    return close_or_admit(call, refused)


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
    return close_or_admit(call, refused)


def close_or_admit(call: LiveCall, refused: Outcome | None) -> LiveCall | Outcome:
    """Close a call that a gate refused; move any other to `admitted`: its arguments are final from here on."""
    if refused is not None:
        return close(call, refused)
    if call.state != "executed":  # as the run's store or an approver says
        call.state = "admitted"
        is_shared = call.plan.has_wrappers or call.args.is_shared
        if call.approval.digest is not None or (is_shared and gates_of(call).read_host_arguments):
            call.execution = replace(call.execution, seal=call.args.digest)
    return call
