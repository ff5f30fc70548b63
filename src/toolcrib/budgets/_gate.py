"""The gate of budgets: it counts calls and the costs of tools and models, and refuses or asks over a limit."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fnmatch import fnmatchcase
from typing import Any, cast

from toolcrib._numbers import count_text
from toolcrib.budgets._limit import Charge, Limit, Overrun, Share, TokenPrice
from toolcrib.budgets._store import MemoryUsageStore, UsageStore
from toolcrib.calls import Ask, Rejected
from toolcrib.clock import WALL_CLOCK, Clock
from toolcrib.errors import SpendLimitReached, explain_options
from toolcrib.formats import Tokens
from toolcrib.hooks import WITH_ARGUMENTS, Stage, require_parameters
from toolcrib.pipeline import Run
from toolcrib.tools import Cost, Tool
from toolcrib.toolsets import is_pattern

_log = logging.getLogger("toolcrib.tools")


@dataclass(frozen=True, slots=True)
class _ModelRequest:
    """A request to a model, as a function for `groups` sees it."""

    name: str
    run: Run


_CALLS = "Budgets([Limit(calls=10, per='minute')])"


@explain_options(
    {
        "limit": "limits",
        "calls": _CALLS,
        "max_calls": _CALLS,
        "per_tool": "Budgets([Limit(calls=10, by='tool')])",
        "spend": "Budgets([Limit(spend=50, currency='EUR', per='day')])",
        "max_cost": "Budgets([Limit(spend=50, currency='EUR', per='day')])",
        "cost": "costs",
    }
)
class Budgets:
    """A gate that counts calls and their costs; a call that is over a limit is refused, or a person is asked.

    A call is counted when it begins, and once: one that another gate refuses, that waits for a person, or that is
    denied uses nothing. A call over a limit that a person approves is counted, and the limit is then exceeded.

    The cost of a model is counted in the same limits where a session asks it through a `toolcrib.rounds.PricedModel`.

    A toolset refuses the gate with ValueError where one of its limits or costs names a tool that does not exist, or
    where it has tools for a limit of money and no cost in its currency. Where tools come later, it does so when it is
    opened. On a run, a name that is nearly that of a tool refuses each call, and any other is logged at the first call.

    Args:
        limits: The limits, all of which hold.
        store: The store of the counts; the memory of this process when None.
        groups: The group of each principal, or a function of the call (`Call`) that returns it, or several, in each
            of which the call counts; a request to a model has `run` and `name` alone.
        costs: Costs of tools, by names or patterns such as `shop_*`, in the place of their own `cost`; the first that
            fits counts.
        prices: Prices of models, by names or patterns such as `gpt-5*`; the first that fits counts.
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
        groups: Mapping[str, str] | Callable[[Any], str | Sequence[str] | None] | None = None,
        costs: Mapping[str, Cost] | None = None,
        prices: Mapping[str, TokenPrice] | None = None,
        name: str = "budgets",
        clock: Clock = WALL_CLOCK,
    ) -> None:
        if isinstance(limits, Limit) or not all(isinstance(limit, Limit) for limit in limits):  # pyright: ignore[reportUnnecessaryIsInstance] -- a host's value
            raise TypeError("Budgets: limits must be a list of limits, as in Budgets([Limit(calls=10, per='minute')])")
        if groups is None and any("group" in limit.shares for limit in limits):
            raise ValueError("Budgets: a limit is by group, and no groups are given")
        if callable(groups):
            require_parameters("group function", groups, "call", result="the group", is_awaited=False, takes_none=True)
        _require_list("costs", costs, Cost, "pay", "Cost(30, 'EUR')")
        _require_list("prices", prices, TokenPrice, "gpt-5*", "TokenPrice(input=1.25, output=10, currency='USD')")
        self.limits, self.name = tuple(limits), name
        self._store = MemoryUsageStore() if store is None else store
        self._groups, self._costs, self._prices, self._clock = groups, dict(costs or {}), dict(prices or {}), clock
        self.tool_names = tuple(dict.fromkeys((*(name for limit in self.limits for name in limit.tools), *self._costs)))
        self._unchecked = [limit for limit in self.limits if limit.spend is not None]

    def __repr__(self) -> str:
        return f"<Budgets {self.name!r} of {count_text(len(self.limits), 'limit')}>"

    def check_tools(self, tools: Mapping[str, Tool[..., Any]], *, is_complete: bool) -> None:
        """Check that each limit of money counts one of the tools that it is for.

        Args:
            tools: The tools of a toolset that is given the gate, by name.
            is_complete: Whether no further tools come later.

        Raises:
            ValueError: The tools are complete, and none has a cost in the currency, nor does the price list.
        """
        for limit in [limit for limit in self.limits if limit.spend is not None and any(map(limit.counts, tools))]:
            problem = self._why_nothing_counts(limit, tools)
            if problem and is_complete and not self._is_listed(limit):
                raise ValueError(
                    f"Budgets: {problem} Give a tool cost=Cost(..., {limit.currency!r}), or the gate costs={{...}}; "
                    "a gate of several toolsets is put on all of them: Toolset([one, other]).with_gates(...)"
                )
            if problem is None and limit in self._unchecked:
                self._unchecked.remove(limit)

    def explain(self, name: str, tool: Tool[..., Any]) -> str:
        """Return the limits that count calls of a tool, and what the tool costs where that is a fixed amount."""
        cost = self._cost_of(name, tool)
        currency = None if cost is None else cost.currency
        counting = [limit for limit in self.limits if limit.counts(name) and limit.unit in ("calls", currency)]
        price = "" if cost is None or callable(cost.amount) else f" ({cost.amount} {cost.currency} a call)"
        limits = (
            limit.text() + (price if limit.spend is not None else "") + (", or asked" if limit.over == "ask" else "")
            for limit in counting
        )
        return "; ".join(limits) or "no limit counts it"

    async def check(self, call: Any) -> Rejected | Ask | None:
        """Refuse a call over a limit, or ask; nothing is counted yet, but for a call that the host executes itself."""
        for limit in [limit for limit in self._unchecked if limit.counts(call.name)]:
            self._unchecked.remove(limit)
            tools = {name: entry.tool for name, entry in call.toolset.entries.items()}
            problem = self._why_nothing_counts(limit, tools)
            if problem and not self._is_listed(limit):
                _log.warning("%s, at the call of `%s`: %s", self.name, call.name, problem)
        at, ask = self._clock.monotonic(), self._store.overruns if call.is_executable else self._store.charge
        return self._answer(call, await ask(self._charges(call), at), at)

    async def begin(self, call: Any) -> Rejected | Ask | None:
        """Count a call that begins; refuse it, or ask, where a limit was reached meanwhile."""
        at = self._clock.monotonic()
        over = await self._store.charge(self._charges(call, is_approved=call.grant is not None), at)
        return self._answer(call, [excess for excess in over if not excess.charge.may_exceed], at)

    def price_of(self, name: str) -> TokenPrice:
        """Return the price of a model.

        Raises:
            ValueError: The list does not have it, or no limit counts models in the currency of the price.
        """
        price = self._listed_price(name)
        if price is None:
            mend = "TokenPrice(input=..., output=..., currency=...)"
            raise ValueError(f"Budgets: the model `{name}` has no price: give Budgets(prices={{{name!r}: {mend}}})")
        if not any(limit.includes_models and limit.currency == price.currency for limit in self.limits):
            mend = f"give Limit(spend=..., currency={price.currency!r}), for no tools or servers alone"
            raise ValueError(f"Budgets: no limit counts the price of the model `{name}` in {price.currency}: {mend}")
        return price

    async def check_model(self, model: str, run: Run) -> None:
        """Check that something is left to ask a model with, in each limit of money that counts it.

        Args:
            model: Its name.
            run: The run that asks.

        Raises:
            SpendLimitReached: Nothing is left; it says when there is again. A limit that asks is over, too: no person
                is asked about a request to a model.
        """
        at = self._clock.monotonic()
        over = await self._store.overruns(
            self._model_charges(model, run, self.price_of(model).currency, Decimal(0)), at
        )
        if over:
            times = [excess.free_at for excess in over if excess.free_at is not None]
            free_at = max(times) if len(times) == len(over) else None
            raise SpendLimitReached(" ".join(excess.text(model, at) for excess in over), free_at)

    async def count_model(self, model: str, run: Run, tokens: Tokens) -> None:
        """Count the cost of a model's reply, also where it is more than was left.

        Args:
            model: The name by which it was asked. It is priced by that name where the list does not have the one that
                answered, or has it in another currency, whose limits were not asked.
            run: The run that asked.
            tokens: The tokens of the reply, with the name of the model that answered.
        """
        price = self.price_of(model)
        answered = self._listed_price(tokens.model)
        if answered is not None and answered.currency == price.currency:
            price = answered
        charges = self._model_charges(model, run, price.currency, price.of(tokens))
        await self._store.charge(charges, self._clock.monotonic())

    def _model_charges(self, model: str, run: Run, currency: str, amount: Decimal) -> Iterator[Charge]:
        request = _ModelRequest(model, run)
        for limit in self.limits:
            if limit.includes_models and limit.currency == currency:
                for share in self._shares(limit, request):
                    yield Charge(share, amount, limit, may_exceed=True)

    def _listed_price(self, model: str) -> TokenPrice | None:
        return next((price for pattern, price in self._prices.items() if fnmatchcase(model, pattern)), None)

    def _answer(self, call: Any, over: Sequence[Overrun], at: float) -> Rejected | Ask | None:
        refusing = [excess for excess in over if excess.charge.limit.over == "refuse"]
        texts = [excess.text(call.name, at) for excess in refusing or over]
        if refusing:
            return Rejected(call.name, call.id, " ".join(texts), "limit")
        return Ask(" ".join(texts)) if texts else None

    def _charges(self, call: Any, *, is_approved: bool = False) -> Iterator[Charge]:
        """Yield the amount that a call adds to each limit that counts it."""
        cost = self._cost_of(call.name, call.tool)
        for limit in self.limits:
            amount = Decimal(1)
            if limit.spend is not None:
                amount = cost.of(call.arguments) if cost is not None and cost.currency == limit.currency else Decimal(0)
            if amount and limit.counts(call.name):
                for share in self._shares(limit, call):
                    yield Charge(share, amount, limit, is_approved and limit.over == "ask")

    def _cost_of(self, name: str, tool: Tool[..., Any]) -> Cost | None:
        costs = (cost for pattern, cost in self._costs.items() if fnmatchcase(name, pattern))
        return next(costs, tool.options.cost)

    def _is_listed(self, limit: Limit) -> bool:
        """Return whether the lists may price what a limit counts: a model, or a tool of a toolset beside this."""
        if limit.includes_models and any(price.currency == limit.currency for price in self._prices.values()):
            return True
        return any(
            cost.currency == limit.currency and (is_pattern(name) or limit.counts(name))
            for name, cost in self._costs.items()
        )

    def _why_nothing_counts(self, limit: Limit, tools: Mapping[str, Tool[..., Any]]) -> str | None:
        """Return why a limit of money counts none of the tools that it is for; None where it counts one."""
        costs = {name: self._cost_of(name, tool) for name, tool in tools.items() if limit.counts(name)}
        others = {name: cost.currency for name, cost in costs.items() if cost is not None}
        if limit.currency in others.values():
            return None
        has = ", ".join(f"`{name}` has one in {currency}" for name, currency in [*others.items()][:3])
        return (
            f"the limit of {limit.text()} counts nothing, as no tool here has a cost in {limit.currency}"
            f"{f' ({has})' if has else ''}."
        )

    def _shares(self, limit: Limit, call: Any) -> Iterator[str]:
        """Yield the keys of what a limit counts together with a call: one for each group of who makes it."""
        window = None if limit.window is None else limit.window.total_seconds()
        for group in self._groups_of(call) if "group" in limit.shares else (None,):
            parts = {share: self._part(share, call, group) for share in sorted(limit.shares)}
            yield json.dumps([self.name, limit.unit, window, sorted(limit.tools), parts])

    def _groups_of(self, call: Any) -> Sequence[str | None]:
        groups = self._groups(call) if callable(self._groups) else (self._groups or {}).get(call.run.principal)
        return [groups] if groups is None or isinstance(groups, str) else [*groups] or [None]

    def _part(self, share: Share, call: Any, group: str | None) -> str | None:
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
                return group


def _require_list(name: str, given: Any, kind: type, key: str, example: str) -> None:
    """Raise TypeError unless a list of costs or prices is a mapping of them."""
    if given is not None and not isinstance(given, Mapping):
        raise TypeError(f"Budgets: {name} is {given!r:.80}; give them by name, as in {name}={{{key!r}: {example}}}")
    for of, value in cast("Mapping[str, object]", given or {}).items():
        if not isinstance(value, kind):
            raise TypeError(f"Budgets: the {name[:-1]} of `{of}` is {value!r:.80}; give it as in {{{of!r}: {example}}}")


def _digest(identity: Mapping[str, Any]) -> str:
    text = json.dumps(identity, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()
