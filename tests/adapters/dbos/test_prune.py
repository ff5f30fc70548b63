"""Old work is removed with all that was kept of it; what waits, is in doubt or goes on stays."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from tests.adapters.dbos.durable import durable, engine_of, pay
from tests.postgres import Postgres
from toolcrib.adapters.dbos import Client, Database, DurableToolkit, Queue, list_work, prune, workers
from toolcrib.code import Toolkit
from toolcrib.tools import tool
from toolcrib.turns import Turn


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return str(tmp_path / "work.db")
    server: Postgres = request.getfixturevalue("postgres")
    return server.url(f"prune_{abs(hash(request.node.name)) % 10_000_000}")


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
    assert left == {waits.id: "paused", paused.id: "paused"}
    assert (after["workflows"], after["toolcrib_programs"]) == (2, 1)
    assert done.id not in left
    assert through.value == "paid 2"


async def test_a_turn_that_an_unfinished_one_has_put_stays(database: str) -> None:
    @tool
    async def again() -> Any:
        """Put another turn."""
        return Turn(add, kwargs={"a": 1})

    shop = durable(again, add)
    async with engine_of(database, shop, worker_id="w1") as engine:
        parent = await shop.put(Turn(again))
        (child,) = (await parent.result())["children"]
        await shop.handle(child["turn"]["uuid"]).outcome()
        system: Any = engine.client.dbos._sys_db
        status = system.tables.workflow_status
        mine = sa.update(status).where(status.c.workflow_uuid == parent.id)
        with system.engine.begin() as connection:  # as a worker that died before the end leaves it
            connection.execute(mine.values(status="PENDING", executor_id="gone"))
        held = await prune(Database.named(database), later())
        with system.engine.begin() as connection:
            connection.execute(mine.values(status="SUCCESS", executor_id="w1"))
        removed = await prune(Database.named(database), later())

    assert (held["turns"], removed["turns"]) == (0, 2)


async def test_workers_that_stopped_are_removed(database: str) -> None:
    shop = durable(add)
    async with engine_of(database, shop, worker_id="old"):
        pass
    async with engine_of(database, shop, worker_id="living") as engine:
        removed = await prune(Database.named(database), later())
        left = [worker.id for worker in workers(engine.client)]

    assert removed["workers"] == 1
    assert left == ["living"]
