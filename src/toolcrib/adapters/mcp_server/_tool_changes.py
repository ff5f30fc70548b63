"""Changes of the lists that are served: notifications to the clients of both generations."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Collection, Coroutine, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final, Literal, TypeAlias
from weakref import WeakKeyDictionary

import mcp_types as types
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.session import ServerSession
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    PromptsListChanged,
    ResourcesListChanged,
    ServerEvent,
    ToolsListChanged,
)

from toolcrib.serving import PendingApprovals, Principal
from toolcrib.toolsets import Toolset

ListKind: TypeAlias = Literal["tools", "resources", "prompts"]

_log = logging.getLogger("toolcrib.adapters")
_SEND_SECONDS = 5.0  # for a notification to one client, which may read nothing
_EVENTS: Final[Mapping[ListKind, Callable[[], ServerEvent]]] = {
    "tools": ToolsListChanged,
    "resources": ResourcesListChanged,
    "prompts": PromptsListChanged,
}
_SENDERS: Final[Mapping[ListKind, Callable[[ServerSession], Coroutine[Any, Any, None]]]] = {
    "tools": ServerSession.send_tool_list_changed,
    "resources": ServerSession.send_resource_list_changed,
    "prompts": ServerSession.send_prompt_list_changed,
}


class ToolChanges:
    """The clients of a server: sessions of the older generation, and streams on which newer ones listen."""

    def __init__(self) -> None:
        self._sessions: set[ServerSession] = set()
        self._listeners: WeakKeyDictionary[PendingApprovals, tuple[InMemorySubscriptionBus, ListenHandler]] = (
            WeakKeyDictionary()
        )

    async def note_session(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """Track the session of a client of the older generation until it ends; a middleware."""
        result = await call_next(ctx)
        if ctx.method == "initialize":
            self._sessions.add(ctx.session)
            connection_of(ctx.session).exit_stack.callback(self._sessions.discard, ctx.session)
        return result

    async def listen(
        self,
        principal: Principal,
        ctx: ServerRequestContext[Any, Any],
        params: types.SubscriptionsListenRequestParams,
    ) -> types.SubscriptionsListenResult:
        """Answer a client of the newer generation with the changes of what its principal is shown."""
        return await self._listeners_of(principal)[1](ctx, params)

    async def publish(self, principal: Principal) -> None:
        """Notify the newer clients of one principal."""
        await self._listeners_of(principal)[0].publish(ToolsListChanged())

    def _listeners_of(self, principal: Principal) -> tuple[InMemorySubscriptionBus, ListenHandler]:
        known = principal.pending  # the same object in all requests of a principal
        if known not in self._listeners:
            bus = InMemorySubscriptionBus()
            self._listeners[known] = bus, ListenHandler(bus)
        return self._listeners[known]

    async def publish_to_listeners(self, event: ServerEvent) -> None:
        """Notify all newer clients that listen for an event."""
        for bus, _ in [*self._listeners.values()]:
            await bus.publish(event)

    async def publish_to_all(self, kinds: Collection[ListKind]) -> None:
        """Notify all clients of lists that have changed."""
        for kind in sorted(kinds):
            await self.publish_to_listeners(_EVENTS[kind]())
            await asyncio.gather(*(notify(_SENDERS[kind](session)) for session in [*self._sessions]))

    @asynccontextmanager
    async def following(self, toolset: Toolset, renew: Callable[[], Collection[ListKind]]) -> AsyncGenerator[None]:
        """Serve what an open toolset has now, and notify all clients when it has something else.

        Args:
            renew: Serves what it has now, and returns what may be different.
        """
        follower = _Follower(renew)
        toolset.listen_for_renewal(follower)
        notifying = asyncio.create_task(self._notify_always(follower), name="mcp server: changes")
        try:
            yield
        finally:
            notifying.cancel()
            await asyncio.wait({notifying})

    async def _notify_always(self, follower: _Follower) -> None:
        while True:
            await follower.changed.wait()
            await self.publish_to_all(follower.take())


class _Follower:
    """The listener for changes of a toolset's tools."""

    def __init__(self, renew: Callable[[], Collection[ListKind]]) -> None:
        self._renew, self.changed = renew, asyncio.Event()
        self._kinds: set[ListKind] = set()

    def renewed(self) -> None:
        self._kinds.update(self._renew())
        self.changed.set()

    def take(self) -> set[ListKind]:
        """Return the changes since the last call of this method."""
        self.changed.clear()
        kinds, self._kinds = self._kinds, set()
        return kinds


def connection_of(session: Any) -> Any:
    """Return the connection of a session, which is made anew for each request; the SDK has no public way."""
    return session._connection


async def notify(sending: Coroutine[Any, Any, None]) -> None:
    """Send a notification to one client, which may be going, or read nothing."""
    try:
        async with asyncio.timeout(_SEND_SECONDS):
            await sending
    except Exception as error:  # the transport's
        _log.debug("a client was not notified: %s", error)
