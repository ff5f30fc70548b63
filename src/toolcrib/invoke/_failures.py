"""From an exception to the outcome that says it, in one place for every step and door."""

from __future__ import annotations

from toolcrib.calls import Failed
from toolcrib.errors import InvalidArguments, ModelRetry, RetriesExhausted, ToolcribError
from toolcrib.invoke._plan import Plan
from toolcrib.invoke._scope import RunScope

__all__ = ["failure"]


def failure(plan: Plan, call_id: str, scope: RunScope, error: Exception) -> Failed:
    """Return the outcome for what went wrong with a call.

    Arguments that do not fit and a tool's `ModelRetry` are retryable, as long as the model has retries left.
    """
    name = plan.name
    if isinstance(error, InvalidArguments) and error.tool != name:  # a view may show the tool under another name
        error = InvalidArguments(name, error.problems)
    if isinstance(error, InvalidArguments | ModelRetry):
        problems = error.problems if isinstance(error, InvalidArguments) else ()
        if scope.retry(name, plan.max_retries):
            return Failed(name, call_id, error.code, str(error), type(error).__name__, problems, True, error)
        spent = RetriesExhausted(name, plan.max_retries, str(error))
        return Failed(name, call_id, spent.code, str(spent), type(spent).__name__, problems, exception=error)
    code = error.code if isinstance(error, ToolcribError) else "tool_error"
    return Failed(name, call_id, code, _message(error), type(error).__name__, exception=error)


def _message(error: Exception) -> str:
    try:
        text = str(error)
    except Exception as broken:  # the exception is the tool's own class, and so is its __str__
        return f"{type(error).__name__}, whose message cannot be shown ({type(broken).__name__})"
    return text or type(error).__name__
