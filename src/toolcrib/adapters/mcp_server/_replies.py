"""Outcomes as results of `tools/call`."""

from __future__ import annotations

from typing import Any, cast

import mcp_types as types
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS

from toolcrib.adapters.mcp_server._listing import ListedTool
from toolcrib.adapters.mcp_server._media import blocks_of
from toolcrib.calls import Completed, Failed, Outcome
from toolcrib.errors import ResultNotSerializable

__all__ = ["clean", "error_result", "reply_to", "text_result"]


def reply_to(outcome: Outcome, listed: ListedTool | None) -> types.CallToolResult:
    """Return the reply to a client.

    Args:
        listed: The tool as clients see it; None for one that does not exist.

    Raises:
        MCPError: There is no such tool, which the protocol has as an error of the request.
    """
    match outcome:
        case Failed(code="unknown_tool"):
            raise MCPError(INVALID_PARAMS, clean(outcome.message))
        case Completed() if listed is not None:
            return _result(outcome, listed)
        case _:
            return error_result(outcome.text())


def text_result(text: str, structured: Any = None) -> types.CallToolResult:
    """Return a result of one text."""
    return types.CallToolResult(content=[types.TextContent(text=clean(text))], structured_content=structured)


def error_result(text: str, structured: Any = None) -> types.CallToolResult:
    """Return a result that says what went wrong."""
    content: list[types.ContentBlock] = [types.TextContent(text=clean(text))]
    return types.CallToolResult(content=content, structured_content=structured, is_error=True)


def _result(outcome: Completed, listed: ListedTool) -> types.CallToolResult:
    parts = blocks_of(outcome.value)
    try:
        if parts is not None:
            return types.CallToolResult(content=[_content(part, outcome) for part in parts])
        text, value = outcome.text(), outcome.shown()
    except ResultNotSerializable as error:
        return error_result(f"{type(error).__name__}: {error}")
    shown = clean(text)
    structured = listed.structured(value)
    if structured is not None and shown is not text:
        structured = _cleaned(structured)
    misfit = listed.misfit(structured)
    if misfit:
        return error_result(f"{shown}\n\nThis does not fit the output schema of `{outcome.tool}` ({misfit}).")
    return types.CallToolResult(content=[types.TextContent(text=shown)], structured_content=structured)


def _content(part: Any, outcome: Completed) -> types.ContentBlock:
    if isinstance(part, str):
        return types.TextContent(text=clean(part))
    if isinstance(part, types.TextContent):
        return part.model_copy(update={"text": clean(part.text)})
    is_block = blocks_of(part) is not None
    return part if is_block else types.TextContent(text=clean(Completed(outcome.tool, outcome.call_id, part).text()))


def clean(text: str) -> str:
    """Return the text itself, or with question marks for halves of surrogate pairs, which no wire can carry."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text


def _cleaned(shape: Any) -> Any:
    match shape:
        case str():
            return clean(shape)
        case list():
            return [_cleaned(part) for part in cast("list[Any]", shape)]
        case dict():
            return {clean(name): _cleaned(part) for name, part in cast("dict[str, Any]", shape).items()}
        case _:
            return shape
