"""Source of tools: an MCP server, which lists its tools when it is opened, and again when they change.

One that is signed with the credentials of each principal has a session of each, and one that lists the tools.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import anyio
import httpx2
import mcp_types as types

from toolcrib.adapters.mcp_client._member import Member, unreadable
from toolcrib.adapters.mcp_client._members import AccessMember, members_of, number_doubles
from toolcrib.adapters.mcp_client._options import Options
from toolcrib.adapters.mcp_client._remote_server import RemoteServer
from toolcrib.adapters.mcp_client._values import ServerStatus
from toolcrib.calls import Consent
from toolcrib.credentials import Credentials, PrincipalAuth, server_key
from toolcrib.errors import CredentialError, RemoteToolError, ServerError, ToolConstraintError, word_in_list
from toolcrib.pipeline import local_user
from toolcrib.schema import RunContext
from toolcrib.tools import Tool
from toolcrib.toolsets import LiveTools, Toolset

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


_log = logging.getLogger("toolcrib.mcp")


class ServerSource:
    """One server; each open of the toolset has a connection of its own.

    Attributes:
        opened: The server as often as it is open now, the last opened last.
        pins: Where what it has is kept as it was at first, or the path of that file.
        tool_names: The names of its tools, those before the last change among them: calls of these may go on.
    """

    is_concurrent = True

    def __init__(self, target: Any, server: str, options: Options) -> None:
        self._target, self.server, self._options = target, server, options
        self.pins = options.pins
        self.opened: list[RemoteServer] = []
        self.tool_names: frozenset[str] = frozenset()

    def status(self) -> ServerStatus:
        if self.opened:
            return self.opened[-1].kept.status()
        return ServerStatus(self.server, "down", "its toolset is not open", timeout=self._options.timeout)

    @asynccontextmanager
    async def open_source(self, ctx: RunContext[Any]) -> AsyncGenerator[Toolset]:
        async with self.connect(required=False) as (remote, fault):
            if fault is not None and self._options.required is True and not remote.is_locked:
                raise _needed(fault, "It has to be there")
            tools = _ServerTools(remote, self._options, fault)

            async def renew() -> None:
                before = tools.names()
                await tools.renew()
                self.tool_names = before | tools.names()

            remote.kept.on_change = renew
            self.tool_names = frozenset()
            if fault is None or remote.is_locked:
                await renew()
            yield tools.live

    @asynccontextmanager
    async def connect(self, *, required: bool = True) -> AsyncGenerator[tuple[RemoteServer, ServerError | None]]:
        """Open the server with a connection of its own; with what went wrong, where it is not required."""
        kind = RemoteServer if self._options.credentials is None else PrincipalServers
        remote = kind(self._target, self.server, self._options)
        try:
            fault = await remote.first_try()
            if fault is not None and required:
                raise fault
            self.opened.append(remote)
            try:
                yield remote, fault
            finally:
                self.opened.remove(remote)
        finally:
            with anyio.CancelScope(shield=True):  # a task group that is cancelled would leave processes behind
                await remote.close()

    def __repr__(self) -> str:
        return f"<MCP server {self.server}>"


class _ServerTools:
    """The tools of an open server, renewed when it announces a change."""

    def __init__(self, remote: RemoteServer, options: Options, fault: ServerError | None) -> None:
        self._remote, self._options = remote, options
        self._made: dict[Member, Tool[..., Any]] = {}
        self._turn = asyncio.Lock()
        self.live = LiveTools(
            fault=None if fault is None else _needed(fault, "There are no other tools"),
            may_be_empty=options.required is False,
            left_out=remote.kept.warn,
            rank=len(options.prefix) if options.name_clash == "leave_out" else None,
        )

    def names(self) -> frozenset[str]:
        return frozenset(tool.name for tool in self._made.values())

    async def renew(self) -> None:
        """Replace the tools by those of the last listing."""
        async with self._turn:
            before = self._made
            known = {member.about.name: member for member in before}
            members: list[Member] = []
            for member in self._wanted():
                old = known.get(member.about.name)
                is_known = old is not None and old.is_as(member)  # views of the open toolset have it already
                members.append(old if old is not None and is_known else member)
                if old is not None and old.about != member.about:
                    # a grant holds on only where its definition is the same: `Member.get_definition`
                    _log.warning("%s: it describes %s in another way than before", self._remote.name, member.label())
            new = [member for member in members if member not in before]
            await asyncio.to_thread(lambda: [member.prepare() for member in new])
            tools = {member: before.get(member) or member.tool() for member in self._readable(members)}
            self.live.renew([*tools.values()])
            self._made = tools
            for member in before:
                member.listed = member in tools

    def _wanted(self) -> list[Member]:
        if self._remote.is_locked:
            return [AccessMember(self._remote, self._options)]
        has = members_of(self._remote, self._options)
        number_doubles(has)
        _require_names(has, self._options, self._remote)
        return [member for member in has if self._options.wants(member.about, member.names)]

    def _readable(self, members: Iterable[Member]) -> Iterator[Member]:
        """Yield the members whose description can be read."""
        server = self._remote.name
        for name, problem in self._remote.listing.unreadable.items():
            if self._options.tool_names is None or name in self._options.tool_names:
                self._refuse(unreadable(server, name, problem))
        for member in members:
            if member.fault is None:
                yield member
            else:
                self._refuse(member.fault)

    def _refuse(self, error: ServerError) -> None:
        if self._options.refused == "raise":
            raise error
        _log.error("%s. It is left out of the toolset.", error)


def _needed(fault: ServerError, why: str) -> ServerError:
    """Return the error for a server that nothing starts without."""
    mend = "Correct its command or address; with `required` set to false the rest starts without it"
    return ServerError(fault.server, f"{fault.problem}\n{why}. {mend}")


def _require_names(has: Sequence[Member], options: Options, remote: RemoteServer) -> None:
    """Raise ToolConstraintError for a name in an option that the server does not have."""
    known = {name for member in has for name in member.names}.union(remote.listing.unreadable)
    shown = tuple(member.about.name for member in has)
    for option, names in options.named().items():
        missing = next(iter(sorted(names - known)), None)
        if missing is not None:
            meant = word_in_list(option, missing)
            in_file = " (in a file of servers the option is `tools`)" if option == "tool_names" else ""
            problem = f"`{option}` names it, and the server `{remote.name}` does not have it{meant}{in_file}"
            raise ToolConstraintError(missing, problem, () if meant else shown)
