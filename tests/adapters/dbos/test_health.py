"""A worker says over HTTP whether it lives and takes work, and how much waits."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import uuid4

import pytest
import sqlalchemy as sa

from tests.adapters.dbos.durable import QUICK, durable
from tests.postgres import Postgres
from toolcrib.adapters.dbos import Client, DurableAgent, DurableToolkit, Engine, Placement, Queue, serve_health
from toolcrib.calls import ActivityEvent, ApprovalRequest, CallEvent
from toolcrib.code import Toolkit
from toolcrib.database import Database
from toolcrib.record import Sink, SqliteSink, sqlite_events
from toolcrib.tools import tool
from toolcrib.turns import Turn


async def sent(port: int, request: bytes) -> str:
    """Send a request, and return all that comes back."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    answer = await reader.read()
    writer.close()
    return answer.decode()


async def got(port: int, path: str) -> tuple[int, str]:
    """Return the status and the text of an answer."""
    head, _, body = (await sent(port, f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())).partition("\r\n\r\n")
    return int(head.split()[1]), body


async def readiness(port: int, status: int) -> tuple[int, str]:
    """Return the answer about readiness, as soon as it has this status."""
    while (answer := await got(port, "/readyz"))[0] != status:
        pass
    return answer


async def numbers(port: int) -> dict[str, float]:
    status, text = await got(port, "/metrics")
    assert status == 200
    return {name: float(value) for name, value in re.findall(r"^(toolcrib_\S+) (\S+)$", text, re.MULTILINE)}


@asynccontextmanager
async def watched(
    database: str, *agents: DurableAgent, sinks: tuple[Sink, ...] = ()
) -> AsyncGenerator[tuple[Engine, int]]:
    """Run an engine, and give it and the port that it is asked on."""
    queues = [agent.queue for agent in agents] or [Queue("quiet", polling=QUICK)]
    engine = Engine(database, worker_id="w1", queues=queues, record=True, sinks=sinks)
    async with serve_health(engine) as port:
        assert await got(port, "/readyz") == (503, "the worker starts\n")
        async with engine:
            yield engine, port
        assert (await got(port, "/metrics"))[0] == 200


async def test_what_waits_runs_and_is_in_doubt_is_counted(database: str) -> None:
    doubted = ApprovalRequest("ask_1", "c1", "pay", {}, "d", in_doubt=True)
    async with watched(database) as (_, port), Client(database) as client:
        await client.approvals.put(doubted)
        await client.approvals.put(ApprovalRequest("ask_2", "c2", "pay", {}, "d"))
        await client.enqueue("none", 'else"where', {}, Placement("p1"))
        await client.enqueue("none", 'else"where', {}, Placement("p2"))
        await client.enqueue("none", "quiet", {}, Placement("p3", delay=600))
        database_of_work = client.dbos._sys_db
        work = database_of_work.tables.workflow_status
        with database_of_work.engine.begin() as connection:  # it was to wait until a minute ago
            long_ago = {"created_at": work.c.created_at - 3_600_000, "delay_until_epoch_ms": work.c.created_at - 60_000}
            connection.execute(sa.update(work).where(work.c.workflow_uuid != "p3").values(long_ago))
        found = await numbers(port)
        health = await got(port, "/healthz")
        answer = await got(port, "/readyz")

    assert (health, answer) == ((200, "ok\n"), (200, "ready\n"))
    oldest = found.pop('toolcrib_queue_oldest_seconds{queue="else\\"where"}')
    assert 60 <= oldest < 600
    assert found.pop("toolcrib_event_lag_seconds") == 0
    assert {name.removeprefix("toolcrib_"): value for name, value in found.items() if value} == {
        "worker_takes_work": 1,
        "database_up": 1,
        'queue_depth{queue="else\\"where"}': 2,
        'queue_delayed{queue="quiet"}': 1,
        "requests_pending": 2,
        "in_doubt": 1,
        'workers{state="running"}': 1,
    }
    assert found['toolcrib_queue_oldest_seconds{queue="quiet"}'] == 0
    assert found["toolcrib_lost_leases"] == 0


async def test_a_worker_that_gives_its_work_time_to_end_takes_no_more(tmp_path: Path) -> None:
    begun, may_end = asyncio.Event(), asyncio.Event()

    @tool
    async def wait() -> str:
        """Wait."""
        begun.set()
        await may_end.wait()
        return "waited"

    agent = durable(wait)
    async with serve_health(engine := Engine(tmp_path / "crib.db", queues=[agent.queue])) as port:
        await engine.__aenter__()
        await agent.put(Turn(wait))
        await begun.wait()
        running = (await numbers(port))[f'toolcrib_running{{queue="{agent.queue.name}"}}']
        leaving = asyncio.create_task(engine.__aexit__())
        answer = await readiness(port, 503)
        found = await numbers(port)
        health = await got(port, "/healthz")
        may_end.set()
        await leaving

    assert running == 1
    assert answer == (503, "the worker stops, and takes no more work\n")
    assert (found["toolcrib_worker_takes_work"], found["toolcrib_database_up"]) == (0, 1)
    assert health == (200, "ok\n")


async def test_a_database_that_is_away_makes_a_worker_not_ready_and_not_dead(
    postgres: Postgres, caplog: pytest.LogCaptureFixture
) -> None:
    async with watched(Database.named(postgres.url(f"health_{uuid4().hex[:8]}"))) as (_, port):
        postgres.control.stop()
        try:
            answer = await readiness(port, 503)
            found, _ = await numbers(port), await numbers(port)
            health = await got(port, "/healthz")
        finally:
            postgres.control.start()
        again = await readiness(port, 200)

    assert answer == (503, "the database does not answer\n")
    assert (found["toolcrib_worker_takes_work"], found["toolcrib_database_up"]) == (1, 0)
    assert "toolcrib_requests_pending" not in found
    assert (health, again) == ((200, "ok\n"), (200, "ready\n"))
    assert len([record for record in caplog.records if "a question about the health" in record.message]) == 1


async def test_a_worker_whose_work_was_handed_over_is_dead(tmp_path: Path) -> None:
    async with watched(Database.named(tmp_path / "crib.db")) as (engine, port):
        engine.lost.set()
        answers = [await got(port, path) for path in ("/healthz", "/readyz")]
        found = await numbers(port)

    assert answers == [(503, "the work of this worker was handed over to others\n")] * 2
    assert found == {"toolcrib_worker_takes_work": 0, "toolcrib_event_lag_seconds": 0}


async def test_other_requests_are_refused(tmp_path: Path) -> None:
    async with serve_health(Engine(tmp_path / "crib.db")) as port:
        post = await sent(port, b"POST /healthz HTTP/1.1\r\n\r\n")
        unknown = await got(port, "/secrets")
        endless = await sent(port, b"GET /healthz HTTP/1.1\r\nx: " + b"x" * 9_000)

    assert post.startswith("HTTP/1.1 405 Method Not Allowed\r\n")
    assert unknown == (404, "there are /healthz, /readyz and /metrics\n")
    assert endless == ""


class Kept:
    """Keeps events."""

    def __init__(self) -> None:
        self.events: list[CallEvent | ActivityEvent] = []

    def emit(self, event: CallEvent) -> None:
        self.events.append(event)

    def emit_activity(self, event: ActivityEvent) -> None:
        self.events.append(event)


@tool
async def add(a: int, b: int) -> int:
    """Add."""
    return a + b


async def test_the_sinks_of_an_engine_receive_each_event_once(tmp_path: Path) -> None:
    everywhere, engines_own = Kept(), Kept()
    agent = durable(add, sinks=[everywhere])
    toolkit = DurableToolkit(Toolkit([add]), f"kit_{uuid4().hex[:8]}", name=f"kit_{uuid4().hex[:8]}")
    queues = [agent.queue, toolkit.queue]
    async with Engine(tmp_path / "crib.db", queues=queues, sinks=[everywhere, engines_own]):
        await (await agent.put(Turn(add, kwargs={"a": 1, "b": 2}))).outcome()
        await (await toolkit.start("add(1, 2)")).result()

    calls = [event for event in engines_own.events if isinstance(event, CallEvent)]
    runs = {event.activity for event in engines_own.events if isinstance(event, ActivityEvent)}
    assert [event.kind for event in calls] == ["received", "started", "ended"] * 2
    assert runs >= {"turn", "program"}
    assert everywhere.events == engines_own.events


async def test_an_engine_keeps_no_second_copy_of_what_its_own_sink_keeps(tmp_path: Path) -> None:
    path, agent = tmp_path / "crib.db", durable(add)
    with SqliteSink(path) as sink:
        async with Engine(path, queues=[agent.queue], record=True, sinks=[sink]):
            await (await agent.put(Turn(add, kwargs={"a": 1, "b": 2}))).outcome()

    kept = [event.kind for event in sqlite_events(path).since(0)]
    assert kept.count("started") == 1
