"""Priced model: a chat model whose replies are counted in budgets, and which is not asked when they are used up."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, Iterable, Mapping
from dataclasses import replace
from inspect import isawaitable
from typing import Any, cast

from toolcrib.budgets import Budgets
from toolcrib.errors import explain_options
from toolcrib.formats import PROVIDERS, Tokens, WireFormat, text_delta, tokens_in
from toolcrib.pipeline import Run
from toolcrib.rounds._chat_model import ChatModel, ChatRequest, closed_stream
from toolcrib.rounds._client_model import as_chat_model


@explain_options({"budget": "budgets", "limits": "budgets", "prices": "Budgets(prices={...})"})
class PricedModel:
    """A model whose replies are counted in the limits of money of `Budgets`, by its price list.

    Each request is counted once, when its reply has come, for the run of the session that asks. The reply with which a
    limit is over is kept; further requests raise `SpendLimitReached`. Of a stream that is broken off is counted what it
    has said by then, and an estimate of the rest: a token for four characters of the request, and of the text.

    Args:
        model: As for `Session`.
        budgets: The limits and the prices.
        model_name: The model's name, where `model` is a client, or has none.
        format: As for `Session`.

    Attributes:
        format: The wire format that sessions take over.
        model: The model's name.
        provider: The provider's name; empty where the model has none.
        is_instrumented: Whether the model makes an OpenTelemetry span for each request itself.

    Raises:
        TypeError: The model is not a model.
        ValueError: The model has no name; the price list does not have it; no limit counts its currency; or it is a
            `PricedModel`, whose replies would be counted twice.
    """

    def __init__(
        self,
        model: ChatModel | str | object,
        budgets: Budgets,
        *,
        model_name: str = "",
        format: WireFormat | None = None,
    ) -> None:
        name = "" if hasattr(model, "reply") else model_name
        self._asked: Any = as_chat_model(model, name, format)
        if isinstance(self._asked, PricedModel):
            raise ValueError("PricedModel: the model is one already: give one of them Budgets with all limits")
        self._budgets, self._problem = budgets, ""
        self.model: str = model_name or getattr(self._asked, "model", "")
        if not self.model:
            raise ValueError("PricedModel: the model has no name to find its price by: give model_name='...'")
        budgets.price_of(self.model)
        self.format: WireFormat = format or getattr(self._asked, "format", next(iter(PROVIDERS)))
        self.provider: str = getattr(self._asked, "provider", "")

    @property
    def is_instrumented(self) -> bool:
        """True if the model makes an OpenTelemetry span for each request itself."""
        return bool(getattr(self._asked, "is_instrumented", False))

    async def reply(self, request: ChatRequest) -> object:
        """Ask the model once, and count what its reply costs.

        Raises:
            SpendLimitReached: A limit is used up; nothing was sent.
            ValueError: The reply does not say how many tokens it took, or an earlier one did not: then nothing was
                sent.
            RuntimeError: The reply came, and could not be counted.
        """
        run = request.run or Run()
        if self._problem:
            raise ValueError(self._problem)
        await self._budgets.check_model(self.model, run)
        reply: object = self._asked.reply(request)
        if isawaitable(reply):
            reply = await reply
        if isinstance(reply, AsyncIterable):
            return self._counted(cast("AsyncIterable[object]", reply), request, run)
        await self._count(tokens_in(reply, request.format), run)
        return reply

    async def _counted(self, stream: AsyncIterable[object], request: ChatRequest, run: Run) -> AsyncGenerator[object]:
        tokens, written, is_begun, is_over = None, 0, False, False
        try:
            async with closed_stream(stream):
                async for chunk in stream:
                    is_begun, tokens = True, tokens_in(chunk, request.format, tokens) or tokens
                    written += len(text_delta(chunk, request.format))
                    yield chunk
            is_over = True
        finally:
            if is_over or is_begun:
                await self._count(tokens if is_over else _estimated(tokens, request, written), run)

    async def _count(self, tokens: Tokens | None, run: Run) -> None:
        if tokens is None or tokens.is_unclear:
            mend = "have its server send `usage`, or ask it without PricedModel"
            self._problem = f"the reply of `{self.model}` says no tokens, so that its cost cannot be counted: {mend}"
            raise ValueError(self._problem)
        try:
            await self._budgets.count_model(self.model, run, tokens)
        except Exception as error:  # of the store, where a `Retry` would take it for one of the model's server
            raise RuntimeError(f"the reply of `{self.model}` came, and could not be counted: {error!r:.200}") from error


def _estimated(tokens: Tokens | None, request: ChatRequest, written: int) -> Tokens:
    """Return the tokens of a stream that was broken off, four characters each where it had not said as many."""
    if tokens is None or tokens.is_unclear:
        tokens = Tokens(_characters((request.system, request.messages, request.tools)) // 4)
    return replace(tokens, output=max(tokens.output, written // 4))


def _characters(item: object) -> int:
    """Return the number of characters in all texts of an item; at most 4000 of a file that is written as one."""
    if isinstance(item, str):
        return min(len(item), 4_000) if item.isascii() and " " not in item else len(item)
    parts: Iterable[object] = cast("Mapping[str, object]", item).values() if isinstance(item, Mapping) else ()
    return sum(map(_characters, cast("Iterable[object]", item) if isinstance(item, list | tuple) else parts))
