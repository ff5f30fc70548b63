"""Attributes of work, by which it is found: of its own, and after all that becomes of it."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import uuid4

import pytest

from tests.adapters.dbos.durable import QUICK, Step, Work, count, durable, engine_of, pay
from toolcrib.adapters.dbos import (
    Client,
    DurableAgent,
    DurableToolkit,
    Placement,
    Queue,
    RetryPolicy,
    find_work,
    list_work,
    retry_work,
)
from toolcrib.calls import Failed, Suspended
from toolcrib.pipeline import Run
from toolcrib.tools import ez_tool
from toolcrib.turns import Agent, Turn

ACME = {"customer": "acme", "region": "north:1"}


def ids(client: Client, **chosen: Any) -> list[str]:
    return [work.id for work in list_work(client, **chosen)]


async def test_work_is_found_by_its_attributes(database: str) -> None:
    agent = durable(count)
    async with Client(database) as client:
        agent.use(client)
        acme = await agent.put(Turn(count), attributes=ACME)
        await agent.put(Turn(count), attributes={"customer": "other", "region": "north:1"})
        await agent.put(Turn(count))

        found = [
            ids(client, attributes={"customer": "acme"}),
            ids(client, attributes=ACME),
            ids(client, attributes={"customer": "acme", "region": "south"}),
            ids(client, text="CUSTOMER=acme"),
        ]
        north = list_work(client, attributes={"region": "north:1"})

    assert found == [[acme.id], [acme.id], [], [acme.id]]
    assert {work.attributes["customer"] for work in north} == {"other", "acme"}


@pytest.mark.parametrize("kind", ["turn", "program"])
async def test_work_that_went_on_after_an_answer_has_them_still(file: str, kind: str) -> None:
    work = Work(kind, Step(pay, cents=5))
    async with engine_of(file, work.worker) as engine:
        work_id = await work.put(attributes=ACME)
        request = await work.asked(engine, work_id)
        before = ids(engine.client, attributes=ACME, state="suspended")
        await engine.client.approvals.answer(request.grant("ann"))
        while (await asyncio.to_thread(find_work, engine.client, work_id)).state != "done":  # noqa: ASYNC110
            await asyncio.sleep(QUICK)
        after = ids(engine.client, attributes=ACME, state="done")

    assert (before, after) == ([work_id], [work_id])


async def test_turns_that_a_turn_puts_have_its_attributes(file: str) -> None:
    @ez_tool
    async def plan() -> Any:
        await agent.put(Turn(count), attributes={"customer": "other"})
        return Turn(count)

    agent = durable(plan, count)
    async with engine_of(file, agent) as engine:
        first = await agent.put(Turn(plan), attributes=ACME)
        children = (await first.result())["children"]
        for child in children:
            await agent.handle(child["turn"]["uuid"]).outcome()
        found = ids(engine.client, attributes={"customer": "acme"})
        other = ids(engine.client, attributes={"customer": "other"})

    assert len(children) == 2
    assert (len(found), len(other)) == (2, 1)


async def test_work_that_is_tried_again_has_them_still(file: str) -> None:
    lines = {"dead": True}

    @ez_tool(idempotent=True)
    async def call() -> str:
        if lines["dead"]:
            raise ConnectionError("the line is dead")
        return "called"

    agent = durable(call, queue=Queue("tried", polling=QUICK, retry=RetryPolicy(2, pause=QUICK)))
    async with engine_of(file, agent) as engine:
        handle = await agent.put(Turn(call), attributes=ACME)
        failed = await handle.outcome()
        found = ids(engine.client, attributes=ACME, state="failed")
        lines["dead"] = False
        await asyncio.to_thread(retry_work, engine.client, handle.id)
        await handle.outcome()
        work = await asyncio.to_thread(find_work, engine.client, handle.id)

    assert isinstance(failed, Failed)
    assert found == [handle.id]
    assert (work.state, work.attributes) == ("done", ACME)


async def test_debounced_work_has_the_attributes_of_the_last(database: str) -> None:
    agent = durable(count)
    async with Client(database) as client:
        agent.use(client)
        handle = await agent.put(Turn(count), key="k", debounce=3600, attributes={"customer": "first"})
        await agent.put(Turn(count), key="k", debounce=3600, attributes=ACME)

        found = [ids(client, attributes=attributes) for attributes in ({"customer": "first"}, ACME)]

    assert found == [[], [handle.id]]


async def test_work_is_found_by_its_name_and_its_principal(file: str) -> None:
    plain, work = Agent(f"agent_{uuid4().hex[:8]}", "Tested.", (pay, count)), Work("program", Step(count))
    agent, toolkit = DurableAgent(plain, Queue(plain.name, polling=QUICK), run=Run(principal="ann")), work.worker
    assert isinstance(toolkit, DurableToolkit)
    async with engine_of(file, agent) as engine:
        asked = await agent.put(Turn(pay, kwargs={"cents": 5}))
        counted = await agent.put(Turn(count), delay=3600)
        program = await toolkit.start("count()", principal="bob")
        assert isinstance(await asked.outcome(), Suspended)

        found = {
            name: set(ids(engine.client, name=name))
            for name in (agent.name, f"{agent.name}: count", "pay", toolkit.name, "bob", 'no"one')
        }
        by_principal = {name: ids(engine.client, principal=name) for name in ("ann", "bob", "an%")}

    assert found == {
        agent.name: {counted.id, asked.id},
        f"{agent.name}: count": {counted.id},
        "pay": {asked.id},
        toolkit.name: {program.id},
        "bob": set(),
        'no"one': set(),
    }
    assert by_principal == {"ann": [asked.id], "bob": [program.id], "an%": []}


@pytest.mark.parametrize(
    ("attributes", "kind"),
    [({"tries": "3"}, ValueError), ({"a b": "x"}, ValueError), ({"a": 3}, TypeError), (["a"], TypeError)],
)
def test_attributes_are_texts_by_name(attributes: Any, kind: type[Exception]) -> None:
    with pytest.raises(kind, match=r"put: .*attribute"):
        Placement("", attributes=attributes)
