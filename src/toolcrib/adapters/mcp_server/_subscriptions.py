"""Subscriptions to resources: which client wants to hear of which, in both generations of the protocol."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from mcp.server.session import ServerSession
from mcp.server.subscriptions import ResourceUpdated
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS

from toolcrib.adapters.mcp_server._tool_changes import ToolChanges, connection_of, notify
from toolcrib.tools import Offering

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
