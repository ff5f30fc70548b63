"""Step 3: decision hooks, asked in order. A hook that fails ends the call."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Any, cast

from pydantic import BaseModel

from toolcrib.calls import (
    Ask,
    CallMetadata,
    Complete,
    DecisionNote,
    Outcome,
    Reject,
    Rejected,
    RunNormally,
)
from toolcrib.errors import InvalidArguments, SchemaError
from toolcrib.hooks import DecisionHook
from toolcrib.pipeline._arguments import equal_values
from toolcrib.pipeline._failures import hook_failure
from toolcrib.pipeline._keep import completed
from toolcrib.pipeline._live_call import LiveCall

__all__ = ["decide", "decide_by_hooks"]

_LOST = (
    "the call came from JSON, in which such hooks are not, so that edited arguments cannot be shown to them; give them "
    "again with `apply_hooks(hooks)` before the edit, or put them on the toolset"
)
_log = logging.getLogger("toolcrib.hooks")


async def decide_by_hooks(call: LiveCall) -> Outcome | None:
    """Run the decision hooks, those for this call first; return the outcome, if one of them ends the call."""
    plan = call.plan
    if call.history.hooks_lost and not call.extra_hooks:
        return hook_failure(plan, call.id, call.run, "decision hook", "given for this call", RuntimeError(_LOST))
    first = [hook for hooks in call.extra_hooks for hook in hooks.decisions_for(plan.name)]
    return await decide(call, (*first, *plan.decisions()), given=len(first))


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
        name, own = getattr(hook, "__name__", type(hook).__name__), number < given
        current = _input_of(call)  # anew for each hook: the one before may have changed its own
        try:
            decision: Any = await hook(about, current)
            edited = _arguments_of(call, decision.input) if isinstance(decision, RunNormally) else None
        except BaseException as error:  # a decision hook is the user's code; a gate that fails is shut
            return hook_failure(plan, call.id, call.run, "decision hook", name, error)
        match decision:
            case RunNormally():
                unfit = None if edited is None or equal_values(edited, call.args.values) else _revised(call, edited)
                _note(call, name, "run", given=own)  # with the arguments that the tool would run with now
                if unfit is not None:
                    return hook_failure(plan, call.id, call.run, "decision hook", name, unfit)
            case Complete(output):
                _note(call, name, "complete", given=own)
                return await completed(call, output)
            case Reject(reason):
                _note(call, name, "reject", reason, given=own)
                return Rejected(plan.name, call.id, reason, "hook")
            case Ask(reason, metadata):
                _note(call, name, "ask", reason, given=own)
                call.add_reason(reason, metadata)
            case other:
                wrong = TypeError(f"it returned {type(other).__name__}; return RunNormally, Complete, Reject or Ask")
                return hook_failure(plan, call.id, call.run, "decision hook", name, wrong)
    return None


def _revised(call: LiveCall, edited: Mapping[str, Any]) -> InvalidArguments | SchemaError | None:
    """Take a hook's arguments in the place of those the call has; return why they do not fit, if they do not."""
    try:
        call.revise(edited)
    except (InvalidArguments, SchemaError) as error:
        return error
    return None


def _note(call: LiveCall, hook: str, decision: Any, reason: str = "", *, given: bool) -> None:
    note = DecisionNote(hook, decision, reason)
    call.add_note(note, given=given)
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
