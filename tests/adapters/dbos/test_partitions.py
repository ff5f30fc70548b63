"""Partitions of a queue: each has limits of its own, and what comes of its work is part of it."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any
from uuid import uuid4

import pytest
from dbos._dbos import _get_dbos_instance

from tests.adapters.dbos.durable import QUICK, Step, Work, count, durable, engine_of, looked_at, pay
from toolcrib.adapters.dbos import (
    Client,
    DurableToolkit,
    Placement,
    Queue,
    Schedule,
    find_work,
    list_work,
    retry_work,
    trigger_schedule,
)
from toolcrib.adapters.dbos import (
    Work as Listed,
)
from toolcrib.calls import Completed
from toolcrib.code import Toolkit
from toolcrib.errors import EngineError, WorkerError
from toolcrib.testing import FakeSandbox
from toolcrib.tools import ez_tool
from toolcrib.turns import Turn

KINDS = pytest.mark.parametrize("kind", ["turn", "program"])


def queue(**limits: Any) -> Queue:
    return Queue(f"queue_{uuid4().hex[:8]}", polling=QUICK, **{"partition_concurrency": 1, **limits})


@pytest.mark.parametrize("limits", [{}, {"partition_concurrency": 2}, {"concurrency": 3, "partition_concurrency": 2}])
async def test_each_partition_has_its_own_limit_and_none_waits_for_another(
    database: str, limits: dict[str, int]
) -> None:
    running, most, together = Counter[str](), Counter[str](), asyncio.Event()

    @ez_tool(idempotent=True)
    async def work(tenant: str) -> str:
        running[tenant] += 1
        most[tenant] = max(most[tenant], running[tenant])
        if running["big"] and running["small"]:
            together.set()
        await together.wait()
        running[tenant] -= 1
        return tenant

    agent = durable(work, queue=queue(**limits))
    async with engine_of(database, agent) as engine:
        handles = [
            await agent.put(Turn(work, kwargs={"tenant": tenant}), partition=tenant)
            for tenant in ("big", "big", "big", "big", "small")
        ]
        outcomes = [await handle.outcome() for handle in handles]
        found = await asyncio.to_thread(list_work, engine.client, partition="big")
        other = await asyncio.to_thread(list_work, engine.client, partition="none")

    assert all(isinstance(outcome, Completed) for outcome in outcomes)
    assert 1 <= most["big"] <= agent.queue.partition_concurrency  # type: ignore[operator]
    assert {(one.partition, one.state) for one in found} == {("big", "done")}
    assert (len(found), other) == (4, [])


async def test_so_many_of_a_partition_start_in_a_time(database: str) -> None:
    agent = durable(count, queue=queue(partition_concurrency=None, partition_rate=(1, 600.0)))
    async with engine_of(database, agent) as engine:
        first, other = [await agent.put(Turn(count), partition=tenant) for tenant in ("a", "b")]
        await first.outcome()
        await other.outcome()
        late = await agent.put(Turn(count), partition="a")
        await looked_at(engine, agent.queue)
        found = await asyncio.to_thread(find_work, engine.client, late.id)

    assert found.state == "waiting"


@KINDS
async def test_what_goes_on_after_an_answer_is_of_the_same_partition(database: str, kind: str) -> None:
    work = Work(kind, Step(pay, cents=3))
    async with engine_of(database, work.worker) as engine:
        work_id = await work.put(partition="tenant")
        await work.answer(engine, work_id)
        found = await work_that_is(engine.client, "done")

    assert (found.id, found.partition) == (work_id, "tenant")


async def test_what_a_turn_puts_is_of_its_partition_and_what_it_names_is_not(file: str) -> None:
    @ez_tool(idempotent=True)
    async def second() -> int:
        return 2

    @ez_tool(idempotent=True)
    async def first() -> Turn[Any]:
        await agent.put(Turn(count), partition="other")
        return Turn(second)

    agent = durable(first, second, count, queue=queue())
    async with engine_of(file, agent) as engine:
        await agent.put(Turn(first), partition="tenant")
        while len(found := await asyncio.to_thread(list_work, engine.client, state="done")) < 3:  # noqa: ASYNC110
            await asyncio.sleep(QUICK)

    assert {(one.target.split(": ")[1], one.partition) for one in found} == {
        ("first", "tenant"),
        ("second", "tenant"),
        ("count", "other"),
    }


async def test_work_that_is_retried_stays_in_its_partition(file: str) -> None:
    tries: list[int] = []

    @ez_tool(idempotent=True)
    async def flaky() -> int:
        tries.append(1)
        if len(tries) == 1:
            raise ConnectionError("away")
        return 1

    agent = durable(flaky, queue=queue())
    async with engine_of(file, agent) as engine:
        handle = await agent.put(Turn(flaky), partition="tenant")
        await handle.outcome()
        back = await asyncio.to_thread(retry_work, engine.client, handle.id)
        outcome = await handle.outcome()

    assert (back.partition, outcome) == ("tenant", Completed("flaky", handle.id, 1))


async def test_a_schedule_puts_its_work_in_its_partition(file: str) -> None:
    agent = durable(count, queue=queue())
    async with Client(file) as client:
        agent.use(client)
        await agent.schedule(Schedule("nightly", "0 2 * * *"), Turn(count), partition="tenant")
        work_id = trigger_schedule(client, "nightly")

        assert find_work(client, work_id).partition == "tenant"


async def test_work_that_waited_before_its_queue_had_partitions_is_done(database: str) -> None:
    limits = queue()
    agent = durable(count, queue=Queue(limits.name, polling=QUICK))
    async with Client(database) as client:
        agent.use(client)
        handle = await agent.put(Turn(count))
    agent.queue, agent._client = limits, None
    async with engine_of(database, agent) as engine:
        await agent.handle(handle.id).outcome()
        found = await asyncio.to_thread(find_work, engine.client, handle.id)

    assert (found.state, found.partition) == ("done", "none")


async def test_work_of_a_queue_with_partitions_has_to_name_one(file: str) -> None:
    limits, without = queue(), r"the queue `queue_.*` has limits for each partition: name the partition"
    agent = durable(count, queue=limits)
    toolkit = DurableToolkit(Toolkit([count], sandbox=FakeSandbox()), limits, name=limits.name)
    async with Client(file) as client:
        agent.use(client)
        toolkit.use(client)
        with pytest.raises(EngineError, match=without):
            await agent.put(Turn(count))
        with pytest.raises(EngineError, match=without):
            await agent.schedule(Schedule("nightly", "0 2 * * *"), Turn(count))
        with pytest.raises(EngineError, match=without):
            await toolkit.start("1")
        with pytest.raises(EngineError, match=without):
            await toolkit.schedule(Schedule("nightly", "0 2 * * *"), "1", placement=Placement(""))
        assert list_work(client) == []


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"partition": ""}, "partition must be a text that is not empty"),
        ({"partition": "a", "key": "k"}, "work of a partition cannot have a key; give it an id"),
    ],
)
def test_a_placement_that_cannot_be_is_refused(options: dict[str, str], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        Placement("id", **options)  # type: ignore[arg-type]


def test_a_partition_cannot_have_more_than_its_queue() -> None:
    with pytest.raises(ValueError, match="partition_concurrency must be at most concurrency, 2, and is 3"):
        Queue("mail", concurrency=2, partition_concurrency=3)


@pytest.mark.parametrize("most", [1, 2])
async def test_a_worker_whose_work_was_handed_over_takes_none_of_a_partition(database: str, most: int) -> None:
    agent = durable(count, queue=queue(partition_concurrency=most))
    async with engine_of(database, agent) as engine:
        await asyncio.to_thread(engine.client.stop, agent.queue.name)
        await looked_at(engine, agent.queue)
        handle = await agent.put(Turn(count), partition="tenant")
        engine._is_leaving = True
        system = _get_dbos_instance()._sys_db
        limits = system.get_queue(agent.queue.name)
        limits._concurrency = None
        claims = (system.start_queued_partitioned_workflows, system.start_queued_workflows)
        taken = (limits, "worker", "1") if most == 1 else (limits, "worker", "1", "tenant")
        with pytest.raises(WorkerError, match="takes no more work"):
            await asyncio.to_thread(claims[most - 1], *taken)
        engine._is_leaving = False

        assert (await asyncio.to_thread(find_work, engine.client, handle.id)).state == "waiting"


async def work_that_is(client: Client, state: str) -> Listed:
    while not (found := await asyncio.to_thread(list_work, client, state=state)):  # noqa: ASYNC110
        await asyncio.sleep(QUICK)
    return found[0]
