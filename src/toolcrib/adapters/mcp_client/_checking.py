"""Check of what a server sends: its list of tools, one by one, its results block by block and against its schemas."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Any, cast

import mcp_types as types
from jsonschema import exceptions
from jsonschema.exceptions import SchemaError
from mcp.client import ClientSession
from mcp.shared.inbound import find_invalid_x_mcp_header, x_mcp_header_map
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp_types.methods import validate_server_result
from pydantic import ValidationError
from referencing.exceptions import Unresolvable

from toolcrib.adapters.mcp_client._task_calls import current_task
from toolcrib.errors import SchemaTooLarge
from toolcrib.jsonschema import check_size
from toolcrib.jsonschema.checker import SMALL, Checker, checks_of

__all__ = ["argument_checks", "check_results", "check_tools_one_by_one", "unreadable_tools"]

_log = logging.getLogger("toolcrib.mcp")
_LIST_TOOLS, _CALL_TOOL = "tools/list", "tools/call"
_LISTS = ("content", "tools", "resources", "resourceTemplates", "prompts", "contents", "messages")
_MOST_ITEMS = 10_000  # of one list in a result; each that cannot be read is looked at alone
_AT_ONCE = 200  # of them, before other tasks have their turn
_USUAL_VERSION = "2025-11-25"  # by which the SDK reads what comes before a version is known
unreadable_tools: ContextVar[dict[str, str] | None] = ContextVar("toolcrib_unreadable_tools", default=None)
"""Where a listing in progress puts the tools that cannot be read: why not, by their names."""


def check_results(session: ClientSession) -> None:
    """Replace the checks of a session's results by some that have limits of time, and leave the event loop free.

    A server gives both schema and result, and may be hostile.
    """
    own: Any = session  # the SDK has no public way
    own.validate_tool_result = _ResultChecks(session).check


class _ResultChecks:
    """Checks of a session's results, in place of the SDK's, which run on the event loop for as long as they take."""

    def __init__(self, session: ClientSession) -> None:
        self._session = session
        self._checkers: dict[str, tuple[Mapping[str, Any], Checker]] = {}

    async def check(self, name: str, result: types.CallToolResult) -> None:
        """Check the result of a tool against the schema that the server gave for it.

        Raises:
            RuntimeError: It does not fit, or the schema cannot be read; as the SDK does.
        """
        own: Any = self._session
        schemas: Mapping[str, dict[str, Any] | None] = own._tool_output_schemas
        if name not in schemas:
            await self._session.list_tools()
        schema = schemas.get(name)
        if schema is None:
            return
        if "structured_content" not in result.model_fields_set and result.structured_content is None:
            raise RuntimeError(f"Tool {name} has an output schema but did not return structured content")
        try:
            checker = await self._checker(name, schema)
            errors = await checker.find_errors(result.structured_content)
        except (SchemaError, SchemaTooLarge, RecursionError, Unresolvable) as error:
            raise RuntimeError(f"Invalid schema for tool {name}: {error}") from error
        problem = cast("Exception | None", cast("Any", exceptions).best_match(iter(errors)))
        if problem is not None:
            raise RuntimeError(f"Invalid structured content returned by tool {name}: {problem}") from problem

    async def _checker(self, name: str, schema: Mapping[str, Any]) -> Checker:
        known = self._checkers.get(name)
        if known is not None and known[0] is schema:
            return known[1]
        is_small = check_size(name, schema) <= SMALL
        checker = Checker(schema) if is_small else await asyncio.to_thread(Checker, schema)
        self._checkers[name] = schema, checker
        return checker


def check_tools_one_by_one(session: ClientSession) -> None:
    """Leave out of a session's listings what it cannot read, where `unreadable_tools` takes it.

    By itself the session refuses the whole list for one tool.
    """
    own: Any = session
    if not isinstance(own._dispatcher, _ToolByTool):  # the SDK has no public way
        own._dispatcher = _ToolByTool(own._dispatcher, session)


class _ToolByTool:
    """A session's dispatcher, which repairs what the session would refuse as a whole.

    It takes unreadable tools out of a list, and puts a text in the place of the parts of a result that cannot be read.
    """

    def __init__(self, dispatcher: Any, session: ClientSession) -> None:
        self._dispatcher, self._session = dispatcher, session

    def __getattr__(self, name: str) -> Any:
        return getattr(self._dispatcher, name)

    async def send_raw_request(self, method: str, *rest: Any) -> dict[str, Any]:
        """Send a request, and return the result as it came, but for what cannot be read of it."""
        raw = _with_short_lists(await self._sent(method, *rest))
        version = self._session.protocol_version or _USUAL_VERSION
        if method == _CALL_TOOL:
            return await _readable_result(version, raw)
        found = unreadable_tools.get()
        tools = raw.get("tools")
        if method != _LIST_TOOLS or found is None or not isinstance(tools, list):
            return raw
        if not _problem(_LIST_TOOLS, version, raw):
            return raw
        kept: list[Any] = []
        for at, tool in enumerate(cast("list[Any]", tools)):
            if at % _AT_ONCE == _AT_ONCE - 1:
                await asyncio.sleep(0)
            readable = _readable_tool(version, tool)
            problem = _problem(_LIST_TOOLS, version, {**raw, "tools": [readable]})
            if problem:
                name = cast("dict[str, Any]", tool).get("name") if isinstance(tool, dict) else None
                found[name if isinstance(name, str) else f"{at + 1}"] = problem
            else:
                kept.append(readable)
        return {**raw, "tools": kept}

    async def _sent(self, method: str, *rest: Any) -> dict[str, Any]:
        call = current_task.get() if method == _CALL_TOOL else None
        has_messages = isinstance(self._dispatcher, JSONRPCDispatcher)  # else the server runs in this very call
        if call is not None and has_messages and call.may_begin_in(self._session):
            return await call.send(self._session, self._dispatcher, *rest)
        return cast("dict[str, Any]", await self._dispatcher.send_raw_request(method, *rest))


def _readable_tool(version: str, tool: Any) -> Any:
    """Return a tool as a server lists it, without what need not be there and cannot be read."""
    given = cast("dict[str, Any]", tool) if isinstance(tool, dict) else {}
    schema: Any = given.get("inputSchema")
    if isinstance(schema, dict):
        parts = {name: part for name, part in cast("dict[str, Any]", schema).items() if part is not None}
        schema = {"type": "object", **parts}
    needed = {"name": given.get("name"), "inputSchema": schema}
    if _problem(_LIST_TOOLS, version, {"tools": [needed]}):
        return cast("Any", tool)
    kept = {name: part for name, part in given.items() if name not in needed and part is not None}
    wrong = [name for name in kept if _problem(_LIST_TOOLS, version, {"tools": [{**needed, name: kept[name]}]})]
    if wrong:
        _log.warning("a server lists `%.200s` with what cannot be read: %s", given["name"], ", ".join(wrong))
    return {**needed, **{name: part for name, part in kept.items() if name not in wrong}}


def _with_short_lists(raw: dict[str, Any]) -> dict[str, Any]:
    """Return a result whose lists have 10,000 items at most; of the blocks of a result the last one says so."""
    cut: dict[str, Any] = {}
    for name in _LISTS:
        items: Any = raw.get(name)
        if isinstance(items, list) and len(cast("list[Any]", items)) > _MOST_ITEMS:
            more = len(cast("list[Any]", items)) - _MOST_ITEMS
            _log.warning("a server sent %d %s too many in one result, which are left out", more, name)
            text = {"type": "text", "text": f"[{more} more blocks are left out: a result has {_MOST_ITEMS:,} at most]"}
            cut[name] = [*items[:_MOST_ITEMS], *([text] if name == "content" else [])]
    return {**raw, **cut} if cut else raw


async def _readable_result(version: str, raw: dict[str, Any]) -> dict[str, Any]:
    """Return the result of a call with a list of blocks that can be read; what is no result of a tool as it is."""
    if "task" in raw or raw.get("resultType", "complete") != "complete":
        return raw
    blocks: Any = raw.get("content")
    if isinstance(blocks, list) and not _problem(_CALL_TOOL, version, raw):
        return raw
    raw = {name: part for name, part in raw.items() if part is not None or name not in ("isError", "_meta")}
    structured: Any = raw.get("structuredContent")
    if structured is not None and _problem(_CALL_TOOL, version, {"content": [], "structuredContent": structured}):
        raw = {name: part for name, part in raw.items() if name != "structuredContent"}
        if not blocks:
            blocks = {"type": "text", "text": json.dumps(structured, ensure_ascii=False)}
    given: list[Any] = cast("list[Any]", blocks) if isinstance(blocks, list) else [] if blocks is None else [blocks]
    readable: list[Any] = []
    for at, block in enumerate(given):
        if at % _AT_ONCE == _AT_ONCE - 1:
            await asyncio.sleep(0)
        readable.append(_readable_block(version, block))
    return {**raw, "content": readable}


def _readable_block(version: str, block: Any) -> Any:
    """Return a block of a result; where it cannot be read, a text that says of what type it is, and has its text."""
    if not _problem(_CALL_TOOL, version, {"content": [block]}):
        return block
    given: dict[str, Any] = cast("dict[str, Any]", block) if isinstance(block, dict) else {"text": block}
    kind, text = given.get("type", "text"), given.get("text")
    if kind == "text" and text is not None:
        return {"type": "text", "text": text if isinstance(text, str) else json.dumps(text, ensure_ascii=False)}
    return {"type": "text", "text": f"[a block that cannot be read, of the type {kind!s:.100}]"}


def _problem(method: str, version: str, raw: Mapping[str, Any]) -> str:
    """Return why a result does not fit the protocol, empty where it does."""
    try:
        validate_server_result(method, version, raw)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        return f"{'.'.join(map(str, first['loc'][2:]))}: {first['msg']}"
    except KeyError:  # the SDK reads what it knows no rules for as it comes
        pass
    return ""


def argument_checks(tool: str, schema: Mapping[str, Any]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Return a check of a tool's arguments that leaves out an optional one which is sent as a header, where it is null.

    A header has no null (SEP-2243), and a model may well send null for what it does not want. A large schema is read
    here, and takes seconds: call this in a worker thread.

    Raises:
        SchemaTooLarge: The schema comes to too much.
    """
    check = checks_of(tool, schema, prepared=check_size(tool, schema) > SMALL)
    if find_invalid_x_mcp_header(schema) is not None:
        return check
    places = [*x_mcp_header_map(schema)]
    if not places:
        return check

    def without_nulls(arguments: dict[str, Any]) -> dict[str, Any]:
        for place in places:
            arguments = _without_null(arguments, schema, place)
        return check(arguments)

    return without_nulls


def _without_null(values: dict[str, Any], schema: Mapping[str, Any], place: tuple[str, ...]) -> dict[str, Any]:
    """Return values without the one at a place, where it is null and its schema does not require it."""
    name, *inside = place
    if name not in values:
        return values
    if inside and isinstance(values[name], dict):
        return {**values, name: _without_null(values[name], schema["properties"][name], tuple(inside))}
    if inside or values[name] is not None or name in schema.get("required", ()):
        return values
    return {key: value for key, value in values.items() if key != name}
