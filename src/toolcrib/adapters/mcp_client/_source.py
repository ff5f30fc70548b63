"""Source of tools: an MCP server, which lists its tools when it is opened, and again when they change."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anyio

from toolcrib.adapters.mcp_client._member import Member, unreadable
from toolcrib.adapters.mcp_client._members import AccessMember, members_of, number_doubles
from toolcrib.adapters.mcp_client._options import Options
from toolcrib.adapters.mcp_client._principal_servers import PrincipalServers
from toolcrib.adapters.mcp_client._remote_server import RemoteServer
from toolcrib.adapters.mcp_client._values import ServerStatus
from toolcrib.errors import ServerError, ToolConstraintError, word_in_list
from toolcrib.schema import RunContext
from toolcrib.tools import Tool
from toolcrib.toolsets import LiveTools, Toolset

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
