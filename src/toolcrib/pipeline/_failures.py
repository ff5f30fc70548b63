"""Failures: the outcome for each error of a call, and what a model is shown of it."""

from __future__ import annotations

import logging
import os
import traceback
from collections.abc import Mapping
from dataclasses import replace
from inspect import isawaitable, iscoroutine
from types import TracebackType
from typing import Any, Protocol

from toolcrib.calls import Failed, Hiding, ToolCall, cut
from toolcrib.errors import (
    ApprovalDenied,
    ApprovalError,
    CallStateError,
    HookError,
    InvalidArguments,
    LockHeldError,
    MissingProvided,
    ModelRetry,
    NotAvailable,
    NotCallable,
    RemoteToolError,
    RetriesExhausted,
    ServerError,
    ToolCancelled,
    ToolcribError,
    ToolTimeoutError,
    UnknownTool,
    exception_of,
    message_of,
)
from toolcrib.hooks import HookRaised
from toolcrib.pipeline._compiled_tool import CompiledTool
from toolcrib.pipeline._run import Run
from toolcrib.schema import RunContext
from toolcrib.toolsets import Availability, ToolEntry, Toolset, faults_of

_MESSAGE_CHARS = 100_000  # where the tool has no `max_result_chars`
_TRACEBACK_CHARS = 20_000
_OWN = f"{__name__.partition('.')[0]}."  # begins the names of the modules whose frames a traceback does not begin with
_FOR_MODELS = (ApprovalDenied, ModelRetry, RemoteToolError)  # what a tool raises to say something to the model
_HIDDEN = "{problem} (reference {reference}); the operator can look it up"
_OF_EXECUTION = (  # what the execution of a tool itself comes to, where its function is not at fault
    ApprovalError,
    CallStateError,
    LockHeldError,
    MissingProvided,
    NotCallable,
    ToolCancelled,
    ToolTimeoutError,
)
_log = logging.getLogger("toolcrib.tools")


def invalid_arguments(name: str, call_id: str, error: Exception) -> Failed:
    """Return the outcome for arguments that could not be read, before they count as a retry."""
    if isinstance(error, InvalidArguments):
        error = InvalidArguments(name, error.problems)  # a view may show the tool under another name
        return Failed(name, call_id, error.code, str(error), type(error).__name__, error.problems, True, error)
    code = error.code if isinstance(error, ToolcribError) else "tool_error"
    return Failed(name, call_id, code, message_of(error), type(error).__name__, exception=error)


class CallOfTool(Protocol):
    """A call that can fail."""

    plan: CompiledTool
    run: Run

    @property
    def id(self) -> str: ...

    @property
    def hiding(self) -> Hiding: ...


def failure(call: CallOfTool, raised: Exception) -> Failed:
    """Return the outcome for what went wrong with a call.

    Arguments that do not fit and a tool's `ModelRetry` are retryable, as long as the model has retries left.
    """
    plan, call_id, run, error = call.plan, call.id, call.run, call.hiding.hide_error(raised)
    name = plan.name
    if isinstance(error, HookError):
        return hook_failure(call, error.kind, error.hook, error)
    if isinstance(error, InvalidArguments) and error.tool != name:  # a view may show the tool under another name
        error = InvalidArguments(name, error.problems)
    message = message_of(error)
    if isinstance(error, InvalidArguments | ModelRetry):
        problems = error.problems if isinstance(error, InvalidArguments) else ()
        if run.retry(name, plan.max_retries):
            return Failed(name, call_id, error.code, message, type(error).__name__, problems, True, error)
        spent = RetriesExhausted(name, plan.max_retries, message)
        return Failed(name, call_id, spent.code, str(spent), type(spent).__name__, problems, exception=error)
    code = error.code if isinstance(error, ToolcribError) else "tool_error"
    failed = Failed(name, call_id, code, message, type(error).__name__, exception=error)
    return failed if isinstance(error, ToolcribError) else _unexpected(failed, run, error, f"`{name}`")


def tool_failure(call: CallOfTool, raised: Exception) -> Failed:
    """Return the outcome for what the tool raised, or a post hook passed on; its message is cut like a result.

    An error of this package that is neither made for a model nor about this call is of something that the tool did:
    arguments of another tool that did not fit, an unknown tool. It is as unexpected as any other exception.
    """
    plan, error = call.plan, call.hiding.hide_error(raised)
    is_its_own = isinstance(error, _OF_EXECUTION) and error.tool in _names_of(plan)
    if isinstance(error, (*_FOR_MODELS, HookError)) or is_its_own:
        failed = failure(call, error)
    else:
        code = error.code if isinstance(error, ServerError) else "tool_error"
        failed = Failed(plan.name, call.id, code, message_of(error), type(error).__name__, exception=error)
        failed = _unexpected(failed, call.run, error, f"`{plan.name}`")
    most = _MESSAGE_CHARS if plan.max_result_chars is None else plan.max_result_chars
    return failed if len(failed.message) <= most else replace(failed, message=cut(failed.message, most))


def hook_failure(call: CallOfTool, kind: str, hook: object, raised: BaseException) -> Failed:
    """Return the outcome of an error of a host's function around a tool: a hook, a policy, an approver, a store.

    Such a gate is shut. The host has the error; the model is shown no text of it, however the run shows a tool's own.

    Raises:
        BaseException: One that is to end more than the call, as of `HookError.of`.
    """
    tool = call.plan.name
    error = HookError.of(tool, kind, hook, call.hiding.hide_error(raised))
    failed = Failed(tool, call.id, error.code, "", "HookError", exception=error)
    failed = _logged(failed, error.__cause__ or error, f"the {error.kind} `{error.hook}` of `{tool}`")
    message = _HIDDEN.format(problem=_host_problem(error, tool), reference=failed.reference)
    return replace(failed, message=message, traceback=cut(f"{failed.traceback}\n{error}", _TRACEBACK_CHARS))


def _host_problem(error: HookError, tool: str) -> str:
    """Return the sentence by which a model is told of it."""
    return f"the host's {error.kind} for `{tool}` failed"


def _names_of(plan: CompiledTool) -> tuple[str, str]:
    return plan.name, plan.tool.name  # a view may show the tool under another name


def _unexpected(failed: Failed, run: Run, error: Exception, what: str) -> Failed:
    """Return the outcome for an exception of a tool that was not made for a model, and log it with its traceback.

    The run's policy says whether the model is shown the message, or a reference under which the host finds it.
    """
    failed = _logged(failed, error, what)
    if run.channel.errors == "message":
        return failed
    problem = f"{what} failed"
    if isinstance(error, ServerError):
        lost = "was lost during the call, and whether it took effect is unknown"
        why = lost if error.may_have_run else "cannot be reached now, and was asked nothing"
        problem += f": its server `{error.server}` {why}"
    return replace(failed, message=_HIDDEN.format(problem=problem, reference=failed.reference), error_type="")


def _logged(failed: Failed, error: BaseException, what: str) -> Failed:
    """Log an exception with its traceback, and return its outcome with both for the host."""
    reference = f"e_{os.urandom(6).hex()}"
    _log.error("%s failed in the call %s (reference %s)", what, failed.call_id, reference, exc_info=error)
    return replace(failed, reference=reference, traceback=_traceback_of(error))


def _traceback_of(error: BaseException) -> str:
    """Return an exception's traceback as text, from where the code outside of this package begins."""
    lines = traceback.format_exception(type(error), error, _outside(error.__traceback__))
    return cut("".join(lines), _TRACEBACK_CHARS)


def _outside(frames: TracebackType | None) -> TracebackType | None:
    frame = frames
    while frame is not None and str(frame.tb_frame.f_globals.get("__name__")).startswith(_OWN):
        frame = frame.tb_next
    return frames if frame is None else frame


def error_shapes(call: CallOfTool, error: Exception) -> dict[str, Any]:
    """Return a tool's error as JSON shapes, for `stored_error` in another process; of a `HookError` no text."""
    if isinstance(error, HookRaised):
        error = HookError.of(call.plan.name, "observer", error.hook, error.error)
    message = _host_problem(error, call.plan.name) if isinstance(error, HookError) else message_of(error)
    return {"error": {"type": type(error).__name__, "message": call.hiding.hide(message)}}


def stored_error(data: Mapping[str, str]) -> Exception:
    """Return an exception that reads as the one that a tool raised in another process."""
    name = data["type"]
    kind = ModelRetry if name == ModelRetry.__name__ else type(name, (Exception,), {})
    return kind(data["message"])


# --- step 1


def not_offered(name: str, call_id: str) -> Failed:
    """Return the outcome for a tool that exists, and was not offered."""
    error = NotAvailable(name, "it was not offered in this run")
    return Failed(name, call_id, error.code, str(error), "NotAvailable", exception=error)


def not_allowed(entry: ToolEntry, call: ToolCall) -> Failed | None:
    """Return the outcome for a call by a caller that its tool does not allow; None for one that is allowed."""
    if not call.caller or entry.provider.permits(call.caller):
        return None
    only_programs = "only a program in the provider's sandbox may call it"
    reason = only_programs if call.caller == "direct" else "no program may call it, only the model itself"
    error = NotAvailable(call.name, reason)
    return Failed(call.name, call.id, error.code, str(error), "NotAvailable", exception=error)


def visible_names(toolset: Toolset, run: Run, caller: str = "") -> tuple[str, ...]:
    """Return the names of the tools that the caller may use now, for texts that list or suggest names.

    A tool whose condition cannot be asked here is left out: one that is async, or that fails.

    Args:
        toolset: The tools.
        run: The run of the calls.
        caller: Who makes them at the provider, where that is known.
    """
    access = run.channel.access
    entries = [
        entry
        for entry in toolset.entries.values()
        if run.offers(entry)
        and not (access is not None and access.lacks(entry.scopes))
        and (not caller or entry.provider.permits(caller))
    ]
    ctx = run.context() if any(entry.availability for entry in entries) else None
    if ctx is not None:
        entries = [entry for entry in entries if all(_holds(condition, ctx) for condition in entry.availability)]
    return tuple(entry.name for entry in entries)


def _holds(condition: Availability, ctx: RunContext[Any]) -> bool:
    try:
        answer = condition(ctx)
    except BaseException as error:  # the condition is the user's code; a gate that fails is shut
        _log.debug("a condition of availability failed", exc_info=exception_of(error))
        return False
    if iscoroutine(answer):
        answer.close()
    return not isawaitable(answer) and bool(answer)


def unknown(toolset: Toolset, call: ToolCall, run: Run) -> Failed:
    """Return the outcome for a tool that does not exist; it names those that the caller may use, and no others."""
    error = UnknownTool(call.name, visible_names(toolset, run, call.caller))
    servers = [f"`{fault.server}`" for fault in faults_of(toolset) if isinstance(fault, ServerError)]
    absent = f" Without their tools, as they are down: {', '.join(servers)}." if servers else ""
    return Failed(call.name, call.id, error.code, f"{error}{absent}", "UnknownTool", exception=error)
