"""Server of MCP while its toolset is open: its connection, which is made again when it is lost, and its listing."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

import anyio
import mcp_types as types
from mcp.client import ClientRequestContext, ClientSession, InputRequiredRoundsExceededError
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from toolcrib.adapters.mcp_client._checking import unreadable_tools
from toolcrib.adapters.mcp_client._connection import Connection
from toolcrib.adapters.mcp_client._options import Options
from toolcrib.adapters.mcp_client._server_requests import ServerRequests, current_call
from toolcrib.adapters.mcp_client._values import Progress
from toolcrib.errors import RemoteToolError, ServerError
from toolcrib.schema import RunContext

__all__ = ["RemoteServer"]

T = TypeVar("T")
_log = logging.getLogger("toolcrib.mcp")
_MAX_PAGES, _MAX_ITEMS = 1000, 10_000  # a server could name a next page without end
_RELIST_SECONDS = 0.2  # between two listings of a server that changes all the time
_INPUT_ROUNDS = 10  # of input that a server may ask for in one call
_STREAM_FAILED = "SSE stream failed: "  # the SDK's error when it stops reading
_UNKNOWN_SESSION = re.compile(r"session (not found|terminated)|no valid session", re.IGNORECASE)
"""The words of servers, and of the SDK for a plain 404, for an unknown session: the server did nothing."""


@dataclass(frozen=True, slots=True)
class Listing:
    """The tools and resources of a server, as it listed them.

    Attributes:
        unreadable: Why it has no more tools than these: what cannot be read of those left out, by their names.
    """

    tools: tuple[types.Tool, ...] = ()
    resources: tuple[types.Resource, ...] = ()
    templates: tuple[types.ResourceTemplate, ...] = ()
    unreadable: Mapping[str, str] = field(default_factory=dict[str, str])


class RemoteServer:
    """An MCP server that is open.

    Attributes:
        name: The server's name in messages.
        listing: Its tools and resources, as last listed.
        on_change: Called when the listing has changed.
    """

    def __init__(self, target: Any, name: str, options: Options) -> None:
        self._target, self.name, self._options = target, name, options
        self._requests = ServerRequests(name, options)
        self.listing = Listing()
        self.on_change: Callable[[], None] = lambda: None
        self._connection: Connection | None = None
        self._lock = asyncio.Lock()
        self._relisting: asyncio.Task[None] | None = None
        self._stale = False
        self._closed = False

    async def open(self) -> None:
        """Connect, and list what the server has; raises ServerError."""
        try:
            await self._connect()
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """End the connection."""
        self._closed = True
        if self._relisting is not None:
            self._relisting.cancel()
        if self._connection is not None:
            await self._connection.close()

    @property
    def instructions(self) -> str | None:
        """The instructions that the server gives for its use."""
        return None if self._connection is None else self._connection.session.instructions

    # --- requests

    async def call_tool(
        self, name: str, arguments: dict[str, Any], ctx: RunContext[Any] | None
    ) -> types.CallToolResult:
        """Call a tool, once.

        Raises:
            RemoteToolError: The server refuses.
            ServerError: It cannot be reached; or the connection was lost, and the effect of the call is unknown.
        """

        async def report(progress: float, total: float | None, message: str | None) -> None:
            if ctx is not None and ctx.report is not None:
                ctx.report(Progress(progress, total, message))

        async def ask(connection: Connection) -> types.CallToolResult:
            if connection.client is not None:
                return await connection.client.call_tool(name, arguments, progress_callback=report)
            session = connection.session
            return await _with_input(
                session,
                lambda responses, state: session.call_tool(
                    name,
                    arguments,
                    progress_callback=report,
                    input_responses=responses,
                    request_state=state,
                    allow_input_required=True,
                ),
            )

        with self._as_call(ctx):
            return await self._request(ask, f"while `{name}` ran. Whether it took effect is unknown", again=False)

    async def read_resource(self, uri: str, ctx: RunContext[Any] | None) -> types.ReadResourceResult:
        """Read a resource; raises what `call_tool` does."""

        async def ask(connection: Connection) -> types.ReadResourceResult:
            return await (connection.client or connection.session).read_resource(uri)

        with self._as_call(ctx):
            return await self._request(ask, f"while it was asked for {uri}", again=True)

    async def get_prompt(
        self, name: str, arguments: dict[str, str], ctx: RunContext[Any] | None = None
    ) -> types.GetPromptResult:
        """Return a prompt; raises what `call_tool` does."""

        async def ask(connection: Connection) -> types.GetPromptResult:
            return await (connection.client or connection.session).get_prompt(name, arguments)

        with self._as_call(ctx):
            return await self._request(ask, f"while it was asked for the prompt `{name}`", again=True)

    async def list_prompts(self) -> tuple[types.Prompt, ...]:
        """Return the prompts; raises what `call_tool` does."""

        async def ask(connection: Connection) -> tuple[types.Prompt, ...]:
            return await _pages(connection.session.list_prompts, lambda page: page.prompts)

        return await self._request(ask, "while it listed prompts", again=True)

    @contextmanager
    def _as_call(self, ctx: RunContext[Any] | None) -> Generator[None]:
        """Have requests that the server makes meanwhile belong to a call."""
        if ctx is None:
            yield
            return
        token = current_call.set(ctx)
        self._requests.calls.append(ctx)
        try:
            yield
        finally:
            self._requests.call_ended(ctx)
            current_call.reset(token)

    async def _request(self, ask: Callable[[Connection], Awaitable[T]], when: str, *, again: bool) -> T:
        connection = await self._connect()
        try:
            return await self._send(ask, connection)
        except _ConnectionLostError as lost:
            connection.drop()
            if not (again or lost.not_done):
                last = await connection.last_lines()
                raise ServerError(self.name, f"was lost {when}{last or '.'} It was not called again") from lost
        connection = await self._connect()
        try:
            return await self._send(ask, connection)
        except _ConnectionLostError as lost:
            connection.drop()
            raise ServerError(self.name, f"was lost twice {when}{await connection.last_lines()}") from lost

    async def _send(self, ask: Callable[[Connection], Awaitable[T]], connection: Connection) -> T:
        try:
            return await ask(connection)
        except MCPError as error:
            if error.code == types.CONNECTION_CLOSED:
                if error.message.startswith(_STREAM_FAILED):
                    connection.fault = connection.fault or error.message
                raise _ConnectionLostError from error
            if _UNKNOWN_SESSION.search(error.message):
                raise _ConnectionLostError(not_done=True) from error
            raise RemoteToolError(self.name, error.message or f"error {error.code}") from error
        except (anyio.ClosedResourceError, anyio.BrokenResourceError) as error:
            raise _ConnectionLostError from error
        except ValidationError as error:
            raise RemoteToolError(self.name, f"the server's reply does not fit the protocol: {error}") from error
        except InputRequiredRoundsExceededError as error:
            raise RemoteToolError(self.name, f"it asked for input more than {error.max_rounds} times") from error
        except RuntimeError as error:  # the SDK: the result does not fit the schema that the server gave for it
            raise RemoteToolError(self.name, str(error)) from error

    # --- the connection

    async def _connect(self) -> Connection:
        """Return the connection, made again if it was lost."""
        connection = self._connection
        if connection is not None and not connection.broken:
            return connection
        async with self._lock:
            connection = self._connection
            if connection is not None and not connection.broken:
                return connection
            if self._closed:
                raise ServerError(self.name, "is closed: the toolset is used after its `async with` block")
            if connection is not None:
                await connection.close()
            self._connection = connection = Connection(
                self._target, self.name, self._options, self._requests, self._list_changed
            )
            await connection.start()
            await self._list(connection)
            return connection

    async def _list(self, connection: Connection) -> None:
        seconds = self._options.connect_timeout
        try:
            async with asyncio.timeout(seconds):
                self.listing = await _list_all(
                    connection.session, resources=self._options.include_resources is not False
                )
        except TimeoutError:
            connection.drop()
            lines = await connection.last_lines()
            raise ServerError(self.name, f"did not list what it has within {seconds:g} s{lines}") from None
        except (MCPError, ValidationError, anyio.ClosedResourceError, anyio.BrokenResourceError) as error:
            connection.drop()
            raise ServerError(self.name, f"cannot list what it has: {error}{await connection.last_lines()}") from error
        try:
            self.on_change()
        except (ValueError, ServerError):  # two of one name, an option's name is gone: the listing before stays
            _log.exception("%s: its new listing cannot be used", self.name)

    def _list_changed(self) -> None:
        """List again what the server has, in a task of its own: the caller may be what reads the replies."""
        self._stale = True
        if self._relisting is None or self._relisting.done():
            self._relisting = asyncio.create_task(self._relist(), name=f"mcp: {self.name}: list")

    async def _relist(self) -> None:
        while self._stale:
            self._stale, connection = False, self._connection
            if connection is None or connection.broken:
                return
            try:
                async with self._lock:
                    await self._list(connection)
            except ServerError as error:
                _log.warning("%s", error)
            if self._stale:
                await asyncio.sleep(_RELIST_SECONDS)  # a server may announce changes without end


class _ConnectionLostError(Exception):
    """The connection broke before the reply; `not_done` when the server certainly did nothing."""

    def __init__(self, not_done: bool = False) -> None:
        super().__init__(not_done)
        self.not_done = not_done


async def _with_input(session: ClientSession, send: Callable[[Any, Any], Awaitable[Any]]) -> Any:
    """Return a result of a session, answering its requests for input; a `Client` does so by itself."""
    result = await send(None, None)
    for _ in range(_INPUT_ROUNDS):
        if not isinstance(result, types.InputRequiredResult):
            return result
        responses: dict[str, Any] = {}
        for key, request in (result.input_requests or {}).items():
            answer = await session.dispatch_input_request(
                ClientRequestContext(session=session, request_id=key), request
            )
            if isinstance(answer, types.ErrorData):
                raise MCPError.from_error_data(answer)
            responses[key] = answer
        result = await send(responses or None, result.request_state)
    raise InputRequiredRoundsExceededError(_INPUT_ROUNDS)


# --- its listing, page by page


async def _list_all(session: ClientSession, *, resources: bool) -> Listing:
    """Return the listing of a server; only what its capabilities name is requested."""
    known = session.server_capabilities or types.ServerCapabilities()
    unknown = known == types.ServerCapabilities()  # with a fixed version there was no handshake
    unreadable: dict[str, str] = {}
    token = unreadable_tools.set(unreadable)
    try:
        tools = await _pages(session.list_tools, lambda page: page.tools) if known.tools or unknown else ()
    finally:
        unreadable_tools.reset(token)
    if not (resources and (known.resources or unknown)):
        return Listing(tools, unreadable=unreadable)
    static = await _pages(session.list_resources, lambda page: page.resources)
    templates = await _pages(session.list_resource_templates, lambda page: page.resource_templates)
    return Listing(tools, static, templates, unreadable)


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
