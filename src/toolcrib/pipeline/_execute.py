"""Step 6: the tool's body, touched here alone, with what is around it: slot, context, runners, executor."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Any

from toolcrib import approvals
from toolcrib import hooks as _hooks
from toolcrib.calls import Outcome
from toolcrib.errors import (
    ApprovalDenied,
    ApprovalError,
    ApprovalRequired,
    CallStateError,
    HookError,
    NotCallable,
    ToolCancelled,
    exception_of,
)
from toolcrib.hooks import GateStep, HookRaised
from toolcrib.pipeline._approve import Begun, is_earlier, settle
from toolcrib.pipeline._call import NO_HISTORY
from toolcrib.pipeline._failures import failure
from toolcrib.pipeline._finish import apply_post_value, close, deliver, deliver_reports, note_end, set_result
from toolcrib.pipeline._gates import ask_gates, run_steps
from toolcrib.pipeline._live_call import LiveCall, ask_about
from toolcrib.pipeline._run import BeginStep, Run
from toolcrib.schema import RunContext

_END: Any = object()
_INSIDE = "it needs approval, and what runs inside another tool cannot wait for it; an approver of the run could answer"


def begin(call: LiveCall) -> None:
    """Move a call from `admitted` to `executing`: once, of all copies of a call, and once in a run of JSON.

    Raises:
        CallStateError: It was executed before, or did not pass its gates.
    """
    if call.state != "admitted" or call.history is not NO_HISTORY:
        _claim_execution(call)
    call.state, call.begun = "executing", True
    if call.plan.may_quote_secrets:
        call.hide_secrets()
    if call.trace is not None:
        call.trace.started(call.args.for_record)


def _claim_execution(call: LiveCall) -> None:
    """Claim the one execution of a call that has copies, or was written; raises what `begin` does."""
    first: LiveCall | None = call.history.original
    by_store = call.run.approvals is not None and call.is_noted
    if call.state != "admitted" or (first is not None and first.begun and not by_store):
        begun = call.begun or (first is not None and first.begun)
        raise CallStateError(call.plan.name, call.received.id, "executed" if begun else call.state)
    if not by_store and (call.history.key or first is not None):
        key = _execution_key(call)
        if key and not call.run.claim(key):
            raise CallStateError(call.plan.name, call.received.id, "executed")
    if first is not None:
        first.begun = True


def undo_begin(call: LiveCall) -> None:
    """Move a call from `executing` to `admitted`: the tool asked for approval before it did anything."""
    first: LiveCall = call.history.original or call
    call.state, call.error = "admitted", None
    call.begun = first.begun = False
    call.execution = replace(call.execution, entered=False)
    call.run.release(_execution_key(call))


def _execution_key(call: LiveCall) -> str:
    """Return the run's key of the execution of a written call; each time it is in doubt is another.

    It is empty for a call that was never written, and of an idempotent tool, which may be executed again.
    """
    first: LiveCall = call.history.original or call
    key = first.history.key
    return f"call:{key}:{call.history.doubts}" if key and not call.plan.tool.options.idempotent else ""


async def execute(call: LiveCall) -> Outcome | None:
    """Run the tool of an admitted call, and keep in the call what it came to.

    Returns:
        None; or the outcome, where the execution ends the call: see `execution_outcome`.
    """
    run, plan = call.run, call.plan
    begin(call)
    if call.ctx is not None and (plan.deliveries or run.delivery_steps or run.feature_parts):
        deliver_reports(call)
    try:
        while True:
            try:
                if not plan.calls_body_directly or (run.wrappers and not run.is_executing):
                    value = await _wrapped(call)
                elif call.trace is None:
                    value = await _body(call, call.args.values, call.ctx)
                else:
                    with call.trace.within():
                        value = await _body(call, call.args.values, call.ctx)
                call.state, call.value = "executed", value
                if call.execution.noted is not None:
                    await note_end(call)
                return None
            except BaseException as error:
                _fail(call, error)
            outcome = await execution_outcome(call)
            if outcome is not None or call.state == "executed":
                return outcome
            begin(call)  # it asked for approval before it did anything, and has it
    except BaseException as error:
        call.close_cancelled()
        if isinstance(error, Exception):  # the signal of an engine that makes the call anew when it goes on
            await forget_begin(call)
        if call.execution.noted == "begun" and isinstance(error, Exception | asyncio.CancelledError):
            await note_interruption(call)
        raise


@asynccontextmanager
async def values_of(call: LiveCall, results: list[Any]) -> AsyncGenerator[AsyncIterator[Any]]:
    """Run the streaming tool of an admitted call while the body takes its values; leave it to stop the tool.

    Each step holds the run's slot, and no consumer does. What the tool came to is in the call in the end.

    Args:
        results: The body adds each value before a consumer has it, and notes with which error the consumer leaves.
    """
    begin(call)
    if call.has_deliveries or call.run.feature_parts:
        deliver_reports(call)
    entered = False
    try:
        async with _entered(call) as values:
            entered = True
            yield values
        set_result(call, results, delivered=True)
    except BaseException as error:
        if call.execution.consumer_error is not None and not isinstance(error, KeyboardInterrupt):
            if isinstance(error, HookRaised):  # nothing follows that could say it
                _observer_failed(call, error)
            raise call.execution.consumer_error  # noqa: B904 -- it goes on as it was, and what failed on the way out is no reason for it
        call.execution = replace(call.execution, gave_value=bool(results))
        if isinstance(error, asyncio.CancelledError) and not _is_the_tools_own():
            await note_interruption(call)
        _fail(call, error)
    finally:
        if call.execution.consumer_error is not None:
            await note_interruption(call)
            call.execution = replace(call.execution, consumer_error=None)  # its traceback leads back to the call
    if not entered:
        yield _no_values()


async def _no_values() -> AsyncGenerator[Any, None]:
    for value in ():
        yield value


def _fail(call: LiveCall, error: BaseException) -> None:
    """Convert what the tool's own code raised to the outcome; what is to end more than the call goes on."""
    if isinstance(error, asyncio.CancelledError) and _is_the_tools_own():
        set_result(call, error=_cancelled(call, error))
    else:
        set_result(call, error=exception_of(error))


@asynccontextmanager
async def _entered(call: LiveCall) -> AsyncGenerator[AsyncIterator[Any]]:
    """Yield the values of the tool's function, each step of it in the run's slot and the call's context."""
    stream: AbstractAsyncContextManager[AsyncIterator[Any]] = _body(call, call.args.values, call.ctx)
    async with call.run.slot():
        with call.activate():
            values = await stream.__aenter__()
    try:
        if call.trace is None and call.run.limits is None:
            yield values
        else:
            async with aclosing(_values_by_slot(call, values)) as steps:
                yield steps
    finally:
        with call.activate():
            await stream.__aexit__(None, None, None)


async def _values_by_slot(call: LiveCall, values: AsyncIterator[Any]) -> AsyncGenerator[Any, None]:
    while True:
        async with call.run.slot():
            with call.activate():
                value = await anext(values, _END)
        if value is _END:
            return
        yield value


async def process_value(call: LiveCall, value: Any, *, live: bool = True) -> Any:
    """Return one value of a stream after the hooks that see each, and emit it.

    Args:
        live: Whether it is given away now. Else it is delivered with the result, of which others may make another.
    """
    shown = await apply_post_value(call, value) if call.plan.value_post_hooks else value
    if call.has_deliveries:
        if not live:
            return shown
        shown = await deliver(call, shown)
    if live and call.run.feature_parts:
        call.run.read_input(_hooks.ModelInput("value", shown, call, call.received, call.plan.entry))
    if call.trace is not None:
        call.trace.yielded(shown)
    return shown


def _body(call: LiveCall, arguments: dict[str, Any], ctx: RunContext[Any] | None) -> Any:
    """Return one execution of the tool's function: what is awaited of one that returns, what is entered of a stream."""
    plan, run = call.plan, call.run
    if plan.execution is None:
        raise NotCallable(plan.name)
    if call.execution.seal is not None:  # a `_call_tool_func` may have edited them
        call.args.require_sealed(arguments, call.execution.seal, is_approved=call.approval.digest is not None)
    steps = begin_steps(run) if run.begin_steps is None else run.begin_steps
    if plan.begin_gates:
        steps = (*(partial(_ask_at_begin, gate) for gate in plan.begin_gates if gate not in run_steps(run)), *steps)
    return plan.execution(arguments, ctx, plan.timeout, partial(_begin, call, steps) if steps else None, run)


async def _wrapped(call: LiveCall) -> Any:
    """Run the tool through the wrappers of its run and its own, the first one outermost, and return its result."""
    plan, run = call.plan, call.run
    wrappers = plan.wrappers if run.is_executing else (*run.wrappers, *plan.wrappers)
    arguments = call.args.copy() if plan.has_wrappers else call.args.values
    execute: Callable[..., Awaitable[Any]] = partial(_body if plan.calls_body_directly else _run_to_end, call)
    with call.activate():
        for wrapper in reversed(wrappers):
            execute = partial(wrapper, call, execute)
        return await execute(arguments, call.ctx)


async def _run_to_end(call: LiveCall, arguments: dict[str, Any], ctx: RunContext[Any] | None) -> Any:
    """Return the result of the tool's function; of a stream, its values."""
    returned = _body(call, _enter_body(call, arguments), ctx)
    try:
        if not call.plan.streaming:
            return await returned
        yielded: list[Any] = []
        async with returned as values:
            async for value in values:
                if not call.execution.gave_value:
                    call.execution = replace(call.execution, gave_value=True)
                yielded.append(await process_value(call, value, live=False) if call.watched else value)
        return yielded
    except BaseException as error:  # of a task that an executor makes, it would end the event loop
        raise exception_of(error)  # noqa: B904 -- it is the same error, or has it as its cause


def _enter_body(call: LiveCall, arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of the tool's function inside wrappers: edited ones are validated.

    Raises:
        CallStateError: The function was called before, and may not be called again; or the call is over.
        InvalidArguments: The edited arguments do not fit.
    """
    execution = call.execution
    once = not call.plan.tool.options.idempotent or execution.gave_value
    if call.state != "executing" or (execution.entered and once):
        raise CallStateError(call.plan.name, call.received.id, "executed")
    if execution.seal is None and not call.args.is_unread and call.args.differ_from(arguments):
        call.revise(arguments)
        arguments = call.args.values
        if call.trace is not None:
            call.trace.arguments = call.args.for_record
    if not execution.entered:
        call.execution = replace(call.execution, entered=True)
    return arguments


# --- a tool that asks, or is cancelled, or whose observer fails


async def execution_outcome(call: LiveCall) -> Outcome | None:
    """Return the outcome of an execution that ends its call here: an approval that it asked for, an observer's error.

    None where it goes on: to `finish`, or once more where the call is `admitted` again.

    Raises:
        Exception: The exception of an observer, where the run says so.
    """
    try:
        if isinstance(call.error, HookRaised):
            return _observer_failed(call, call.error)
        outcome = await _ended_here(call)
        return None if outcome is None else close(call, outcome)
    finally:
        if call.execution.noted == "begun":
            await note_end(call)


async def _ended_here(call: LiveCall) -> Outcome | None:
    error = call.error
    if isinstance(error, BegunBefore):
        undo_begin(call)
        return await settle(call, [], None, begun=Begun(error.entry))
    if not isinstance(error, ApprovalRequired):
        return None
    is_asked = isinstance(error, StoppedAtBegin)
    if is_asked and error.outcome is not None:
        return error.outcome
    if error.tool:  # of a turn that it ran: suspended, too, it would do again what it did before that turn
        call.error = ApprovalDenied(error.tool, _INSIDE)
        call.error.__cause__ = error
        return None
    late = "again after it was approved; check `ctx.approved` first" if call.approval.digest is not None else ""
    if call.execution.gave_value:  # begun anew, it would do again what it did before that value
        late = "after it gave a value; raise ApprovalRequired before the first `yield`"
    if late:
        return failure(call, ApprovalError(call.name, f"it asked for approval {late}"))
    await forget_begin(call)
    if not is_asked:
        call.add_reason("the tool asks for it", error.metadata)
    undo_begin(call)
    return await settle(call, list(call.approval.reasons), None)


def _observer_failed(call: LiveCall, raised: HookRaised) -> Outcome:
    outcome = close(call, call.hook_failure("observer", raised.hook, raised.error))
    if call.run.channel.hook_errors == "raise":
        error = call.hiding.hide_error(raised.error)
        raise error from error.__cause__
    return outcome


def _is_the_tools_own() -> bool:
    """Return whether the tool awaited something that was cancelled, while the call itself was not."""
    task = asyncio.current_task()
    return task is not None and not task.cancelling()


def _cancelled(call: LiveCall, error: asyncio.CancelledError) -> ToolCancelled:
    cancelled = ToolCancelled(call.name)
    cancelled.__cause__ = error
    return cancelled


# --- what is awaited right before the tool's first line


def begin_steps(run: Run) -> tuple[BeginStep, ...]:
    """Return the steps that a run's options put right before the tool begins, made once.

    Its gates and its fence say whether it still may, and its store and its recorder keep that it begins.
    """
    recorder, fence = run.durability.recorder, run.durability.fence
    # a gate first: where it stops the call, nothing else has to know
    steps: list[BeginStep] = [partial(_ask_at_begin, gate) for gate in run_steps(run) if gate.begin is not None]
    if run.approvals is not None:
        steps.append(_name_request)  # the recorder has it, too: by it the call that comes back is found
    if recorder is not None:
        steps.append(partial(_await_of_host, "recorder", recorder, recorder.begin))
    if run.approvals is not None:
        steps.append(note_begin)
    if fence is not None:
        steps.append(partial(_await_of_host, "fence", fence, lambda call: fence()))
    run.set_begin_steps(tuple(steps))
    return tuple(steps)


async def _await_of_host(kind: str, hook: object, step: BeginStep, call: LiveCall) -> None:
    try:
        await step(call)
    except BaseException as error:  # it is the host's code; the signal of an engine passes
        raise HookError.of(call.name, kind, hook, error)  # noqa: B904 -- it has it as its cause


async def _begin(call: LiveCall, steps: Iterable[BeginStep]) -> None:
    for step in steps:
        await step(call)


class StoppedAtBegin(ApprovalRequired):
    """A gate stops a call right before its tool: with this outcome, or with none where it has a person asked."""

    def __init__(self, outcome: Outcome | None) -> None:
        super().__init__()
        self.outcome = outcome


async def _ask_at_begin(gate: GateStep, call: LiveCall) -> None:
    known = call.approval.reasons
    outcome = await ask_gates(call, (replace(gate, check=gate.begin or gate.check),))
    if outcome is not None or call.approval.reasons != known:
        raise StoppedAtBegin(outcome)


async def _name_request(call: LiveCall) -> None:
    if call.request is None and _is_new_to_store(call):
        ask_about(call, [])


def _is_new_to_store(call: LiveCall) -> bool:
    return call.execution.noted is None and call.is_noted


# --- what the run's approval store is told of an execution


class BegunBefore(ApprovalRequired):
    """The call was begun before, in this process or in another: its tool does not run now."""

    def __init__(self, entry: approvals.ApprovalEntry) -> None:
        super().__init__()
        self.entry = entry


async def note_begin(call: LiveCall) -> None:
    """Record that the tool of a call is about to run, where the store has to know.

    Raises:
        BegunBefore: It may not.
        HookError: The store failed.
        StoppedAtBegin: The standing grant that it had found covers it no more: others began by it meanwhile.
    """
    store, request = call.run.approvals, call.request
    if store is None or request is None or not _is_new_to_store(call):
        return
    grant = call.grant
    try:
        begun = await store.begin(request, grant, again=call.plan.tool.options.idempotent)
    except BaseException as error:
        if isinstance(error, ApprovalError) and grant is not None and is_earlier(grant, request):
            call.approval = replace(call.approval, grant=None, digest=None)
            raise StoppedAtBegin(None) from error
        call.execution = replace(call.execution, noted="ended")  # it has not begun, and the error is not its result
        if isinstance(error, ApprovalError):
            raise
        raise HookError.of(call.name, "approval", store, error)  # noqa: B904 -- it has it as its cause
    if begun is not None:
        raise BegunBefore(begun)
    call.execution = replace(call.execution, noted="begun")


async def note_interruption(call: LiveCall) -> None:
    """Record that a call which was begun was broken off, also where its task is cancelled meanwhile."""
    store, request = call.run.approvals, call.request
    if store is not None and request is not None and call.execution.noted == "begun":
        call.execution = replace(call.execution, noted="ended")
        await asyncio.shield(asyncio.ensure_future(store.break_off(request, call.grant)))


async def forget_begin(call: LiveCall) -> None:
    """Forget that a call without approval has begun: its tool asked for approval before it did anything."""
    store, request = call.run.approvals, call.request
    if store is not None and request is not None and call.execution.noted == "begun" and call.grant is None:
        call.execution = replace(call.execution, noted=None)
        await store.undo(request)
