"""Listing of a server: its tools, and its resources, templates and prompts, page by page."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar

import mcp_types as types
from mcp.client import ClientSession
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from toolcrib.adapters.mcp_client._checking import unreadable_tools
from toolcrib.errors import SchemaTooLarge
from toolcrib.jsonschema import check_size
from toolcrib.jsonschema.checker import SMALL

T = TypeVar("T")
_log = logging.getLogger("toolcrib.mcp")
_MAX_PAGES, _MAX_ITEMS = 1000, 10_000  # a server could name a next page without end
_MAX_NAMED = 5  # doubles in a line of the log
_MOST_PARTS = 100_000  # of the large schemas of a server, which take seconds to be read
_TOO_MANY_PARTS = (
    f"the large schemas of the server have more than {_MOST_PARTS:,} objects and lists; give its tools smaller ones"
)
Item: TypeAlias = types.Tool | types.Resource | types.ResourceTemplate | types.Prompt
L = TypeVar("L", bound=Item)


@dataclass(frozen=True, slots=True)
class Listing:
    """The tools, resources and prompts of a server, as it listed them.

    Attributes:
        unreadable: Why it has no more tools than these: what cannot be read of those left out, by their names.
        left_out: Why it has no resources, templates or prompts: what went wrong, by the name of the list.
        not_asked: The names of the lists that are not wanted.
    """

    tools: tuple[types.Tool, ...] = ()
    resources: tuple[types.Resource, ...] = ()
    templates: tuple[types.ResourceTemplate, ...] = ()
    prompts: tuple[types.Prompt, ...] = ()
    unreadable: Mapping[str, str] = field(default_factory=dict[str, str])
    left_out: Mapping[str, str] = field(default_factory=dict[str, str])
    not_asked: frozenset[str] = frozenset()


async def list_server(session: ClientSession, server: str, *, resources: bool, seconds: float) -> Listing:
    """Return the listing of a server; only what its capabilities name is requested.

    Args:
        resources: Whether resources and templates are wanted. A server whose list of them fails has its tools.

    Raises:
        TimeoutError: The list of tools takes longer.
        MCPError: The list of tools fails; likewise the errors of a reply that does not fit, and of a lost connection.
    """
    known = session.server_capabilities or types.ServerCapabilities()
    unknown = known == types.ServerCapabilities()  # with a fixed version there was no handshake
    unreadable: dict[str, str] = {}
    token = unreadable_tools.set(unreadable)
    try:
        async with asyncio.timeout(seconds):
            tools = await pages(session.list_tools, lambda page: page.tools) if known.tools or unknown else ()
    finally:
        unreadable_tools.reset(token)
    found_tools = await asyncio.to_thread(readable, without_doubles(server, "tools", tools), unreadable)
    failed: dict[str, str] = {}
    static: tuple[types.Resource, ...] = ()
    templates: tuple[types.ResourceTemplate, ...] = ()
    prompts: tuple[types.Prompt, ...] = ()
    if resources and (known.resources or unknown):
        found = pages(session.list_resources, lambda page: page.resources)
        static = await _optional(found, "resources", seconds, failed)
        filled_in = pages(session.list_resource_templates, lambda page: page.resource_templates)
        templates = await _optional(filled_in, "templates", seconds, failed)
    if known.prompts:
        prompts = await _optional(pages(session.list_prompts, lambda page: page.prompts), "prompts", seconds, failed)
    not_asked = frozenset[str]() if resources else frozenset({"resources", "templates"})
    return Listing(
        found_tools,
        without_doubles(server, "resources", static),
        without_doubles(server, "templates", templates),
        without_doubles(server, "prompts", prompts),
        unreadable,
        failed,
        not_asked,
    )


def readable(tools: Sequence[types.Tool], unreadable: dict[str, str]) -> tuple[types.Tool, ...]:
    """Return the tools whose schemas can be read; of the others, put in `unreadable` why not, by their names."""
    found: list[types.Tool] = []
    in_all = 0
    for tool in tools:
        try:
            parts = check_size(tool.name, tool.input_schema, tool.output_schema)
        except SchemaTooLarge as error:
            unreadable[tool.name] = str(error).removesuffix(".")
            continue
        if parts > SMALL and in_all + parts > _MOST_PARTS:
            unreadable[tool.name] = _TOO_MANY_PARTS
            continue
        in_all += parts if parts > SMALL else 0
        found.append(tool)
    return tuple(found)


def identity_of(listed: Item) -> str:
    """Return the identity of an item on its server: its URI, or else its name."""
    match listed:
        case types.Resource():
            return listed.uri
        case types.ResourceTemplate():
            return listed.uri_template
        case _:
            return listed.name


def without_doubles(server: str, kind: str, listed: Sequence[L]) -> tuple[L, ...]:
    """Return the listed items, each once: the server could not tell a double from the first."""
    first: dict[str, L] = {}
    doubles: dict[str, None] = {}
    for item in listed:
        if first.setdefault(identity_of(item), item) is not item:
            doubles[identity_of(item)] = None
    if doubles:
        named = ", ".join(f"`{name:.200}`" for name in [*doubles][:_MAX_NAMED])
        more = f" and {len(doubles) - _MAX_NAMED} more" if len(doubles) > _MAX_NAMED else ""
        _log.warning("the server `%s` lists %s more than once: %s%s. The first is taken.", server, kind, named, more)
    return tuple(first.values())


async def _optional(
    listed: Awaitable[tuple[T, ...]], name: str, seconds: float, failed: dict[str, str]
) -> tuple[T, ...]:
    """Return a list, or none where it fails: the reason is then put in `failed` under its name."""
    try:
        async with asyncio.timeout(seconds):
            return await listed
    except TimeoutError:
        failed[name] = f"no answer within {seconds:g} s"
    except MCPError as error:
        if error.code == types.CONNECTION_CLOSED:
            raise
        failed[name] = error.message or f"error {error.code}"
    except ValidationError as error:
        failed[name] = f"the reply does not fit the protocol: {error.errors(include_url=False)[0]['msg']}"
    return ()


async def pages(ask: Callable[..., Awaitable[Any]], of: Callable[[Any], list[T]]) -> tuple[T, ...]:
    """Return all pages of a list as one, empty where the server does not know the request."""
    found: list[T] = []
    cursor: str | None = None
    seen: set[str | None] = {None}
    for _ in range(_MAX_PAGES):
        try:
            page = await ask(params=types.PaginatedRequestParams(cursor=cursor))
        except MCPError as error:
            if error.code == types.METHOD_NOT_FOUND:
                break
            raise
        found += of(page)
        cursor = page.next_cursor
        if cursor in seen or len(found) >= _MAX_ITEMS:
            break
        seen.add(cursor)
    return tuple(found[:_MAX_ITEMS])
