"""Changes of the tools that are served: notifications to the clients of both generations."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any
from weakref import WeakKeyDictionary

import mcp_types as types
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.session import ServerSession
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged

from toolcrib.adapters.mcp_server._tool_server import ToolServer
from toolcrib.serving import Principal
from toolcrib.toolsets import Toolset

__all__ = ["ToolChanges"]

_log = logging.getLogger("toolcrib.adapters")
_SEND_SECONDS = 5.0  # for a notification to one client, which may read nothing


class ToolChanges:
    """The clients of a server: sessions of the older generation, and streams on which newer ones listen."""

    def __init__(self) -> None:
        self._sessions: set[ServerSession] = set()
        self._listeners: WeakKeyDictionary[Principal, tuple[InMemorySubscriptionBus, ListenHandler]] = (
            WeakKeyDictionary()
        )

    async def note_session(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """Note the session of a client of the older generation until it ends; a middleware."""
        result = await call_next(ctx)
        if ctx.method == "initialize":
            session: Any = ctx.session
            self._sessions.add(session)
            session._connection.exit_stack.callback(self._sessions.discard, session)  # the SDK has no public way
        return result

    async def listen(
        self,
        principal: Principal,
        ctx: ServerRequestContext[Any, Any],
        params: types.SubscriptionsListenRequestParams,
    ) -> types.SubscriptionsListenResult:
        """Answer a client of the newer generation with the changes of the tools that its principal is shown."""
        return await self._listeners_of(principal)[1](ctx, params)

    async def publish(self, principal: Principal) -> None:
        """Notify the newer clients of one principal."""
        await self._listeners_of(principal)[0].publish(ToolsListChanged())

    def _listeners_of(self, principal: Principal) -> tuple[InMemorySubscriptionBus, ListenHandler]:
        if principal not in self._listeners:
            bus = InMemorySubscriptionBus()
            self._listeners[principal] = bus, ListenHandler(bus)
        return self._listeners[principal]

    async def publish_to_all(self) -> None:
        """Notify all clients."""
        for bus, _ in [*self._listeners.values()]:
            await bus.publish(ToolsListChanged())
        await asyncio.gather(*(_notify(session) for session in [*self._sessions]))

    @asynccontextmanager
    async def following(self, toolset: Toolset, tools: ToolServer) -> AsyncGenerator[None]:
        """Serve the tools that an open toolset has now, and notify all clients when it has others."""
        follower = _Follower(tools)
        toolset.listen_for_renewal(follower)
        notifying = asyncio.create_task(self._notify_always(follower.changed), name="mcp server: changes")
        try:
            yield
        finally:
            notifying.cancel()
            await asyncio.wait({notifying})

    async def _notify_always(self, changed: asyncio.Event) -> None:
        while True:
            await changed.wait()
            changed.clear()
            await self.publish_to_all()


class _Follower:
    """The listener for changes of a toolset's tools."""

    def __init__(self, tools: ToolServer) -> None:
        self._tools, self.changed = tools, asyncio.Event()

    def renewed(self) -> None:
        self._tools.renewed()
        self.changed.set()


async def _notify(session: ServerSession) -> None:
    try:
        async with asyncio.timeout(_SEND_SECONDS):
            await session.send_tool_list_changed()
    except Exception as error:  # the transport's: the client is going, or reads nothing
        _log.debug("a client was not notified of a change of the tools: %s", error)
