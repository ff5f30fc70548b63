"""Steps 1, 3, 4 and 7 where there is something to ask: availability, decisions, middleware. All of them fail closed."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from copy import deepcopy
from inspect import isawaitable
from typing import Any, cast

from pydantic import BaseModel

from toolcrib.calls import (
    Ask,
    CallMetadata,
    Complete,
    Completed,
    DecisionNote,
    Failed,
    Outcome,
    Reject,
    Rejected,
    RunNormally,
)
from toolcrib.errors import HookError, InvalidArguments, NotAvailable, SchemaError
from toolcrib.hooks import DecisionHook
from toolcrib.pipeline._failures import described, hook_failure
from toolcrib.pipeline._plan import Performed, Prepared
from toolcrib.pipeline._run import Run
from toolcrib.schema import RunContext

__all__ = ["apply_post", "apply_post_value", "available", "decide", "decide_and_edit"]

_log = logging.getLogger("toolcrib.hooks")
_ATOMS = frozenset({str, int, float, bool, bytes, type(None)})  # cannot be changed in place


def _hook_failed(prepared: Prepared, kind: str, hook: object, error: Exception) -> Failed:
    return hook_failure(prepared.plan, prepared.call.id, kind, hook, error)


def _context(prepared: Prepared) -> RunContext[Any]:
    if prepared.ctx is None:
        raise RuntimeError("a plan with hooks always has a context")
    return prepared.ctx


async def available(prepared: Prepared) -> Failed | None:
    """Ask every condition of the tool; return the refusal, if one says no or fails."""
    plan, ctx = prepared.plan, _context(prepared)
    for condition in plan.availability:
        try:
            answer = condition(ctx)
            answer = await answer if isawaitable(answer) else answer
        except Exception as error:  # the condition is the user's code; a gate that fails is shut
            return _hook_failed(prepared, "availability check", condition, error)
        if not answer:
            refused = NotAvailable(plan.name)
            return Failed(plan.name, prepared.call.id, refused.code, str(refused), "NotAvailable", exception=refused)
    return None


async def decide_and_edit(prepared: Prepared, run: Run, first: Iterable[DecisionHook] = ()) -> Outcome | None:
    """Run the decision hooks, `first` before the others, then the pre hooks; return the outcome one of them gave."""
    with prepared.within():
        ended = await decide(prepared, (*first, *prepared.plan.decisions()))
        if ended is not None:
            return ended
        return await _apply_pre(prepared, run) if prepared.plan.pre else None


# --- decisions


async def decide(prepared: Prepared, hooks: Iterable[DecisionHook]) -> Outcome | None:
    """Ask decision hooks in order; return the outcome, if one of them ends the call."""
    plan, call = prepared.plan, prepared.call
    about = CallMetadata(call.id, plan.name, call.arguments)
    for hook in hooks:
        name = getattr(hook, "__name__", type(hook).__name__)
        current = _input_of(prepared)  # anew for each hook: the one before may have changed its own
        try:
            decision: Any = await hook(about, current)
            edited = _arguments_of(prepared, decision.input) if isinstance(decision, RunNormally) else None
        except Exception as error:  # a decision hook is the user's code; a gate that fails is shut
            return _hook_failed(prepared, "decision hook", name, error)
        match decision:
            case RunNormally():
                misfit = None if edited is None or _equal(edited, prepared.arguments) else _revised(prepared, edited)
                _note(prepared, name, "run")  # with the arguments that the tool would run with now
                if misfit is not None:
                    return _hook_failed(prepared, "decision hook", name, misfit)
            case Complete(output):
                _note(prepared, name, "complete")
                return Completed(plan.name, call.id, output, "hook", plan.max_result_chars)
            case Reject(reason):
                _note(prepared, name, "reject", reason)
                return Rejected(plan.name, call.id, reason, "hook")
            case Ask(reason, metadata):
                _note(prepared, name, "ask", reason)
                prepared.asks = (*prepared.asks, reason)
                prepared.ask_metadata = {**prepared.ask_metadata, **metadata}
            case other:
                wrong = TypeError(f"it returned {type(other).__name__}; return RunNormally, Complete, Reject or Ask")
                return _hook_failed(prepared, "decision hook", name, wrong)
    return None


def _revised(prepared: Prepared, edited: Mapping[str, Any]) -> InvalidArguments | SchemaError | None:
    """Take a hook's arguments in the place of those the call has; return why they do not fit, if they do not."""
    try:
        prepared.revise(edited)
    except (InvalidArguments, SchemaError) as error:
        return error
    return None


def _note(prepared: Prepared, hook: str, decision: Any, reason: str = "") -> None:
    note = DecisionNote(hook, decision, reason)
    prepared.notes = (*prepared.notes, note)
    if prepared.trace is not None:
        prepared.trace.decided(note)
    if _log.isEnabledFor(logging.INFO):
        plan = prepared.plan
        shown: Any = plan.spec.dump(prepared.arguments, redact=True) if prepared.call.origin == "model" else ""
        _log.info("%s %s: %s decides %s %s %s", plan.name, prepared.call.id, hook, decision, reason, shown)


def _input_of(prepared: Prepared) -> Any:
    """Return the input a decision hook sees: the input model, or the plain arguments when there is no schema."""
    if prepared.call.origin == "model":
        return prepared.parse()
    try:
        return prepared.plan.spec.input_model.model_construct(**prepared.arguments)
    except SchemaError:
        return dict(prepared.arguments)


def _arguments_of(prepared: Prepared, edited: Any) -> dict[str, Any]:
    if isinstance(edited, BaseModel):
        arguments = prepared.plan.spec.arguments(edited)
        # a host may give what a model cannot, and the input does not show
        return arguments if prepared.call.origin == "model" else {**prepared.arguments, **arguments}
    if isinstance(edited, dict):
        return cast("dict[str, Any]", {**edited})
    raise TypeError(
        f"RunNormally got {type(edited).__name__}; give the input it was shown, edited, or a dict of arguments"
    )


# --- middleware


async def _apply_pre(prepared: Prepared, run: Run) -> Failed | None:
    ctx, arguments = _context(prepared), _copy(prepared)
    for step in prepared.plan.pre:
        try:
            made: Any = step.call(ctx, arguments, prepared.metadata)
            edited: Any = await made if isawaitable(made) else made
            if not isinstance(edited, dict):
                raise TypeError(f"it returned {type(edited).__name__}; return the arguments, a dict")
            arguments = cast("dict[str, Any]", edited)
        except Exception as error:  # middleware is the user's code; a gate that fails is shut
            return _hook_failed(prepared, "pre hook", step.name, error)
    if _equal(arguments, prepared.arguments):
        return None
    try:
        prepared.revise(arguments)
    except (InvalidArguments, SchemaError) as error:
        return _hook_failed(prepared, "pre hook", prepared.plan.pre[-1].name, error)
    return None


def _copy(prepared: Prepared) -> dict[str, Any]:
    """Return the arguments for hooks to edit in place; a host's values are its own objects and stay the same."""
    arguments = prepared.arguments
    if prepared.call.origin == "host" or all(type(value) in _ATOMS for value in arguments.values()):
        return dict(arguments)
    try:
        return deepcopy(arguments)
    except Exception:  # anybody's types
        return prepared.plan.read(prepared.call)


def _equal(one: dict[str, Any], other: dict[str, Any]) -> bool:
    try:
        return one == other
    except Exception:  # anybody's __eq__; what cannot be compared is taken to be edited
        return False


async def apply_post(performed: Performed, run: Run) -> Failed | None:
    """Run the post hooks on the result or the exception; return the failure, if one of them fails."""
    prepared = performed.prepared
    ctx = _context(prepared)
    returned = performed.value if performed.error is None else None
    result: Any = returned if performed.error is None else performed.error
    for step in prepared.plan.held:
        try:
            made = step.call(ctx, result, prepared.metadata)
            result = await made if isawaitable(made) else made
        except Exception as error:  # middleware is the user's code; raising the tool's own error is passing it on
            if error is result:
                continue
            return _hook_failed(prepared, "post hook", step.name, error)
    if isinstance(result, Exception) and result is not returned:  # a tool may return an exception without raising it
        performed.value, performed.error = None, result
    else:
        performed.value, performed.error = result, None
    return None


async def apply_post_value(prepared: Prepared, value: Any) -> Any:
    """Return one value of a stream after the post hooks that see each of them; raises HookError when one fails."""
    ctx = _context(prepared)
    for step in prepared.plan.each:
        try:
            made = step.call(ctx, value, prepared.metadata)
            value = await made if isawaitable(made) else made
        except Exception as error:  # middleware is the user's code
            raise HookError(prepared.plan.name, "post hook", step.name, described(error)) from error
    return value
