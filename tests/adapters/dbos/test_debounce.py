"""Debounced work: of several that are put for one key within a time, the last is done, once."""

from __future__ import annotations

import asyncio
import time
from typing import Any
from uuid import uuid4

import pytest

from tests.adapters.dbos.durable import QUICK, count, durable, engine_of, pay
from toolcrib.adapters.dbos import Client, DurableAgent, DurableToolkit, Placement, Queue, find_work, list_work
from toolcrib.calls import Completed
from toolcrib.code import Toolkit
from toolcrib.errors import EngineError
from toolcrib.testing import FakeSandbox
from toolcrib.tools import ez_tool
from toolcrib.turns import Turn

LONG = 600.0


@ez_tool(idempotent=True)
async def index(version: int) -> str:
    """Index a document."""
    return f"indexed {version}"


def index_turn(version: int) -> Turn[Any]:
    return Turn(index, kwargs={"version": version})


async def test_of_several_turns_of_a_key_the_last_is_done_once(database: str) -> None:
    agent = durable(index)
    async with Client(database) as client:  # without a worker yet: none begins the first while the others are put
        putting = DurableAgent(agent.agent, agent.queue, client=client)
        handles = [await putting.put(index_turn(n), key="doc", debounce=0.5) for n in range(5)]
        other = await putting.put(index_turn(7), key="other", debounce=0.5)
        waiting = await asyncio.to_thread(find_work, client, handles[0].id)
    async with engine_of(database, agent) as engine:
        outcome = await agent.handle(handles[0].id).outcome()
        another = await agent.handle(other.id).outcome()
        found = await asyncio.to_thread(list_work, engine.client)
        later = await agent.put(index_turn(9), key="doc", debounce=QUICK)
        last = await later.outcome()

    assert (waiting.state, waiting.key) == ("delayed", "doc")
    assert len({handle.id for handle in handles}) == 1
    assert outcome == Completed("index", handles[0].id, "indexed 4")
    assert another == Completed("index", other.id, "indexed 7")
    assert len(found) == 2
    assert last == Completed("index", later.id, "indexed 9")


async def test_of_several_programs_of_a_key_the_last_is_done_once(database: str) -> None:
    name = f"kit_{uuid4().hex[:8]}"
    toolkit = DurableToolkit(Toolkit([count], sandbox=FakeSandbox()), Queue(name, polling=QUICK), name=name)
    async with Client(database) as client:  # without a worker yet: none begins the first while the others are put
        toolkit.use(client)
        programs = [
            await toolkit.start(f"# {n}", placement=Placement(f"program-{n}", key="doc", debounce=0.3))
            for n in range(3)
        ]
        async with engine_of(database, toolkit):
            result = await programs[2].result(polling=QUICK)
        status = await client.status(programs[2].id)
        (found,) = await asyncio.to_thread(list_work, client)

    assert {program.id for program in programs} == {found.id} == {"program-0"}
    assert (result.success, found.state) == (True, "done")
    assert status is not None
    given: Any = status.input
    assert (given["args"][0]["code"], given["args"][0]["run"]) == ("# 2", "program-0")


async def test_many_processes_that_put_at_once_make_one(database: str) -> None:
    agent = durable(index)
    async with Client(database, pool=5) as one, Client(database, pool=5) as two:
        clients = [one, two]
        turns = [agent._described(index_turn(n).to_dict()) for n in range(12)]
        ids = await asyncio.gather(
            *(
                clients[n % 2].enqueue(
                    "toolcrib.turn",
                    "docs",
                    turn,
                    Placement(turn["turn"]["uuid"], key="doc", debounce=LONG),
                )
                for n, turn in enumerate(turns)
            )
        )
        (found,) = list_work(one)

    assert set(ids) == {found.id}


async def test_debounced_work_is_due_at_its_limit_however_many_come(file: str) -> None:
    agent = durable(index)
    async with Client(file) as client:
        agent.use(client)
        before = time.time()
        first = await agent.put(index_turn(1), key="doc", debounce=LONG, debounce_limit=LONG * 1.5)
        await agent.put(index_turn(2), key="doc", debounce=LONG * 10)
        status = client.find(first.id)

    assert status is not None
    assert status.delay_until_epoch_ms is not None
    assert status.delay_until_epoch_ms / 1000 - before == pytest.approx(LONG * 1.5, abs=60)


async def test_what_goes_on_after_an_answer_is_the_work_that_was_put_last(file: str) -> None:
    agent = durable(pay)
    async with engine_of(file, agent) as engine:
        for cents in (1, 2):
            handle = await agent.put(Turn(pay, kwargs={"cents": cents}), key="pay", debounce=0.2)
        asked: Any = await handle.outcome()
        again = await agent.put(Turn(pay, kwargs={"cents": 3}), key="pay", debounce=LONG)
        await agent.approve(asked.request, "ann")
        outcome = await handle.outcome(through=True)
        found = await asyncio.to_thread(find_work, engine.client, handle.id)

    assert again.id != handle.id
    assert outcome == Completed("pay", handle.id, "paid 2")
    assert (found.id, found.state) == (handle.id, "done")


async def test_a_running_turn_cannot_put_debounced_work(file: str) -> None:
    @ez_tool(idempotent=True)
    async def change() -> str:
        with pytest.raises(EngineError, match="the turn of `index` is put by a running turn, which"):
            await agent.put(index_turn(1), key="doc", debounce=1.0)
        return "refused"

    agent: DurableAgent = durable(change, index)
    async with engine_of(file, agent):
        outcome: Any = await (await agent.put(Turn(change))).outcome()

    assert outcome.value == "refused"


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"debounce": 1.0}, "debounce needs a key"),
        ({"debounce_limit": 1.0}, "debounce_limit is of no use without debounce"),
        ({"debounce": 1.0, "key": "k", "delay": 1.0}, "can have no delay and no priority"),
        ({"debounce": 1.0, "key": "k", "priority": 1}, "can have no delay and no priority"),
        ({"debounce": 1.0, "key": "k", "partition": "p"}, "work of a partition cannot have a key"),
    ],
)
def test_a_debounce_that_cannot_be_is_refused(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        Placement("id", **options)
