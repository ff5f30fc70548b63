"""Old work is removed with all that was kept of it; what waits, is in doubt or goes on stays."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy import event

from tests.adapters.dbos.durable import durable, engine_of, pay
from toolcrib.adapters.dbos import Client, DurableToolkit, Queue, list_work, prune, workers
from toolcrib.code import Toolkit
from toolcrib.database import Database
from toolcrib.tools import tool
from toolcrib.turns import Turn


@tool
async def add(a: int) -> int:
    """Add one."""
    return a + 1


def later() -> datetime:
    return datetime.now(UTC) + timedelta(days=1)


def counted(client: Client) -> dict[str, int]:
    """Return the rows of each table that work leaves something in."""
    database: Any = client.dbos._sys_db
    names = ("requests", "toolcrib_requests")[client.database.path is None]
    found = {}
    with database.engine.begin() as connection:
        for table in (names, "toolcrib_events", "toolcrib_activities", "toolcrib_programs", "toolcrib_program_lines"):
            found[table] = connection.execute(sa.text(f"SELECT COUNT(*) FROM {table}")).scalar_one()
        status = database.tables.workflow_status
        found["workflows"] = connection.execute(sa.select(sa.func.count()).select_from(status)).scalar_one()
    return found


async def test_what_ended_is_removed_and_what_waits_stays(database: str) -> None:
    shop = durable(add, pay)
    programs = DurableToolkit(
        Toolkit([add, pay]), Queue(f"q_{shop.queue.name}", polling=0.02), name="prune", replace=True
    )
    async with engine_of(database, shop, programs, worker_id="w1", record=True) as engine:
        done = await shop.put(Turn(add, kwargs={"a": 1}))
        paid = await shop.put(Turn(pay, kwargs={"cents": 1}))
        asked = await paid.outcome()
        await shop.approve(asked.request, "ann")
        await paid.outcome(through=True)
        waits = await shop.put(Turn(pay, kwargs={"cents": 2}))
        pending = (await waits.outcome()).request
        ended = await programs.start("print(add(1))")
        await ended.result()
        paused = await programs.start("print(pay(2))")
        await paused.settled()
        client = engine.client
        engine.sink.sink.flush()
        before = counted(client)
        young = await prune(Database.named(database), datetime.now(UTC) - timedelta(days=1))
        dry = await prune(Database.named(database), later(), dry_run=True)
        unchanged = counted(client)
        removed = await prune(Database.named(database), later())
        after = counted(client)
        left = {work.id: work.state for work in list_work(client)}
        await client.approvals.answer(pending.grant("ann"))
        through = await waits.outcome(through=True)

    assert set(young.values()) == {0}
    assert before == unchanged
    assert dry == removed
    assert removed["turns"] == 2
    assert removed["programs"] == 1
    assert removed["requests"] == 1
    assert removed["calls and runs"] == 6
    assert left == {waits.id: "suspended", paused.id: "suspended"}
    assert (after["workflows"], after["toolcrib_programs"]) == (2, 1)
    assert done.id not in left
    assert through.value == "paid 2"


async def test_much_work_is_removed_page_by_page(database: str) -> None:
    shop = durable(add)
    async with engine_of(database, shop) as engine:
        first = await shop.put(Turn(add, kwargs={"a": 1}))
        await first.outcome()
        _clone(engine.client, first.id, {2: 700, 4: 1, 5: 900})  # more of one moment than a page has
        pages = list[str]()
        event.listen(engine.client.dbos._sys_db.engine, "before_cursor_execute", lambda *given: pages.append(given[2]))
        dry = await prune(Database.named(database), later(), dry_run=True)
        removed = await prune(Database.named(database), later())
        after = counted(engine.client)

    assert (dry["turns"], removed["turns"], after["workflows"]) == (1_602, 1_602, 0)
    assert [sql for sql in pages if "OFFSET" in sql] == []


def _clone(client: Client, work_id: str, moments: dict[int, int]) -> None:
    """Leave as many turns like one that ended as each moment says, in seconds after it."""
    system: Any = client.dbos._sys_db
    tables = (system.tables.workflow_status, system.tables.workflow_input, system.tables.workflow_output)
    with system.engine.begin() as connection:
        for table in tables:
            rows = connection.execute(sa.select(table).where(table.c.workflow_uuid == work_id)).mappings().all()
            for row in rows:
                clones = list[dict[str, Any]]()
                for seconds, number in moments.items():
                    for one in range(number):
                        new = f"{work_id}_{seconds}_{one}"
                        clone = {k: v.replace(work_id, new) if isinstance(v, str) else v for k, v in row.items()}
                        if "created_at" in clone:
                            clone["created_at"] += seconds * 1000
                        clones.append(clone)
                connection.execute(sa.insert(table), clones)


@pytest.mark.parametrize("status", ["PENDING", "DELAYED", "MAX_RECOVERY_ATTEMPTS_EXCEEDED", "CANCELLED"])
async def test_a_turn_that_an_unfinished_one_has_put_stays(database: str, status: str) -> None:
    @tool
    async def again() -> Any:
        """Put another turn."""
        return Turn(add, kwargs={"a": 1})

    shop = durable(again, add)
    async with engine_of(database, shop, worker_id="w1") as engine:
        parent = await shop.put(Turn(again))
        (child,) = (await parent.result())["children"]
        await shop.handle(child["turn"]["uuid"]).outcome()
        tomorrow = later().timestamp() * 1000 + 1  # one that was cancelled then may be resumed
        _change(engine.client, parent.id, status=status, executor_id="gone", completed_at=int(tomorrow))
        held = await prune(Database.named(database), later() - timedelta(seconds=1))
        _change(engine.client, parent.id, status="SUCCESS", completed_at=1)
        removed = await prune(Database.named(database), later())

    assert (held["turns"], removed["turns"]) == (0, 2)


def _change(client: Client, work_id: str, **values: Any) -> None:
    """Leave work as a worker of another fate would have left it."""
    system: Any = client.dbos._sys_db
    status = system.tables.workflow_status
    with system.engine.begin() as connection:
        connection.execute(sa.update(status).where(status.c.workflow_uuid == work_id).values(**values))


async def test_what_goes_on_after_an_answer_stays(database: str) -> None:
    shop = durable(pay)
    programs = DurableToolkit(Toolkit([pay]), Queue(shop.queue.name, polling=0.02), name="goes_on", replace=True)
    async with engine_of(database, shop, programs) as engine:
        turn = await shop.put(Turn(pay, kwargs={"cents": 1}))
        program = await programs.start("pay(2)")
        asked = [(await turn.outcome()).request, (await program.settled()).suspended[0]]
        for request in asked:
            await engine.client.approvals.answer(request.grant("ann"))
        await turn.outcome(through=True)
        await program.result()
        for workflow_id in (asked[0].id, f"{program.id}-2"):  # its worker died before the end: it is in doubt
            _change(engine.client, workflow_id, status="PENDING", executor_id="gone")
        held = await prune(Database.named(database), later())

    assert (held["turns"], held["programs"]) == (0, 0)


async def test_what_began_before_the_time_and_ended_after_it_stays(database: str) -> None:
    begun, go = asyncio.Event(), asyncio.Event()

    @tool
    async def wait() -> None:
        begun.set()
        await go.wait()

    shop = durable(wait)
    async with engine_of(database, shop):
        handle = await shop.put(Turn(wait))
        await begun.wait()
        between = datetime.now(UTC)
        running = await prune(Database.named(database), between)
        await asyncio.sleep(1.1)  # a file keeps times in whole seconds
        go.set()
        await handle.outcome()
        ended = await prune(Database.named(database), between)

    assert (running["turns"], ended["turns"]) == (0, 0)


async def test_workers_that_stopped_are_removed(database: str) -> None:
    shop = durable(add)
    async with engine_of(database, shop, worker_id="holder") as engine:
        handle = await shop.put(Turn(add, kwargs={"a": 1}))
        await handle.outcome()
    async with engine_of(database, shop, worker_id="old"):
        pass
    async with engine_of(database, worker_id="living") as engine:
        _change(engine.client, handle.id, status="PENDING", executor_id="holder")
        young = await prune(Database.named(database), datetime.now(UTC) - timedelta(days=1))
        removed = await prune(Database.named(database), later())
        left = [worker.id for worker in workers(engine.client)]

    assert (young["workers"], removed["workers"]) == (0, 1)
    assert left == ["holder", "living"]
