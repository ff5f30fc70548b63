"""Outcomes as Pydantic AI's tool results, and the values of a stream as events."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

import pydantic_ai
from pydantic_ai.exceptions import ApprovalRequired, ModelRetry, ToolFailed, UserError
from pydantic_ai.messages import CustomEvent, ToolReturn
from pydantic_ai.tools import ToolDenied

from toolcrib.adapters.pydantic_ai._deferred_calls import Waiting
from toolcrib.adapters.pydantic_ai._media import content_of, file_in, text_in
from toolcrib.calls import (
    Blocks,
    Completed,
    Failed,
    Media,
    Outcome,
    Rejected,
    Rendered,
    Suspended,
    cut,
    lenient,
    render,
)


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


def reply_to(outcome: Outcome, arguments: Mapping[str, Any], limit: int | None = None) -> Any:
    """Return the tool's result for the model.

    Args:
        limit: The tool's `max_result_chars`.

    Raises:
        ApprovalRequired: The call waits; the metadata holds what it is resumed from.
        ModelRetry: The model may mend the call.
        ToolFailed: There is no result.
    """
    match outcome:
        case Completed():
            value: Any = outcome.value
            if isinstance(value, ToolReturn):
                tool_return = cast("ToolReturn[Any]", value)
                shown = _rendered(replace(outcome, value=tool_return.return_value), file_in)
                return replace(
                    tool_return, return_value=_content(shown), content=_beside(outcome, tool_return.content, shown)
                )
            return _content(_rendered(outcome, file_in))
        case Rejected():
            return ToolDenied(outcome.reason)
        case Suspended():
            raise ApprovalRequired(Waiting(outcome, dict(arguments)).metadata())
        case Failed():
            cause = outcome.exception
            if outcome.retryable:
                raise ModelRetry(outcome.message) from cause
            if isinstance(cause, ModelRetry | ToolFailed):  # the tool speaks Pydantic AI's language
                kind = ModelRetry if isinstance(cause, ModelRetry) else ToolFailed
                raise kind(cut(cause.message, limit)) from cause
            raise ToolFailed(outcome.text()) from cause


def _beside(outcome: Completed, content: Any, shown: Rendered) -> str | list[Any] | None:
    """Return the content of a tool beside its result, cut to the rest of `max_result_chars`."""
    if content is None:
        return None
    limit = outcome.max_result_chars
    used = 0 if outcome.kept is not None else len(shown.text)
    rest = None if limit is None else max(limit - used, 0)
    value = content if isinstance(content, str) else list(content)
    beside = _rendered(replace(outcome, value=value, max_result_chars=rest, kept=None), text_in)
    return list(beside.parts) or beside.text


def _rendered(outcome: Completed, blocks: Blocks) -> Rendered:
    shown = render(outcome, structured=True, blocks=blocks)
    if shown.is_error:
        raise ToolFailed(shown.text)
    return shown


def _content(shown: Rendered) -> Any:
    if not shown.parts:
        return shown.value
    parts = [content_of(part) if isinstance(part, Media) else part for part in shown.parts]
    return parts if len(parts) > 1 else parts[0]
