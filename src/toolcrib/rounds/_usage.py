"""Usage: requests, tokens and cost of a session, or of a part of it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, Callable, Mapping
from dataclasses import asdict, dataclass, replace
from decimal import Decimal
from importlib.util import find_spec
from operator import add, sub
from typing import Any

from toolcrib.calls import StoredFields
from toolcrib.formats import PROVIDERS, Tokens, WireFormat, tokens_in


@dataclass(frozen=True, slots=True)
class Usage:
    """The usage of requests.

    Attributes:
        requests: How many replies came.
        input_tokens: The tokens that the model read, those from a cache or written into one included.
        output_tokens: The tokens that it wrote, its thoughts included.
        cached_tokens: How many of the input came from a cache.
        cache_written_tokens: How many of the input were written into one.
        reasoning_tokens: How much of the output were thoughts.
        cost: In US dollars, by the list prices in the package `genai-prices` (the extra `models`); None where that is
            not installed, or does not know the model of one of the replies.
    """

    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cache_written_tokens: int = 0
    reasoning_tokens: int = 0
    cost: Decimal | None = Decimal(0)

    def __add__(self, other: Usage) -> Usage:
        return self._joined(other, add)

    def __sub__(self, other: Usage) -> Usage:
        return self._joined(other, sub)

    def _joined(self, other: Usage, join: Callable[[Any, Any], Any]) -> Usage:
        pairs = [(name, value, getattr(other, name)) for name, value in asdict(self).items()]
        joined: Any = {name: None if None in (mine, theirs) else join(mine, theirs) for name, mine, theirs in pairs}
        return Usage(**joined)

    @classmethod
    def of_reply(cls, tokens: Tokens | None, format: WireFormat) -> Usage:
        """Return the usage of one reply; `tokens` is None where it says nothing."""
        if tokens is None:
            return cls(1, cost=None)
        counts = tokens.input, tokens.output, tokens.cached, tokens.cache_written, tokens.reasoning
        return cls(1, *counts, _cost(tokens, format))

    def to_dict(self) -> dict[str, Any]:
        """Return the usage as JSON shapes, for `from_dict`."""
        return {**asdict(self), "cost": None if self.cost is None else str(self.cost)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Usage:
        """Return the usage that `to_dict` described."""
        usage = cls(**StoredFields(cls, data))
        return replace(usage, cost=None if usage.cost is None else Decimal(usage.cost))


class UsageCounter:
    """Counts the tokens of one reply, whole or streamed.

    Attributes:
        counted_any: Whether a reply, or a part of one, came.
    """

    def __init__(self, format: WireFormat) -> None:
        self._format: WireFormat = format
        self._tokens: Tokens | None = None
        self.counted_any = False

    def count(self, shape: object) -> None:
        """Count what a reply or a chunk says."""
        self.counted_any = True
        self._tokens = tokens_in(shape, self._format, self._tokens) or self._tokens

    async def counted(self, chunks: AsyncIterable[object]) -> AsyncGenerator[object]:
        """Pass a reply's chunks on, and count them."""
        async for chunk in chunks:
            self.count(chunk)
            yield chunk

    @property
    def model(self) -> str:
        """The name of the model that answered; empty where it was not said."""
        return "" if self._tokens is None else self._tokens.model

    def usage(self) -> Usage:
        """Return the usage so far."""
        return Usage.of_reply(self._tokens, self._format)


def _cost(tokens: Tokens, format: WireFormat) -> Decimal | None:
    """Return the price of a request in US dollars; None where it cannot be known."""
    provider = PROVIDERS[format].prices
    if not (provider and tokens.model) or find_spec("genai_prices") is None:
        return None
    import genai_prices  # noqa: PLC0415 -- an extra, and slow to load

    counts = genai_prices.Usage(
        input_tokens=tokens.input,
        output_tokens=tokens.output,
        cache_read_tokens=tokens.cached,
        cache_write_tokens=tokens.cache_written,
    )
    try:
        return genai_prices.calc_price(counts, tokens.model, provider_id=provider).total_price
    except (LookupError, ValueError):
        return None
