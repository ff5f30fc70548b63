"""Subscriptions to resources of a server: the listeners, and the streams of a server of the newer generation."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

import anyio
import mcp_types as types
from mcp.client import Client
from mcp.client.subscriptions import ResourceUpdated, SubscriptionLost
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from toolcrib.adapters.mcp_client._connection import Connection
from toolcrib.clock import Clock
from toolcrib.errors import RemoteToolError

_log = logging.getLogger("toolcrib.mcp")
_MOST = 100  # resources of one server
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 60.0  # seconds until a stream that was lost is opened again
_OPEN_SECONDS = 30.0  # for a subscription, or its end, to be acknowledged


class Subscriptions:
    """The subscriptions of one server, across its connections."""

    def __init__(self, server: str, clock: Clock) -> None:
        self._server, self._clock = server, clock
        self._listeners: dict[str, list[Callable[[str], None]]] = {}
        self._streams: dict[str, asyncio.Task[None]] = {}

    async def add(self, connection: Connection, uri: str, listener: Callable[[str], None]) -> None:
        """Call a listener with the URI when the resource, or one below it, is updated.

        Raises:
            RemoteToolError: The server does not announce updates, or more resources are subscribed to than may be.
            MCPError: The server refuses.
        """
        capabilities = connection.session.server_capabilities
        if capabilities is None or capabilities.resources is None or not capabilities.resources.subscribe:
            raise RemoteToolError(self._server, "it does not announce updates of resources")
        if uri not in self._listeners and len(self._listeners) >= _MOST:
            raise RemoteToolError(self._server, f"{_MOST} of its resources are subscribed to, the most for one server")
        known = self._listeners.setdefault(uri, [])
        known.append(listener)
        if len(known) == 1:
            try:
                await self._subscribe(connection, uri)
            except BaseException:
                self._drop(uri, listener)
                raise

    async def remove(self, connection: Connection | None, uri: str, listener: Callable[[str], None]) -> None:
        """Call the listener no more, and end the subscription at the server where there is a connection."""
        if not self._drop(uri, listener) or uri in self._listeners:
            return
        stream = self._streams.pop(uri, None)
        if stream is not None:
            stream.cancel()
            await asyncio.wait({stream})
        elif connection is not None:
            try:
                request = types.UnsubscribeRequest(params=types.UnsubscribeRequestParams(uri=uri))
                await connection.session.send_request(
                    request, types.EmptyResult, request_read_timeout_seconds=_OPEN_SECONDS
                )
            except (MCPError, anyio.ClosedResourceError, anyio.BrokenResourceError) as error:
                _log.debug("%s: %s is not unsubscribed from: %s", self._server, uri, error)

    def updated(self, uri: str) -> None:
        """Call the listeners of a resource that the server says is updated."""
        for known, listeners in [*self._listeners.items()]:
            if uri == known or uri.startswith(known.rstrip("/") + "/"):
                for listener in [*listeners]:
                    listener(uri)

    async def resume(self, connection: Connection) -> None:
        """Subscribe again on a new connection; what was updated meanwhile is not known, so each counts as updated."""
        await self.close()
        for uri in [*self._listeners]:
            try:
                await self._subscribe(connection, uri)
            except (MCPError, RemoteToolError, TimeoutError) as error:
                _log.warning("%s: updates of %s do not come any more: %s", self._server, uri, error)
            self.updated(uri)

    async def close(self) -> None:
        streams, self._streams = [*self._streams.values()], {}
        for stream in streams:
            stream.cancel()
        if streams:
            await asyncio.wait(streams)

    def _drop(self, uri: str, listener: Callable[[str], None]) -> bool:
        listeners = self._listeners.get(uri, [])
        if listener not in listeners:
            return False
        listeners.remove(listener)
        if not listeners:
            del self._listeners[uri]
        return True

    async def _subscribe(self, connection: Connection, uri: str) -> None:
        session, client = connection.session, connection.client
        if session.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            request = types.SubscribeRequest(params=types.SubscribeRequestParams(uri=uri))
            await session.send_request(request, types.EmptyResult, request_read_timeout_seconds=_OPEN_SECONDS)
            return
        if client is None:
            raise RemoteToolError(self._server, "a session that was given cannot listen for updates; give its Client")
        opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        stream = asyncio.create_task(self._listen(client, uri, opened), name=f"mcp: {self._server}: {uri}")
        self._streams[uri] = stream
        try:
            async with asyncio.timeout(_OPEN_SECONDS):
                await opened
        except BaseException:
            self._streams.pop(uri, None)
            stream.cancel()
            raise

    async def _listen(self, client: Client, uri: str, opened: asyncio.Future[None]) -> None:
        """Listen for updates of one resource, again when the stream is lost while the connection is there."""
        pause = _FIRST_PAUSE
        while True:
            try:
                async with client.listen(resource_subscriptions=[uri]) as events:
                    if not opened.done():
                        opened.set_result(None)
                    async for event in events:
                        pause = _FIRST_PAUSE
                        if isinstance(event, ResourceUpdated):
                            self.updated(event.uri)
            except (MCPError, SubscriptionLost, TimeoutError) as error:
                if not opened.done():
                    opened.set_exception(error)
                    return
                _log.debug("%s: the stream of updates of %s ended: %s", self._server, uri, error)
            await self._clock.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
