"""Suspended calls, kept beside the approval requests that they wait for."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol, runtime_checkable

from toolcrib.calls import now

__all__ = ["MAX_SUSPENDED", "KeepsSuspendedCalls", "SuspendedCall", "SuspendedCallStore"]

MAX_SUSPENDED = 1_000
"""How many suspended calls of one principal are kept; of more, the oldest are forgotten."""


@dataclass(frozen=True, slots=True)
class SuspendedCall:
    """A suspended call.

    Attributes:
        key: The same for the same call on behalf of the same principal, and for no other.
        requests: The ids of the requests it waits for.
        state: The state it continues from, as JSON shapes; it holds the real arguments.
    """

    key: str
    principal: str
    tool: str
    requests: tuple[str, ...]
    state: Mapping[str, Any] = field(repr=False)
    since: datetime = field(default_factory=now)

    def to_row(self) -> tuple[str, str, str, str, str, str]:
        """Return the call as texts, in the order of the attributes."""
        requests, state = json.dumps(self.requests), json.dumps(self.state)
        return self.key, self.principal, self.tool, requests, state, self.since.isoformat()

    @classmethod
    def from_row(cls, row: tuple[str, str, str, str, str, str]) -> SuspendedCall:
        """Return the call that `to_row` described."""
        key, principal, tool, requests, state, since = row
        ids = tuple(json.loads(requests))
        return cls(key, principal, tool, ids, json.loads(state), datetime.fromisoformat(since))


class SuspendedCallStore(Protocol):
    """Keeps suspended calls, for a server that has to find them again after a restart."""

    async def keep(self, call: SuspendedCall) -> None:
        """Keep a call, in place of the one with its key."""
        ...

    async def find(self, key: str) -> SuspendedCall | None:
        """Return the call with this key."""
        ...

    async def find_request(self, principal: str, request_id: str) -> SuspendedCall | None:
        """Return the call of a principal that waits for the answer to this request."""
        ...

    async def drop(self, key: str, requests: Collection[str]) -> bool:
        """Forget the call with this key, if it still waits for these requests and not for later ones.

        Returns whether it did: of several callers at once, in any processes, one gets True.
        """
        ...

    async def tools(self) -> frozenset[str]:
        """Return the tools that have suspended calls."""
        ...


@runtime_checkable
class KeepsSuspendedCalls(Protocol):
    """An approval store that can keep the suspended calls, too."""

    def suspended_calls(self) -> SuspendedCallStore:
        """Return the store of the suspended calls whose requests are in this store."""
        ...
