"""A server for the length of one open: its connection, made again when it is lost, and what it has."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from typing import Any, TypeVar

import anyio
import mcp_types as types
from mcp.client import ClientRequestContext, ClientSession, InputRequiredRoundsExceededError
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from toolcrib.adapters.mcp_client._connection import Live
from toolcrib.adapters.mcp_client._listing import Listing, list_all, list_prompts
from toolcrib.adapters.mcp_client._options import Options
from toolcrib.adapters.mcp_client._server_requests import Answers, calling
from toolcrib.adapters.mcp_client._values import Progress
from toolcrib.errors import RemoteToolError, ServerError
from toolcrib.schema import RunContext

__all__ = ["Link"]

T = TypeVar("T")
_log = logging.getLogger("toolcrib.mcp")
_BREATH = 0.2  # seconds between two listings while a server says that it changes
_ROUNDS = 10  # of input that a server may ask for in one call
_BROKEN_OFF = "SSE stream failed: "  # how the SDK begins to say that it does not read on
_FORGOTTEN = re.compile(r"session (not found|terminated)|no valid session", re.IGNORECASE)
"""What servers, and the SDK for a plain 404, say of a session that they do not know: they did nothing."""


class Link:
    """A server that is open.

    Attributes:
        server: What it is called in messages.
        listing: What it has, as far as is known now.
        on_change: Is called when that has changed.
    """

    def __init__(self, source: Any, server: str, options: Options) -> None:
        self._source, self.server, self._options = source, server, options
        self.answers = Answers(server, options)
        self.listing = Listing()
        self.on_change: Callable[[], None] = _nothing
        self._live: Live | None = None
        self._lock = asyncio.Lock()
        self._relisting: asyncio.Task[None] | None = None
        self._stale = False
        self._closed = False

    async def open(self) -> None:
        """Connect, and ask what the server has; raises ServerError."""
        try:
            await self._session()
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """End the connection."""
        self._closed = True
        if self._relisting is not None:
            self._relisting.cancel()
        if self._live is not None:
            await self._live.close()

    @property
    def instructions(self) -> str | None:
        """What the server says about its own use."""
        return None if self._live is None else self._live.session.instructions

    # --- requests

    async def call_tool(
        self, name: str, arguments: dict[str, Any], ctx: RunContext[Any] | None
    ) -> types.CallToolResult:
        """Call a tool, once.

        Raises:
            RemoteToolError: The server refuses.
            ServerError: It cannot be reached; or it was lost on the way, and nobody knows what was done.
        """

        async def report(progress: float, total: float | None, message: str | None) -> None:
            if ctx is not None and ctx.report is not None:
                ctx.report(Progress(progress, total, message))

        async def ask(live: Live) -> types.CallToolResult:
            if live.client is not None:
                return await live.client.call_tool(name, arguments, progress_callback=report)
            session = live.session
            return await _driven(
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

        with self._waiting(ctx):
            return await self._requested(ask, f"while `{name}` ran. Whether it took effect is unknown", again=False)

    async def read_resource(self, uri: str, ctx: RunContext[Any] | None) -> types.ReadResourceResult:
        """Read a resource; raises what `call_tool` does."""

        async def ask(live: Live) -> types.ReadResourceResult:
            if live.client is not None:
                return await live.client.read_resource(uri)
            return await live.session.read_resource(uri)

        with self._waiting(ctx):
            return await self._requested(ask, f"while it was asked for {uri}", again=True)

    async def get_prompt(
        self, name: str, arguments: dict[str, str], ctx: RunContext[Any] | None = None
    ) -> types.GetPromptResult:
        """Return a prompt; raises what `call_tool` does."""

        async def ask(live: Live) -> types.GetPromptResult:
            if live.client is not None:
                return await live.client.get_prompt(name, arguments)
            return await live.session.get_prompt(name, arguments)

        with self._waiting(ctx):
            return await self._requested(ask, f"while it was asked for the prompt `{name}`", again=True)

    async def list_prompts(self) -> tuple[types.Prompt, ...]:
        """Return the prompts; raises what `call_tool` does."""
        return await self._requested(lambda live: list_prompts(live.session), "while it listed prompts", again=True)

    @contextmanager
    def _waiting(self, ctx: RunContext[Any] | None) -> Generator[None]:
        """Let questions of the server be known to belong to a call."""
        if ctx is None:
            yield
            return
        token = calling.set(ctx)
        self.answers.waiting.append(ctx)
        try:
            yield
        finally:
            self.answers.done(ctx)
            calling.reset(token)

    async def _requested(self, ask: Callable[[Live], Awaitable[T]], when: str, *, again: bool) -> T:
        live = await self._session()
        try:
            return await self._answered(ask, live)
        except _Lost as lost:
            live.drop()
            if not (again or lost.not_done):
                last = await live.last_lines()
                raise ServerError(self.server, f"was lost {when}{last or '.'} It was not called again") from lost
        live = await self._session()
        try:
            return await self._answered(ask, live)
        except _Lost as lost:
            live.drop()
            raise ServerError(self.server, f"was lost twice {when}{await live.last_lines()}") from lost

    async def _answered(self, ask: Callable[[Live], Awaitable[T]], live: Live) -> T:
        try:
            return await ask(live)
        except MCPError as error:
            if error.code == types.CONNECTION_CLOSED:
                if error.message.startswith(_BROKEN_OFF):
                    live.fault = live.fault or error.message
                raise _Lost from error
            if _FORGOTTEN.search(error.message):
                raise _Lost(not_done=True) from error
            raise RemoteToolError(self.server, error.message or f"error {error.code}") from error
        except (anyio.ClosedResourceError, anyio.BrokenResourceError) as error:
            raise _Lost from error
        except ValidationError as error:
            raise RemoteToolError(self.server, f"what the server answered is not of the protocol: {error}") from error
        except InputRequiredRoundsExceededError as error:
            raise RemoteToolError(self.server, f"it asked for input more than {error.max_rounds} times") from error
        except RuntimeError as error:  # the SDK: the result does not fit the schema that the server gave for it
            raise RemoteToolError(self.server, str(error)) from error

    # --- the connection

    async def _session(self) -> Live:
        """Return the connection, made again if it was lost."""
        live = self._live
        if live is not None and not live.broken:
            return live
        async with self._lock:
            live = self._live
            if live is not None and not live.broken:
                return live
            if self._closed:
                raise ServerError(self.server, "is closed: the toolset is used after its `async with` block")
            if live is not None:
                await live.close()
            self._live = live = Live(self._source, self.server, self._options, self.answers, self._changed)
            await live.start()
            await self._list(live)
            return live

    async def _list(self, live: Live) -> None:
        seconds = self._options.connect_timeout
        try:
            async with asyncio.timeout(seconds):
                self.listing = await list_all(live.session, resources=self._options.include_resources is not False)
        except TimeoutError:
            live.drop()
            told = await live.last_lines()
            raise ServerError(self.server, f"did not list what it has within {seconds:g} s{told}") from None
        except (MCPError, ValidationError, anyio.ClosedResourceError, anyio.BrokenResourceError) as error:
            live.drop()
            raise ServerError(self.server, f"cannot list what it has: {error}{await live.last_lines()}") from error
        try:
            self.on_change()
        except ValueError:  # two tools of one name, a name that is gone: what was known before stays
            _log.exception("%s: what it has now cannot be taken", self.server)

    def _changed(self) -> None:
        """Ask again what the server has, in a task of its own: who told it may wait for us to go on."""
        self._stale = True
        if self._relisting is None or self._relisting.done():
            self._relisting = asyncio.create_task(self._relist(), name=f"mcp: {self.server}: list")

    async def _relist(self) -> None:
        while self._stale:
            self._stale, live = False, self._live
            if live is None or live.broken:
                return
            try:
                async with self._lock:
                    await self._list(live)
            except ServerError as error:
                _log.warning("%s", error)
            if self._stale:
                await asyncio.sleep(_BREATH)  # a server may say it as often as it likes


class _Lost(Exception):
    """The connection broke while an answer was waited for; `not_done` when the server surely did nothing."""

    def __init__(self, not_done: bool = False) -> None:
        super().__init__(not_done)
        self.not_done = not_done


async def _driven(session: ClientSession, send: Callable[[Any, Any], Awaitable[Any]]) -> Any:
    """Return a result of a session without a client, which would answer requests for input by itself."""
    result = await send(None, None)
    for _ in range(_ROUNDS):
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
    raise InputRequiredRoundsExceededError(_ROUNDS)


def _nothing() -> None:
    """Nobody wants to know."""
