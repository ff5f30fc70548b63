"""Listing of a server's tools, resources and prompts, page by page."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import mcp_types as types
from mcp.client import ClientSession
from mcp.shared.exceptions import MCPError

__all__ = ["Listing", "list_all", "list_prompts"]

T = TypeVar("T")
_MAX_PAGES, _MAX_ITEMS = 1000, 10_000  # a server could name a next page without end


@dataclass(frozen=True, slots=True)
class Listing:
    """The tools and resources of a server at one moment."""

    tools: tuple[types.Tool, ...] = ()
    resources: tuple[types.Resource, ...] = ()
    templates: tuple[types.ResourceTemplate, ...] = ()


async def list_all(session: ClientSession, *, resources: bool) -> Listing:
    """Return the listing of a server; only what its capabilities name is requested."""
    known = session.server_capabilities or types.ServerCapabilities()
    unknown = known == types.ServerCapabilities()  # with a fixed version there was no handshake
    tools = await _pages(session.list_tools, lambda page: page.tools) if known.tools or unknown else ()
    if not (resources and (known.resources or unknown)):
        return Listing(tools)
    static = await _pages(session.list_resources, lambda page: page.resources)
    templates = await _pages(session.list_resource_templates, lambda page: page.resource_templates)
    return Listing(tools, static, templates)


async def list_prompts(session: ClientSession) -> tuple[types.Prompt, ...]:
    """Return the prompts of a server."""
    return await _pages(session.list_prompts, lambda page: page.prompts)


async def _pages(ask: Callable[..., Awaitable[Any]], of: Callable[[Any], list[T]]) -> tuple[T, ...]:
    found: list[T] = []
    cursor: str | None = None
    for _ in range(_MAX_PAGES):
        try:
            page = await ask(params=types.PaginatedRequestParams(cursor=cursor))
        except MCPError as error:
            if error.code == types.METHOD_NOT_FOUND:
                break
            raise
        found += of(page)
        if page.next_cursor in (None, cursor) or len(found) >= _MAX_ITEMS:
            break
        cursor = page.next_cursor
    return tuple(found[:_MAX_ITEMS])
