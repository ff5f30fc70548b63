"""Check of what a server sends: its list of tools, one by one, its results block by block and against its schemas."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from copy import deepcopy
from functools import partial
from typing import Any, Final, cast

import mcp_types as types
from jsonschema import exceptions
from mcp.client import ClientSession
from mcp.shared.inbound import find_invalid_x_mcp_header, x_mcp_header_map
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp_types.methods import parse_server_result
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError
from referencing.exceptions import Unresolvable

from toolcrib._numbers import count_text
from toolcrib.adapters.mcp_client._task_calls import current_task
from toolcrib.errors import SchemaTooLarge
from toolcrib.jsonschema import check_size
from toolcrib.jsonschema.checker import SMALL, Checker, checks_of, repaired_checker

_log = logging.getLogger("toolcrib.mcp")
_LIST_TOOLS, _CALL_TOOL = "tools/list", "tools/call"
_ITEMS = {  # where the results of these methods have their parts
    _LIST_TOOLS: "tools",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
    "prompts/list": "prompts",
    _CALL_TOOL: "content",
    "resources/read": "contents",
    "prompts/get": "messages",
    "completion/complete": "completion",  # the only one that is no list
}
_NEEDED: Mapping[str, Sequence[str]] = {  # what a part has to have; all else need not be there
    "tools": ("name", "inputSchema"),
    "resources": ("uri", "name"),
    "resourceTemplates": ("uriTemplate", "name"),
    "prompts": ("name",),
    "text": ("type", "text"),
    "image": ("type", "data", "mimeType"),
    "audio": ("type", "data", "mimeType"),
    "resource_link": ("type", "uri", "name"),
    "resource": ("type", "resource"),
    "completion": ("values",),
}
_REQUIRED: Mapping[str, Any] = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}  # of newer results
_IN_DOUBT = "[whether this is an error cannot be read, and whether the call took effect is unknown]"
_OLD_RESULT = "toolResult"  # of the first versions of the protocol
_MOST_ITEMS = 10_000  # of one list in a result; each that cannot be read is looked at alone
_MOST_MEMBERS = 100  # of a part that cannot be read; each of them is looked at alone
_MOST_NAMED = 10  # of what is left out, in a line of the log
_AT_ONCE = 20  # parts, before other tasks have their turn
_USUAL_VERSION = "2025-11-25"  # by which the SDK reads what comes before a version is known
unreadable_tools: ContextVar[dict[str, str] | None] = ContextVar("toolcrib_unreadable_tools", default=None)
"""The tools that a listing in progress cannot read: the reasons, by their names."""


def check_results(session: ClientSession) -> None:
    """Replace the checks of a session's results by some that have limits of time, and leave the event loop free.

    A server gives both schema and result, and may be hostile.
    """
    internals: Any = session  # the SDK has no public way
    internals.validate_tool_result = _ResultChecks(session).check


class _ResultChecks:
    """Checks of a session's results, in place of the SDK's, which run on the event loop for as long as they take."""

    def __init__(self, session: ClientSession) -> None:
        self._session = session
        self._checkers: dict[str, tuple[Mapping[str, Any], Checker | None]] = {}

    async def check(self, name: str, result: types.CallToolResult) -> None:
        """Check the result of a tool against the schema that the server gave for it.

        Raises:
            RuntimeError: It does not fit, or the schema is too large; as the SDK does.
        """
        internals: Any = self._session
        schemas: Mapping[str, dict[str, Any] | None] = internals._tool_output_schemas
        if name not in schemas:
            await self._session.list_tools()
        schema = schemas.get(name)
        if schema is None:
            return
        if "structured_content" not in result.model_fields_set and result.structured_content is None:
            raise RuntimeError(f"Tool {name} has an output schema but did not return structured content")
        try:
            checker = await self._checker(name, schema)
            errors: Sequence[Any] = () if checker is None else await checker.find_errors(result.structured_content)
        except (SchemaTooLarge, RecursionError, Unresolvable) as error:
            raise RuntimeError(f"Invalid schema for tool {name}: {error}") from error
        problem = cast("Exception | None", cast("Any", exceptions).best_match(iter(errors)))
        if problem is not None:
            raise RuntimeError(f"Invalid structured content returned by tool {name}: {problem}") from problem

    async def _checker(self, name: str, schema: Mapping[str, Any]) -> Checker | None:
        known = self._checkers.get(name)
        if known is not None and known[0] is schema:
            return known[1]
        is_small = check_size(name, schema) <= SMALL
        read = partial(repaired_checker, f"the result of `{name}`", schema, log_wrong=True)
        checker = read() if is_small else await asyncio.to_thread(read)
        self._checkers[name] = schema, checker
        return checker


def check_tools_one_by_one(session: ClientSession) -> None:
    """Leave out of a session's listings what it cannot read, where `unreadable_tools` takes it.

    By itself the session refuses the whole list for one tool.
    """
    internals: Any = session
    if not isinstance(internals._dispatcher, _ToolByTool):  # the SDK has no public way
        internals._dispatcher = _ToolByTool(internals._dispatcher, session)


class _ToolByTool:
    """A session's dispatcher, which repairs what the session would refuse as a whole.

    It takes unreadable tools out of a list, and puts a text in the place of the parts of a result that cannot be read.
    """

    def __init__(self, dispatcher: Any, session: ClientSession) -> None:
        self._dispatcher, self._session = dispatcher, session

    def __getattr__(self, name: str) -> Any:
        return getattr(self._dispatcher, name)

    async def send_raw_request(self, method: str, *rest: Any) -> dict[str, Any]:
        """Send a request, and return the result as received, without the parts that cannot be read."""
        raw = _with_short_lists(await self._sent(method, *rest))
        if method in HANDSHAKES:
            return readable_handshake(method, raw)
        if method not in _ITEMS or (method == _LIST_TOOLS and unreadable_tools.get() is None):
            return raw
        return await _Repair(method, self._session.protocol_version or _USUAL_VERSION).readable(raw)

    async def _sent(self, method: str, *rest: Any) -> dict[str, Any]:
        call = current_task.get() if method == _CALL_TOOL else None
        has_messages = isinstance(self._dispatcher, JSONRPCDispatcher)  # else the server runs in this very call
        if call is not None and has_messages and call.may_begin_in(self._session):
            return await call.send(self._session, self._dispatcher, *rest)
        return cast("dict[str, Any]", await self._dispatcher.send_raw_request(method, *rest))


def _with_short_lists(raw: dict[str, Any]) -> dict[str, Any]:
    """Return a result whose lists have 10,000 items at most; of the blocks of a result the last one says so."""
    cut: dict[str, Any] = {}
    for name in _ITEMS.values():
        items: Any = raw.get(name)
        if isinstance(items, list) and len(cast("list[Any]", items)) > _MOST_ITEMS:
            more = len(cast("list[Any]", items)) - _MOST_ITEMS
            _log.warning("a server sent %d %s too many in one result, which are left out", more, name)
            left_out = f"[left out: {count_text(more, 'more block')}; a result has {_MOST_ITEMS:,} at most]"
            text = {"type": "text", "text": left_out}
            cut[name] = [*items[:_MOST_ITEMS], *([text] if name == "content" else [])]
    return {**raw, **cut} if cut else raw


class _Repair:
    """Repair of one result: what need not be there and cannot be read is left out, and other parts become a text."""

    def __init__(self, method: str, version: str) -> None:
        self._method, self._version, self._items = method, version, _ITEMS[method]
        self._required: Mapping[str, Any] = _REQUIRED if version in MODERN_PROTOCOL_VERSIONS else {}
        self._empty: dict[str, Any] = {self._items: {"values": []} if self._items == "completion" else []}
        self._left_out: dict[str, None] = {}

    async def readable(self, raw: dict[str, Any]) -> dict[str, Any]:
        """Return a result that can be read; one that asks for input, or begins a task, as it is."""
        kind: Any = raw.get("resultType")
        is_other = isinstance(kind, str) and kind != "complete"
        if is_other or isinstance(raw.get("task"), dict) or not _problem(self._method, self._version, raw):
            return raw
        items = self._items_of(raw)
        if items is None:
            return raw
        parts_read = {name: part for name, part in raw.items() if name != self._items}
        result = self._without_wrong(lambda parts: self._fits({**self._empty, **parts}), parts_read, ()) or {}
        structured: Any = parts_read.get("structuredContent")
        if structured is not None and "structuredContent" not in result and not items:
            items = [{"type": "text", "text": json.dumps(structured, ensure_ascii=False)}]
        if parts_read.get("isError") is not None and "isError" not in result:
            result, items = {**result, "isError": True}, [*items, {"type": "text", "text": _IN_DOUBT}]
        readable: list[Any] = []
        for at, item in enumerate(items):
            if at % _AT_ONCE == _AT_ONCE - 1:
                await asyncio.sleep(0)
            readable += self._readable_item(item, at)
        if self._left_out:
            named = ", ".join([*self._left_out][:_MOST_NAMED])
            _log.warning("a part of a server's answer to %s cannot be read and is left out: %s", self._method, named)
        return {**self._required, **result, **self._reply_with(readable)}

    def _items_of(self, raw: dict[str, Any]) -> list[Any] | None:
        """Return the parts of a result; None where it has none, and there is nothing to be repaired."""
        items: Any = raw.get(self._items)
        if isinstance(items, list):
            return cast("list[Any]", items)
        if items is not None:
            return [items]
        if self._method != _CALL_TOOL:
            return None
        old: Any = raw.get(_OLD_RESULT)
        if old is None or raw.get("structuredContent") is not None:
            return []
        text = old if isinstance(old, str) else json.dumps(old, ensure_ascii=False)
        return [
            {"type": "text", "text": text_of_block}
            for text_of_block in (text, f"[this is the `{_OLD_RESULT}` of an old protocol]")
        ]

    def _readable_item(self, item: Any, at: int) -> list[Any]:
        """Return a part of the result that can be read; of a list, none where it cannot be mended."""
        if self._fits_item(item):
            return [item]
        match self._method:
            case "tools/call":
                return [self._block(self._fits_item, item)]
            case "resources/read":
                return [self._contents(self._fits_item, item)]
            case "prompts/get":
                return [self._message(item)]
            case "completion/complete":
                return [self._completion(item)]
            case _:
                return self._listed(item, at)

    # --- what a list has

    def _listed(self, item: Any, at: int) -> list[Any]:
        fields = cast("dict[str, Any]", item) if isinstance(item, dict) else {}
        needed = _NEEDED[self._items]
        schema, arguments = fields.get("inputSchema"), fields.get("arguments")
        if self._items == "tools" and isinstance(schema, dict):
            parts = {name: part for name, part in cast("dict[str, Any]", schema).items() if part is not None}
            fields = {**fields, "inputSchema": {"type": "object", **parts}}
        elif self._items == "prompts" and isinstance(arguments, list):
            fields = {**fields, "arguments": self._arguments(cast("list[Any]", arguments[:_MOST_MEMBERS]))}
        readable = self._without_wrong(self._fits_item, fields, needed)
        if readable is not None:
            return [readable]
        name, problem = fields.get(needed[0]), self._problem(self._reply_with([item]))
        shown = name if isinstance(name, str) else f"{at + 1}"
        found = unreadable_tools.get()
        if self._method == _LIST_TOOLS and found is not None:
            found[shown] = problem
        else:
            self._left_out[f"{self._items} `{shown:.200}`"] = None
        return []

    def _arguments(self, arguments: list[Any]) -> list[Any]:
        """Return those arguments of a prompt that can be read."""
        mended = [
            self._without_wrong(lambda parts: self._fits_item({"name": "", "arguments": [parts]}), argument, ("name",))
            for argument in cast(
                "list[dict[str, Any]]", [argument for argument in arguments if isinstance(argument, dict)]
            )
        ]
        return [argument for argument in mended if argument is not None]

    # --- what a result has

    def _block(self, fits: Callable[[Any], bool], block: Any) -> dict[str, Any]:
        """Return a block; where it cannot be read, a text that says of what type it is, or has its text."""
        fields: dict[str, Any] = cast("dict[str, Any]", block) if isinstance(block, dict) else {"text": block}
        kind: Any = fields.get("type", "text")
        fields = {**fields, "type": kind}
        if kind == "text" and fields.get("text") is not None:
            fields["text"] = _as_text(fields["text"])
        elif kind == "resource":
            fields["resource"] = self._contents(
                lambda resource: fits({"type": kind, "resource": resource}), fields.get(kind)
            )
        needed = _NEEDED.get(kind) if isinstance(kind, str) else None
        readable = None if needed is None else self._without_wrong(fits, fields, needed)
        return readable or {"type": "text", "text": f"[a block that cannot be read, of the type {kind!s:.100}]"}

    def _contents(self, fits: Callable[[Any], bool], contents: Any) -> dict[str, Any]:
        """Return contents of a resource; a text in the place of those that cannot be read."""
        fields: dict[str, Any] = cast("dict[str, Any]", contents) if isinstance(contents, dict) else {"text": contents}
        place: Any = fields.get("uri")
        fields = {**fields, "uri": place if isinstance(place, str) else ""}
        if fields.get("text") is not None:
            fields["text"] = _as_text(fields["text"])
        for body in ("text", "blob"):
            readable = self._without_wrong(fits, fields, ("uri", body)) if body in fields else None
            if readable is not None:
                return readable
        return {"uri": fields["uri"], "text": "[contents that cannot be read]"}

    def _message(self, message: Any) -> dict[str, Any]:
        """Return a message of a prompt; of a user, where it does not say whose in words that can be read."""
        fields: dict[str, Any] = cast("dict[str, Any]", message) if isinstance(message, dict) else {"content": message}
        role: Any = fields.get("role")
        known = self._fits_item({"role": role, "content": {"type": "text", "text": ""}})
        user = {"role": role if known else "user"}
        return {
            **user,
            "content": self._block(lambda block: self._fits_item({**user, "content": block}), fields.get("content")),
        }

    def _completion(self, found: Any) -> dict[str, Any]:
        fields = cast("dict[str, Any]", found) if isinstance(found, dict) else {"values": found}
        values: Any = fields.get("values")
        texts = (
            [value for value in cast("list[Any]", values) if isinstance(value, str)] if isinstance(values, list) else []
        )
        return self._without_wrong(self._fits_item, {**fields, "values": texts}, ("values",)) or {"values": []}

    # --- what fits

    def _without_wrong(
        self, fits: Callable[[Any], bool], fields: Mapping[str, Any], needed: Sequence[str]
    ) -> dict[str, Any] | None:
        """Return members without those that need not be there and do not fit; None where a needed one does not."""
        base = {name: fields[name] for name in needed if name in fields}
        if not fits(base):
            return None
        others = [(name, part) for name, part in fields.items() if name not in base][:_MOST_MEMBERS]
        fitting = {name: part for name, part in others if fits({**base, name: part})}
        self._left_out |= {f"`{name:.200}`": None for name, part in others if name not in fitting and part is not None}
        return {**base, **fitting}

    def _fits_item(self, item: Any) -> bool:
        return self._fits(self._reply_with([item]))

    def _reply_with(self, items: list[Any]) -> dict[str, Any]:
        """Return the member of a result that has these parts."""
        return {self._items: items[0] if self._items == "completion" else items}

    def _fits(self, members: Mapping[str, Any]) -> bool:
        return not self._problem(members)

    def _problem(self, members: Mapping[str, Any]) -> str:
        return _problem(self._method, self._version, {**self._required, **members})


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _problem(method: str, version: str, raw: Mapping[str, Any]) -> str:
    """Return why a result does not fit the protocol, empty where it does."""
    try:
        parse_server_result(method, version, raw)
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


HANDSHAKES: Final[Mapping[str, type[types.InitializeResult | types.DiscoverResult]]] = {
    "initialize": types.InitializeResult,
    "server/discover": types.DiscoverResult,
}
_IN_PLACE: Final[Mapping[tuple[Any, ...], Any]] = {  # of members that have to be there
    ("capabilities",): {},
    ("serverInfo",): {"name": "", "version": ""},
    ("serverInfo", "name"): "",
    ("serverInfo", "version"): "",
    ("resultType",): "complete",
    ("ttlMs",): 0,
    ("cacheScope",): "private",
}
_MOST = 100  # members that are mended


def readable_handshake(method: str, raw: dict[str, Any]) -> dict[str, Any]:
    """Return the result of a handshake without the parts that cannot be read; unchanged if its versions cannot."""
    mended, places = deepcopy(raw), list[str]()
    while (place := _wrong_in(method, mended)) is not None:
        if len(places) == _MOST or not _mend(mended, place):
            return raw
        places.append(f"`{'.'.join(map(str, place)):.200}`")
    if places:
        _log.warning("a part of a server's answer to %s cannot be read and is left out: %s", method, ", ".join(places))
    return mended


def _wrong_in(method: str, result: Mapping[str, Any]) -> tuple[Any, ...] | None:
    """Return the place of the first member that cannot be read; None where there is none."""
    try:
        HANDSHAKES[method].model_validate(result, by_name=False)
    except ValidationError as error:
        return error.errors(include_url=False, include_input=False)[0]["loc"]
    return None


def _mend(result: dict[str, Any], place: tuple[Any, ...]) -> bool:
    """Remove the member at a place, or its holder; return whether the result is valid without it."""
    *inside, name = place
    holder: Any = result
    for step in inside:
        holder = holder[step]
    if place in _IN_PLACE:
        holder[name] = deepcopy(_IN_PLACE[place])
    elif inside == ["capabilities"] and holder[name]:  # it has it, whatever it says of that
        holder[name] = {}
    elif (isinstance(holder, dict) and name in holder) or (isinstance(holder, list) and isinstance(name, int)):
        del holder[name]
    else:
        return bool(inside) and _mend(result, tuple(inside))
    return True
