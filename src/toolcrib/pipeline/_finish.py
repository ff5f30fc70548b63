"""Steps 7 and 8: the result of a call on its way out, through post hooks and deliveries, and the end of its record."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping
from dataclasses import replace
from functools import partial
from inspect import isawaitable
from typing import Any, cast

from toolcrib import calls, record
from toolcrib import hooks as _hooks
from toolcrib.calls import Completed, Failed, KeptResult, Outcome, Suspended, ToolCall, jsonable
from toolcrib.errors import HookError, ResultNotSerializable, exception_of
from toolcrib.pipeline._call import Call
from toolcrib.pipeline._compiled_tool import CompiledTool
from toolcrib.pipeline._failures import error_shapes, tool_failure
from toolcrib.pipeline._live_call import LiveCall
from toolcrib.pipeline._run import Run
from toolcrib.schema import RunContext
from toolcrib.toolsets import ToolEntry

_MOST_CHARS = 1_000_000  # of a result that is stored, as JSON
_log = logging.getLogger("toolcrib.pipeline")


def context_of(call: LiveCall) -> RunContext[Any]:
    if call.ctx is None:
        raise RuntimeError("a plan with hooks always has a context")
    return call.ctx


def set_result(call: LiveCall, value: Any = None, error: Exception | None = None, *, delivered: bool = False) -> None:
    """Move a call to `executed`, with what the tool came to.

    Args:
        value: The tool's result.
        error: The tool's exception.
        delivered: Whether the value passed the deliveries.
    """
    call.state, call.value, call.error = "executed", value, error
    if call.execution.delivered is not delivered:
        call.execution = replace(call.execution, delivered=delivered)


async def _apply_post(call: LiveCall) -> Failed | None:
    """Run the post hooks on the result or the exception; return the failure, if one of them fails."""
    ctx = context_of(call)
    returned = call.value if call.error is None else None
    result: Any = returned if call.error is None else call.error
    for step in call.plan.buffered_post_hooks:
        try:
            replacement = step.call(ctx, result, call.metadata)
            result = await replacement if isawaitable(replacement) else replacement
        except BaseException as error:  # middleware is the user's code; raising the tool's own error is passing it on
            if error is result:
                continue
            return call.hook_failure("post hook", step.name, error)
    if isinstance(result, Exception) and result is not returned:  # a tool may return an exception without raising it
        set_result(call, error=result)
    else:
        set_result(call, result)
    return None


async def deliver(call: LiveCall, value: Any) -> Any:
    """Return a value after the deliveries of its tool and its run; raises HookError when one fails."""
    for step in (*call.plan.deliveries, *call.run.delivery_steps):
        try:
            delivered = step.deliver(call, value)
            value = await delivered if isawaitable(delivered) else delivered
        except BaseException as error:  # a delivery is the user's code
            raise HookError.of(call.plan.name, "delivery", step.name, error) from error
    return value


async def _deliver_result(call: LiveCall) -> Failed | None:
    """Deliver a result, unless its values were delivered one by one; return the failure, if a delivery fails."""
    try:
        if call.execution.reports is not None:
            await call.execution.reports
        if call.error is None and not call.execution.delivered:
            set_result(call, await _delivered_value(call), delivered=True)
    except HookError as error:
        if call.error is None:
            return call.hook_failure("delivery", error.hook, error)
    return None


async def _delivered_value(call: LiveCall) -> Any:
    result: Any = call.value
    if not (call.plan.streaming and isinstance(result, list)):
        return await deliver(call, result)
    values: list[Any] = []
    for value in cast("list[Any]", result):
        values.append(await deliver(call, value))
        if call.execution.gave_value and call.trace is not None:
            call.trace.yielded(values[-1])
    return values


def deliver_reports(call: LiveCall) -> None:
    """Pass what the tool gives to `ctx.report` through the deliveries, in order, before anyone has it."""
    ctx = call.ctx
    if ctx is None or ctx.report is None:
        return
    loop, thread, pass_on = asyncio.get_running_loop(), threading.get_ident(), ctx.report
    if not call.has_deliveries:
        ctx.report = partial(_read_report, call, pass_on)
        return

    def start(value: Any) -> None:
        before = call.execution.reports
        call.execution = replace(
            call.execution, reports=loop.create_task(_deliver_report(call, value, pass_on, before))
        )

    def report(value: Any) -> None:
        if threading.get_ident() == thread:
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
        call.run.read_input(_hooks.ModelInput("value", value, call, call.received, call.plan.entry))
    pass_on(value)


async def apply_post_value(call: LiveCall, value: Any) -> Any:
    """Return one value of a stream after the post hooks that see each of them; raises HookError when one fails."""
    ctx = context_of(call)
    for step in call.plan.value_post_hooks:
        try:
            returned = step.call(ctx, value, call.metadata)
            value = await returned if isawaitable(returned) else returned
        except BaseException as error:  # middleware is the user's code
            raise HookError.of(call.plan.name, "post hook", step.name, error) from error
    return value


# --- results that are too long


async def _shorten(call: LiveCall) -> KeptResult | None:
    """Return the text in place of a result that is too long; None for any other."""
    shortener = call.plan.shortener
    return None if shortener is None else await shortener.shorten(call, call.value)


def _shown_limit(plan: CompiledTool, run: Run) -> int | None:
    """Return the most characters that are shown of a result; None for a program where longer ones are kept."""
    is_whole = plan.shortener is not None and run.channel.reader.value_chars is not None
    return None if is_whole else plan.max_result_chars


async def note_end(call: LiveCall) -> None:
    """Record the end of an executed call before anyone outside has its result; also of one that the host executed."""
    store, request = call.run.approvals, call.request
    if store is None or request is None or call.execution.noted == "ended":
        return
    if call.execution.noted is None and (call.error is not None or await store.begin(request, call.grant) is not None):
        return  # it failed before its tool began, or began elsewhere
    call.execution = replace(call.execution, noted="ended")
    try:
        await store.end(request, call.grant, _result_of(call))
    except BaseException as error:  # the store is the user's code; the call was executed, and stays in doubt there
        cause = error if isinstance(error, Exception) else exception_of(error)  # a newer form is no reason to wait
        _log.error("it could not be noted that the call %s of `%s` has ended", call.id, call.name, exc_info=cause)


def _result_of(call: LiveCall) -> Mapping[str, Any] | None:
    """Return the result of an executed call as JSON shapes; None where it has no such form, or is too long."""
    if call.error is not None:
        return error_shapes(call, call.error)
    try:
        result = {"value": jsonable(call.value, call.plan.name, media=True)}
    except ResultNotSerializable:
        return None
    return result if len(json.dumps(result)) <= _MOST_CHARS else None


async def finish(call: LiveCall) -> Outcome:
    """Pass the result or the exception of an executed call through post hooks and deliveries, and close its record."""
    failed: Outcome | None = None
    if call.is_noted:
        await note_end(call)
    if call.plan.buffered_post_hooks and call.state == "executed":
        with call, call.activate():
            failed = await _apply_post(call)
    if failed is None and call.state == "executed" and call.waits_for_post_hooks:
        with call, call.activate():
            failed = await _deliver_result(call)
    if failed is not None:
        return close(call, failed)
    if call.plan.shortener is not None and call.state == "executed" and call.error is None:
        with call:
            call.execution = replace(call.execution, kept_result=await _shorten(call))
    return conclude(call)


def conclude(call: LiveCall) -> Outcome:
    """Return the outcome of an executed call, and close its record."""
    if call.outcome is not None and call.state == "closed":
        return call.outcome
    plan, run = call.plan, call.run
    if call.error is None:
        most = plan.max_result_chars if plan.shortener is None else _shown_limit(plan, run)
        outcome: Outcome = Completed(plan.name, call.received.id, call.value, "tool", most, call.execution.kept_result)
        if run.limits is not None and run.limits.requirements:
            run.completed.add(plan.name)
    else:
        outcome = tool_failure(call, call.error)
    return close(call, outcome)


def close(call: LiveCall, outcome: Outcome) -> Outcome:
    """Move a call to `closed` with the outcome, and make the record."""
    if call.state != "suspended":
        call.state = "closed"
    if type(outcome) is not Completed:
        outcome = calls.hidden_outcome(outcome, call.hiding)
    call.outcome = outcome
    if call.plan.may_quote_secrets:
        call.hide_secrets(call.hiding.hide_in)  # which does not lead back to the call
    if call.run.feature_parts:
        _give_to_features(call, outcome)
    if call.trace is not None:
        call.trace.ended(outcome)
    return outcome


def _give_to_features(call: LiveCall, outcome: Outcome) -> None:
    """Pass the value that a model or a program is about to get to the features of the run."""
    match outcome:
        case Completed():
            origin, value = ("result" if outcome.source == "tool" else "hook"), outcome.value
        case Suspended():
            return  # the sentence of this package
        case _:
            origin, value = ("refusal" if call.error is None else "error"), outcome.text()
    call.run.read_input(_hooks.ModelInput(origin, value, call, call.received, call.plan.entry))


def refuse(
    run: Run, request: ToolCall, trace: record.Trace | None, outcome: Failed, entry: ToolEntry | None = None
) -> Failed:
    """Return the outcome of what never came to be a call, have the run's features read it, and make its record."""
    run.read_input(_hooks.ModelInput("refusal", outcome.text(), request=request, entry=entry))
    if trace is not None:
        trace.ended(outcome)
    return outcome


async def completed_outcome(call: LiveCall, value: Any) -> Completed | Failed:
    """Return the outcome of a call whose result a hook, a gate or the host gives; Failed where a delivery fails."""
    set_result(call, value)
    failed = await _deliver_result(call)
    if failed is not None:
        return failed
    plan, run = call.plan, call.run
    shown = await _shorten(call)
    return Completed(plan.name, call.id, call.value, "hook", _shown_limit(plan, run), shown)


# --- values that come after the result

_END: Any = object()


class LateValues:
    """The values of a call that ended early, whose post hooks need the whole result, or whose tool returns.

    Args:
        admitted: The admitted call, or its outcome.
        complete: Takes the call to its outcome.
        streaming: Whether the tool streams.
        plain: Whether a tool's result is its last value, and results of a decision hook in its place are values, too.

    Attributes:
        outcome: The outcome of the call, once the values are taken.
    """

    def __init__(
        self,
        admitted: Call | Outcome,
        complete: Callable[[LiveCall], Coroutine[Any, Any, Outcome]],
        *,
        streaming: bool,
        plain: bool,
    ) -> None:
        self._admitted, self._complete, self._streaming, self._plain = admitted, complete, streaming, plain
        self.outcome: Any = None

    async def values(self) -> AsyncGenerator[Any, None]:
        """Yield the values; leaving early stops the tool."""
        admitted, wanted = self._admitted, self._plain or self._streaming
        if type(admitted) is not LiveCall:
            self.outcome, wanted = cast("Outcome", admitted), self._plain
        elif admitted.ctx is None or self._streaming:
            self.outcome = await self._complete(admitted)
        else:
            reports = _Reports(admitted.ctx, self._complete(admitted))
            try:
                async for value in reports.values():
                    yield value
                self.outcome = await reports.result()
            finally:
                await reports.stop()
        if wanted and self.outcome.kind == "completed":
            result: Any = self.outcome.value
            split = self._streaming and isinstance(result, list)  # a post hook may make one value of them
            values = cast("list[Any]", result if split else [result])
            for value in values:
                yield value


class _Reports:
    """Yield the values that a tool that returns gives to `ctx.report`, while `work` runs in a task of its own."""

    def __init__(self, ctx: RunContext[Any], work: Coroutine[Any, Any, Outcome]) -> None:
        self._ctx, self._before = ctx, ctx.report
        self._values: asyncio.Queue[Any] = asyncio.Queue()
        self._loop, self._thread = asyncio.get_running_loop(), threading.get_ident()
        ctx.report = self._report
        self._task = asyncio.create_task(work)
        self._task.add_done_callback(lambda _: self._values.put_nowait(_END))

    async def values(self) -> AsyncGenerator[Any, None]:
        """Yield them as they come."""
        while (value := await self._values.get()) is not _END:
            yield value

    async def result(self) -> Outcome:
        """Return the result of the work, after the values; raises its error."""
        return await self._task

    async def stop(self) -> None:
        """Stop the work, where it goes on."""
        if not self._task.done():
            self._task.cancel()
            await asyncio.wait({self._task})

    def _report(self, value: Any) -> None:
        if self._before is not None:
            self._before(value)
        if threading.get_ident() == self._thread:
            self._values.put_nowait(value)
        else:  # of a tool that is executed in a thread
            self._loop.call_soon_threadsafe(self._values.put_nowait, value)
