"""One server for many principals: a session of each, signed with their own credential, and one that lists the tools."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import httpx2
import mcp_types as types

from toolcrib.adapters.mcp_client._options import Options
from toolcrib.adapters.mcp_client._remote_server import RemoteServer
from toolcrib.calls import Consent
from toolcrib.credentials import Credentials, PrincipalAuth, server_key
from toolcrib.errors import CredentialError, RemoteToolError, ServerError
from toolcrib.pipeline import local_user
from toolcrib.schema import RunContext

_log = logging.getLogger("toolcrib.mcp")
_MOST = 250  # sessions at a time; a call waits while all of them are in use
_IDLE = 300.0  # seconds after which a session without a call is closed
_SESSION = "mcp-session-id"
_NOBODY = "it is not asked outside a call: there is no principal whose credentials could be used"


@dataclass(eq=False, slots=True)
class _Seat:
    """The session of one principal.

    Attributes:
        users: How many calls use it now.
        since: When the last one ended.
    """

    remote: RemoteServer
    opened: asyncio.Task[ServerError | None]
    users: int = 0
    since: float = 0.0


class PrincipalServers(RemoteServer):
    """An MCP server that is open for all principals; what it is asked is asked in the session of the caller."""

    def __init__(self, target: Any, name: str, options: Options) -> None:
        if options.credentials is None:
            raise TypeError("the options have no credentials")
        self._credentials: Credentials = options.credentials
        self._target, self._options, self._key = target, options, server_key(target)
        super().__init__(target, name, replace(options, auth=self._signed(self._lister), credentials=None))
        self._listing_as: str | None = None
        self._seats: OrderedDict[str, _Seat] = OrderedDict()
        self._freed = asyncio.Condition()
        self._closing: set[asyncio.Task[None]] = set()
        self._idle: asyncio.Task[None] | None = None

    # --- the session that lists

    @property
    def is_locked(self) -> bool:
        return self._listing_as is None

    async def first_try(self) -> ServerError | None:
        if await self._choose_lister() is None:
            return ServerError(self.name, "waits until a principal gives access to it")
        return await super().first_try()

    async def _choose_lister(self) -> str | None:
        holders = await self._credentials.holders(self._key)
        wanted = self._credentials.list_as
        self._listing_as = next((holder for holder in holders if wanted in (None, holder)), None)
        return self._listing_as

    async def _lister(self, request: httpx2.Request) -> str | None:
        """Return the principal who lists: one for each session."""
        if self._listing_as is None or _SESSION not in request.headers:
            return await self._choose_lister()
        return self._listing_as

    def _signed(self, principal: Any) -> httpx2.Auth:
        return PrincipalAuth(self._credentials, self._key, principal)

    async def close(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
        for principal in tuple(self._seats):
            self._leave(principal)
        await asyncio.gather(super().close(), *self._closing, return_exceptions=True)

    # --- requests

    async def consent_for(self, ctx: RunContext[Any]) -> Consent | None:
        return await self._credentials.consent_for(_principal_of(ctx), self._key)

    async def call_tool(
        self, name: str, arguments: dict[str, Any], ctx: RunContext[Any] | None
    ) -> types.CallToolResult:
        async with self._session_of(ctx) as remote:
            return await remote.call_tool(name, arguments, ctx)

    async def read_resource(self, uri: str, ctx: RunContext[Any] | None) -> types.ReadResourceResult:
        async with self._session_of(ctx) as remote:
            return await remote.read_resource(uri, ctx)

    async def get_prompt(
        self, name: str, arguments: dict[str, str], ctx: RunContext[Any] | None = None, *, accepted: bool = False
    ) -> types.GetPromptResult:
        if not accepted:
            self._require_known(name)
        async with self._session_of(ctx) as remote:
            return await remote.get_prompt(name, arguments, ctx)

    async def complete(self, *values: Any, **more: Any) -> types.Completion:
        raise RemoteToolError(self.name, _NOBODY)

    async def subscribe(self, uri: str, listener: Callable[[str], None]) -> None:
        raise RemoteToolError(self.name, _NOBODY)

    @asynccontextmanager
    async def _session_of(self, ctx: RunContext[Any] | None) -> AsyncGenerator[RemoteServer]:
        principal = _principal_of(ctx)
        lacking = await self._lacking(principal)
        if lacking is not None:  # it was taken back after the call had passed its gates
            raise RemoteToolError(self.name, f"it was not called: {lacking.reason}. Call again to be given the link")
        seat = await self._seat(principal)
        try:
            fault = await asyncio.shield(seat.opened)
            if fault is not None:
                self._leave(principal, seat)
                raise fault
            yield seat.remote
        except (RemoteToolError, ServerError) as error:
            if (lacking := await self._lacking(principal)) is None:
                raise
            raise RemoteToolError(self.name, f"{error}. {lacking.reason}: call again to be asked") from error
        finally:
            seat.users, seat.since = seat.users - 1, self._clock.monotonic()
            async with self._freed:
                self._freed.notify()

    async def _lacking(self, principal: str) -> Consent | None:
        try:
            return await self._credentials.consent_for(principal, self._key)
        except CredentialError as error:
            raise ServerError(self.name, f"is not called: {error.problem}") from error

    # --- sessions

    async def _seat(self, principal: str) -> _Seat:
        """Return the session of a principal, opened first where that is needed; in use by one more call."""
        async with self._freed:
            while (seat := self._seats.get(principal)) is None and len(self._seats) >= _MOST:
                idle = next((name for name, other in self._seats.items() if not other.users), None)
                if idle is None:
                    await self._freed.wait()
                else:
                    self._leave(idle)
            if seat is None:
                seat = self._seats[principal] = self._opening(principal)
            seat.users += 1
            self._seats.move_to_end(principal)
        if self._idle is None:
            self._idle = asyncio.create_task(self._close_idle(), name=f"mcp: {self.name}: idle sessions")
        return seat

    def _opening(self, principal: str) -> _Seat:
        async def always(request: httpx2.Request) -> str | None:
            return principal

        options = replace(
            self._options, auth=self._signed(always), credentials=None, pins=None, include_resources=False
        )
        remote = RemoteServer(self._target, self.name, options)
        return _Seat(remote, asyncio.create_task(remote.first_try(), name=f"mcp: {self.name}: a principal's session"))

    def _leave(self, principal: str, seat: _Seat | None = None) -> None:
        """Begin to close a session, if it is still the one of its principal."""
        if seat is not None and self._seats.get(principal) is not seat:
            return
        seat = self._seats.pop(principal)
        task = asyncio.create_task(_closed(seat), name=f"mcp: {self.name}: close a session")
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    async def _close_idle(self) -> None:
        while True:
            await self._clock.sleep(_IDLE / 10)
            old = self._clock.monotonic() - _IDLE
            for principal in [name for name, seat in self._seats.items() if not seat.users and seat.since < old]:
                self._leave(principal)


async def _closed(seat: _Seat) -> None:
    seat.opened.cancel()
    await asyncio.wait({seat.opened})
    await seat.remote.close()


def _principal_of(ctx: RunContext[Any] | None) -> str:
    """Return on whose behalf a call is made: the run's principal, or the user of this process."""
    principal = None if ctx is None or ctx.run is None else ctx.run.principal
    return principal or local_user()
