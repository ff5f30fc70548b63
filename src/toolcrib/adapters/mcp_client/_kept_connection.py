"""Connection to a server that is made again whenever it is lost, with the server's listing and subscriptions to it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import mcp_types as types
from mcp.client import Client
from mcp.client.subscriptions import ResourceUpdated, SubscriptionLost
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from toolcrib.adapters.mcp_client._connection import Connection
from toolcrib.adapters.mcp_client._listing import Listing, ServerPins, list_server
from toolcrib.adapters.mcp_client._options import Options, pinned_name
from toolcrib.adapters.mcp_client._server_requests import ServerRequests
from toolcrib.adapters.mcp_client._values import ServerStatus
from toolcrib.calls import now
from toolcrib.clock import Clock, wait_until_set
from toolcrib.errors import RemoteToolError, ServerError, exception_of

_MOST = 100  # resources of one server
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
                _log.warning("%s: updates of %s no longer arrive: %s", self._server, uri, error)
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


_log = logging.getLogger("toolcrib.mcp")
_RELIST_SECONDS = 0.2  # between two listings of a server that changes all the time
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 60.0  # seconds between two tries; each pause is twice the one before
_SHORT_PAUSE = 2.0  # seconds that a call waits for the next try, in place of an error
_STEADY = 60.0  # seconds after which a connection that is lost counts as the first


class KeptConnection:
    """The connection to one server while its toolset is open.

    Attributes:
        pins: The tools as a person knows them, where they are pinned.
    """

    def __init__(self, target: Any, name: str, options: Options, requests: ServerRequests) -> None:
        self._target, self._name, self._options, self._requests = target, name, options, requests
        self.listing = Listing()
        self.instructions: str | None = None
        self.on_change: Callable[[], Awaitable[None]] = _do_nothing
        self.pins = None if options.pins is None else ServerPins(options.pins, pinned_name(target, options))
        self._clock = options.clock
        self.subscriptions = Subscriptions(name, self._clock)
        self.connection: Connection | None = None
        self._try: asyncio.Task[Connection | ServerError] | None = None
        self._next_try, self._since, self._failures = 0.0, 0.0, 0
        self._fault: ServerError | None = None  # why there is no connection
        self._loss = ""  # why the last one ended, until there is another
        self._last_error, self._is_up, self._state_since = "", False, now()
        self._unusable = ""  # why the listing is not that of the toolset
        self._warned: frozenset[tuple[str, str]] = frozenset()  # lists that failed, with the reasons
        self._relisting: asyncio.Task[None] | None = None
        self._resuming: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()
        self._closed = False

    async def first_try(self) -> ServerError | None:
        """Connect, and list what the server has; return what went wrong. It is then tried again until `close`."""
        connected = await self._tried()
        return connected if isinstance(connected, ServerError) else None

    async def close(self) -> None:
        """End the connection, or the tries to make it."""
        self._closed = True
        mine = (self._try, self._relisting, self._resuming)
        tasks = {task for task in mine if task is not None and not task.done()}
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        await self.subscriptions.close()
        if self.connection is not None:
            await self.connection.close()

    def status(self) -> ServerStatus:
        """Return how the server is now."""
        about: dict[str, Any] = {
            "since": self._state_since,
            "last_error": self._last_error,
            "timeout": self._options.timeout,
        }
        if not self._has_connection():
            pause = max(0.0, self._next_try - self._clock.monotonic())
            return ServerStatus(self._name, "down", self._why_down() or "it is being connected to", pause, **about)
        faults = [f"its {name} are left out: {reason}" for name, reason in self.listing.left_out.items()]
        faults += [f"its new listing cannot be used: {self._unusable}"] if self._unusable else []
        tools = self.listing.tools
        changed = () if self.pins is None else self.pins.changed_in(tools)
        state = "in part" if faults else "up"
        return ServerStatus(self._name, state, "; ".join(faults), tools=len(tools), changed=changed, **about)

    def _has_connection(self) -> bool:
        return self.connection is not None and not self.connection.broken and self._fault is None

    def _why_down(self) -> str:
        return self._loss if self._fault is None else self._fault.problem

    def _note_state(self) -> None:
        """Record when the server came or went."""
        if self._has_connection() != self._is_up:
            self._is_up, self._state_since = not self._is_up, now()

    async def get(self) -> Connection:
        """Return the connection, made again if it was lost; raises ServerError where it cannot be made now."""
        connection = self.connection
        if connection is not None and not connection.broken and self._is_made():
            return connection
        if self._closed:
            raise self._closed_error()
        if connection is not None and connection.broken:
            self._lost(connection)
        pause = self._next_try - self._clock.monotonic()
        if pause > _SHORT_PAUSE:  # also where it was there, and lost again and again
            raise ServerError(self._name, f"{self._why_down()}\nIt is down, and tried again in {pause:.0f} s")
        connected = await self._tried()
        if isinstance(connected, ServerError):
            raise connected
        return connected

    def _closed_error(self) -> ServerError:
        return ServerError(self._name, "is closed: the toolset is used after its `async with` block")

    # --- tries

    async def _tried(self) -> Connection | ServerError:
        """Return the result of the attempt in progress; a caller that is cancelled does not end it."""
        tried = self._try or self._try_after(0.0)
        await asyncio.wait({tried})
        return self._closed_error() if tried.cancelled() else tried.result()

    def _is_made(self) -> bool:
        return self._try is not None and self._try.done()

    def _try_after(self, pause: float) -> asyncio.Task[Connection | ServerError]:
        self._next_try = self._clock.monotonic() + pause
        self._try = asyncio.create_task(self._connect(pause), name=f"mcp: {self._name}: connect")
        return self._try

    def _pause(self) -> float:
        """Return the seconds until the next try: none after the first loss, and twice as many after each other one."""
        pause = _FIRST_PAUSE * 2 ** min(self._failures - 1, 16) if self._failures else 0.0
        return min(pause, _LONGEST_PAUSE)

    def _lost(self, connection: Connection) -> None:
        """Connect again after a connection has ended; called more than once for it."""
        if self._closed or connection is not self.connection or not self._is_made():
            return
        self._loss = self._last_error = connection.fault or "has ended"
        self._note_state()
        if self._clock.monotonic() - self._since > _STEADY:
            self._failures = 0
        pause = self._pause()
        self._failures += 1
        self._try_after(pause)

    async def _connect(self, pause: float) -> Connection | ServerError:
        await self._clock.sleep(pause)
        if self.connection is not None:
            await self.connection.close()
        connection = Connection(self._target, self._name, self._options, self._requests, self)
        connection.on_end = self._lost
        self.connection = connection
        try:
            await connection.start()
            await self._list(connection)
        except ServerError as error:
            self._failures += 1
            self._report(error)
            self._try_after(self._pause())
            return error
        if self._fault is not None:
            _log.warning("the server `%s` is there again", self._name)
        self.instructions = connection.session.instructions
        self._fault, self._loss, self._since = None, "", self._clock.monotonic()
        self._note_state()
        if self._options.log_level is not None:
            await self.set_log_level(self._options.log_level)
        self._resuming = asyncio.create_task(
            self.subscriptions.resume(connection), name=f"mcp: {self._name}: subscribe"
        )
        if connection.broken:  # it ended at once, when nothing waited for its end
            self._failures += 1
            self._try_after(self._pause())
        return connection

    def _report(self, error: ServerError) -> None:
        known, self._fault, self._last_error = self._fault, error, error.problem
        self._note_state()
        if known is not None:
            _log.info("%s", error)
        elif self._since:  # who makes the first try is told, and may do without the server or not
            self.warn()

    def warn(self) -> None:
        """Warn that there is no connection, and that it goes on without."""
        if self._fault is not None:
            mend = (
                "Correct its command or address, or leave it out. It is tried again until then, and its tools come back"
            )
            _log.warning("%s\n%s.", self._fault, mend)

    # --- its listing

    async def _list(self, connection: Connection) -> None:
        options = self._options
        seconds, resources = options.connect_timeout, options.include_resources is not False
        try:
            self.listing = await list_server(connection.session, self._name, resources=resources, seconds=seconds)
        except TimeoutError:
            connection.drop()
            lines = await connection.reason()
            raise ServerError(self._name, f"did not list what it has within {seconds:g} s{lines}") from None
        except (MCPError, ValidationError, anyio.ClosedResourceError, anyio.BrokenResourceError) as error:
            connection.drop()
            raise ServerError(self._name, f"cannot list what it has: {error}{await connection.reason()}") from error
        failed = frozenset(self.listing.left_out.items())
        for name, reason in sorted(failed - self._warned):
            mend = "They are tried again; include_resources=False leaves them out for good"
            _log.warning(
                "the server `%s` cannot list its %s, which are left out: %s\n%s.", self._name, name, reason, mend
            )
        self._warned = failed
        if failed:
            self._begin_relisting()
        if self.pins is not None:
            await self.pins.read(self.listing, connection.session.instructions)
        try:
            await self.on_change()
            self._unusable = ""
        except BaseException as raised:  # two of one name, an option's name is gone, a function of the host's fails
            error = exception_of(raised)
            self._unusable = str(error)
            _log.error("%s: its new listing cannot be used", self._name, exc_info=error)

    async def set_log_level(self, level: types.LoggingLevel) -> None:
        """Set the level from which on the server sends log lines; one that refuses is left as it is."""
        if self.connection is None or self.connection.broken:
            return
        try:
            await self.connection.set_log_level(level)
        except (MCPError, ValidationError, anyio.ClosedResourceError, anyio.BrokenResourceError) as error:
            _log.debug("%s: it does not set its log level: %s", self._name, error)

    # --- what it announces

    def updated(self, uri: str) -> None:
        self.subscriptions.updated(uri)

    def elicitation_completed(self, elicitation_id: str) -> None:
        """Resume what waits for a person's visit to an address."""
        self._requests.completed(elicitation_id)

    def list_changed(self) -> None:
        """List again what the server has, in a task of its own: the caller may be what reads the replies."""
        self._changed.set()
        self._begin_relisting()

    def _begin_relisting(self) -> None:
        if not self._closed and (self._relisting is None or self._relisting.done()):
            self._relisting = asyncio.create_task(self._relist(), name=f"mcp: {self._name}: list")

    async def _relist(self) -> None:
        pause = _FIRST_PAUSE
        while self._changed.is_set() or self.listing.left_out:
            if not self._changed.is_set():  # a list failed
                await wait_until_set(self._changed, pause, self._clock)
                pause = min(2 * pause, _LONGEST_PAUSE)
            self._changed.clear()
            await self._tried()
            connection = self.connection
            if connection is None or connection.broken:
                return  # it is listed when it is connected to
            try:
                await self._list(connection)
            except ServerError as error:
                _log.warning("%s", error)
                return
            if self._changed.is_set():
                await self._clock.sleep(_RELIST_SECONDS)  # a server may announce changes without end


async def _do_nothing() -> None:
    """Return at once: the toolset of the server is not open."""
