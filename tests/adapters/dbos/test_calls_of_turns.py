"""A running turn calls another one and waits for its outcome, once, however often its worker is another one."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.adapters.dbos.durable import QUICK, durable, engine_of
from toolcrib.adapters.dbos import Client, DurableAgent
from toolcrib.tools import ez_tool
from toolcrib.turns import Turn


class Shop:
    """An agent with a tool that calls a turn, which needs approval, of another tool of it."""

    def __init__(self) -> None:
        self.ordered, self.paid = 0, list[int]()

        @ez_tool(requires_approval=True)
        async def pay(cents: int) -> str:
            self.paid.append(cents)
            return f"paid {cents}"

        @ez_tool(idempotent=True)
        async def order(cents: int) -> str:
            self.ordered += 1
            outcome = await self.agent.call(Turn(pay, kwargs={"cents": cents}))
            return f"ordered, {outcome.text()}"

        self.pay, self.order = pay, order
        self.agent: DurableAgent = durable(pay, order)


async def asked(client: Client) -> Any:
    """Return the request of the turn that was called, once it asks."""
    while not (entries := await client.approvals.list(pending=True)):  # noqa: ASYNC110 -- a worker asks
        await asyncio.sleep(QUICK)
    return entries[0].request


async def test_a_running_turn_gets_the_outcome_of_another_one(database: str) -> None:
    shop = Shop()
    async with engine_of(database, shop.agent) as engine:
        handle = await shop.agent.put(Turn(shop.order, kwargs={"cents": 3}))
        request = await asked(engine.client)
        await engine.client.approvals.answer(request.grant("ann"))
        outcome = await handle.outcome()
        children = (await handle.result())["children"]

    assert outcome.text() == "ordered, paid 3"
    assert [child["turn"]["uuid"] for child in children] == [request.call_id]
    assert (shop.ordered, shop.paid) == (1, [3])


async def test_a_turn_that_is_done_again_waits_for_the_one_that_it_had_called(database: str) -> None:
    shop = Shop()
    async with engine_of(database, shop.agent, grace=0.0) as engine:
        handle = await shop.agent.put(Turn(shop.order, kwargs={"cents": 3}))
        request = await asked(engine.client)  # and the worker stops
    async with engine_of(database, shop.agent) as engine:
        while shop.ordered < 2:  # noqa: ASYNC110 -- another task does it
            await asyncio.sleep(QUICK)
        await engine.client.approvals.answer(request.grant("ann"))
        outcome = await shop.agent.handle(handle.id).outcome()

    assert outcome.text() == "ordered, paid 3"
    assert shop.paid == [3]


async def test_other_code_gets_the_outcome_as_well(database: str) -> None:
    shop = Shop()
    async with engine_of(database, shop.agent) as engine:
        calling = asyncio.create_task(shop.agent.call(Turn(shop.pay, kwargs={"cents": 3})))
        await engine.client.approvals.answer((await asked(engine.client)).grant("ann"))

        assert (await calling).text() == "paid 3"
