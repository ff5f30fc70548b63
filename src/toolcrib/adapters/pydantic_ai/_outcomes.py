"""Outcomes as Pydantic AI's tool results, and the values of a stream as events."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

import pydantic_ai
from pydantic_ai.exceptions import ApprovalRequired, ModelRetry, ToolFailed, UserError
from pydantic_ai.messages import MULTI_MODAL_CONTENT_TYPES, CustomEvent, ToolReturn
from pydantic_ai.tools import ToolDenied

from toolcrib.adapters.pydantic_ai._deferred_calls import Waiting
from toolcrib.adapters.pydantic_ai._media import content_of
from toolcrib.calls import Completed, Failed, Media, Outcome, Rejected, Suspended, lenient, render

__all__ = ["ToolYielded", "emit_value", "reply_to"]


@dataclass(kw_only=True)
class ToolYielded(CustomEvent, name="toolcrib_yielded"):
    """One value of a streaming tool, in a run's event stream.

    Attributes:
        value: The value as JSON shapes.
    """

    value: Any = None


async def emit_value(ctx: pydantic_ai.RunContext[Any], value: Any) -> bool:
    """Put a value into the run's event stream; return whether there is one."""
    try:
        await ctx.emit(ToolYielded(value=lenient(value)))
    except UserError:  # the context belongs to no run, which has no listeners
        return False
    return True


def reply_to(outcome: Outcome, arguments: Mapping[str, Any]) -> Any:
    """Return what the model is given as the tool's result.

    Args:
        arguments: What the model sent.

    Raises:
        ApprovalRequired: The call waits; the metadata holds what it is resumed from.
        ModelRetry: The model may mend the call.
        ToolFailed: There is no result.
    """
    match outcome:
        case Completed():
            return _result(outcome)
        case Rejected():
            return ToolDenied(outcome.reason)
        case Suspended():
            raise ApprovalRequired(Waiting(outcome, dict(arguments)).metadata())
        case Failed():
            cause = outcome.exception
            if outcome.retryable:
                raise ModelRetry(outcome.message) from cause
            if isinstance(cause, ModelRetry | ToolFailed):  # the tool speaks Pydantic AI's language
                raise cause
            raise ToolFailed(outcome.text()) from cause


def _result(outcome: Completed) -> Any:
    value = outcome.value
    if isinstance(value, ToolReturn):
        made = cast("ToolReturn[Any]", value)
        return replace(made, return_value=_result(replace(outcome, value=made.return_value)))
    several: list[Any] = cast("list[Any]", value) if isinstance(value, list) else [value]
    if any(isinstance(item, MULTI_MODAL_CONTENT_TYPES) for item in several):
        return cast("Any", value)  # their own images and files are the model's to read as they are
    shown = render(outcome, structured=True)
    if shown.is_error:
        raise ToolFailed(shown.text)
    if not shown.parts:
        return shown.value
    parts = [content_of(part) if isinstance(part, Media) else part for part in shown.parts]
    return parts if len(parts) > 1 else parts[0]
