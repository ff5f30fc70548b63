"""Check of what a server sends: its list of tools, one by one, and results against its schemas."""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any, cast

from jsonschema.exceptions import SchemaError
from mcp.client import ClientSession
from mcp_types.methods import validate_server_result
from pydantic import ValidationError

from toolcrib.schema.checker import Checker

__all__ = ["check_results", "check_tools_one_by_one", "unreadable_tools"]

_LIST_TOOLS = "tools/list"
unreadable_tools: ContextVar[dict[str, str] | None] = ContextVar("toolcrib_unreadable_tools", default=None)
"""Where a listing in progress puts the tools that cannot be read: why not, by their names."""


def check_results(session: ClientSession) -> None:
    """Have a session check results within limits of time: a server gives both schema and result, and may be hostile."""
    made: dict[str, tuple[Mapping[str, Any], Checker]] = {}

    def checker(name: str, schema: dict[str, Any]) -> Checker:
        known = made.get(name)
        if known is not None and known[0] is schema:
            return known[1]
        try:
            made[name] = schema, Checker(schema)
        except (SchemaError, RecursionError) as error:
            raise RuntimeError(f"Invalid schema for tool {name}: {error}") from error
        return made[name][1]

    own: Any = session
    own._output_schema_validator = checker  # the SDK has no public way


def check_tools_one_by_one(session: ClientSession) -> None:
    """Have a session leave out of a listing what it cannot read, where `unreadable_tools` takes it.

    By itself the session refuses the whole list for one tool.
    """
    own: Any = session
    if not isinstance(own._dispatcher, _ToolByTool):  # the SDK has no public way
        own._dispatcher = _ToolByTool(own._dispatcher, session)


class _ToolByTool:
    """A session's dispatcher, which takes unreadable tools out of a list before the session reads it."""

    def __init__(self, dispatcher: Any, session: ClientSession) -> None:
        self._dispatcher, self._session = dispatcher, session

    def __getattr__(self, name: str) -> Any:
        return getattr(self._dispatcher, name)

    async def send_raw_request(self, method: str, *rest: Any) -> dict[str, Any]:
        """Send a request, and return the result as it came, but for tools that cannot be read."""
        raw = cast("dict[str, Any]", await self._dispatcher.send_raw_request(method, *rest))
        found = unreadable_tools.get()
        tools = raw.get("tools")
        if method != _LIST_TOOLS or found is None or not isinstance(tools, list):
            return raw
        version = self._session.protocol_version or "2025-11-25"  # what the SDK reads it by
        if not _problem(version, raw):
            return raw
        kept: list[Any] = []
        for at, tool in enumerate(cast("list[Any]", tools)):
            problem = _problem(version, {**raw, "tools": [tool]})
            if problem:
                name = cast("dict[str, Any]", tool).get("name") if isinstance(tool, dict) else None
                found[name if isinstance(name, str) else f"{at + 1}"] = problem
            else:
                kept.append(tool)
        return {**raw, "tools": kept}


def _problem(version: str, raw: Mapping[str, Any]) -> str:
    """Return why a list of tools does not fit the protocol, empty where it does."""
    try:
        validate_server_result(_LIST_TOOLS, version, raw)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        return f"{'.'.join(map(str, first['loc'][2:]))}: {first['msg']}"
    except KeyError:  # the SDK reads what it knows no rules for as it comes
        pass
    return ""
