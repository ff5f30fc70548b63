"""Work that is put in the caller's transaction is there when that is committed, and never without it."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session

from tests.adapters.dbos.durable import QUICK, Step, Work, count, durable, engine_of
from toolcrib.adapters.dbos import Client, DurableAgent, Placement, Queue, list_work
from toolcrib.calls import Completed
from toolcrib.database import Database
from toolcrib.errors import EngineError
from toolcrib.tools import ez_tool
from toolcrib.turns import Agent, Turn

KINDS = pytest.mark.parametrize("kind", ["turn", "program"])
ORDERS = sa.table("orders", sa.column("name"))


@contextmanager
def shop_of(database: str) -> Iterator[sa.Engine]:
    """Open the database as an application does that keeps its orders there."""
    engine = Database.named(database).engine()
    with engine.begin() as connection:
        connection.execute(sa.text("CREATE TABLE orders (name TEXT)"))
    try:
        yield engine
    finally:
        engine.dispose()


def orders(engine: sa.Engine) -> list[str]:
    with engine.begin() as connection:
        return list(connection.execute(sa.select(ORDERS.c.name)).scalars())


async def put(work: Work, connection: Any, **placement: Any) -> str:
    """Enqueue work in a transaction, and return its id."""
    worker, (first, *_) = work.worker, work._steps
    if isinstance(worker, DurableAgent):
        turn: Turn[Any] = Turn(first.tool, kwargs=first.arguments)
        return (await worker.put(turn, connection=connection, **placement)).id
    given = Placement(f"program-{uuid4().hex}", **placement)
    return (await worker.start("...", placement=given, connection=connection)).id


@KINDS
@pytest.mark.parametrize("opened", [sa.Connection, Session])
async def test_work_is_put_with_what_its_transaction_writes_or_not_at_all(
    database: str, kind: str, opened: type[Any]
) -> None:
    work = Work(kind, Step(count))
    async with engine_of(database, work.worker) as engine:
        with shop_of(database) as shop:
            for name in ("kept", "undone"):
                with shop.connect() if opened is sa.Connection else Session(shop) as given:
                    given.execute(sa.insert(ORDERS).values(name=name))
                    work_id = await put(work, given, timeout=60.0)
                    if name == "kept":
                        given.commit()
                        kept = work_id
            names = orders(shop)
        while not (found := await asyncio.to_thread(list_work, engine.client, state="done")):  # noqa: ASYNC110
            await asyncio.sleep(QUICK)
        works = await asyncio.to_thread(list_work, engine.client)

    assert names == ["kept"]
    assert [one.id for one in works] == [one.id for one in found] == [kept]


@pytest.mark.parametrize("kind", ["connection", "session"])
async def test_work_is_put_in_the_transaction_of_an_asynchronous_connection(
    postgres: Any, work_tables: str, kind: str
) -> None:
    database = postgres.url(f"work_{uuid4().hex[:8]}", template=work_tables)
    agent = durable(count)
    async with engine_of(database, agent) as engine:
        shop = create_async_engine(engine.database.url)
        async with shop.connect() if kind == "connection" else AsyncSession(shop) as undone:
            await agent.put(Turn(count), connection=undone)
        async with shop.begin() if kind == "connection" else AsyncSession(shop) as given:
            handle = await agent.put(Turn(count), connection=given)
            await given.commit()
        await shop.dispose()
        outcome = await handle.outcome()
        found = await asyncio.to_thread(list_work, engine.client)

    assert outcome == Completed("count", handle.id, 1)
    assert [one.id for one in found] == [handle.id]


async def test_one_id_is_put_once_in_whatever_transaction(file: str) -> None:
    agent = durable(count)
    turn_id = str(uuid4())
    async with Client(file) as client:
        agent.use(client)
        with shop_of(file) as shop:
            for _ in range(2):
                turn = Turn.from_dict({**Turn(count).to_dict(), "uuid": turn_id}, agent.agent.tools)
                with shop.begin() as connection:
                    await agent.put(turn, connection=connection)
        found = list_work(client)

    assert [one.id for one in found] == [turn_id]


async def test_what_cannot_be_put_in_a_transaction_is_refused(file: str, tmp_path: Path) -> None:
    agent = durable(count)
    wrong: Any = object()
    async with Client(file) as client:
        agent.use(client)
        with shop_of(file) as shop, shop_of(str(tmp_path / "other.db")) as other:
            with shop.begin() as connection, pytest.raises(EngineError, match="cannot have a key"):
                await agent.put(Turn(count), key="k", connection=connection)
            with shop.begin() as connection, pytest.raises(EngineError, match="cannot have a key"):
                await agent.put(Turn(count), key="k", debounce=1.0, connection=connection)
            with other.begin() as connection, pytest.raises(EngineError, match=r"another database than .*work\.db"):
                await agent.put(Turn(count), connection=connection)
            with pytest.raises(TypeError, match="connection must be a connection or session of SQLAlchemy"):
                await agent.put(Turn(count), connection=wrong)
        assert list_work(client) == []


async def test_a_running_turn_puts_nothing_in_another_transaction(file: str) -> None:
    @ez_tool(idempotent=True)
    async def change() -> str:
        refused = pytest.raises(EngineError, match="the turn of `count` is put by a running turn")
        with shop_of(file) as shop, shop.begin() as connection, refused:
            await agent.put(Turn(count), connection=connection)
        return "refused"

    agent: DurableAgent = durable(change, count)
    async with engine_of(file, agent):
        outcome: Any = await (await agent.put(Turn(change))).outcome()

    assert outcome.value == "refused"


async def test_a_turn_that_was_undone_is_not_followed(file: str) -> None:
    agent = durable(count)
    async with engine_of(file, agent):
        with shop_of(file) as shop, shop.connect() as connection:
            await agent.put(Turn(count), connection=connection)
        await agent.put(Turn(count))
        values = [value async for _, value in agent.run()]

    assert values == [1]


# --- a process that is killed


def order_and_die(database: str, point: str) -> None:
    """Write an order and put its turn, and end as the kernel would, before the transaction is committed or after."""

    async def order() -> None:
        agent = DurableAgent(Agent("ordering", "Orders.", [count]), Queue("ordering"))
        async with Client(database) as client:
            agent.use(client)
            with Database.named(database).engine().connect() as connection:
                connection.execute(sa.insert(ORDERS).values(name=point))
                await agent.put(Turn(count), connection=connection)
                if point == "after":
                    connection.commit()
                os.kill(os.getpid(), signal.SIGKILL)

    asyncio.run(order())


@pytest.mark.systems
@pytest.mark.parametrize("point", ["before", "after"])
async def test_a_process_that_is_killed_leaves_both_or_neither(database: str, point: str) -> None:
    with shop_of(database) as shop:
        async with Client(database) as client:
            process = multiprocessing.get_context("forkserver").Process(target=order_and_die, args=(database, point))
            process.start()
            await asyncio.to_thread(process.join)
            left = [one.state for one in list_work(client)]
            names = orders(shop)

    assert process.exitcode == -signal.SIGKILL
    assert (names, left) == ((["after"], ["waiting"]) if point == "after" else ([], []))
