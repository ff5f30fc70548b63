"""Changes of the lists and resources that are served: notifications to the clients of both generations."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Collection, Coroutine, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
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
    ResourceUpdated,
    ServerEvent,
    ToolsListChanged,
)
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS

from toolcrib.serving import PendingApprovals, Principal
from toolcrib.tools import Offering
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


MOST_EACH = 1_000
"""Resources that one session, or one stream of a newer client, may subscribe to."""


@dataclass(slots=True)
class _Subscriber:
    """A session of the older generation, with what it subscribes to."""

    session: ServerSession
    uris: dict[str, Offering] = field(default_factory=dict[str, Offering])


class Subscriptions:
    """Subscriptions of clients to resources; it hears of changes, and notifies the clients. Used by one event loop."""

    def __init__(self, changes: ToolChanges) -> None:
        self._changes = changes
        self._subscribers: dict[Any, _Subscriber] = {}
        self._counts = Counter[str]()
        self._changed: dict[str, None] = {}
        self._wake: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    # --- subscribing

    async def subscribe(self, session: ServerSession, uri: str, offering: Offering) -> None:
        """Subscribe a session of the older generation to a resource.

        Raises:
            MCPError: It subscribes to too many.
        """
        connection: Any = connection_of(session)
        known = self._subscribers.get(connection)
        if known is None:
            known = self._subscribers[connection] = _Subscriber(session)
            connection.exit_stack.push_async_callback(self._end, connection)
        if uri in known.uris:
            return
        if len(known.uris) >= MOST_EACH:
            raise MCPError(INVALID_PARAMS, f"a session subscribes to {MOST_EACH} resources at most; unsubscribe first")
        known.uris[uri] = offering
        await self._count(uri, offering)

    async def unsubscribe(self, session: ServerSession, uri: str) -> None:
        known = self._subscribers.get(connection_of(session))
        offering = None if known is None else known.uris.pop(uri, None)
        if offering is not None:
            await self._uncount(uri, offering)

    async def _end(self, connection: Any) -> None:
        for uri, offering in self._subscribers.pop(connection).uris.items():
            await self._uncount(uri, offering)

    @asynccontextmanager
    async def stream(self, wanted: Iterable[tuple[str, Offering]]) -> AsyncGenerator[None]:
        """Announce changes of resources while a newer client listens for them."""
        counted: list[tuple[str, Offering]] = []
        try:
            for uri, offering in wanted:
                counted.append((uri, offering))
                await self._count(uri, offering)
            yield
        finally:
            for uri, offering in counted:
                await self._uncount(uri, offering)

    async def _count(self, uri: str, offering: Offering) -> None:
        self._counts[uri] += 1
        if self._counts[uri] == 1:
            await offering.subscribe(uri)

    async def _uncount(self, uri: str, offering: Offering) -> None:
        self._counts[uri] -= 1
        if not self._counts[uri]:
            del self._counts[uri]
            await offering.unsubscribe(uri)

    # --- changes

    def changed(self, uri: str) -> None:
        """Record that a resource has changed; called in any thread."""
        loop = self._loop
        if loop is not None:
            with suppress(RuntimeError):  # the loop is closed: the server has ended
                loop.call_soon_threadsafe(self._note, uri)

    def _note(self, uri: str) -> None:
        if self._counts[uri] and self._wake is not None:
            self._changed[uri] = None
            self._wake.set()

    @asynccontextmanager
    async def notifying(self) -> AsyncGenerator[None]:
        """Notify the clients of changes while the server runs."""
        self._loop, self._wake = asyncio.get_running_loop(), asyncio.Event()
        task = asyncio.create_task(self._notify_always(self._wake), name="mcp server: resources")
        try:
            yield
        finally:
            self._loop = None
            task.cancel()
            await asyncio.wait({task})

    async def _notify_always(self, wake: asyncio.Event) -> None:
        while True:
            await wake.wait()
            wake.clear()
            changed, self._changed = self._changed, {}
            for uri in changed:
                await self._changes.publish_to_listeners(ResourceUpdated(uri))
                hear = [subscriber.session for subscriber in self._subscribers.values() if uri in subscriber.uris]
                await asyncio.gather(*(notify(session.send_resource_updated(uri)) for session in hear))
