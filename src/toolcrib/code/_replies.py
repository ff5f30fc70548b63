"""From a call's outcome to what its program gets: a value, an exception of a kind it can catch, or its end."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from toolcrib.calls import Completed, Failed, Outcome, Rejected, Suspended
from toolcrib.errors import ResultNotSerializable
from toolcrib.sandbox import Raised, Reply, SuspendedReply, Value
from toolcrib.schema import ToolSpec

__all__ = ["reply_to"]

_EXCEPTIONS = {
    "tool_timeout": "TimeoutError",
    "unknown_tool": "NameError",
    "not_available": "PermissionError",
    "approval_error": "PermissionError",
    "result_not_serializable": "TypeError",
    "not_callable": "TypeError",
    "schema_error": "TypeError",
}
_FIRST_NAME = re.compile(r"[^.\[]*")


def reply_to(outcome: Outcome, arguments: Mapping[str, Any], spec: ToolSpec) -> Reply:
    """Return what a program gets for a call with these arguments."""
    match outcome:
        case Completed():
            try:
                return Value(outcome.shown())
            except ResultNotSerializable as error:
                return Raised("TypeError", str(error))
        case Rejected(source="limit"):
            return Raised("RuntimeError", outcome.reason)
        case Rejected():
            return Raised("PermissionError", outcome.reason)
        case Suspended():
            return SuspendedReply(outcome.text())
        case Failed(problems=(_, *_)):
            return Raised(_misfit(outcome, arguments, spec), outcome.message)
        case Failed(code="tool_error", exception=Exception() as error):
            return Raised(_builtin(error), _message(error, outcome.message))
        case Failed():
            return Raised(_EXCEPTIONS.get(outcome.code, "RuntimeError"), outcome.message)


def _misfit(outcome: Failed, arguments: Mapping[str, Any], spec: ToolSpec) -> str:
    """Return TypeError for arguments that are missing or unknown, as Python does, ValueError for wrong ones."""
    known = spec.input_model.model_fields.keys()
    for problem in outcome.problems:
        if not problem.field and len(outcome.problems) > 1:
            continue  # it says how many more there are
        match = _FIRST_NAME.match(problem.field)
        name = match.group() if match else ""
        if name not in arguments or not (name in known or spec.accepts(name)):
            return "TypeError"
    return "ValueError"


def _builtin(error: Exception) -> str:
    """Return the builtin exception that the tool's own is, or comes from."""
    for kind in type(error).__mro__:
        if kind.__module__ == "builtins" and kind not in (Exception, StopIteration, StopAsyncIteration):
            return kind.__name__ if issubclass(kind, Exception) else "RuntimeError"
    return "RuntimeError"


def _message(error: Exception, text: str) -> str:
    key: Any = error.args[0] if isinstance(error, KeyError) and len(error.args) == 1 else None
    return key if isinstance(key, str) and text == repr(key) else text  # a KeyError quotes its key once more in there
