"""Limits of calls and of money, the prices of models, and the charge of a call or a request."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fnmatch import fnmatchcase
from math import ceil
from typing import Final, Literal, TypeAlias, cast, get_args

from toolcrib._numbers import require_number, require_span
from toolcrib.calls import number_of
from toolcrib.errors import explain_options
from toolcrib.formats import Tokens

Share: TypeAlias = Literal["tool", "principal", "group", "server", "run", "conversation"]
"""Calls that are counted together: those of one tool, principal, group of principals, server, run or conversation."""

Period: TypeAlias = Literal["minute", "hour", "day"]

_PERIODS: Final[dict[str, timedelta]] = {
    "minute": timedelta(minutes=1),
    "hour": timedelta(hours=1),
    "day": timedelta(days=1),
}
_SECOND: Final = timedelta(seconds=1)
_MICROSECOND: Final = timedelta(microseconds=1)


@explain_options(
    {
        "amount": "spend",
        "cost": "spend",
        "max_calls": "calls",
        "total": "calls",
        "period": "per",
        "window": "per",
        "tool": "tools",
        "per_tool": "Limit(calls=..., by='tool')",
        "per_principal": "Limit(calls=..., by='principal')",
        "unit": "currency",
    }
)
@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """The most calls, or the most money, of one share in a period.

    Attributes:
        calls: The number of calls that may begin; None where money is limited.
        spend: The amount that they may cost; None where calls are limited.
        currency: The currency of `spend`, as `Cost` names it. A cost in another one is not counted.
        per: The period in which they are counted, whenever it begins: any 24 hours for `day`. None counts for ever.
        by: The calls that are counted together; all calls where it is empty. Those without a principal (a group, a
            server, a conversation) are counted as those of one.
        tools: The tools that are counted, by names or patterns such as `shop_*`; all of them where it is empty.
        over: The treatment of a call that is over the limit: it is refused, or a person is asked.
    """

    calls: int | None = None
    spend: Decimal | float | None = None
    currency: str = ""
    per: Period | timedelta | None = None
    by: Share | Sequence[Share] = ()
    tools: Sequence[str] = ()
    over: Literal["refuse", "ask"] = "refuse"

    def __post_init__(self) -> None:
        if (self.calls is None) == (self.spend is None):
            raise ValueError("Limit: give calls or spend, and not both")
        require_number("Limit", "calls", self.calls, least=0)
        require_number("Limit", "spend", None if isinstance(self.spend, Decimal) else self.spend, least=0, whole=False)
        if not isinstance(self.per, str | None):
            require_span("Limit", "per", self.per)
        if self.spend is not None and not (self.most.is_finite() and self.most >= 0 and self.currency):
            raise ValueError(f"Limit: spend is {self.spend} {self.currency!r}; give an amount from 0 on and a currency")
        if self.window is not None and self.window < _SECOND:
            raise ValueError(f"Limit: per is {self.window}; give a second or more")
        if unknown := set(self.shares).difference(get_args(Share)):
            raise ValueError(f"Limit: by has {min(unknown)!r}; its parts are {', '.join(get_args(Share))}")
        if isinstance(self.tools, str):
            raise TypeError(f"Limit: tools must be a list of names, as in tools=[{self.tools!r}]")
        if self.spend is None and self.currency:
            raise ValueError(f"Limit: currency is {self.currency!r}, and calls have none; give spend=... with it")

    @property
    def most(self) -> Decimal:
        """The number of calls, or the amount."""
        return Decimal(str(self.spend if self.calls is None else self.calls))

    @property
    def unit(self) -> str:
        """The unit of the count: `calls`, or the currency."""
        return "calls" if self.spend is None else self.currency

    @property
    def window(self) -> timedelta | None:
        """The period in which calls are counted; None for ever."""
        return _PERIODS[self.per] if isinstance(self.per, str) else self.per

    @property
    def shares(self) -> tuple[Share, ...]:
        """The parts of `by`, for the calls that are counted together."""
        return (self.by,) if isinstance(self.by, str) else tuple(self.by)

    def counts(self, tool: str) -> bool:
        """Return whether it counts the calls of a tool."""
        return not self.tools or any(fnmatchcase(tool, pattern) for pattern in self.tools)

    @property
    def includes_models(self) -> bool:
        """True if the limit counts the costs of models: a limit of money for all tools and servers."""
        return self.spend is not None and not self.tools and not {"tool", "server"}.intersection(self.shares)

    def text(self) -> str:
        """Return the limit in words: `10 calls a minute of one principal`."""
        per = f" in {self.per}" if isinstance(self.per, timedelta) else f" a {self.per}" if self.per else " in all"
        of = f" of one {' and one '.join(self.shares)}" if self.shares else ""
        named = f" of {', '.join(self.tools)}" if self.tools else ""
        return f"{self.most:f} {self.unit}{per}{named}{of}"


@explain_options({"prompt": "input", "completion": "output", "cache_read": "cached", "cache_write": "cache_written"})
@dataclass(frozen=True, slots=True, kw_only=True)
class TokenPrice:
    """The prices of a model, for a million tokens.

    Attributes:
        input: The price of the tokens that the model reads.
        output: The price of the tokens that it writes, with its thoughts.
        currency: The currency, such as `USD`; limits in others do not count it.
        cached: The price of the tokens that it reads from a cache; as `input` when None.
        cache_written: The price of the tokens that it reads and writes into a cache; as `input` when None.
    """

    input: float | Decimal
    output: float | Decimal
    currency: str
    cached: float | Decimal | None = None
    cache_written: float | Decimal | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.currency, str) or not self.currency:  # pyright: ignore[reportUnnecessaryIsInstance] -- a host's value
            raise ValueError("TokenPrice: give a currency, as in TokenPrice(input=1.25, output=10, currency='USD')")
        prices = {name: getattr(self, name) for name in ("input", "output", "cached", "cache_written")}
        for name, value in prices.items():
            if value is None and name in ("cached", "cache_written"):
                continue
            number = number_of(str(value) if isinstance(value, Decimal) else value)
            if isinstance(cast("object", value), str) or number is None or number < 0:
                raise ValueError(f"TokenPrice: {name} is {value!r:.40}; give a number from 0 on")

    def of(self, tokens: Tokens) -> Decimal:
        """Return the price of a request that took these tokens."""
        input, output, cached, written = (
            Decimal(str(self.input if price is None else price))
            for price in (self.input, self.output, self.cached, self.cache_written)
        )
        read = max(tokens.input - tokens.cached - tokens.cache_written, 0)
        millions = read * input + tokens.output * output + tokens.cached * cached + tokens.cache_written * written
        return millions / 1_000_000


@dataclass(frozen=True, slots=True)
class Charge:
    """The amount that one call, or one reply of a model, adds to a limit.

    Attributes:
        share: The key of what is counted together.
        amount: The amount; 0 asks whether anything is left.
        limit: The limit.
        may_exceed: Whether it is counted also where it exceeds the limit, as a person approved it.
    """

    share: str
    amount: Decimal
    limit: Limit
    may_exceed: bool = False

    @property
    def window(self) -> int:
        """The period of the count in microseconds; 0 for ever."""
        return 0 if self.limit.window is None else self.limit.window // _MICROSECOND

    def fits(self, used: Decimal) -> bool:
        """Return whether the limit has room for it beside a used amount."""
        return used + self.amount <= self.limit.most if self.amount else used < self.limit.most


@dataclass(frozen=True, slots=True)
class Overrun:
    """A charge that is over its limit.

    Attributes:
        charge: The charge.
        used: The amount that was used before it.
        free_at: The time at which there is room for it, in seconds since 1970; None where waiting does not help.
    """

    charge: Charge
    used: Decimal
    free_at: float | None

    def text(self, name: str, at: float) -> str:
        """Return the text for a model or a person: the limit that a call or a request is over, and until when."""
        limit, amount = self.charge.limit, self.charge.amount
        costs = "" if limit.spend is None or not amount else f" It costs {amount:f} {limit.unit}."
        used = f"at most {limit.text()}, of which {self.used:f} are used."
        if self.free_at is None:
            return f"`{name}` is over its limit: {used}{costs} Waiting does not help."
        when = datetime.fromtimestamp(self.free_at, UTC).isoformat(timespec="seconds")
        wait = ceil(self.free_at - at)
        return f"`{name}` is over its limit: {used}{costs} It is free again at {when}, in {wait} s."
