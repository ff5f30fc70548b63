"""Money that models cost: in which limits a reply is counted, when, and what becomes of the next request."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.budgets.processes import answered, dollars_a_day, processes_at_once, spent_at_once
from toolcrib.budgets import Budgets, Charge, Cost, Limit, MemoryUsageStore, SqliteUsageStore, TokenPrice
from toolcrib.calls import ToolCall
from toolcrib.errors import SpendLimitReached
from toolcrib.formats import Tokens
from toolcrib.pipeline import Channel, Pipeline, Run
from toolcrib.rounds import ChatModel, ChatRequest, Finished, PricedModel, Retry, Session
from toolcrib.testing import FakeClock, ScriptedModel, wire_reply
from toolcrib.tools import ez_tool
from toolcrib.toolsets import Toolset

PRICE = TokenPrice(input=2, output=10, cached=1, currency="USD")
A_DAY = Limit(spend=5, currency="USD", per="day", by="principal")


def reply(input: int = 1_000_000, output: int = 0, cached: int = 0, model: str = "m", **call: Any) -> dict[str, Any]:
    """Return a reply that says what it took, which is two dollars by default."""
    usage = {"prompt_tokens": input, "completion_tokens": output, "prompt_tokens_details": {"cached_tokens": cached}}
    calls = [ToolCall(name, arguments) for name, arguments in call.items()]
    return {**wire_reply("openai", calls, text="" if calls else "yes"), "model": model, "usage": usage}


def budgets(*limits: Limit, **options: Any) -> Budgets:
    return Budgets(limits or [A_DAY], **{"prices": {"m*": PRICE}, "clock": FakeClock(), **options})


def session(counted: Budgets, *steps: Any, run: Run | None = None, name: str = "m", **options: Any) -> Session:
    model = PricedModel(ScriptedModel(*steps), counted, model_name=name)
    return Session(model, run=run or Run(principal="ann"), **options)


async def replies(asking: Session, most: int = 9) -> int:
    """Return how many replies a session gets before it is refused."""
    for number in range(most):
        try:
            await asking.say("on").run()
        except SpendLimitReached:
            return number
    return most


@pytest.mark.parametrize(
    ("tokens", "expected"),
    [
        (Tokens(input=1_000_000, output=100_000), "3"),
        (Tokens(input=1_000_000, cached=400_000), "1.6"),
        (Tokens(input=1_000_000, cached=400_000, cache_written=600_000), "1.9"),
        (Tokens(input=1), "0.000002"),
        (Tokens(), "0"),
    ],
)
def test_a_reply_costs_what_its_tokens_do(tokens: Tokens, expected: str) -> None:
    price = TokenPrice(input=2, output=10, cached=1, cache_written=Decimal("2.5"), currency="USD")

    assert price.of(tokens) == Decimal(expected)


def test_tokens_of_a_cache_cost_as_others_where_the_price_does_not_say() -> None:
    price = TokenPrice(input=2, output=10, currency="USD")

    assert price.of(Tokens(input=1_000_000, cached=300_000, cache_written=300_000)) == 2


async def test_the_reply_that_goes_over_is_kept_and_the_next_request_is_refused() -> None:
    clock = FakeClock()
    counted = budgets(clock=clock)
    asking = session(counted, *[reply()] * 4)

    results = [await asking.say("on").run() for _ in range(3)]
    with pytest.raises(SpendLimitReached) as refused:
        await asking.say("on").run()
    clock.advance(refused.value.free_at or 0)
    later = await asking.run()

    assert all(isinstance(result, Finished) for result in [*results, later])
    assert str(refused.value) == (
        "`m` is over its limit: at most 5 USD a day of one principal, of which 6 are used. "
        "It is free again at 1970-01-02T00:24:00+00:00, in 87840 s."
    )


async def test_a_limit_that_is_just_used_up_leaves_nothing_for_a_request() -> None:
    assert await replies(session(budgets(Limit(spend=4, currency="USD")), *[reply()] * 9)) == 2
    assert await replies(session(budgets(Limit(spend=0, currency="USD")), *[reply()] * 9)) == 0


async def test_a_limit_in_another_currency_does_not_count_it() -> None:
    euros = Limit(spend=1, currency="EUR", per="day", by="principal")

    assert await replies(session(budgets(euros, A_DAY), *[reply()] * 9)) == 3


@pytest.mark.parametrize(
    ("by", "runs", "expected"),
    [
        ("principal", [Run(principal="ann"), Run(principal="ann"), Run(principal="bob")], [1, 0, 1]),
        ("group", [Run(principal="ann"), Run(principal="bob"), Run(principal="eve")], [1, 0, 1]),
        ("run", [Run(id="r"), Run(id="r"), Run(id="s")], [1, 0, 1]),
        (
            "conversation",
            [Run(channel=Channel(conversation_id=name)) for name in "aab"],
            [1, 0, 1],
        ),
        ((), [Run(principal="ann"), Run(principal="bob")], [1, 0]),
        ("tool", [Run(), Run()], None),
        ("server", [Run(), Run()], None),
    ],
)
async def test_requests_of_one_share_are_counted_together(by: Any, runs: list[Run], expected: list[int] | None) -> None:
    limit = Limit(spend=1, currency="USD", per="day", by=by)
    counted = budgets(limit, groups={"ann": "sales", "bob": "sales"})

    if expected is None:
        with pytest.raises(ValueError, match="no limit counts the price of the model `m` in USD"):
            session(counted)
        return

    assert [await replies(session(counted, *[reply()] * 9, run=run), 1) for run in runs] == expected


async def test_groups_may_be_a_function_of_the_request() -> None:
    limit = Limit(spend=1, currency="USD", by="group")
    counted = budgets(limit, groups=lambda call: f"{call.name} of {call.run.principal}")
    runs = [Run(principal=name) for name in ("ann", "ann", "bob")]

    assert [await replies(session(counted, *[reply()] * 9, run=run), 1) for run in runs] == [1, 0, 1]


async def test_tools_and_models_are_counted_in_the_same_limit() -> None:
    @ez_tool(cost=Cost(3, "USD"))
    async def pay() -> str:
        """Pay three dollars."""
        return "paid"

    counted = budgets()
    tools = Toolset([pay]).with_gates(counted)
    asking = session(counted, reply(pay={}), reply(), tools=tools)

    with pytest.raises(SpendLimitReached):
        await asking.say("pay").run()
    outcome = await Pipeline(tools).run(ToolCall("pay"), Run(principal="ann"))

    assert outcome.kind == "rejected"
    assert "of which 5 are used" in outcome.text()


CHUNK: dict[str, Any] = {
    "id": "c",
    "model": "m",
    "choices": [{"index": 0, "delta": {"content": "yes"}, "finish_reason": None}],
}
LAST: dict[str, Any] = {
    **CHUNK,
    "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}],
    "usage": reply()["usage"],
}


class Streaming:
    """A model whose replies are streams of pieces, of which an exception is raised."""

    def __init__(self, *pieces: object) -> None:
        self.pieces, self.closed = pieces, 0

    async def reply(self, request: ChatRequest) -> AsyncIterator[Any]:
        return self._pieces()

    async def _pieces(self) -> AsyncIterator[Any]:
        try:
            for piece in self.pieces:
                if isinstance(piece, Exception):
                    raise piece
                yield piece
        finally:
            self.closed += 1


@pytest.mark.parametrize("pieces", [[CHUNK, LAST], [LAST, CHUNK, RuntimeError("lost")]], ids=["whole", "broken off"])
async def test_a_stream_is_counted_once_and_so_is_what_it_said_before_it_was_broken_off(pieces: list[object]) -> None:
    store, client = MemoryUsageStore(), Streaming(*pieces)

    asking = Session(PricedModel(client, budgets(store=store), model_name="m"), run=Run(principal="ann"))
    if len(pieces) == 3:
        with pytest.raises(RuntimeError, match="lost"):
            await asking.say("on").run()
    else:
        await asking.say("on").run()

    assert client.closed == 1
    assert await used(store) == 2


def piece(text: str, **usage: object) -> dict[str, Any]:
    said = {"usage": {"prompt_tokens": 500_000, "completion_tokens": 1, **usage}} if usage else {}
    return {**CHUNK, "choices": [{"index": 0, "delta": {"content": text}, "finish_reason": None}], **said}


@pytest.mark.parametrize("is_left", [True, False], ids=["left", "failed"])
@pytest.mark.parametrize(
    ("pieces", "message", "input", "output"),
    [
        ([piece("x" * 400)], "four words of text. " * 200, 1000, 100),
        ([piece("x" * 200), piece("y" * 200)], "", 0, 100),
        ([piece("x" * 400)], "QUJD" * 250_000, 1000, 100),
        ([piece("x" * 400)], "\u4f60\u597d" * 10_000, 5000, 100),
        ([piece("x" * 400, prompt_tokens=700_000)], "Hi.", 700_000, 100),
        ([piece("x" * 400, completion_tokens=900)], "Hi.", 500_000, 900),
        ([piece("x" * 400, prompt_tokens="many")], "a b " * 1000, 1000, 100),
        ([], "four words of text. " * 200, 0, 0),
    ],
    ids=["one", "two", "a file", "no spaces", "input said", "output said", "unclear", "no chunk"],
)
async def test_a_stream_left_before_it_said_its_tokens_is_estimated(
    pieces: list[Any], message: str, input: int, output: int, is_left: bool
) -> None:
    store = MemoryUsageStore()
    end = [LAST] if is_left and pieces else [RuntimeError("lost")]
    model = PricedModel(Streaming(*pieces, *end), budgets(store=store), model_name="m")
    request = ChatRequest("openai", ({"role": "", "content": [{"text": message, "n": 1}]},), run=Run(principal="ann"))
    stream: Any = await model.reply(request)

    for _ in pieces:
        await anext(stream)
    if is_left and pieces:
        await stream.aclose()
    else:
        with pytest.raises(RuntimeError, match="lost"):
            await anext(stream)

    assert await used(store) == PRICE.of(Tokens(input=input, output=output))


async def used(store: MemoryUsageStore | SqliteUsageStore, share: str = '{"principal": "ann"}') -> Decimal:
    key = f'["budgets", "USD", 86400.0, [], {share}]'
    return await store.used(Charge(key, Decimal(0), A_DAY), 0.0)


async def test_a_request_that_is_tried_again_counts_each_reply() -> None:
    failed = {**reply(), "choices": [{"index": 0, "message": {"role": "assistant"}, "finish_reason": "error"}]}
    store = MemoryUsageStore()
    asking = session(budgets(store=store), failed, reply(), retry=Retry(first=0))

    await asking.say("on").run()

    assert await used(store) == 4


async def test_a_refusal_is_not_tried_again() -> None:
    counted = budgets(Limit(spend=0, currency="USD"))

    assert await replies(session(counted, retry=Retry(first=60, clock=FakeClock()))) == 0


async def test_a_session_that_goes_on_elsewhere_is_not_counted_twice(tmp_path: Path) -> None:
    store = SqliteUsageStore(tmp_path / "usage.db")
    limit = Limit(spend=3, currency="USD", by="run")
    first = session(budgets(limit, store=store), reply(), run=Run(id="r"))
    await first.say("on").run()

    model = PricedModel(ScriptedModel(*[reply()] * 9), budgets(limit, store=store), model_name="m")
    second = await Session.from_json(model, first.to_json())

    assert second.usage.input_tokens == 1_000_000
    assert await replies(second) == 1


async def test_a_session_in_a_store_is_of_its_conversation(tmp_path: Path) -> None:
    limit, usage = Limit(spend=3, currency="USD", by="conversation"), MemoryUsageStore()

    def kept(id: str) -> Session:
        return session(budgets(limit, store=usage), *[reply()] * 9, store=tmp_path / "sessions.db", id=id)

    assert [await replies(kept(id)) for id in ("a", "a", "b")] == [2, 0, 2]


@pytest.mark.parametrize(
    ("answered_by", "expected"), [("m-2026-01-01", 2), ("mega", 20), ("unknown", 2), ("euro", 2), ("", 2)]
)
@pytest.mark.parametrize("limits", [[A_DAY], [A_DAY, Limit(spend=1, currency="EUR")]], ids=["dollars", "both"])
async def test_a_reply_is_priced_by_the_model_that_answered_if_the_list_has_it_in_the_currency_asked_for(
    answered_by: str, expected: int, limits: list[Limit]
) -> None:
    store = MemoryUsageStore()
    prices = {
        "mega": TokenPrice(input=20, output=0, currency="USD"),
        "euro": TokenPrice(input=30, output=0, currency="EUR"),
        "m*": PRICE,
    }

    await session(budgets(*limits, store=store, prices=prices), reply(model=answered_by)).say("on").run()

    assert await used(store) == expected


@pytest.mark.parametrize(
    ("name", "limit", "said"),
    [
        ("n", A_DAY, r"the model `n` has no price: give Budgets\(prices=\{'n': TokenPrice"),
        ("m", Limit(spend=1, currency="EUR"), r"no limit counts the price of the model `m` in USD: give Limit\(spend"),
        ("m", Limit(spend=1, currency="USD", tools=["pay"]), "no limit counts the price of the model `m`"),
        ("", A_DAY, r"the model has no name to find its price by: give model_name"),
    ],
)
def test_a_model_that_cannot_be_counted_is_refused_where_it_is_made(name: str, limit: Limit, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        session(budgets(limit), name=name)


@pytest.mark.parametrize("count", [None, "many", "-5", "1.5", 1.5, float("inf"), float("nan"), True, -5, "9" * 5000])
@pytest.mark.parametrize("key", ["prompt_tokens", "completion_tokens"])
@pytest.mark.parametrize("is_stream", [False, True])
async def test_a_reply_that_says_no_tokens_is_an_error_and_the_only_request(
    count: Any, key: str, is_stream: bool
) -> None:
    usage = {"prompt_tokens": 10, "completion_tokens": 10, key: count} if count is not None else {}
    whole = {**wire_reply("openai", text="yes"), "usage": usage}
    client: Any = Streaming(CHUNK, {**LAST, "usage": usage}) if is_stream else ScriptedModel(whole)
    store = MemoryUsageStore()
    model = PricedModel(client, budgets(store=store), model_name="m")

    for _ in range(3):
        with pytest.raises(ValueError, match=r"the reply of `m` says no tokens.*have its server send `usage`"):
            await Session(model, run=Run(principal="ann")).say("on").run()

    assert (client.closed if is_stream else len(client.requests)) == 1
    assert await used(store) == 0


@pytest.mark.parametrize("count", [1_000_000, 1_000_000.0, "1000000"])
async def test_a_count_may_be_a_numeral_or_a_whole_float(count: Any) -> None:
    store = MemoryUsageStore()

    await session(budgets(store=store), reply(input=count)).say("on").run()

    assert await used(store) == 2


def test_a_model_is_not_counted_twice() -> None:
    counted = budgets()

    with pytest.raises(ValueError, match="PricedModel: the model is one already"):
        PricedModel(PricedModel(ScriptedModel(), counted, model_name="m"), counted)


@pytest.mark.parametrize("failure", [ConnectionError("down"), TimeoutError("down")])
async def test_a_reply_that_the_store_cannot_count_is_not_asked_for_again(failure: Exception) -> None:
    class Unreachable(MemoryUsageStore):
        async def charge(self, charges: Any, at: float) -> Any:
            raise failure

    client = ScriptedModel(*[reply()] * 4)
    model = PricedModel(client, budgets(store=Unreachable()), model_name="m")

    with pytest.raises(RuntimeError, match=r"the reply of `m` came, and could not be counted: .*down"):
        await Session(model, retry=Retry(first=0)).say("on").run()

    assert len(client.requests) == 1


@pytest.mark.parametrize(
    "options",
    [
        {"input": -1, "output": 1, "currency": "USD"},
        {"input": 1, "output": "many", "currency": "USD"},
        {"input": 1, "output": None, "currency": "USD"},
        {"input": 1, "output": 1, "cached": float("nan"), "currency": "USD"},
        {"input": 1, "output": 1, "currency": ""},
    ],
)
def test_a_price_is_made_of_numbers_and_a_currency(options: dict[str, Any]) -> None:
    with pytest.raises((TypeError, ValueError), match="TokenPrice"):
        TokenPrice(**options)


def test_a_price_list_is_a_mapping_of_prices() -> None:
    prices: Sequence[Any] = [["m"], {"m": 3}]

    for given in prices:
        with pytest.raises(TypeError, match=r"Budgets: .*TokenPrice\(input=1.25"):
            Budgets([A_DAY], prices=given)


def test_a_limit_for_models_alone_is_taken_by_a_toolset() -> None:
    @ez_tool
    async def look() -> str:
        """Look."""
        return "seen"

    assert Toolset([look]).with_gates(budgets()).names
    with pytest.raises(ValueError, match="counts nothing"):
        Toolset([look]).with_gates(budgets(Limit(spend=1, currency="USD", tools=["look"])))


def test_the_model_is_seen_through_it() -> None:
    class Named(ScriptedModel):
        format, model, provider, is_instrumented = "anthropic", "m-1", "house", True

    model: ChatModel = PricedModel(Named(), budgets())

    assert (model.format, model.model, model.provider, model.is_instrumented) == ("anthropic", "m-1", "house", True)  # type: ignore[attr-defined]


@pytest.mark.processes
async def test_what_several_processes_spend_is_counted_together(tmp_path: Path) -> None:
    database = tmp_path / "usage.db"
    with processes_at_once() as pool:
        spent = spent_at_once(pool, str(database))

    assert await used(SqliteUsageStore(database)) == sum(spent)
    assert 10 <= sum(spent) <= 12  # those under way when it was used up are kept
    assert await answered(dollars_a_day(SqliteUsageStore(database))) == 0
