"""Served toolset: the tools of an open one, and its resources and prompts, which are read by calls as well."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS

from toolcrib.adapters.mcp_server._elicitation import is_stateless
from toolcrib.adapters.mcp_server._offers import (
    MAX_URI_CHARS,
    Offers,
    arguments_of,
    not_found,
    prompt_reply,
    resource_reply,
)
from toolcrib.adapters.mcp_server._replies import clean
from toolcrib.adapters.mcp_server._tool_changes import MOST_EACH, ListKind, Subscriptions, ToolChanges
from toolcrib.adapters.mcp_server._tool_server import ToolServer
from toolcrib.errors import exception_of
from toolcrib.serving import Principal
from toolcrib.tools import FoundValues, Offering, offering_of
from toolcrib.toolsets import Toolset

_log = logging.getLogger("toolcrib.adapters")
_Context = ServerRequestContext[Any, Any]
_Item = TypeVar("_Item")
_Page = types.PaginatedRequestParams | None
_MOST_COMPLETIONS = 100  # that a reply may have
_MAX_COMPLETION_CHARS = 1_000
_COMPLETION_SECONDS = 10.0


class Served:
    """The tools, resources and prompts that one open toolset serves.

    Args:
        reader: Makes the calls that read resources and prompts.
    """

    def __init__(
        self, toolset: Toolset, tools: ToolServer, reader: ToolServer, changes: ToolChanges, page: int
    ) -> None:
        self._toolset, self.tools, self._reader, self._changes, self._page = toolset, tools, reader, changes, page
        self.offers = Offers(toolset)
        self.has_scopes = self._any_scopes()
        self.subscriptions = Subscriptions(changes)
        self._listen_to_sources()

    def renew(self) -> Collection[ListKind]:
        """Serve what the toolset has now; return the lists that may be others."""
        before = self.offers.listed
        self.offers = Offers(self._toolset)
        self._listen_to_sources()
        self.tools.renewed()
        self._reader.renewed()
        self.has_scopes = self._any_scopes()
        resources, prompts = (old != new for old, new in zip(before, self.offers.listed, strict=True))
        changed: Mapping[ListKind, bool] = {"tools": True, "resources": resources, "prompts": prompts}
        return [kind for kind, is_changed in changed.items() if is_changed]

    def _any_scopes(self) -> bool:
        return self.offers.has_scopes or any(entry.scopes for entry in self.tools.entries.values())

    def scopes_of_tool(self, name: str) -> Mapping[str, frozenset[str]]:
        """Return the scopes that a tool needs, by its name."""
        entry = self.tools.entries.get(name)
        return {} if entry is None else {name: entry.scopes}

    def _listen_to_sources(self) -> None:
        for source in self.offers.sources():
            source.listen(self.subscriptions)

    async def close(self) -> None:
        """Stop the calls that wait for their clients."""
        await asyncio.gather(self.tools.close(), self._reader.close())

    # --- lists

    async def resources(self, ctx: _Context, params: _Page, principal: Principal) -> types.ListResourcesResult:
        """Return a page of the resources that a principal is shown."""
        page, following = page_of(
            await self.offers.resources(principal.run), params, self._page, lambda offered: offered.uri
        )
        return types.ListResourcesResult(resources=page, next_cursor=following)

    async def templates(self, ctx: _Context, params: _Page, principal: Principal) -> types.ListResourceTemplatesResult:
        """Return a page of the templates that a principal is shown."""
        shown = await self.offers.templates(principal.run)
        page, following = page_of(shown, params, self._page, lambda template: template.uri_template)
        return types.ListResourceTemplatesResult(resource_templates=page, next_cursor=following)

    async def prompts(self, ctx: _Context, params: _Page, principal: Principal) -> types.ListPromptsResult:
        """Return a page of the prompts that a principal is shown."""
        shown = await self.offers.prompt_list(principal.run)
        page, following = page_of(shown, params, self._page, lambda prompt: prompt.name)
        return types.ListPromptsResult(prompts=page, next_cursor=following)

    # --- reading

    async def read(self, ctx: _Context, params: types.ReadResourceRequestParams, principal: Principal) -> Any:
        """Read a resource by a call.

        Raises:
            MCPError: There is none, or the call has no result.
        """
        uri, stateless = str(params.uri), is_stateless(ctx)
        found = await self.offers.resource(uri, principal.run) if len(uri) <= MAX_URI_CHARS else None
        if found is None:
            raise not_found(uri, stateless=stateless)
        call = _call(params, found.entry.name, dict(found.arguments))
        return await self._reader.call(
            ctx,
            call,
            self._reading(principal),
            lambda outcome, original: resource_reply(uri, found, outcome, original, stateless=stateless),
        )

    async def prompt(self, ctx: _Context, params: types.GetPromptRequestParams, principal: Principal) -> Any:
        """Return the messages of a prompt by a call.

        Raises:
            MCPError: There is none, or the call has no result.
        """
        entry = await self.offers.prompt(params.name, principal.run)
        if entry is None:
            raise MCPError(INVALID_PARAMS, clean(f"there is no prompt `{params.name:.200}`"))
        call = _call(params, entry.name, arguments_of(entry, params.arguments or {}))
        return await self._reader.call(
            ctx,
            call,
            self._reading(principal),
            lambda outcome, original: prompt_reply(params.name, entry, outcome, original),
        )

    def _reading(self, principal: Principal) -> Principal:
        """Return the principal with resources and prompts available: they are not among the tools it is offered."""
        if principal.run.available is not None:
            return principal
        return replace(principal, run=principal.run.view(available=self.offers.names))

    # --- completion

    async def complete(
        self, ctx: _Context, params: types.CompleteRequestParams, principal: Principal
    ) -> types.CompleteResult:
        """Return values for an argument of a prompt, or a variable of a template.

        Raises:
            MCPError: There is no such prompt or template, or its completion failed.
        """
        ref, run = params.ref, principal.run
        if isinstance(ref, types.PromptReference):
            entry = await self.offers.prompt(ref.name, run)
        else:
            entry = await self.offers.template(ref.uri, run)
        offering = None if entry is None else offering_of(entry.tool)
        if offering is None:
            name = ref.name if isinstance(ref, types.PromptReference) else ref.uri
            raise MCPError(INVALID_PARAMS, clean(f"there is nothing to complete for `{name:.200}`"))
        others = (params.context.arguments if params.context is not None else None) or {}
        try:
            async with asyncio.timeout(_COMPLETION_SECONDS):
                found = await offering.complete(params.argument.name, params.argument.value, others)
        except BaseException as error:  # the host's own code, or another server's
            _log.error("the completion of %s failed", params.argument.name, exc_info=exception_of(error))
            raise MCPError(INTERNAL_ERROR, "the completion failed; the server's log says why") from error
        if not isinstance(found, FoundValues):
            found = FoundValues(found, len(found), has_more=False)
        values = [clean(str(value))[:_MAX_COMPLETION_CHARS] for value in found.values[:_MOST_COMPLETIONS]]
        has_more = True if len(found.values) > len(values) else found.has_more
        return types.CompleteResult(completion=types.Completion(values=values, total=found.total, has_more=has_more))

    # --- subscriptions

    async def subscribe(
        self, ctx: _Context, params: types.SubscribeRequestParams, principal: Principal
    ) -> types.EmptyResult:
        """Subscribe a client of the older generation to a resource; raises MCPError for one that it is not shown."""
        uri = str(params.uri)
        offering = await self._offering(uri, principal)
        if offering is None:
            raise not_found(uri, stateless=False)
        await self.subscriptions.subscribe(ctx.session, uri, offering)
        return types.EmptyResult()

    async def unsubscribe(
        self, ctx: _Context, params: types.UnsubscribeRequestParams, principal: Principal
    ) -> types.EmptyResult:
        """End that."""
        await self.subscriptions.unsubscribe(ctx.session, str(params.uri))
        return types.EmptyResult()

    async def listen(
        self, ctx: _Context, params: types.SubscriptionsListenRequestParams, principal: Principal
    ) -> types.SubscriptionsListenResult:
        """Answer a client of the newer generation with changes, until it goes; of resources that it is shown."""
        wanted = [str(uri) for uri in params.notifications.resource_subscriptions or ()]
        if len(wanted) > MOST_EACH:
            raise MCPError(INVALID_PARAMS, f"a stream subscribes to {MOST_EACH} resources at most, not {len(wanted)}")
        found = [(uri, await self._offering(uri, principal)) for uri in wanted]
        shown = {uri: offering for uri, offering in found if offering is not None}
        honored = params.notifications.model_copy(update={"resource_subscriptions": [*shown] or None})
        async with self.subscriptions.stream(shown.items()):
            return await self._changes.listen(principal, ctx, params.model_copy(update={"notifications": honored}))

    async def _offering(self, uri: str, principal: Principal) -> Offering | None:
        found = await self.offers.resource(uri, principal.run)
        return None if found is None else offering_of(found.entry.tool)


def _call(params: Any, name: str, arguments: dict[str, Any]) -> types.CallToolRequestParams:
    """Return the call that a request to read something is."""
    return types.CallToolRequestParams(
        name=name,
        arguments=arguments,
        input_responses=params.input_responses,
        request_state=params.request_state,
        _meta=params.meta,
    )


def page_of(
    items: Sequence[_Item], params: _Page, size: int, key: Callable[[_Item], str]
) -> tuple[list[_Item], str | None]:
    """Return a page of a list, and the cursor of the next one: the key of the last item on this one.

    Raises:
        MCPError: There is no such cursor: what it names is gone.
    """
    start, cursor = 0, None if params is None else params.cursor
    if cursor is not None:
        place = next((index for index, item in enumerate(items) if key(item) == cursor), None)
        if place is None:
            raise MCPError(INVALID_PARAMS, "this cursor is no longer valid; begin with the first page")
        start = place + 1
    page = [*items[start : start + size]]
    return page, key(page[-1]) if start + size < len(items) else None
