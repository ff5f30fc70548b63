"""Outcomes as results of `tools/call`."""

from __future__ import annotations

from typing import Any, cast

import mcp_types as types
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS
from pydantic import BaseModel

from toolcrib.adapters.mcp_server._listing import ListedTool
from toolcrib.adapters.mcp_server._media import block_of, shape_of, text_in
from toolcrib.calls import Completed, Failed, Media, Outcome, jsonable, render
from toolcrib.errors import RemoteToolError
from toolcrib.toolsets import ToolEntry

_OF_CONNECTION = frozenset(  # codes that say nothing about a request of the gateway's client
    {
        types.CONNECTION_CLOSED,
        types.HEADER_MISMATCH,
        types.MISSING_REQUIRED_CLIENT_CAPABILITY,
        types.PARSE_ERROR,
        types.REQUEST_TIMEOUT,
        types.UNSUPPORTED_PROTOCOL_VERSION,
        types.URL_ELICITATION_REQUIRED,
    }
)


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


def original_reply(
    outcome: Outcome, listed: ListedTool, original: types.CallToolResult, *, stateless: bool
) -> types.CallToolResult | None:
    """Return the result of another server unchanged, but without its statements about itself.

    Structured content for which clients were shown no schema may be of any type for those of the stateless generation.
    Numbers that JSON does not have are texts in it, as in a result of any tool: "NaN", "Infinity", "-Infinity".
    None where the client is to get what was made of it: a post hook or a wrapper of the host's has not seen all that
    is in it, or it is longer than a result may be.
    """
    match outcome:
        case Completed():
            is_whole = not original.is_error
        case Failed(code="remote_tool_error"):
            is_whole = bool(original.is_error)
        case _:
            is_whole = False
    if not (is_whole and is_untouched(outcome, listed.entry, original)):
        return None
    content, structured = [_block(part) for part in original.content], jsonable(original.structured_content)
    keeps_to_none = bool(original.is_error) or listed.output_schema is None  # of errors no schema says anything
    is_free = keeps_to_none and (stateless or isinstance(structured, dict))
    if structured is not None and not is_free:
        structured = listed.structured(structured)
    return original.model_copy(update={"content": content, "structured_content": structured, "meta": meta_of(original)})


def meta_of(original: types.Result) -> dict[str, Any] | None:
    """Return the `_meta` of another server's result, but for what that server says of itself."""
    meta = {name: value for name, value in (original.meta or {}).items() if name != types.SERVER_INFO_META_KEY}
    return meta or None


def original_error(outcome: Outcome, entry: ToolEntry) -> MCPError | None:
    """Return the error by which another server answered a request, with its code and data.

    None where it is about the connection to that server, and not about the request; or where the client is to get
    what was made of it, as of a result.
    """
    raised = outcome.exception if isinstance(outcome, Failed) else None
    cause = raised.__cause__ if isinstance(raised, RemoteToolError) else None
    if not isinstance(cause, MCPError) or cause.code in _OF_CONNECTION or not is_untouched(outcome, entry, cause.error):
        return None
    return MCPError(cause.code, clean(cause.message), cause.error.data)


def is_untouched(outcome: Outcome, entry: ToolEntry, original: BaseModel) -> bool:
    """Return whether no hook, runner or limit of the host has changed the result of another server."""
    most = entry.max_result_chars
    is_others = isinstance(outcome, Completed) and (outcome.source != "tool" or outcome.kept is not None)
    if entry.post or entry.runners or is_others:
        return False
    return most is None or len(original.model_dump_json(by_alias=True)) <= most


def text_result(text: str, structured: Any = None) -> types.CallToolResult:
    """Return a result of one text."""
    return types.CallToolResult(content=[types.TextContent(text=clean(text))], structured_content=structured)


def error_result(text: str, structured: Any = None) -> types.CallToolResult:
    """Return a result that says what went wrong."""
    content: list[types.ContentBlock] = [types.TextContent(text=clean(text))]
    return types.CallToolResult(content=content, structured_content=structured, is_error=True)


def _result(outcome: Completed, listed: ListedTool) -> types.CallToolResult:
    if isinstance(outcome.value, types.CallToolResult) and listed.entry.max_result_chars is None:
        return outcome.value.model_copy(update={"content": [_block(part) for part in outcome.value.content]})
    rendered = render(outcome, structured=True, blocks=text_in)
    if rendered.is_error:
        return error_result(rendered.text)
    content = [_block(part) for part in rendered.parts or (rendered.text,)]
    text, shape = clean(rendered.text), rendered.value
    if rendered.parts and shape is None:  # the tool gave blocks of the protocol itself
        if listed.output_schema is None:
            return types.CallToolResult(content=content)
        shape = shape_of(outcome.value)
    structured = listed.structured(shape, in_blocks=bool(rendered.parts))
    if structured is not None and text is not rendered.text:
        structured = _cleaned(structured)
    misfit = listed.misfit(structured)
    if misfit:
        return error_result(f"{text}\n\nThis does not fit the output schema of `{outcome.tool}` ({misfit}).")
    return types.CallToolResult(content=content, structured_content=structured)


def _block(part: Any) -> types.ContentBlock:
    match part:
        case str():
            return types.TextContent(text=clean(part))
        case Media():
            return block_of(part)
        case types.TextContent():
            return part.model_copy(update={"text": clean(part.text)})
        case _:
            return part


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
