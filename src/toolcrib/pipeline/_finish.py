"""Step 7: the result of a call on its way out, through post hooks and deliveries, and kept where it is too long."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from inspect import isawaitable
from threading import get_ident
from typing import Any, cast

from toolcrib import results
from toolcrib.calls import Completed, Failed, KeptResult
from toolcrib.errors import HookError, exception_of
from toolcrib.hooks import ModelInput
from toolcrib.pipeline._failures import described, hook_failure, offered
from toolcrib.pipeline._live_call import LiveCall
from toolcrib.pipeline._plan import Plan
from toolcrib.pipeline._run import Run
from toolcrib.schema import RunContext
from toolcrib.toolsets import ToolEntry, Toolset

__all__ = [
    "apply_post",
    "apply_post_value",
    "completed",
    "context_of",
    "deliver",
    "deliver_reports",
    "deliver_result",
    "kept",
    "most_shown",
    "reader_in",
]


def context_of(call: LiveCall) -> RunContext[Any]:
    if call.ctx is None:
        raise RuntimeError("a plan with hooks always has a context")
    return call.ctx


async def apply_post(call: LiveCall) -> Failed | None:
    """Run the post hooks on the result or the exception; return the failure, if one of them fails."""
    ctx = context_of(call)
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
        call.set_result(error=result)
    else:
        call.set_result(result)
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
    try:
        if call.execution.reports is not None:
            await call.execution.reports
        if call.error is None and not call.execution.delivered:
            call.set_result(await _delivered_value(call), delivered=True)
    except HookError as error:
        if call.error is None:
            return hook_failure(call.plan, call.id, call.run, "delivery", error.hook, error.__cause__ or error)
    return None


async def _delivered_value(call: LiveCall) -> Any:
    whole: Any = call.value
    if not (call.plan.streaming and isinstance(whole, list)):
        return await deliver(call, whole)
    values: list[Any] = []
    for value in cast("list[Any]", whole):
        values.append(await deliver(call, value))
        if call.execution.gave_value and call.trace is not None:
            call.trace.yielded(values[-1])
    return values


def deliver_reports(call: LiveCall) -> None:
    """Have what the tool gives to `ctx.report` pass the deliveries, in order, before anyone has it."""
    ctx = call.ctx
    if ctx is None or ctx.report is None:
        return
    loop, thread, pass_on = asyncio.get_running_loop(), get_ident(), ctx.report
    if not call.has_deliveries:
        ctx.report = partial(_read_report, call, pass_on)
        return

    def start(value: Any) -> None:
        before = call.execution.reports
        call.update_execution(reports=loop.create_task(_deliver_report(call, value, pass_on, before)))

    def report(value: Any) -> None:
        if get_ident() == thread:
            start(value)
        else:  # of a tool that is executed in a thread
            loop.call_soon_threadsafe(start, value)

    ctx.report = report


async def _deliver_report(
    call: LiveCall, value: Any, pass_on: Callable[[Any], None], before: asyncio.Future[None] | None
) -> None:
    if before is not None:
        await before
    _read_report(call, pass_on, await deliver(call, value))


def _read_report(call: LiveCall, pass_on: Callable[[Any], None], value: Any) -> None:
    if call.run.feature_parts:
        call.run.read(ModelInput("value", value, call, call.received, call.plan.entry))
    pass_on(value)


async def apply_post_value(call: LiveCall, value: Any) -> Any:
    """Return one value of a stream after the post hooks that see each of them; raises HookError when one fails."""
    ctx = context_of(call)
    for step in call.plan.each:
        try:
            made = step.call(ctx, value, call.metadata)
            value = await made if isawaitable(made) else made
        except BaseException as error:  # middleware is the user's code
            raise HookError(call.plan.name, "post hook", step.name, described(exception_of(error))) from error
    return value


# --- results that are too long


def reader_in(toolset: Toolset, entry: ToolEntry) -> ToolEntry | None:
    """Return the tool that reads the results kept of another; None where these are cut."""
    if entry.results is None or entry.max_result_chars is None:
        return None
    return next((one for one in toolset if one.tool is entry.results.reader), None)


async def kept(plan: Plan, call_id: str, value: Any, run: Run) -> KeptResult | None:
    """Keep a result that is too long; None for any other, and where the run does not offer to read it."""
    reader, store, limit = plan.reader, plan.entry.results, plan.max_result_chars
    if reader is None or store is None or limit is None or not offered(reader, run):
        return None
    return await results.keep_result(
        store, value, results.Owner(run.principal, plan.name, call_id), run.reader, limit, reader.name
    )


def most_shown(plan: Plan, run: Run) -> int | None:
    """Return the most characters that are shown of a result; None for a program where longer ones are kept."""
    whole = plan.reader is not None and run.reader.value_chars is not None
    return None if whole else plan.max_result_chars


async def completed(call: LiveCall, value: Any) -> Completed | Failed:
    """Return the outcome of a call whose result a hook, a gate or the host gives; Failed where a delivery fails."""
    failed = await deliver_result(call.set_result(value))
    if failed is not None:
        return failed
    plan, run = call.plan, call.run
    shown = await kept(plan, call.id, call.value, run)
    return Completed(plan.name, call.id, call.value, "hook", most_shown(plan, run), shown)
