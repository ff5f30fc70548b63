"""Server of MCP while its toolset is open: the requests that can be made of it."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from typing import Any, TypeVar

import anyio
import mcp_types as types
from mcp.client import ClientRequestContext, ClientSession, InputRequiredRoundsExceededError
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from toolcrib.adapters.mcp_client._connection import Connection
from toolcrib.adapters.mcp_client._kept_connection import KeptConnection
from toolcrib.adapters.mcp_client._listing import Listing, pages
from toolcrib.adapters.mcp_client._options import Options
from toolcrib.adapters.mcp_client._server_requests import ServerRequests, current_call
from toolcrib.adapters.mcp_client._values import Progress
from toolcrib.errors import RemoteToolError, ServerError
from toolcrib.schema import RunContext

__all__ = ["RemoteServer"]

T = TypeVar("T")
_INPUT_ROUNDS = 10  # of input that a server may ask for in one call
_STREAM_FAILED = "SSE stream failed: "  # the SDK's error when it stops reading
_UNKNOWN_SESSION = re.compile(r"session (not found|terminated)|no valid session", re.IGNORECASE)
"""The words of servers, and of the SDK for a plain 404, for an unknown session: the server did nothing."""


class RemoteServer:
    """An MCP server that is open.

    Attributes:
        name: The server's name in messages.
        kept: The connection to it, and its listing.
    """

    def __init__(self, target: Any, name: str, options: Options) -> None:
        self.name = name
        self._requests = ServerRequests(name, options)
        self.kept = KeptConnection(target, name, options, self._requests)

    @property
    def listing(self) -> Listing:
        """Its tools and resources, as last listed."""
        return self.kept.listing

    @property
    def instructions(self) -> str | None:
        """The instructions that the server gives for its use."""
        return self.kept.instructions

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
            return await pages(connection.session.list_prompts, lambda page: page.prompts)

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
        connection = await self.kept.get()
        try:
            return await self._send(ask, connection)
        except _ConnectionLostError as lost:
            connection.drop()
            if not (again or lost.not_done):
                last = await connection.last_lines()
                raise ServerError(self.name, f"was lost {when}{last or '.'} It was not called again") from lost
        connection = await self.kept.get()
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
