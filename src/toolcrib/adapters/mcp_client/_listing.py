"""What a server has, asked for page by page."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import mcp_types as types
from mcp.client import ClientSession
from mcp.shared.exceptions import MCPError

__all__ = ["Listing", "list_all", "list_prompts"]

T = TypeVar("T")
_PAGES, _MOST = 1000, 10_000  # a server that always names a next page is not followed for ever


@dataclass(frozen=True, slots=True)
class Listing:
    """What a server has at one moment."""

    tools: tuple[types.Tool, ...] = ()
    resources: tuple[types.Resource, ...] = ()
    templates: tuple[types.ResourceTemplate, ...] = ()


async def list_all(session: ClientSession, *, resources: bool) -> Listing:
    """Return what a server has; what it does not offer at all is not asked for."""
    known = session.server_capabilities or types.ServerCapabilities()
    unknown = known == types.ServerCapabilities()  # of a version that was taken as it is, nothing is known
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
    for _ in range(_PAGES):
        try:
            page = await ask(params=types.PaginatedRequestParams(cursor=cursor))
        except MCPError as error:
            if error.code == types.METHOD_NOT_FOUND:
                break
            raise
        found += of(page)
        if page.next_cursor in (None, cursor) or len(found) >= _MOST:
            break
        cursor = page.next_cursor
    return tuple(found[:_MOST])
