"""Steps of a call that need nothing of the pipeline: its arguments, its tool, and what is told around it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from toolcrib.calls import Failed, Outcome
from toolcrib.errors import ApprovalError, ApprovalRequired, HookError, InvalidArguments, NotCallable, SchemaError
from toolcrib.hooks import HookRaised
from toolcrib.pipeline._answers import answered
from toolcrib.pipeline._approve import shown_arguments, shown_request
from toolcrib.pipeline._failures import described, failure
from toolcrib.pipeline._gates import apply_post_value
from toolcrib.pipeline._plan import Performed, Plan, Prepared, RunnableTool
from toolcrib.pipeline._run import Run
from toolcrib.record import Trace
from toolcrib.schema import RunContext

__all__ = ["asked_late", "begin", "close", "each", "execute", "observer_failed", "read_arguments"]


def close(trace: Trace | None, outcome: Outcome) -> Outcome:
    """Return the outcome that a call came to, and close its record with it."""
    if trace is not None:
        trace.ended(outcome)
    return outcome


def read_arguments(prepared: Prepared, run: Run, read: bool) -> Failed | None:
    """Read the arguments of a call, unless they were read before, and tell those who follow it what came."""
    refused: Failed | None = None
    try:
        if not read:
            prepared.arguments = prepared.plan.read(prepared.call)
    except (InvalidArguments, SchemaError) as error:
        refused = failure(prepared.plan, prepared.call.id, run, error)
    if prepared.trace is not None:
        fresh = refused is None and not read  # the arguments are the request, and nobody had them yet
        shown = shown_arguments(prepared) if fresh else shown_request(prepared)
        prepared.shown = shown if fresh and not (prepared.plan.guarded or prepared.plan.approvals) else None
        prepared.trace.received(shown)
    return refused


def begin(prepared: Prepared) -> None:
    """Tell those who follow the call that its tool starts."""
    if prepared.trace is not None:
        prepared.trace.started(prepared.shown or shown_arguments(prepared))


async def each(prepared: Prepared, value: Any) -> Any:
    """Return one value of a stream after the hooks that see each, and tell those who follow the call."""
    shown = await apply_post_value(prepared, value) if prepared.plan.each else value
    if prepared.trace is not None:
        prepared.trace.yielded(shown)
    return shown


async def asked_late(performed: Performed, run: Run) -> Outcome | None:
    """Answer a tool that asked for approval itself; None when it did not ask, or was granted it."""
    error, prepared = performed.error, performed.prepared
    if not isinstance(error, ApprovalRequired):
        return None
    if prepared.approved is not None:
        again = ApprovalError(
            prepared.plan.name, "it asked for approval again after it was approved; check `ctx.approved` first"
        )
        return close(prepared.trace, failure(prepared.plan, prepared.call.id, run, again))
    prepared.asks = (*prepared.asks, "the tool asks for it")
    prepared.ask_metadata = {**prepared.ask_metadata, **error.metadata}
    refused = await answered(prepared, run, list(prepared.asks), None)
    return None if refused is None else close(prepared.trace, refused)


def observer_failed(prepared: Prepared, run: Run, raised: HookRaised) -> Failed:
    """Return the outcome for what an observer raised; raises it where the scope says so."""
    name, call_id = prepared.plan.name, prepared.call.id
    error = HookError(name, "observer", raised.hook, described(raised.error))
    outcome = Failed(name, call_id, error.code, str(error), "HookError", exception=raised.error)
    close(prepared.trace, outcome)
    if run.hook_errors == "raise":
        raise raised.error from raised.error.__cause__
    return outcome


async def execute(prepared: Prepared) -> Any:
    """Return what the tool returns, run by the runners and the executor around it."""
    plan = prepared.plan
    run: Callable[..., Awaitable[Any]] = partial(_body_of, prepared)
    for runner in reversed(plan.runners):
        run = partial(_through, runner, plan, run)
    ctx = prepared.ctx
    if plan.executor is not None:
        return await plan.executor.execute(prepared, partial(run, prepared.arguments, ctx))
    return await run(prepared.arguments, ctx)


async def _through(runner: Any, plan: Plan, inner: Any, arguments: dict[str, Any], ctx: Any) -> Any:
    return await runner(arguments, ctx, RunnableTool(plan.name, plan.entry, inner))


async def _body_of(prepared: Prepared, arguments: dict[str, Any], ctx: RunContext[Any] | None) -> Any:
    plan = prepared.plan
    if plan.body is None:
        raise NotCallable(plan.name)
    prepared.require_approved(arguments)  # a `_call_tool_func` may have edited them
    if not plan.streaming:
        return await plan.body.call(arguments, ctx, plan.timeout)
    async with plan.body.stream(arguments, ctx, plan.timeout) as values:
        return [await each(prepared, value) async for value in values]
