"""Admission of a call, steps 1 to 5: its arguments and gates in order, and what the answer of a person does to it."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from toolcrib import approvals, calls, record, tools
from toolcrib import hooks as _hooks
from toolcrib.calls import Failed, Outcome, ToolCall, lenient, revived
from toolcrib.errors import ApprovalError, InvalidArguments, SchemaError, exception_of
from toolcrib.hooks import HookSet, Occasion
from toolcrib.pipeline._approve import Answer, Begun, Question, equal_call, is_earlier, reason_of_doubt
from toolcrib.pipeline._compiled_tool import GateList
from toolcrib.pipeline._failures import failure, stored_error
from toolcrib.pipeline._finish import close, set_result
from toolcrib.pipeline._gates import ask_gates, decide, gates_of
from toolcrib.pipeline._live_call import LiveCall
from toolcrib.pipeline._run import Run
from toolcrib.toolsets import ToolEntry

_EXECUTED_NOW = "the call is executed now, since {since}: nothing is to be answered; come back for its result"


def pass_at_once(call: LiveCall, read: bool = False) -> LiveCall | Outcome | None:
    """Return a call that no gate is asked about, admitted; or the outcome where its arguments do not fit.

    None for a call with a gate, which stays `received`: `pass_gates` asks it.

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
        refused = None if read else _read(call, gates)
        if refused is None and (call.trace is not None or call.plan.may_quote_secrets):
            _note_arrival(call)
    except BaseException as error:  # quicker than `with call:`, on the way of every call
        call.close_cancelled()
        raise exception_of(error)  # noqa: B904 -- it is the same error, or has it as its cause
    return close_or_admit(call, refused, gates)


async def pass_gates(
    call: LiveCall, grant: Answer | None = None, *, read: bool = False, ask: bool = True
) -> LiveCall | Outcome:
    """Return a call that passed every gate before the tool, admitted; or the outcome that one of them gave.

    Args:
        grant: The answer to its approval request, if it is known.
        read: The arguments were read before.
        ask: Ask for approval too.
    """
    gates, refused = gates_of(call), None
    try:
        if call.plan.wants_ctx or call.run.wants_ctx:
            call.enter()
        if gates.before:
            refused = await ask_gates(call, gates.before)
            if refused is not None and call.trace is not None:
                call.trace.received(_mismatch(call), describe_arrival(call))
        if refused is None and not read:
            refused = _read(call, gates)
        if refused is None:
            _note_arrival(call)
        if refused is None and call.run.approvals is not None:
            refused = await _load_digest_key(call)
        if refused is None and gates.after:
            with call.activate():
                refused = await ask_gates(call, gates.after)
        has_reasons = gates.approve or call.approval.reasons or call.run.durability.store is not None
        if refused is None and ask and has_reasons:
            refused = await approve(call, grant)
    except BaseException as error:  # as above
        call.close_cancelled()
        raise exception_of(error)  # noqa: B904 -- as above
    return close_or_admit(call, refused, gates)


async def _load_digest_key(call: LiveCall) -> Outcome | None:
    """Load the key of its digest from the run's approval store, if arguments are secret and the store has one."""
    store = call.run.approvals
    try:
        if call.args.has_secrets and isinstance(store, approvals.KeepsDigestKey):
            call.history = replace(call.history, digest_key=await store.digest_key() or call.history.digest_key)
    except BaseException as error:  # the store is the user's code; a gate that fails is shut
        return call.hook_failure("approval", store, error)
    return None


def _read(call: LiveCall, gates: GateList) -> Failed | None:
    """Read the arguments of a call; return the outcome where they do not fit, and emit its arrival then."""
    try:
        call.read_arguments(gates.read_host_arguments)
    except (InvalidArguments, SchemaError) as error:
        refused = failure(call, error)
        if call.trace is not None:
            call.trace.received(_mismatch(call), describe_arrival(call))
        return refused
    return None


async def pass_edited(call: LiveCall) -> LiveCall | Outcome:
    """Pass an admitted call that the host edited through steps 3 to 5 again."""
    gates = gates_of(call, "edited")
    with call:
        with call.activate():
            refused = await ask_gates(call, gates.after)
        refused = await approve(call, None, occasion="edited") if refused is None else refused
    return close_or_admit(call, refused, gates)


async def pass_more(call: LiveCall, hooks: HookSet) -> LiveCall | Outcome:
    """Ask further decision hooks about an admitted call, and for approval where they change what it was given for."""
    before, reasons, gates = call.args, call.approval.reasons, gates_of(call, "edited")
    with call:
        with call.activate():
            decisions = hooks.decisions_for(call.name)
            refused = await decide(call, decisions, given=len(decisions))
            if refused is None and call.args is not before:
                refused = await ask_gates(call, (step for step in gates.after if step.stage == "authorize"))
        if refused is None and (call.args is not before or call.approval.reasons != reasons):  # else it stays approved
            call.approval = replace(call.approval, digest=None)
            if call.ctx is not None:
                call.ctx.approved = False
            refused = await approve(call, None, occasion="edited")
    return close_or_admit(call, refused, gates)


def close_or_admit(call: LiveCall, refused: Outcome | None, gates: GateList) -> LiveCall | Outcome:
    """Close a call that a gate refused; move any other to `admitted`: its arguments are final from here on."""
    if refused is not None:
        return close(call, refused)
    if call.state != "executed":  # as the run's store or an approver says
        call.state = "admitted"
        is_seen = gates.read_host_arguments and (call.plan.has_wrappers or call.args.is_shared)
        if is_seen or call.approval.digest is not None:
            call.execution = replace(call.execution, seal=call.args.digest)
    return call


# --- the record of its arrival


def _note_arrival(call: LiveCall) -> None:
    """Emit the arrival of a call whose arguments were read, with the secrets in them hidden."""
    if call.plan.may_quote_secrets:
        call.hide_secrets()
    if call.trace is not None:
        args = call.args
        requested = (args.original or args).for_record
        arrival = partial(args.describe_sent, describe_arrival(call))
        is_final = type(args.raw) is str and args.original is None  # what it is made of can be changed by nobody
        call.trace.received(requested, arrival if is_final else arrival())


def _mismatch(call: LiveCall) -> Any:
    """Return arguments that do not fit, as received; None when they might hold a secret."""
    try:
        return None if call.plan.spec.has_secrets else lenient(call.received.arguments)
    except SchemaError:  # what is secret cannot be known
        return None


def describe_arrival(call: LiveCall) -> dict[str, Any]:
    """Return how a call came that is received now, as JSON shapes; of most calls there is nothing."""
    received, run = call.received, call.run
    arrival: dict[str, Any] = {}
    if received.origin != "model":
        arrival["origin"] = received.origin
    if received.caller:
        arrival["caller"] = received.caller
    if received.fault:
        arrival["fault"] = received.fault
    if received.is_repaired:
        arrival["repaired"] = True
    name, revealed = call.plan.name, run.revealed
    if run.available is not None or name in revealed:
        arrival["offered"] = name in revealed or (run.available is not None and name in run.available)
    if run.channel.access is not None and call.plan.entry.scopes:
        arrival["scopes"] = sorted(run.channel.access.scopes)
    if run.deps is not None and run.asks_for(name):
        arrival["asks"] = True
    if run.principal is not None:
        arrival["principal"] = run.principal
    if words := run.drain_user_messages():
        arrival["heard"] = list(words)
    return arrival | run.describe(call) if run.feature_parts else arrival


def refuse(
    run: Run, request: ToolCall, trace: record.Trace | None, outcome: Failed, entry: ToolEntry | None = None
) -> Failed:
    """Return the outcome of what never came to be a call, have the run's features read it, and make its record."""
    run.read(_hooks.ModelInput("refusal", outcome.text(), request=request, entry=entry))
    if trace is not None:
        trace.ended(outcome)
    return outcome


# --- approval


async def approve(
    call: LiveCall, attached: Answer | None, used: calls.Grant | None = None, *, occasion: Occasion = "new"
) -> Outcome | None:
    """Return the outcome of a call that a person must approve and has not; None when it may go on.

    Args:
        attached: The answer that came with the call.
        used: The grant by which it was begun before, which serves it again as long as it fits.
        occasion: Why the call passes its gates.
    """
    reasons = await reasons_for(call, occasion)
    if not isinstance(reasons, list):
        return reasons
    if reasons:
        return await settle(call, reasons, attached, used)
    if not call.has_noted_effect:
        return None
    store = call.run.approvals
    try:
        equal = await equal_call(call)
    except Exception as error:  # the store is the user's code; a gate that fails is shut
        return call.hook_failure("approval", store, error)
    if equal is None:
        return None
    return await settle(call, [], None, begun=Begun(equal) if equal.execution_state == "in doubt" else None)


async def reasons_for(call: LiveCall, occasion: Occasion) -> list[str] | Outcome:
    """Return why approval is needed, empty when it is not; or the outcome, where a gate ends the call."""
    reasons = list(call.approval.reasons)
    with call.activate():
        refused = await ask_gates(call, gates_of(call, occasion).approve, reasons)
    return reasons if refused is None else refused


async def settle(
    call: LiveCall,
    reasons: list[str],
    attached: Answer | None,
    used: calls.Grant | None = None,
    *,
    lapsed: bool = False,
    begun: Begun | None = None,
) -> Outcome | None:
    """Find an answer for these reasons and apply it; None when the call may continue.

    A call in doubt that was done, as the approver says, is `executed` then, with their result.

    Args:
        attached: The answer that came with the call.
        used: The grant by which it was begun before.
        lapsed: Whether these are reasons from before, and nothing asks about the call any more: then what they are
            about may be settled by other means.
        begun: The entry of the store by which the call, or an equal one, has begun.
    """
    with call.activate():
        if begun is None:
            answer = await _find_answer(call, reasons, attached, used, lapsed=lapsed)
        else:
            answer = await _begun_before(call, begun)
        return await _apply(call, answer) if isinstance(answer, calls.Grant) else answer


async def _find_answer(
    call: LiveCall, reasons: list[str], attached: Answer | None, used: calls.Grant | None, *, lapsed: bool
) -> Outcome | calls.Grant | None:
    """Return the grant that lets the call go on, or the outcome that ends it here; None when it was executed before."""
    question = Question(call, attached, used, lapsed=lapsed)
    try:
        answer = await question.find_answer(reasons)
        return await _begun_before(call, answer) if isinstance(answer, Begun) else answer
    except InvalidArguments as error:
        return failure(call, error)
    except ApprovalError as error:
        return Failed(call.name, call.id, error.code, str(error), "ApprovalError", exception=error)
    except BaseException as error:  # tool, store and approver are the user's code; a gate that fails is shut
        return call.hook_failure("approval", question.asked, error)


async def _begun_before(call: LiveCall, begun: Begun) -> Outcome | calls.Grant | None:
    """Continue a call that was started before, as the run's store knows: in another process, or earlier in this one.

    Where it has ended with a result, the call is executed, with that. Where it is executed now, the call stays
    suspended. Else it is in doubt: it begins once more by the same grant if its tool is idempotent, and is asked about
    if it is not, with the arguments that an approver gave for it.
    """
    entry, attached = begun
    execution, request = entry.execution, entry.request
    if execution is None or call.approval.waits_for:
        raise ApprovalError(call.name, "the call went on by this request before, and may have been done")
    state = execution.state
    if state == "ended" and execution.result is not None:
        grant = entry.answer if isinstance(entry.answer, calls.Grant) else None
        _take_result(call, execution.result, grant)
        return None
    if state == "running":
        since = execution.begun_at.isoformat(timespec="seconds")
        request = replace(request, reason=_EXECUTED_NOW.format(since=since))
        return replace(call.suspend(request), executed_since=execution.begun_at)
    if call.tool.options.idempotent and isinstance(entry.answer, calls.Grant) and state == "in doubt":
        return entry.answer
    edited = entry.answer.override_args if isinstance(entry.answer, calls.Grant) else None
    if edited is not None and (refused := await override(call, edited)) is not None:
        return refused
    if call.state != "executing":  # else this doubt is counted
        call.history = replace(call.history, doubts=call.history.doubts + 1)
    following = request.next_in_doubt(call.digest, call.run.principal, call.plan.definition)
    call.approval = replace(call.approval, request=following)
    call.state = "suspended"  # so that each process asks the same
    if attached is not None and attached.request_id != following.id:
        attached = None  # it let the call begin, and says nothing of the doubt
    return await _find_answer(call, [reason_of_doubt(call, ended=state == "ended")], attached, None, lapsed=False)


def _take_result(call: LiveCall, result: Mapping[str, Any], grant: calls.Grant | None) -> None:
    """Move a call to `executed` with the result that the run's store has of it, and by the grant that it began by."""
    error = result.get("error")
    call.approval = replace(call.approval, grant=grant)
    call.execution = replace(call.execution, noted="ended")
    call.history = replace(call.history, trace=call.history.trace or {})
    call.begun = True
    failed = None if error is None else stored_error(error)
    set_result(call, revived(result.get("value")), failed, delivered=call.plan.streaming)


async def _apply(call: LiveCall, grant: calls.Grant) -> Outcome | None:
    """Apply a grant to its call: the arguments or the result that it gives, and what its approver typed."""
    if grant.override_args is not None:
        refused = await override(call, grant.override_args)
        if refused is not None:
            return refused
    if call.request is None or not is_earlier(grant, call.request):  # a standing grant may be taken back, or end
        for name, origins in call.approval.origins.items():
            if (state := call.run.feature(name)) is not None:
                state.approve(call, origins)
    call.approval = replace(call.approval, digest=call.digest, grant=grant)
    if grant.done is not None:
        call.begun = (call.history.original or call).begun = True
        set_result(call, tools.checked_output(call.tool, call.name, grant.done.value))
    return await _take_input(call, grant)


async def override(call: LiveCall, arguments: Mapping[str, Any]) -> Outcome | None:
    """Pass the approver's arguments through steps 2 to 4: gates see them, and approval is not asked again."""
    try:
        call.override(arguments)
    except (InvalidArguments, SchemaError) as error:
        return failure(call, error)
    if call.trace is not None:
        call.trace.overridden(call.args.for_display)
    gates = gates_of(call, "overridden")
    return await ask_gates(call, (*gates.after, *gates.approve))


async def _take_input(call: LiveCall, grant: calls.Grant) -> Outcome | None:
    """Hand what the approver typed to the context, by the tool's own `process_user_input`."""
    ctx, source = call.ctx, call.tool.source
    if ctx is None:
        return None
    ctx.approved, ctx.approved_by, ctx.user_input = True, grant.by, grant.user_input
    if source is None or grant.user_input is None:
        return None
    try:
        processed = source.process_user_input(ctx, grant.user_input)
        ctx.user_input = await processed if isinstance(processed, Awaitable) else processed
    except BaseException as error:  # the tool's own code, before it runs: the call fails and nothing was done
        return call.hook_failure("method", "process_user_input", error)
    return None
