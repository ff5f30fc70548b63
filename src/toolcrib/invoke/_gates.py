"""Steps 1, 3, 4 and 7 where there is something to ask: availability, decisions, middleware. All of them fail closed."""

from __future__ import annotations

import logging
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
from toolcrib.invoke._plan import Performed, Prepared
from toolcrib.invoke._scope import RunScope
from toolcrib.schema import RunContext

__all__ = ["apply_post", "apply_post_value", "available", "decide_and_edit"]

_log = logging.getLogger("toolcrib.hooks")


def _hook_failed(prepared: Prepared, kind: str, name: str, error: Exception) -> Failed:
    wrapped = HookError(prepared.plan.name, kind, name, f"{type(error).__name__}: {error}")
    wrapped.__cause__ = error
    plan = prepared.plan
    return Failed(plan.name, prepared.call.id, wrapped.code, str(wrapped), "HookError", exception=wrapped)


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
            return _hook_failed(prepared, "availability check", getattr(condition, "__name__", "is_available"), error)
        if not answer:
            refused = NotAvailable(plan.name)
            return Failed(plan.name, prepared.call.id, refused.code, str(refused), "NotAvailable", exception=refused)
    return None


async def decide_and_edit(prepared: Prepared, scope: RunScope) -> Outcome | None:
    """Run the decision hooks, then the pre hooks; return the outcome, if one of them ends the call."""
    if prepared.plan.hook_sets:
        ended = await _decide(prepared, scope)
        if ended is not None:
            return ended
    return await _apply_pre(prepared, scope) if prepared.plan.pre else None


# --- decisions


async def _decide(prepared: Prepared, scope: RunScope) -> Outcome | None:
    plan, call = prepared.plan, prepared.call
    about = CallMetadata(call.id, plan.name, call.arguments)
    current: Any = None
    for hook in plan.decisions():
        name = getattr(hook, "__name__", type(hook).__name__)
        if current is None:
            current = _input_of(prepared)
        try:
            decision: Any = await hook(about, current)
            edited = _arguments_of(decision.input) if isinstance(decision, RunNormally) else None
        except Exception as error:  # a decision hook is the user's code; a gate that fails is shut
            return _hook_failed(prepared, "decision hook", name, error)
        match decision:
            case RunNormally():
                _note(prepared, name, "run")
                try:
                    prepared.arguments = plan.reread(edited or {}, call)
                except (InvalidArguments, SchemaError) as error:
                    return _hook_failed(prepared, "decision hook", name, error)
                current = decision.input if isinstance(decision.input, BaseModel) else _input_of(prepared)
            case Complete(output):
                _note(prepared, name, "complete")
                return Completed(plan.name, call.id, output, "hook", plan.max_result)
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
    spec = prepared.plan.spec
    if prepared.call.origin == "model":
        return spec.validate_python(prepared.arguments)
    try:
        return spec.input_model.model_construct(**prepared.arguments)
    except SchemaError:
        return prepared.arguments


def _arguments_of(edited: Any) -> dict[str, Any]:
    if isinstance(edited, BaseModel):
        extra = edited.__pydantic_extra__ or {}
        return {
            (field.alias or name): getattr(edited, name) for name, field in type(edited).model_fields.items()
        } | extra
    if isinstance(edited, dict):
        return {**edited}
    raise TypeError(
        f"RunNormally got {type(edited).__name__}; give the input it was shown, edited, or a dict of arguments"
    )


# --- middleware


async def _apply_pre(prepared: Prepared, scope: RunScope) -> Failed | None:
    ctx, arguments = _context(prepared), dict(prepared.arguments)
    for step in prepared.plan.pre:
        try:
            made: Any = step.call(ctx, arguments, prepared.metadata)
            edited: Any = await made if isawaitable(made) else made
            if not isinstance(edited, dict):
                raise TypeError(f"it returned {type(edited).__name__}; return the arguments, a dict")
            arguments = cast("dict[str, Any]", edited)
        except Exception as error:  # middleware is the user's code; a gate that fails is shut
            return _hook_failed(prepared, "pre hook", step.name, error)
    if arguments != prepared.arguments or prepared.call.origin == "model":
        try:
            prepared.arguments = prepared.plan.reread(arguments, prepared.call)
        except InvalidArguments as error:
            return _hook_failed(prepared, "pre hook", prepared.plan.pre[-1].name, error)
    return None


async def apply_post(performed: Performed, scope: RunScope) -> Failed | None:
    """Run the post hooks on the result or the exception; return the failure, if one of them fails."""
    prepared = performed.prepared
    ctx = _context(prepared)
    result: Any = performed.value if performed.error is None else performed.error
    for step in prepared.plan.held:
        try:
            made = step.call(ctx, result, prepared.metadata)
            result = await made if isawaitable(made) else made
        except Exception as error:  # middleware is the user's code; raising the tool's own error is passing it on
            if error is result:
                continue
            return _hook_failed(prepared, "post hook", step.name, error)
    if isinstance(result, Exception):
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
            raise HookError(prepared.plan.name, "post hook", step.name, f"{type(error).__name__}: {error}") from error
    return value
