"""A server as a member of a toolset: its tools are known while it is open, and followed when they change."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from toolcrib.adapters.mcp_client._link import Link
from toolcrib.adapters.mcp_client._members import Member, members_of
from toolcrib.adapters.mcp_client._options import Options
from toolcrib.errors import DuplicateNameError, ToolConstraintError
from toolcrib.schema import RunContext
from toolcrib.toolsets import LiveTools, Toolset

__all__ = ["ServerSource"]

_log = logging.getLogger("toolcrib.mcp")


class ServerSource:
    """One server; each open of the toolset has a connection of its own.

    Attributes:
        server: What it is called in messages.
        links: The connections that are open now, the last opened last.
    """

    def __init__(self, made: Any, server: str, options: Options) -> None:
        self._made, self.server, self._options = made, server, options
        self.links: list[Link] = []

    def open_source(self, ctx: RunContext[Any]) -> AbstractAsyncContextManager[Toolset]:
        """Connect, and give the tools while the connection is open."""
        return self._opened()

    @asynccontextmanager
    async def _opened(self) -> AsyncGenerator[Toolset]:
        async with self.linked() as link:
            shown = _Shown(link, self._options)
            link.on_change = shown.renew
            yield shown.tools

    @asynccontextmanager
    async def linked(self) -> AsyncGenerator[Link]:
        """Give a connection of its own."""
        link = Link(self._made, self.server, self._options)
        await link.open()
        self.links.append(link)
        try:
            yield link
        finally:
            self.links.remove(link)
            await link.close()

    def __repr__(self) -> str:
        return f"<MCP server {self.server}>"


class _Shown:
    """The tools of one open connection, renewed when the server says that they changed."""

    def __init__(self, link: Link, options: Options) -> None:
        self._link, self._options = link, options
        self._members: Sequence[Member] = self._wanted()
        self.tools = LiveTools([member.tool() for member in self._members])

    def renew(self) -> None:
        """Take the tools that the server has now in the place of those it had."""
        members = self._wanted()
        made, before = [member.tool() for member in members], self._members
        self.tools.renew(made)
        known = {member.about.name: member.about for member in before}
        for member in members:
            if known.get(member.about.name, member.about) != member.about:
                # a grant holds on only where its definition is the same: `Member.get_definition`
                _log.warning("%s: what it says of %s is not what it said before", self._link.server, member.where())
        self._members = members
        for gone in before:
            gone.listed = False

    def _wanted(self) -> list[Member]:
        has = members_of(self._link, self._options)
        _require_names(has, self._options, self._link.server)
        wanted = [member for member in has if self._options.takes(member.about, member.names)]
        _require_one_each(wanted)
        return wanted


def _require_names(has: Sequence[Member], options: Options, server: str) -> None:
    """Raise ToolConstraintError for a name in an option that the server has nothing for."""
    known = {name for member in has for name in member.names}
    shown = tuple(member.about.name for member in has)
    for option, names in options.named().items():
        missing = next(iter(sorted(names - known)), None)
        if missing is not None:
            raise ToolConstraintError(
                missing, f"`{option}` names it, and the server `{server}` does not have it", shown
            )


def _require_one_each(members: Sequence[Member]) -> None:
    """Raise DuplicateNameError where two things of one server come to one name."""
    taken: dict[str, Member] = {}
    for member in members:
        name, other = member.about.name, taken.get(member.about.name)
        if other is not None:
            resources = "resource" in member.about.kind + other.about.kind or member.about.kind == "template"
            option = "include_resources" if resources else "tool_names"
            mend = f"Both come from the server `{member.about.server}`: choose one with {option}=[...]."
            raise DuplicateNameError(name, other.where(), member.where(), mend)
        taken[name] = member
