"""Schedules enqueue a turn or a program once for each tick, on however many workers, whoever dies."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from tests.adapters.dbos.durable import QUICK, Step, Work, count, durable, engine_of, pay
from tests.stored.golden import require_golden
from toolcrib.adapters.dbos import (
    Client,
    DurableAgent,
    Engine,
    Queue,
    Schedule,
    backfill_schedule,
    delete_schedule,
    find_work,
    list_work,
    pause_schedule,
    prune,
    resume_schedule,
    schedules,
    trigger_schedule,
)
from toolcrib.adapters.dbos._schedules import TICK, _make_up, _skip_until
from toolcrib.adapters.dbos._work_tables import schedule_marks
from toolcrib.database import Database
from toolcrib.errors import EngineError, UnknownTool
from toolcrib.tools import ez_tool
from toolcrib.turns import Agent, Turn

KINDS = pytest.mark.parametrize("kind", ["turn", "program"])
YEARLY = "0 0 1 1 *"
PATIENCE = 240.0


@ez_tool
async def report(day: datetime) -> str:
    """Write the report of a day."""
    return day.isoformat()


@asynccontextmanager
async def client_of(agent: DurableAgent, database: str, *, had_worker: bool = False) -> AsyncGenerator[Client]:
    """Yield a client that an agent uses; a database that never had a worker has no ticks."""
    if had_worker:
        async with engine_of(database, agent):
            pass
    async with Client(database) as client:
        agent.use(client)
        yield client


async def schedule(work: Work, client: Client, when: Schedule, **placement: Any) -> None:
    """Put work on a schedule."""
    worker, (first, *_) = work.worker, work._steps
    worker.use(client)
    if isinstance(worker, DurableAgent):
        await worker.schedule(when, Turn(first.tool, kwargs=first.arguments), **placement)
    else:
        await worker.schedule(when, "...", **placement)


def make_up(client: Client, name: str, since: datetime) -> None:
    """Enqueue the ticks since a time as a worker does that begins, of a schedule with `backfill`."""
    client.dbos.backfill_schedule(name, since, datetime.now(UTC))


async def done(engine: Engine, number: int) -> list[str]:
    """Return the ids of the work that is done, once it is so much and nothing waits."""
    while True:
        found = await asyncio.to_thread(list_work, engine.client)
        if len(found) == number and {work.state for work in found} == {"done"}:
            return [work.id for work in found]
        await asyncio.sleep(QUICK)


@KINDS
async def test_each_tick_enqueues_its_work_once_however_many_workers_see_it(database: str, kind: str) -> None:
    work = Work(kind, Step(count))
    async with engine_of(database, work.worker) as engine:
        await schedule(work, engine.client, Schedule("hourly", "0 * * * *", backfill=True))
        since = datetime.now(UTC) - timedelta(hours=3)
        for _ in range(3):
            enqueued = await asyncio.to_thread(backfill_schedule, engine.client, "hourly", since, datetime.now(UTC))
        ids = await done(engine, 3)
        again = await asyncio.to_thread(find_work, engine.client, ids[0])

    assert set(ids) == set(enqueued)
    assert len(set(ids)) == 3
    assert (again.kind, again.schedule, again.state) == (kind, "hourly", "done")


async def test_a_tool_is_given_the_time_of_its_tick_in_the_zone_of_the_schedule(file: str) -> None:
    agent = durable(report)
    nightly = Schedule("nightly", "30 2 * * *", "Europe/Berlin")
    async with engine_of(file, agent) as engine:
        await agent.schedule(nightly, Turn(report), time_argument="day")
        await asyncio.to_thread(
            backfill_schedule,
            engine.client,
            "nightly",
            datetime(2026, 10, 24, 0, 30, tzinfo=UTC),  # which is a tick
            datetime(2026, 10, 26, tzinfo=UTC),
        )
        ids = await done(engine, 3)  # the night in which the hour comes twice has two
        values = {(await agent.handle(one).outcome()).value for one in ids}  # type: ignore[union-attr]

    assert values == {"2026-10-24T02:30:00+02:00", "2026-10-25T02:30:00+02:00", "2026-10-25T02:30:00+01:00"}


async def test_a_tick_is_skipped_while_the_work_of_an_earlier_one_has_the_key(file: str) -> None:
    agent = durable(count)
    async with client_of(agent, file) as client:
        await agent.schedule(Schedule("minutely", "* * * * *"), Turn(count), key="one")
        first, second = trigger_schedule(client, "minutely"), trigger_schedule(client, "minutely")
        (found,) = list_work(client)

    assert first == second == found.id
    assert found.key == "one"


async def test_ticks_that_cannot_be_enqueued_later_are_refused(file: str) -> None:
    now = datetime.now(UTC)
    agent = durable(count)
    async with client_of(agent, file) as client:
        await agent.schedule(Schedule("each second", "* * * * * *"), Turn(count))

        with pytest.raises(EngineError, match=r"`each second` has more than 10000 ticks in that time"):
            backfill_schedule(client, "each second", now - timedelta(hours=3), now)
        with pytest.raises(ValueError, match="no time is between"):
            backfill_schedule(client, "each second", now + timedelta(hours=1), now + timedelta(hours=2))
        with pytest.raises(ValueError, match="need a time zone"):
            backfill_schedule(client, "each second", datetime(2026, 11, 1), now)
        pause_schedule(client, "each second")
        with pytest.raises(EngineError, match="is paused, and would skip these ticks"):
            backfill_schedule(client, "each second", now - timedelta(seconds=5), now)
        enqueued = list_work(client)

    assert enqueued == []


@KINDS
async def test_a_paused_schedule_enqueues_nothing_but_when_it_is_triggered(database: str, kind: str) -> None:
    work = Work(kind, Step(count))
    async with engine_of(database, work.worker) as engine:
        client = engine.client
        await schedule(work, client, Schedule("hourly", "0 * * * *"))
        paused = await asyncio.to_thread(pause_schedule, client, "hourly")
        await asyncio.to_thread(make_up, client, "hourly", datetime.now(UTC) - timedelta(hours=3))
        while await asyncio.to_thread(client.dbos.list_workflows, status=["ENQUEUED", "PENDING"]):  # noqa: ASYNC110
            await asyncio.sleep(QUICK)
        triggered = await asyncio.to_thread(trigger_schedule, client, "hourly")
        ids = await done(engine, 1)
        resumed = await asyncio.to_thread(resume_schedule, client, "hourly")

    assert (paused.state, paused.next_at, resumed.state) == ("paused", None, "active")
    assert ids == [triggered]
    assert resumed.next_at is not None


async def test_what_passed_in_a_pause_is_not_made_up_for_and_what_passed_without_a_worker_is(file: str) -> None:
    agent = durable(count)
    async with client_of(agent, file) as client:
        before = datetime.now(UTC)
        for name in ("paused", "active"):
            await agent.schedule(Schedule(name, "0 * * * *", backfill=True), Turn(count))
            _skip_until(client, name, before - timedelta(hours=3))
        pause_schedule(client, "paused")
        resume_schedule(client, "paused")
    async with engine_of(file, agent) as engine:
        await done(engine, 3)
        found = await asyncio.to_thread(list_work, engine.client)

    assert {work.schedule for work in found} == {"active"}


async def test_what_is_missed_is_skipped_unless_the_schedule_says_otherwise(file: str) -> None:
    agent = durable(count)
    async with client_of(agent, file) as client:
        for name, backfill in (("skips", False), ("makes-up", True)):
            await agent.schedule(Schedule(name, "0 * * * *", backfill=backfill), Turn(count))
            _skip_until(client, name, datetime.now(UTC) - timedelta(hours=2))
    async with engine_of(file, agent) as engine:
        await done(engine, 2)
        found = await asyncio.to_thread(list_work, engine.client)

    assert {work.schedule for work in found} == {"makes-up"}


@pytest.mark.parametrize("change", [{"cron": "0 * * * *"}, {"timezone": "Asia/Kolkata"}], ids=str)
async def test_a_schedule_with_other_times_makes_up_for_nothing_that_passed_before(
    file: str, change: dict[str, Any]
) -> None:
    agent = durable(count)
    async with client_of(agent, file) as client:
        before = datetime.now(UTC) - timedelta(hours=3)
        first = Schedule("changed", "0 * * * *" if "timezone" in change else YEARLY, backfill=True)
        same = Schedule("same", "0 * * * *", backfill=True)
        for one in (first, same):
            await agent.schedule(one, Turn(count))
            _skip_until(client, one.name, before)
        for one in (replace(first, **change), same):
            await agent.schedule(one, Turn(count))
    async with engine_of(file, agent) as engine:
        await done(engine, 3)
        found = await asyncio.to_thread(list_work, engine.client)

    assert {work.schedule for work in found} == {"same"}


@pytest.mark.parametrize("cron", [YEARLY, "0 * * * *"])
async def test_a_schedule_that_gets_other_times_while_a_worker_looks_makes_up_for_nothing(
    database: str, cron: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = durable(count)
    async with client_of(agent, database, had_worker=True) as client:
        await agent.schedule(Schedule("often", cron, backfill=True), Turn(count))
        _skip_until(client, "often", datetime.now(UTC) - timedelta(hours=3))
        listed = client.dbos.list_schedules(status="ACTIVE")
        await agent.schedule(Schedule("often", "0 * * * *", backfill=True), Turn(count))
        monkeypatch.setattr(client.dbos, "list_schedules", lambda **options: listed)
        _make_up(client)
        made = [one for one in client.dbos.list_workflows(schedule_name="often") if one.name == TICK]

    assert len(made) == (0 if cron == YEARLY else 3)


async def test_ticks_before_one_that_was_enqueued_are_made_up_for(database: str) -> None:
    agent = durable(count)
    async with client_of(agent, database, had_worker=True) as client:
        await agent.schedule(Schedule("hourly", "0 * * * *", backfill=True), Turn(count))
        now = datetime.now(UTC)
        _skip_until(client, "hourly", now - timedelta(hours=4))
        # as a worker that began too late for the ticks between, enqueued the latest, and died
        last = client.dbos.backfill_schedule("hourly", now - timedelta(hours=1), now)
        client.dbos._sys_db.update_last_fired_at("hourly", now.isoformat())
    async with engine_of(database, agent) as engine:
        ids = await done(engine, 4)

    assert len(last) == 1
    assert len(set(ids)) == 4


async def test_a_schedule_of_a_version_that_kept_no_marks_makes_up_from_its_latest_tick(file: str) -> None:
    agent = durable(count)
    async with client_of(agent, file) as client:
        await agent.schedule(Schedule("hourly", "0 * * * *", backfill=True), Turn(count))
        _skip_until(client, "hourly", datetime.now(UTC) - timedelta(hours=2))
        with client.engine.begin() as connection:
            connection.execute(sa.delete(schedule_marks))
    async with engine_of(file, agent) as engine:
        await done(engine, 2)
        await asyncio.to_thread(_make_up, engine.client)
        with engine.client.engine.begin() as connection:
            mark = connection.execute(sa.select(schedule_marks.c.until)).scalar_one()

    assert mark > datetime.now(UTC).timestamp() - 3600


async def test_a_clock_that_is_set_back_gives_no_tick_again(database: str) -> None:
    agent = durable(count)
    async with engine_of(database, agent) as engine:
        client = engine.client
        await agent.schedule(Schedule("hourly", "0 * * * *", backfill=True), Turn(count))
        since = datetime.now(UTC) - timedelta(hours=3)
        await asyncio.to_thread(make_up, client, "hourly", since)
        ids = await done(engine, 3)
        for _ in range(2):  # a worker that begins while the clock is behind, and one after it was put right
            _skip_until(client, "hourly", since)
            await asyncio.to_thread(make_up, client, "hourly", since)
        while await asyncio.to_thread(client.dbos.list_workflows, status=["ENQUEUED", "PENDING"]):  # noqa: ASYNC110
            await asyncio.sleep(QUICK)
        again = await done(engine, 3)

    assert again == ids


async def test_a_tick_that_was_under_way_when_its_schedule_was_deleted_and_made_anew_enqueues_once(file: str) -> None:
    agent = durable(count)
    async with client_of(agent, file, had_worker=True) as client:
        since = datetime.now(UTC) - timedelta(hours=2)
        await agent.schedule(Schedule("hourly", "0 * * * *", backfill=True), Turn(count))
        make_up(client, "hourly", since)
        delete_schedule(client, "hourly")
        await agent.schedule(Schedule("hourly", "0 * * * *", backfill=True), Turn(count))
        make_up(client, "hourly", since)
    async with engine_of(file, agent) as engine:
        ids = await done(engine, 2)

    assert len(set(ids)) == 2


async def test_a_tick_that_ends_while_work_is_listed_is_no_work(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    agent = durable(count)
    async with client_of(agent, file, had_worker=True) as client:
        await agent.schedule(Schedule("hourly", "0 * * * *", backfill=True), Turn(count))
        make_up(client, "hourly", datetime.now(UTC) - timedelta(hours=2))
        listed, database = client.dbos.list_workflows, client.dbos._sys_db

        def ended_since(**given: Any) -> Any:
            table = database.tables.workflow_status
            with database.engine.begin() as connection:
                connection.execute(sa.update(table).where(table.c.name == TICK).values(status="SUCCESS"))
            return listed(**given)

        before = list_work(client)
        monkeypatch.setattr(client.dbos, "list_workflows", ended_since)
        found = list_work(client)

    assert len(before) == 2
    assert found == []


async def test_a_tick_that_was_under_way_when_its_schedule_was_deleted_enqueues_nothing(file: str) -> None:
    agent = durable(count)
    async with client_of(agent, file, had_worker=True) as client:
        await agent.schedule(Schedule("hourly", "0 * * * *", backfill=True), Turn(count))
        make_up(client, "hourly", datetime.now(UTC) - timedelta(hours=2))
        delete_schedule(client, "hourly")
    async with engine_of(file, agent) as engine:
        while await asyncio.to_thread(engine.client.dbos.list_workflows, status=["ENQUEUED", "PENDING"]):  # noqa: ASYNC110
            await asyncio.sleep(QUICK)
        found = await asyncio.to_thread(list_work, engine.client)

    assert found == []


async def test_a_tick_that_was_made_up_for_is_not_again_when_its_work_was_removed(file: str) -> None:
    agent = durable(count)
    async with engine_of(file, agent) as engine:
        client = engine.client
        await agent.schedule(Schedule("hourly", "0 * * * *", backfill=True), Turn(count))
        _skip_until(client, "hourly", datetime.now(UTC) - timedelta(hours=2))
        await asyncio.to_thread(_make_up, client)
        await done(engine, 2)
        while await asyncio.to_thread(client.dbos.list_workflows, status=["ENQUEUED", "PENDING"]):  # noqa: ASYNC110
            await asyncio.sleep(QUICK)
        await asyncio.to_thread(asyncio.run, prune(engine.database, datetime.now(UTC) + timedelta(hours=1)))
        await asyncio.to_thread(_make_up, client)
        left = await asyncio.to_thread(client.dbos.list_workflows)
        found = await asyncio.to_thread(client.dbos.get_schedule, "hourly")

    assert left == []
    assert found is not None
    assert found["last_fired_at"] is not None  # from which DBOS makes up when a worker begins
    assert datetime.fromisoformat(found["last_fired_at"]) > datetime.now(UTC) - timedelta(hours=1)


async def test_schedules_are_listed_replaced_and_deleted(database: str) -> None:
    work = Work("turn", Step(count))
    async with Client(database) as client:
        await schedule(work, client, Schedule("b", YEARLY, "Asia/Tokyo"))
        await schedule(work, client, Schedule("a", "0 2 * * *"))
        pause_schedule(client, "b")
        await schedule(work, client, Schedule("b", "0 3 * * *", backfill=True))
        first, second = schedules(client)
        delete_schedule(client, "a")
        left = [one.name for one in schedules(client)]

    assert (first.name, first.cron, first.timezone, first.backfill, first.state) == (
        "a",
        "0 2 * * *",
        "UTC",
        False,
        "active",
    )
    assert (second.cron, second.timezone, second.backfill, second.state) == ("0 3 * * *", "UTC", True, "paused")
    assert (second.kind, second.queue, second.last_at) == ("turn", work.worker.queue.name, None)
    assert second.target.endswith(": count")
    assert left == ["b"]


@pytest.mark.parametrize("change", [pause_schedule, resume_schedule, delete_schedule, trigger_schedule])
async def test_a_schedule_that_is_missing_is_an_error_that_names_those_that_are_there(file: str, change: Any) -> None:
    agent = durable(count)
    async with client_of(agent, file) as client:
        await agent.schedule(Schedule("nightly", YEARLY), Turn(count))
        with pytest.raises(EngineError, match=r"there is no schedule `nightli` in .*; there are: nightly"):
            change(client, "nightli")


async def test_the_name_of_a_schedule_of_another_application_is_an_error(file: str) -> None:
    agent, other = durable(count), durable(count)
    async with Client(file) as client, Client(Database.named(file, application="other")) as theirs:
        agent.use(client)
        other.use(theirs)
        await agent.schedule(Schedule("nightly", YEARLY), Turn(count))
        with pytest.raises(EngineError, match=r"the schedule `nightly` cannot be made: .*application"):
            await other.schedule(Schedule("nightly", YEARLY), Turn(count))
        with pytest.raises(EngineError, match="there is no schedule `nightly`"):
            pause_schedule(theirs, "nightly")


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"cron": "61 * * * *"}, "cron must be .* and is '61 . . . .': .*out of range"),
        ({"cron": ""}, "cron must be .* and is '': "),
        ({"cron": "0 0 30 2 *"}, "cron must be .*: failed to find next date"),
        ({"cron": "R * * * *"}, "cron must be .*: each worker would choose another random time"),
        ({"cron": "H * * * *"}, "cron must be "),
        ({"timezone": "Mars/Base"}, "timezone must be the IANA name of a time zone, .* and is 'Mars/Base'"),
        ({"timezone": "Europe"}, "timezone must be "),
        ({"timezone": ""}, "timezone must be "),
        ({"name": " "}, "a schedule needs a name"),
    ],
)
def test_a_schedule_that_cannot_be_is_refused_where_it_is_made(options: dict[str, str], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        Schedule(**{"name": "nightly", "cron": "0 2 * * *", **options})


def test_what_is_not_a_text_is_refused_by_its_name() -> None:
    given: Any = 5
    with pytest.raises(TypeError, match="cron is 5; give a text"):
        Schedule("nightly", given)


async def test_a_turn_that_the_agent_cannot_run_is_refused_before_it_is_scheduled(file: str) -> None:
    agent = durable(report)
    async with client_of(agent, file) as client:
        with pytest.raises(ValueError, match="`report` has no argument `night` for the time; it has: day"):
            await agent.schedule(Schedule("nightly", YEARLY), Turn(report), time_argument="night")
        with pytest.raises(UnknownTool):
            await agent.schedule(Schedule("nightly", YEARLY), Turn(pay, kwargs={"cents": 1}))
        with pytest.raises(ValueError, match="priority must be at least 0"):
            await agent.schedule(Schedule("nightly", YEARLY), Turn(report), priority=-1)
        assert schedules(client) == []


async def test_a_schedule_is_written_as_its_golden_file_has_it(file: str) -> None:
    agent = durable(report)
    async with client_of(agent, file) as client:
        await agent.schedule(Schedule("nightly", YEARLY), Turn(report), time_argument="day", key="one", timeout=60.0)
        found = client.dbos.get_schedule("nightly")

    assert found is not None
    require_golden("ScheduledWork", found["context"])


# --- worker processes that are killed


def put_line(folder: str, at: str) -> None:
    with (Path(folder) / "effects").open("a") as file:
        file.write(f"{at}\n")


@ez_tool(idempotent=True)
async def note(folder: str, at: str) -> None:
    """Write a line that can be seen from outside."""
    put_line(folder, at)


def noting() -> DurableAgent:
    """Return the agent, as every process makes it."""
    return DurableAgent(Agent("noting", "Notes.", [note]), Queue("noting", polling=QUICK))


def worker_process(database: str, worker_id: str, ready: Connection) -> None:
    """Work until the process is killed."""

    async def work() -> None:
        async with Engine(database, worker_id=worker_id, queues=[noting().queue], recover_lost=False):
            ready.send("ready")
            await asyncio.Event().wait()

    asyncio.run(work())


@pytest.mark.systems
async def test_workers_that_are_killed_at_any_moment_lose_and_double_no_tick(database: str, tmp_path: Path) -> None:
    server = multiprocessing.get_context("forkserver")  # its processes have imported DBOS
    agent, workers = noting(), dict[str, Any]()

    def start(worker_id: str) -> None:
        mine, theirs = server.Pipe()
        workers[worker_id] = server.Process(target=worker_process, args=(database, worker_id, theirs), daemon=True)
        workers[worker_id].start()
        assert mine.recv() == "ready"

    async with client_of(agent, database) as client:
        turn: Turn[Any] = Turn(note, kwargs={"folder": str(tmp_path)})
        await agent.schedule(Schedule("secondly", "* * * * * *", backfill=True), turn, time_argument="at")
        for worker_id in ("one", "two"):
            await asyncio.to_thread(start, worker_id)
        for number in range(4):
            await asyncio.sleep(0.6)  # the moment within a tick is another one each time
            worker_id = ("one", "two")[number % 2]
            os.kill(workers[worker_id].pid, signal.SIGKILL)
            workers[worker_id].join()
            await asyncio.to_thread(start, worker_id)
        until = datetime.now(UTC)
        found = await asyncio.to_thread(ticks_through, client, until)
        for process in workers.values():
            process.kill()
            process.join()

    first = min(found)
    expected = {(first + timedelta(seconds=n)) for n in range(int((until - first).total_seconds()))}
    assert expected <= set(found)
    lines = (tmp_path / "effects").read_text().split()
    assert {datetime.fromisoformat(line) for line in lines} >= expected
    doubled = {line for line in lines if lines.count(line) > 1}
    assert len(doubled) <= 4  # a call that a kill cut off, of a tool that may be called twice


def ticks_through(client: Client, until: datetime) -> list[datetime]:
    """Return the ticks whose work is done, once all until a time are; each is there once."""
    give_up_at = time.monotonic() + PATIENCE
    while True:
        works = list_work(client, limit=1000)
        times = [
            datetime.fromisoformat(tick_time(client, work.id))
            for work in works
            if work.state == "done" and work.schedule == "secondly"
        ]
        seconds = int((until - min(times)).total_seconds()) if times else 0
        missing = {min(times) + timedelta(seconds=n) for n in range(seconds)} - {*times}
        waiting = [work for work in works if work.state != "done" and (work.created_at or 0) < until.timestamp()]
        if times and not missing and not waiting:
            assert len(set(times)) == len(times)
            return times
        assert time.monotonic() < give_up_at, f"missing: {missing}; waiting: {waiting}"
        time.sleep(QUICK)


def tick_time(client: Client, work_id: str) -> str:
    status = client.find(work_id)
    assert status is not None
    given: Any = status.input
    return given["args"][0]["turn"]["kwargs"]["at"]
