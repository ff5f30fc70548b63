"""Priced model: a chat model whose replies are counted in budgets, and which is not asked when they are used up."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable
from inspect import isawaitable
from typing import Any, cast

from toolcrib.budgets import Budgets
from toolcrib.errors import explain_options
from toolcrib.formats import Tokens, WireFormat, tokens_in
from toolcrib.pipeline import Run
from toolcrib.rounds._chat_model import ChatModel, ChatRequest, closed_stream
from toolcrib.rounds._client_model import as_chat_model


@explain_options({"budget": "budgets", "limits": "budgets", "prices": "Budgets(prices={...})"})
class PricedModel:
    """A model whose replies are counted in the limits of money of `Budgets`, by its price list.

    Each request is counted once, when its reply has come, for the run of the session that asks. The reply with which a
    limit is over is kept; further requests raise `SpendLimitReached`. Of a stream that is broken off is counted what it
    has said by then.

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
        ValueError: The model has no name; the price list does not have it; or no limit counts its currency.
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
        self._budgets = budgets
        self.model: str = model_name or getattr(self._asked, "model", "")
        if not self.model:
            raise ValueError("PricedModel: the model has no name to find its price by: give model_name='...'")
        budgets.price_of(self.model)
        self.format: WireFormat = format or getattr(self._asked, "format", "openai")
        self.provider: str = getattr(self._asked, "provider", "")

    @property
    def is_instrumented(self) -> bool:
        """Whether the model makes an OpenTelemetry span for each request itself."""
        return bool(getattr(self._asked, "is_instrumented", False))

    async def reply(self, request: ChatRequest) -> object:
        """Ask the model once, and count what its reply costs.

        Raises:
            SpendLimitReached: A limit is used up; nothing was sent.
            ValueError: The reply does not say how many tokens it took.
        """
        run = request.run or Run()
        await self._budgets.check_model(self.model, run)
        reply: object = self._asked.reply(request)
        if isawaitable(reply):
            reply = await reply
        if isinstance(reply, AsyncIterable):
            return self._counted(cast("AsyncIterable[object]", reply), request, run)
        await self._count(tokens_in(reply, request.format), run)
        return reply

    async def _counted(self, stream: AsyncIterable[object], request: ChatRequest, run: Run) -> AsyncGenerator[object]:
        tokens, is_over = None, False
        try:
            async with closed_stream(stream):
                async for chunk in stream:
                    tokens = tokens_in(chunk, request.format, tokens) or tokens
                    yield chunk
            is_over = True
        finally:
            if is_over or tokens is not None:
                await self._count(tokens, run)

    async def _count(self, tokens: Tokens | None, run: Run) -> None:
        if tokens is None:
            mend = "have its server send `usage`, or ask it without PricedModel"
            raise ValueError(f"the reply of `{self.model}` says no tokens, so that its cost cannot be counted: {mend}")
        await self._budgets.count_model(self.model, run, tokens)
