"""Principals: the names that requests are made on behalf of, and the run that the calls of each one belong to."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, cast

from toolcrib.approvals import ApprovalStore
from toolcrib.pipeline import Access, Run
from toolcrib.serving._pending_limit import PendingApprovals

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
