"""On whose behalf a request comes, and the run that all requests of one principal belong to."""

from __future__ import annotations

import getpass
from collections import OrderedDict
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote

from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import AccessToken, principal_components
from mcp.server.context import ServerRequestContext
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged

from toolcrib.adapters.mcp_server._options import ServerOptions
from toolcrib.approvals import ApprovalStore
from toolcrib.pipeline import Run
from toolcrib.serving._pending_limit import PendingApprovals

__all__ = ["Principal", "Principals", "acting_as", "local_user"]

_MOST = 10_000  # principals that are remembered; of more, those that asked longest ago start anew
_READABLE = "@:.+ /"  # characters that a part of a name keeps

_acting: ContextVar[str | None] = ContextVar("toolcrib_mcp_principal", default=None)


@contextmanager
def acting_as(principal: str) -> Generator[None]:
    """Have the requests that are handled inside be on behalf of `principal`, for a transport that knows who asks."""
    token = _acting.set(principal)
    try:
        yield
    finally:
        _acting.reset(token)


def local_user() -> str:
    """Return the name of whoever runs this process."""
    try:
        return getpass.getuser()
    except (ImportError, KeyError, OSError):  # a container's user may have no name
        return "local"


@dataclass(frozen=True, slots=True)
class Principal:
    """Somebody on whose behalf requests come, with all that is theirs alone.

    Attributes:
        run: The run of all their calls.
        pending: Their view of the approval store, which the run has.
        changes: Told when the tools that they are shown have changed.
        listen: Answers their `subscriptions/listen`.
    """

    name: str
    run: Run
    pending: PendingApprovals
    changes: InMemorySubscriptionBus
    listen: ListenHandler

    async def tell_changed(self, ctx: ServerRequestContext[Any, Any]) -> None:
        """Tell the client that asked, and all of this principal's that listen, that their tools have changed."""
        await ctx.session.send_tool_list_changed()  # a newer client listens for it
        await self.changes.publish(ToolsListChanged())


class Principals:
    """The principals of one server; what is counted for one of them counts in all their sessions."""

    def __init__(self, options: ServerOptions, approvals: ApprovalStore) -> None:
        self._options, self._approvals = options, approvals
        self._default = options.principal or local_user()
        self._known: OrderedDict[str, Principal] = OrderedDict()

    def name(self) -> str:
        """Return on whose behalf the request comes that is handled here."""
        acting = _acting.get()
        if acting is not None:
            return acting
        token = get_access_token()
        return self._default if token is None else _of_token(token)

    def current(self) -> Principal:
        """Return the principal of the request that is handled here."""
        name = self.name()
        known = self._known.get(name)
        if known is None:
            known = self._known[name] = self._opened(name)
            if len(self._known) > _MOST:
                self._known.popitem(last=False)
        self._known.move_to_end(name)
        return known

    def _opened(self, name: str) -> Principal:
        options = self._options
        given = Run(limits=options.limits, deps=options.deps) if options.run is None else options.run(name)
        store = self._approvals if given.approvals is None else given.approvals
        pending = PendingApprovals(store, name, options.max_pending, options.kept_for)
        run = replace(
            given,
            principal=name,
            approvals=pending,
            entry="mcp" if given.entry == "pipeline" else given.entry,
            hook_errors="fail",
        )
        bus = InMemorySubscriptionBus()
        return Principal(name, run, pending, bus, ListenHandler(bus))


def _of_token(token: AccessToken) -> str:
    """Return the principal of a verified token: its client, and where they are known its issuer and its subject."""
    client, issuer, subject = (part and quote(part, _READABLE) for part in principal_components(token))
    parts = [client or "", f"iss={issuer}" if issuer else "", f"sub={subject}" if subject else ""]
    return ";".join(part for part in parts if part)
