"""Budgets: the gate by which calls are counted and refused, or asked about."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from fnmatch import fnmatchcase
from typing import Any

from toolcrib.budgets._limit import Charge, Limit, Overrun, Share
from toolcrib.budgets._store import MemoryUsageStore, UsageStore
from toolcrib.calls import Ask, Rejected
from toolcrib.clock import WALL_CLOCK, Clock
from toolcrib.hooks import WITH_ARGUMENTS, Stage
from toolcrib.tools import Cost

__all__ = ["Budgets"]


class Budgets:
    """A gate that counts calls and what they cost. What is over a limit is refused until it is free again, or asked.

    A call is counted when it begins, and once: one that another gate refuses, that waits for a person, or that is
    denied uses nothing. What a person approves that was asked about for a limit is counted, and may be over.

    Args:
        limits: The limits, all of which hold.
        store: Where it is counted; in the memory of this process when None.
        groups: The group of each principal, or a function of the call (`Call`) that returns it.
        costs: What tools cost, by names or patterns such as `shop_*`, in the place of their own `cost`; the first that
            fits counts.
        name: The name of the gate, and of its counts: gates of one name and one store count together.
        clock: The clock, whose seconds are those since 1970; that of this computer by default.
    """

    stage: Stage = "approve"
    occasions = WITH_ARGUMENTS

    def __init__(
        self,
        limits: Sequence[Limit],
        *,
        store: UsageStore | None = None,
        groups: Mapping[str, str] | Callable[[Any], str | None] | None = None,
        costs: Mapping[str, Cost] | None = None,
        name: str = "budgets",
        clock: Clock = WALL_CLOCK,
    ) -> None:
        if isinstance(limits, Limit) or not all(isinstance(one, Limit) for one in limits):  # pyright: ignore[reportUnnecessaryIsInstance] -- a host's value
            raise TypeError("Budgets: limits is a list of limits, as in Budgets([Limit(calls=10, per='minute')])")
        if groups is None and any("group" in one.shares for one in limits):
            raise ValueError("Budgets: a limit is by group, and no groups are given")
        self.limits, self.name = tuple(limits), name
        self._store = MemoryUsageStore() if store is None else store
        self._groups, self._costs, self._clock = groups, dict(costs or {}), clock

    async def check(self, call: Any) -> Rejected | Ask | None:
        """Return why a call is over a limit; nothing is counted, but for a call that the host executes itself."""
        at, ask = self._clock.monotonic(), self._store.overruns if call.is_executable else self._store.charge
        return self._answer(call, await ask(self._charges(call), at), at)

    async def begin(self, call: Any) -> Rejected | Ask | None:
        """Count a call that begins; return why it may not, where a limit was reached meanwhile."""
        at = self._clock.monotonic()
        over = await self._store.charge(self._charges(call, is_approved=call.grant is not None), at)
        return self._answer(call, [one for one in over if not one.charge.may_exceed], at)

    def _answer(self, call: Any, over: Sequence[Overrun], at: float) -> Rejected | Ask | None:
        refusing = [one for one in over if one.charge.limit.over == "refuse"]
        texts = [one.text(call.name, at) for one in refusing or over]
        if refusing:
            return Rejected(call.name, call.id, " ".join(texts), "limit")
        return Ask(" ".join(texts)) if texts else None

    def _charges(self, call: Any, *, is_approved: bool = False) -> Iterator[Charge]:
        """Return what a call adds to each limit that counts it."""
        cost = self._cost_of(call)
        for limit in self.limits:
            amount = Decimal(1)
            if limit.spend is not None:
                amount = cost.of(call.arguments) if cost is not None and cost.currency == limit.currency else Decimal(0)
            if amount and limit.counts(call.name):
                yield Charge(self._share(limit, call), amount, limit, is_approved and limit.over == "ask")

    def _cost_of(self, call: Any) -> Cost | None:
        given = (cost for pattern, cost in self._costs.items() if fnmatchcase(call.name, pattern))
        return next(given, call.tool.options.cost)

    def _share(self, limit: Limit, call: Any) -> str:
        """Return the key of what a limit counts together with a call."""
        parts = {share: self._part(share, call) for share in sorted(limit.shares)}
        window = None if limit.window is None else limit.window.total_seconds()
        return json.dumps([self.name, limit.unit, window, sorted(limit.tools), parts])

    def _part(self, share: Share, call: Any) -> str | None:
        run = call.run
        match share:
            case "tool":
                return call.name
            case "principal":
                return run.principal
            case "run":
                return run.id
            case "conversation":
                return run.channel.conversation_id
            case "server":
                identity = None if call.tool.source is None else call.tool.source.get_identity()
                return None if identity is None else _digest(identity)
            case "group":
                return self._groups(call) if callable(self._groups) else (self._groups or {}).get(run.principal)


def _digest(identity: Mapping[str, Any]) -> str:
    text = json.dumps(identity, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()
