"""A network that loses what is sent keeps no durable work from going on, and no worker from ending."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.pool import Pool

from tests.adapters.dbos.durable import QUICK, count, durable, engine_of, looked_at
from tests.adapters.dbos.test_health import got
from tests.adapters.dbos.test_recovery import Shop
from tests.networks import Network, network_to
from tests.postgres import Postgres
from toolcrib.adapters.dbos import Client, Engine, Queue, serve_health
from toolcrib.adapters.dbos._queue_looks import QueueLooks
from toolcrib.approvals import PostgresApprovalStore
from toolcrib.calls import Completed
from toolcrib.database import Database, unhurried
from toolcrib.database._connections import AnsweredConnection
from toolcrib.errors import DatabaseError
from toolcrib.record import PostgresSink
from toolcrib.results import PostgresResultStore
from toolcrib.testing import FakeClock
from toolcrib.turns import Turn


@pytest.fixture
def url(postgres: Postgres, work_tables: str) -> str:
    """The URL of a database whose tables are empty."""
    return postgres.url(f"network_{uuid4().hex[:8]}", template=work_tables)


@pytest.fixture
def network(postgres: Postgres) -> Iterator[Network]:
    """A network to the server."""
    with network_to(postgres.port) as network:
        yield network


def through(network: Network, postgres: Postgres, url: str, answer_timeout: float) -> str:
    """Return the URL of the same database over a network."""
    return url.replace(f":{postgres.port}/", f":{network.port}/") + f"?answer_timeout={answer_timeout}"


def settings_of(database: str, open_it: Callable[[str], Any]) -> list[dict[str, str]]:
    """Return the settings of the connections that something opens, each of them one of ours."""
    found: list[dict[str, str]] = []

    def connected(connection: Any, record: Any) -> None:
        assert isinstance(connection, AnsweredConnection)
        found.append(connection.info.get_parameters())

    event.listen(Pool, "connect", connected)
    try:
        opened = open_it(database)
        opened.close()
    finally:
        event.remove(Pool, "connect", connected)
    return found


@pytest.mark.parametrize("kind", [Client, PostgresSink, PostgresApprovalStore, PostgresResultStore])
def test_a_peer_that_acknowledges_nothing_is_given_up(url: str, kind: Callable[[str], Any]) -> None:
    found = settings_of(url, kind)

    assert found
    for settings in found:
        names = ("connect_timeout", "keepalives_idle", "keepalives_interval", "keepalives_count", "tcp_user_timeout")
        assert [settings[name] for name in names] == ["10", "10", "2", "3", "10000"]


def test_the_settings_of_a_url_take_the_place_of_ours(url: str) -> None:
    found = settings_of(f"{url}?tcp_user_timeout=60000&keepalives_idle=99", PostgresResultStore)

    names = ("tcp_user_timeout", "keepalives_idle", "keepalives_interval")
    assert {tuple(settings[name] for name in names) for settings in found} == {("60000", "99", "2")}


async def test_every_connection_of_a_worker_is_one_of_ours(url: str, postgres: Postgres) -> None:
    kinds: list[bool] = []

    def connected(connection: Any, record: Any) -> None:
        kinds.append(isinstance(connection, AnsweredConnection))

    event.listen(Pool, "connect", connected)
    async with engine_of(url, agent := durable(count), record=True):
        await (await agent.put(Turn(count))).outcome()
        with postgres.connect() as connection:
            query = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND datname = %s"
            (there,) = connection.execute(query, [sa.make_url(url).database]).fetchone() or (0,)
    event.remove(Pool, "connect", connected)

    assert all(kinds)
    assert 0 < there <= len(kinds)  # none was opened but by a pool


def test_a_statement_without_an_answer_is_given_up(network: Network, postgres: Postgres, url: str) -> None:
    engine = Database.named(through(network, postgres, url, 0.4)).engine(pool=1)

    with unhurried():
        connection = engine.connect()  # however busy the machine is
    with connection:
        network.swallow()
        with pytest.raises(ConnectionError, match=r"the server has not answered for \d+ s"):
            connection.execute(sa.text("SELECT 1"))
    with unhurried(), engine.connect() as connection:
        again = connection.execute(sa.text("SELECT 2")).scalar_one()
    engine.dispose()

    assert again == 2


def test_a_change_of_tables_takes_as_long_as_it_takes(url: str) -> None:
    engine = Database.named(f"{url}?answer_timeout=0.4").engine(pool=1)

    with unhurried(), engine.connect() as connection:
        slept = connection.execute(sa.text("SELECT 1 FROM pg_sleep(1)")).scalar_one()
    with pytest.raises(ConnectionError, match="has not answered"), engine.connect() as connection:
        connection.execute(sa.text("SELECT pg_sleep(60)"))
    engine.dispose()

    assert slept == 1


def test_a_connection_that_listens_waits_for_as_long_as_it_likes(url: str) -> None:
    engine = Database.named(f"{url}?answer_timeout=0.4").engine(pool=2)
    with unhurried():
        listening = engine.raw_connection()
        connection: Any = listening.dbapi_connection
        connection.autocommit = True
        connection.execute("LISTEN news")

    def tell() -> None:
        with psycopg.connect(url, autocommit=True) as teller:
            teller.execute("NOTIFY news, 'late'")

    threading.Timer(1, tell).start()
    news = next(connection.notifies(timeout=60))
    listening.close()
    engine.dispose()

    assert news.payload == "late"


def test_a_time_for_answers_is_a_number(url: str) -> None:
    with pytest.raises(DatabaseError, match="its answer_timeout is a number of seconds, not `soon`"):
        Database.named(f"{url}?answer_timeout=soon")


async def test_work_goes_on_when_a_network_has_lost_the_connections(
    network: Network, postgres: Postgres, url: str
) -> None:
    agent = durable(count)
    async with Client(url) as client, engine_of(through(network, postgres, url, 1), agent, record=True):
        first = await (await agent.put(Turn(count))).outcome()
        network.swallow()
        agent.use(client)
        second = await (await agent.put(Turn(count))).outcome()

    assert isinstance(first, Completed)
    assert isinstance(second, Completed)


def test_a_queue_that_is_not_looked_at_for_15_seconds_is_overdue() -> None:
    clock = FakeClock()
    looks = QueueLooks([Queue("slow", polling=60), Queue("quick", polling=1), Queue("dead", polling=1)], clock)

    clock.advance(16.0)
    looks.note("quick")
    looks.note("another")
    before = looks.overdue
    clock.advance(0.1)

    assert before == ()
    assert looks.overdue == ("dead",)


async def test_a_worker_that_cannot_look_at_its_queue_is_not_ready(
    network: Network, postgres: Postgres, url: str
) -> None:
    queue = Queue("watched", polling=QUICK)
    engine = Engine(through(network, postgres, url, 0), worker_id="w1", queues=[queue], grace=0.1, clock=FakeClock(50))
    async with serve_health(engine) as port, engine:
        text = "no work is taken from watched: the database does not answer there\n"
        while (answer := await got(port, "/readyz"))[1] != text:
            network.swallow()  # also what was opened since: another thread may have taken the connection that was there
            await asyncio.sleep(QUICK)
        health = await got(port, "/healthz")

    assert answer[0] == 503
    assert health == (200, "ok\n")


async def test_a_look_at_an_empty_queue_begins_no_transaction_to_take_work(url: str) -> None:
    sent, agent = list[str](), durable(count)
    async with engine_of(url, agent) as engine:
        event.listen(engine.client.engine, "before_cursor_execute", lambda *given: sent.append(given[2]))
        await looked_at(engine, agent.queue)
        idle = list(sent)
        outcome = await (await agent.put(Turn(count))).outcome()

    assert isinstance(outcome, Completed)
    assert any("workflow_status.queue_name = " in statement for statement in idle)
    assert not any("FOR SHARE" in statement for statement in idle)  # which takes work
    assert any("FOR SHARE" in statement for statement in sent)


async def test_a_worker_ends_when_it_is_told_to_though_the_network_swallows_what_it_sends(
    network: Network, postgres: Postgres, url: str, tmp_path: Path
) -> None:
    async with Client(url) as client:
        shop = Shop(through(network, postgres, url, 0), tmp_path, client)
        process, said = await shop.start()
        network.swallow(later=True)
        shop.let_go()
        await asyncio.to_thread(process.join)

    assert said == "ready"
    assert process.exitcode == 0
