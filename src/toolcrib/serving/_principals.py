"""Principals: the names that requests are made on behalf of, the run of each one's calls, and pending requests."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Protocol, cast, runtime_checkable

from toolcrib.approvals import ApprovalEntry, ApprovalStore, WrappedApprovalStore
from toolcrib.calls import ApprovalRequest, now
from toolcrib.errors import PendingLimitReached
from toolcrib.pipeline import Access, Run


@runtime_checkable
class ListsRequests(Protocol):
    """A store that can list its requests, as all of toolcrib's can."""

    async def list(self, *, pending: bool = False) -> tuple[ApprovalEntry, ...]:
        """Return every request, oldest first; or those that wait for an answer."""
        ...


def check_countable(store: ApprovalStore, limit: int | None) -> ListsRequests | None:
    """Return the store as one that can list its requests; None where there is no limit.

    Raises:
        ValueError: There is a limit, and the store cannot list its requests.
    """
    if limit is None:
        return None
    if not isinstance(store, ListsRequests):
        raise ValueError(
            f"{type(store).__name__} cannot list its requests, and those of one principal are counted; give it a "
            "method `list`, or the server max_pending=None"
        )
    return store


class PendingApprovals(WrappedApprovalStore):
    """The approval store as the calls of one principal see it: a limited number of their requests may be pending.

    Servers that share a store count what is in it, so two that are called at the same moment may keep one more.

    Args:
        store: The store of all requests.
        principal: The principal whose requests are counted.
        limit: How many may be pending; None for any number.
        counts_for: For how long a request counts; its suspended call can be continued that long.

    Raises:
        ValueError: There is a limit, and the store cannot list its requests.
    """

    def __init__(self, store: ApprovalStore, principal: str, limit: int | None, counts_for: timedelta) -> None:
        super().__init__(store)
        self._principal, self._limit, self._counts_for = principal, limit, counts_for
        self._forms: set[str] = set()
        self._lock = asyncio.Lock()
        self._listed = check_countable(store, limit)

    @asynccontextmanager
    async def form(self, request: ApprovalRequest) -> AsyncGenerator[None]:
        """Count a request while a client shows it as a form; raises PendingLimitReached."""
        async with self._lock:
            await self._find_room(request)
            self._forms.add(request.id)
        try:
            yield
        finally:
            self._forms.discard(request.id)

    async def put(self, request: ApprovalRequest) -> None:
        """Keep a request until it is answered; raises PendingLimitReached."""
        async with self._lock:
            await self._find_room(request)
            await self.store.put(request)

    async def _find_room(self, request: ApprovalRequest) -> None:
        if self._listed is None or self._limit is None:
            return
        since = now() - self._counts_for
        listed = [entry.request for entry in await self._listed.list(pending=True)]
        pending = {other.id for other in listed if other.principal == self._principal and other.created_at > since}
        pending |= self._forms
        if request.id not in pending and len(pending) >= self._limit:
            raise PendingLimitReached(request.tool, self._principal, self._limit, self._counts_for)


_MOST = 10_000  # principals that are kept; of more, those that made no request for longest start anew

_acting: ContextVar[tuple[str, Access | None] | None] = ContextVar("toolcrib_principal", default=None)


@contextmanager
def acting_as(principal: str, access: Access | None = None) -> Generator[None]:
    """Handle the requests inside on behalf of `principal`, for a transport that knows who makes them.

    Args:
        access: The rights of their token; without it, the scopes of tools are not checked.
    """
    token = _acting.set((principal, access))
    try:
        yield
    finally:
        _acting.reset(token)


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Principal:
    """A name that requests are made on behalf of, with the state of that principal alone.

    Attributes:
        run: The run of all its calls, with what the token of the request allows.
        pending: The approval store as its calls see it, which the run has.
    """

    name: str
    run: Run
    pending: PendingApprovals


class Principals:
    """The principals of one server; all sessions of a principal share its run.

    Args:
        approvals: The approval store of the server.
        open_run: Opens the run of a principal, given its name.
        caller: Returns the principal of the request that is handled now, and what its token allows: two tokens of one
            principal may allow different things.
        max_pending: How many requests of one principal may wait for an answer; None for any number.
        kept_for: How long a request counts.
    """

    def __init__(
        self,
        approvals: ApprovalStore,
        open_run: Callable[[str], Run],
        caller: Callable[[], tuple[str, Access | None]],
        max_pending: int | None,
        kept_for: timedelta,
    ) -> None:
        self._approvals, self._open_run, self._caller = approvals, open_run, caller
        self._max_pending, self._kept_for = max_pending, kept_for
        self._known: OrderedDict[str, Principal] = OrderedDict()

    def name(self) -> str:
        """Return the name of the principal of the request that is handled now."""
        return (_acting.get() or self._caller())[0]

    def current(self) -> Principal:
        """Return the principal of the request that is handled now."""
        name, access = _acting.get() or self._caller()
        known = self._known.get(name)
        if known is None:
            known = self._known[name] = self._open(name)
            if len(self._known) > _MOST:
                self._known.popitem(last=False)
        self._known.move_to_end(name)
        return known if access is None else replace(known, run=known.run.view(access=access))

    def _open(self, name: str) -> Principal:
        opened = self._open_run(name)
        store = self._approvals if opened.approvals is None else opened.approvals
        pending = PendingApprovals(store, name, self._max_pending, self._kept_for)
        run = opened.view(
            principal=name,
            approvals=pending,
            store=None if opened.durability.store is None else pending,
            entry="mcp" if opened.channel.entry == "pipeline" else opened.channel.entry,
            hook_errors="fail",
        )
        return Principal(name, run, pending)


def claimed_groups(claims: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """Return the groups in a claim: a list of texts, or one text.

    Args:
        claims: The claims of a token.
        name: The claim. With dots it is a part of another one, as in `realm_access.roles`.
    """
    found: Any = claims.get(name)
    if found is None:
        found = claims
        for part in name.split("."):
            found = cast("Mapping[str, Any]", found).get(part) if isinstance(found, Mapping) else None
    several: Sequence[Any] = cast("Sequence[Any]", found) if isinstance(found, list | tuple) else [found]
    return tuple(group for group in several if isinstance(group, str) and group)
