"""Steps 4 and 7: pre and post hooks, which edit what goes in and what comes out. A hook that fails fails the call."""

from __future__ import annotations

from inspect import isawaitable
from typing import Any, cast

from toolcrib.calls import Failed
from toolcrib.errors import HookError, InvalidArguments, SchemaError, exception_of
from toolcrib.pipeline._edits import same
from toolcrib.pipeline._failures import described, hook_failure
from toolcrib.pipeline._live_call import LiveCall
from toolcrib.schema import RunContext

__all__ = ["apply_post", "apply_post_value", "apply_pre", "deliver", "deliver_result"]


def _context(call: LiveCall) -> RunContext[Any]:
    if call.ctx is None:
        raise RuntimeError("a plan with hooks always has a context")
    return call.ctx


async def apply_pre(call: LiveCall) -> Failed | None:
    """Run the pre hooks on the arguments; return the failure, if one of them fails."""
    ctx, arguments = _context(call), call.own_copy()
    for step in call.plan.pre:
        try:
            made: Any = step.call(ctx, arguments, call.metadata)
            edited: Any = await made if isawaitable(made) else made
            if not isinstance(edited, dict):
                raise TypeError(f"it returned {type(edited).__name__}; return the arguments, a dict")
            arguments = cast("dict[str, Any]", edited)
        except BaseException as error:  # middleware is the user's code; a gate that fails is shut
            return hook_failure(call.plan, call.id, call.run, "pre hook", step.name, error)
    if same(arguments, call.bound):
        return None
    try:
        call.revise(arguments)
    except (InvalidArguments, SchemaError) as error:
        return hook_failure(call.plan, call.id, call.run, "pre hook", call.plan.pre[-1].name, error)
    return None


async def apply_post(call: LiveCall) -> Failed | None:
    """Run the post hooks on the result or the exception; return the failure, if one of them fails."""
    ctx = _context(call)
    returned = call.value if call.error is None else None
    result: Any = returned if call.error is None else call.error
    for step in call.plan.held:
        try:
            made = step.call(ctx, result, call.metadata)
            result = await made if isawaitable(made) else made
        except BaseException as error:  # middleware is the user's code; raising the tool's own error is passing it on
            if error is result:
                continue
            return hook_failure(call.plan, call.id, call.run, "post hook", step.name, error)
    if isinstance(result, Exception) and result is not returned:  # a tool may return an exception without raising it
        call.executed(error=result)
    else:
        call.executed(result)
    return None


async def deliver(call: LiveCall, value: Any) -> Any:
    """Return a value after the deliveries of its tool and its run; raises HookError when one fails."""
    for step in (*call.plan.deliveries, *call.run.delivery_steps):
        try:
            delivered = step.deliver(call, value)
            value = await delivered if isawaitable(delivered) else delivered
        except BaseException as error:  # a delivery is the user's code
            raise HookError(call.plan.name, "delivery", step.name, described(exception_of(error))) from error
    return value


async def deliver_result(call: LiveCall) -> Failed | None:
    """Deliver a result, unless its values were delivered as they came; return the failure, if a delivery fails."""
    if call.error is not None or call.delivered:
        return None
    try:
        whole: Any = call.value
        if call.plan.streaming and isinstance(whole, list):
            call.value = [await deliver(call, value) for value in cast("list[Any]", whole)]
        else:
            call.value = await deliver(call, call.value)
    except HookError as error:
        return hook_failure(call.plan, call.id, call.run, "delivery", error.hook, error.__cause__ or error)
    return None


async def apply_post_value(call: LiveCall, value: Any) -> Any:
    """Return one value of a stream after the post hooks that see each of them; raises HookError when one fails."""
    ctx = _context(call)
    for step in call.plan.each:
        try:
            made = step.call(ctx, value, call.metadata)
            value = await made if isawaitable(made) else made
        except BaseException as error:  # middleware is the user's code
            raise HookError(call.plan.name, "post hook", step.name, described(exception_of(error))) from error
    return value
