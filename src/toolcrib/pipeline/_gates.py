"""Gates of a call: those of its tool and of its run, in the order of their stages, and the loop that asks them."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, Final, cast

from pydantic import BaseModel

from toolcrib import approvals, calls
from toolcrib.calls import (
    CallMetadata,
    Completed,
    Failed,
    Outcome,
    Rejected,
    Suspended,
    lenient,
)
from toolcrib.errors import InvalidArguments, SchemaError
from toolcrib.hooks import ON_ARRIVAL, WITH_ARGUMENTS, GateStep, HookSet, Occasion, stage_of
from toolcrib.pipeline._arguments import equal_values
from toolcrib.pipeline._compiled_tool import CompiledTool, GateList
from toolcrib.pipeline._failures import failure, not_allowed, not_offered
from toolcrib.pipeline._finish import completed_outcome, context_of
from toolcrib.pipeline._live_call import LiveCall
from toolcrib.pipeline._run import Run
from toolcrib.toolsets import ToolEntry, steps_of

if TYPE_CHECKING:
    from toolcrib.hooks import DecisionHook

_BEFORE_APPROVAL: Final[frozenset[Occasion]] = frozenset({"new", "edited", "overridden"})
_LOST = (
    "the call came from JSON, in which such hooks are not, so that edited arguments cannot be shown to them; give them "
    "again with `apply_hooks(hooks)` before the edit, or put them on the toolset"
)
_BEFORE_READING = ("resolve", "validate")  # the arguments
_MOST_LISTS = 100  # of gates, for runs with different ones
_log = logging.getLogger("toolcrib.hooks")


# --- decision hooks and pre hooks


async def decide_by_hooks(call: LiveCall) -> Outcome | None:
    """Run the decision hooks, those for this call first; return the outcome, if one of them ends the call."""
    plan = call.plan
    if call.history.hooks_lost and not call.extra_hooks:
        return call.hook_failure("decision hook", "given for this call", RuntimeError(_LOST))
    first = [hook for hooks in call.extra_hooks for hook in hooks.decisions_for(plan.name)]
    of_tool = plan.decisions() if DECISION_HOOKS in plan.steps else ()
    return await decide(call, (*first, *of_tool), given=len(first))


async def decide(call: LiveCall, hooks: Iterable[DecisionHook], *, given: int) -> Outcome | None:
    """Ask decision hooks in order; return the outcome, if one of them ends the call.

    Args:
        call: The call.
        hooks: The hooks.
        given: How many of them, the first ones, the host gave for this call alone.
    """
    plan = call.plan
    about = CallMetadata(call.id, plan.name, call.received.arguments)
    for number, hook in enumerate(hooks):
        name, is_given = getattr(hook, "__name__", type(hook).__name__), number < given
        current = _input_of(call)  # anew for each hook: the one before may have changed its own
        try:
            decision: Any = await hook(about, current)
            edited = _arguments_of(call, decision.input) if isinstance(decision, calls.RunNormally) else None
        except BaseException as error:  # a decision hook is the user's code; a gate that fails is shut
            return call.hook_failure("decision hook", name, error)
        match decision:
            case calls.RunNormally():
                unfit = None if edited is None or equal_values(edited, call.args.values) else _revised(call, edited)
                _note(call, name, "run", given=is_given)  # with the arguments that the tool would run with now
                if unfit is not None:
                    return call.hook_failure("decision hook", name, unfit)
            case calls.Complete(output):
                _note(call, name, "complete", given=is_given)
                return await completed_outcome(call, output)
            case calls.Reject(reason):
                _note(call, name, "reject", reason, given=is_given)
                return Rejected(plan.name, call.id, reason, "hook")
            case calls.Ask(reason, metadata):
                _note(call, name, "ask", reason, given=is_given)
                call.add_reason(reason, metadata)
            case other:
                wrong = TypeError(f"it returned {type(other).__name__}; return RunNormally, Complete, Reject or Ask")
                return call.hook_failure("decision hook", name, wrong)
    return None


def _revised(call: LiveCall, edited: Mapping[str, Any]) -> InvalidArguments | SchemaError | None:
    """Replace the arguments of a call by a hook's; return why they do not fit, if they do not."""
    try:
        call.revise(edited)
    except (InvalidArguments, SchemaError) as error:
        return error
    return None


def _note(call: LiveCall, hook: str, decision: Any, reason: str = "", *, given: bool) -> None:
    reason = call.hide(reason)
    call.add_note(calls.DecisionNote(hook, decision, reason), given=given)
    if _log.isEnabledFor(logging.INFO):
        shown: Any = call.args.for_display if call.received.origin == "model" else ""
        _log.info("%s %s: %s decides %s %s %s", call.name, call.id, hook, decision, reason, shown)


def _input_of(call: LiveCall) -> Any:
    """Return the input a decision hook sees: the input model, or the plain arguments when there is no schema."""
    if call.received.origin == "model":
        return call.parse()
    try:
        return call.plan.spec.input_model.model_construct(**call.args.copy())
    except SchemaError:
        return call.args.copy()


def _arguments_of(call: LiveCall, edited: Any) -> dict[str, Any]:
    if isinstance(edited, BaseModel):
        arguments = call.plan.spec.arguments(edited)
        # a host may give what a model cannot, and the input does not show
        return arguments if call.received.origin == "model" else {**call.args.values, **arguments}
    if isinstance(edited, dict):
        return cast("dict[str, Any]", {**edited})
    raise TypeError(
        f"RunNormally got {type(edited).__name__}; give the input it was shown, edited, or a dict of arguments"
    )


async def apply_pre(call: LiveCall) -> Failed | None:
    """Run the pre hooks on the arguments; return the failure, if one of them fails."""
    ctx, arguments = context_of(call), call.args.copy()
    for step in call.plan.pre:
        try:
            returned: Any = step.call(ctx, arguments, call.metadata)
            edited: Any = await returned if isawaitable(returned) else returned
            if not isinstance(edited, dict):
                raise TypeError(f"it returned {type(edited).__name__}; return the arguments, a dict")
            arguments = cast("dict[str, Any]", edited)
        except BaseException as error:  # middleware is the user's code; a gate that fails is shut
            return call.hook_failure("pre hook", step.name, error)
    if equal_values(arguments, call.args.values):
        return None
    try:
        call.revise(arguments)
    except (InvalidArguments, SchemaError) as error:
        return call.hook_failure("pre hook", call.plan.pre[-1].name, error)
    return None


# --- the gates of tools and runs


def _check_offer(call: LiveCall) -> Failed | None:
    if not call.run.offers(call.plan.entry):
        return not_offered(call.name, call.id)
    return not_allowed(call.plan.entry, call.received)


def _check_limits(call: LiveCall) -> Rejected | None:
    """Count a call; return why the run has no budget for it. One that comes back is counted where it was not before."""
    if call.history.trace is not None and call.run.has_counted(call.counted_in):
        return None
    spent = call.run.admit(call.name)
    return None if spent is None else Rejected(call.name, call.id, str(spent), "limit")


def _check_deps(call: LiveCall) -> calls.Ask | None:
    return calls.Ask("") if call.run.asks_for(call.name) else None


_OFFER = GateStep("offer", "resolve", _check_offer, ON_ARRIVAL)
_LIMITS = GateStep("limits", "resolve", _check_limits, ON_ARRIVAL)
DECISION_HOOKS: Final = GateStep("decision hooks", "decide", decide_by_hooks, _BEFORE_APPROVAL)
PRE_HOOKS: Final = GateStep("pre hooks", "edit", apply_pre, _BEFORE_APPROVAL)
_DEPS = GateStep("deps", "approve", _check_deps, WITH_ARGUMENTS, reads_host_arguments=False)


def tool_steps(entry: ToolEntry, hooks: HookSet | None = None) -> tuple[GateStep, ...]:
    """Return the gates of a tool.

    Args:
        entry: The tool in its toolset.
        hooks: Decision hooks that are asked before the toolset's own.
    """
    of_entry = steps_of(entry)
    steps = (
        _OFFER if entry.off or any(step.stage == "resolve" for step in of_entry) else None,
        DECISION_HOOKS if hooks is not None or entry.hook_sets else None,
        PRE_HOOKS if entry.pre else None,
    )
    return (*(step for step in steps if step is not None), *of_entry)


def run_steps(run: Run) -> tuple[GateStep, ...]:
    """Return the gates of a run, made of its options once."""
    if run.compiled_gates is None:
        steps = (
            _OFFER if run.available is not None else None,
            *run.gate_steps,
            None if run.limits is None else replace(_LIMITS, tool_names=run.limits.tool_names),
            *run.feature_gates,
            replace(_DEPS, tool_names=run.asking_tools) if run.has_asking_deps else None,
        )
        run.set_compiled_gates(tuple(step for step in steps if step is not None))
    return run.compiled_gates or ()


def gates_of(call: LiveCall, occasion: Occasion = "new") -> GateList:
    """Return the gates that a call passes, for this reason."""
    steps = call.run.compiled_gates
    if steps is None:
        steps = run_steps(call.run)
    if call.extra_hooks or call.history.hooks_lost:
        steps = (DECISION_HOOKS, *steps)
    caller = call.received.caller
    if caller and (caller != "direct" or call.plan.entry.provider.allowed_callers is not None):
        steps = (_OFFER, *steps)
    gates = call.plan.lists[occasion].get(steps)
    if gates is None:
        refusals = call.plan.toolset.refusals_of(steps)
        gates = _list_gates(call.plan, _ordered((*refusals, *call.plan.steps), steps), occasion, steps)
    return gates


def _list_gates(
    plan: CompiledTool, steps: tuple[GateStep, ...], occasion: Occasion, of_run: tuple[GateStep, ...]
) -> GateList:
    """Return the gates for one occasion, made once for all runs that have the same.

    Args:
        plan: The tool.
        steps: All of them, in order.
        occasion: Why a call passes them.
        of_run: Those of the run.
    """
    chosen = [step for step in steps if occasion in step.occasions]
    before = tuple(step for step in chosen if step.stage in _BEFORE_READING)
    approve = tuple(step for step in chosen if step.stage == "approve")
    after = tuple(step for step in chosen if step not in before and step not in approve)
    read = any(step.reads_host_arguments for step in steps if step.stage not in _BEFORE_READING)
    gates = GateList(before, after, approve, read, not chosen)
    known = plan.lists[occasion]
    if len(known) >= _MOST_LISTS:
        known.clear()
    known[of_run] = gates
    return gates


def _ordered(of_tool: Iterable[GateStep], of_run: tuple[GateStep, ...]) -> tuple[GateStep, ...]:
    """Return gates by stage, those of the tool first; whether the tool is offered is asked before all others."""
    first = (_OFFER,) if _OFFER in of_run else ()
    return tuple(dict.fromkeys(sorted((*first, *of_tool, *of_run), key=stage_of)))


def steps_between(plan: CompiledTool, run: Run) -> list[tuple[str, str]]:
    """Return the steps between a call and the reader of its result, in order: stages and names."""
    gates = [step for step in _ordered(plan.steps, run_steps(run)) if "new" in step.occasions]
    lines = [(step.stage, step.title(plan.name, plan.tool)) for step in gates]
    first = next((at for at, step in enumerate(gates) if step.stage not in ("resolve", "validate")), len(gates))
    lines.insert(first, ("validate", "the arguments are read"))
    lines.append(("execute", f"`{plan.name}` runs"))
    lines += [("deliver", f"{step.name} (post hook)") for step in (*plan.value_post_hooks, *plan.buffered_post_hooks)]
    lines += [("deliver", step.name) for step in (*plan.deliveries, *run.delivery_steps)]
    lines += [("deliver", plan.shortener.name)] if plan.shortener is not None else []
    return lines


# --- asking them


async def ask_gates(call: LiveCall, steps: Iterable[GateStep], reasons: list[str] | None = None) -> Outcome | None:
    """Ask gates in order; return the outcome, if one of them ends the call.

    Args:
        call: The call.
        steps: The gates.
        reasons: Gets why a person has to approve the call; without it the call keeps why.
    """
    for step in steps:
        try:
            answer: Any = step.check(call)
            if answer is not None and isawaitable(answer):
                answer = await answer
        except BaseException as error:  # a gate may be the user's code; one that fails is shut
            return call.hook_failure(step.kind, step.name, error)
        if answer is None:
            continue
        if isinstance(answer, calls.Ask):
            _note_question(call, step, answer, reasons)
        elif isinstance(answer, calls.Reject):
            call.add_note(calls.DecisionNote(step.name, "reject", answer.reason))
            return Rejected(call.name, call.id, answer.reason)
        elif isinstance(answer, calls.Complete):
            call.add_note(calls.DecisionNote(step.name, "complete"))
            return await completed_outcome(call, answer.output)
        elif isinstance(answer, Completed | Rejected | Failed | Suspended):
            if isinstance(answer, Suspended) and step.resume is not None:
                call.approval = replace(call.approval, waits_for=step.name)
            return cast("Outcome", answer)
        else:
            wrong = TypeError(f"it returned {type(answer).__name__}; return None, Reject, Ask, Complete or an outcome")
            return call.hook_failure(step.kind, step.name, wrong)
    return None


def _note_question(call: LiveCall, step: GateStep, question: calls.Ask, reasons: list[str] | None) -> None:
    """Keep why a person has to approve the call, once: a call that comes back asks what it asked before."""
    asked = step.name, "ask", question.reason
    is_noted = any((note.hook, note.decision, note.reason) == asked for note in call.notes)
    if step.kind == "gate" and question.reason and not is_noted:
        call.add_note(calls.DecisionNote(step.name, "ask", question.reason))
    call.add_facts(question.metadata)
    if question.origins:
        call.approval = replace(call.approval, origins={**call.approval.origins, step.name: tuple(question.origins)})
    if reasons is not None:
        reasons.append(question.reason)
    elif question.reason not in call.approval.reasons:
        call.add_reason(question.reason)


# --- the way through them


async def pass_gates(call: LiveCall, gates: GateList, read: bool) -> Outcome | None:
    """Pass a call through steps 1 to 4; return the outcome, if a gate ends it or its arguments do not fit.

    Args:
        call: The call, `received`.
        gates: Its gates.
        read: The arguments were read before.
    """
    if call.plan.wants_ctx or call.run.wants_ctx:
        call.enter()
    refused = await ask_gates(call, gates.before) if gates.before else None
    if refused is not None:
        if call.trace is not None:
            call.trace.received(_mismatch(call), _describe_arrival(call))
        return refused
    refused = read_arrival(call, gates, read)
    if refused is None and call.run.approvals is not None:
        refused = await _load_digest_key(call)
    if refused is None and gates.after:
        with call.activate():
            refused = await ask_gates(call, gates.after)
    return refused


async def pass_edited(call: LiveCall) -> Outcome | None:
    """Pass an admitted call that the host edited through steps 3 and 4 again."""
    with call.activate():
        return await ask_gates(call, gates_of(call, "edited").after)


async def pass_more(call: LiveCall, hooks: HookSet) -> Outcome | None:
    """Ask further decision hooks about an admitted call, and its gates about arguments that these edit."""
    before, decisions = call.args, hooks.decisions_for(call.name)
    with call.activate():
        refused = await decide(call, decisions, given=len(decisions))
        if refused is None and call.args is not before:
            authorize = (step for step in gates_of(call, "edited").after if step.stage == "authorize")
            refused = await ask_gates(call, authorize)
    return refused


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


async def reasons_for(call: LiveCall, occasion: Occasion) -> list[str] | Outcome:
    """Return why approval is needed, empty when it is not; or the outcome, where a gate ends the call."""
    reasons = list(call.approval.reasons)
    with call.activate():
        refused = await ask_gates(call, gates_of(call, occasion).approve, reasons)
    return reasons if refused is None else refused


# --- the arguments, and the record of the arrival


def read_arrival(call: LiveCall, gates: GateList, read: bool) -> Failed | None:
    """Read the arguments of a call, secrets in them hidden, and emit its arrival.

    Returns:
        The outcome where the arguments do not fit; else None.
    """
    try:
        if not read:
            call.read_arguments(gates.read_host_arguments)
    except (InvalidArguments, SchemaError) as error:
        refused = failure(call, error)
        if call.trace is not None:
            call.trace.received(_mismatch(call), _describe_arrival(call))
        return refused
    if call.plan.may_quote_secrets:
        call.hide_secrets()
    if call.trace is not None:
        args = call.args
        requested = (args.original or args).for_record
        arrival = partial(args.describe_sent, _describe_arrival(call))
        is_final = type(args.raw) is str and args.original is None  # what it is made of can be changed by nobody
        call.trace.received(requested, arrival if is_final else arrival())
    return None


def _mismatch(call: LiveCall) -> Any:
    """Return arguments that do not fit, as received; None when they might hold a secret."""
    try:
        return None if call.plan.spec.has_secrets else lenient(call.received.arguments)
    except SchemaError:  # what is secret cannot be known
        return None


def _describe_arrival(call: LiveCall) -> dict[str, Any]:
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


async def _load_digest_key(call: LiveCall) -> Outcome | None:
    """Load the key of its digest from the run's approval store, if arguments are secret and the store has one."""
    store = call.run.approvals
    try:
        if call.args.has_secrets and isinstance(store, approvals.KeepsDigestKey):
            call.history = replace(call.history, digest_key=await store.digest_key() or call.history.digest_key)
    except BaseException as error:  # the store is the user's code; a gate that fails is shut
        return call.hook_failure("approval", store, error)
    return None
