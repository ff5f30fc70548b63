"""A database that is away, locked or full is waited for, and another error is an answer."""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import sqlalchemy as sa
from dbos._sys_db import db_retry
from dbos._sys_db_sqlite import SQLiteSystemDatabase

from tests.adapters.dbos.durable import QUICK, Step, Work, count, durable, engine_of
from toolcrib.adapters.dbos import DurableToolkit, Queue
from toolcrib.approvals import MemoryApprovalStore
from toolcrib.calls import ApprovalRequest, Suspended
from toolcrib.clock import WaitedTime
from toolcrib.code import Toolkit
from toolcrib.database import Database, DatabaseAway, is_outage, is_unavailable
from toolcrib.database._outage import Notice, name_outages
from toolcrib.database._sqlite import sqlite3
from toolcrib.durable import outlast
from toolcrib.sandbox import SandboxLimits, SandboxName
from toolcrib.tools import ez_tool, tool
from toolcrib.turns import Turn


def test_a_full_disk_says_nothing_about_what_was_asked(tmp_path: Path) -> None:
    engine = Database.named(tmp_path / "crib.db").engine()
    with engine.begin() as connection:
        connection.execute(sa.text("CREATE TABLE kept (line TEXT)"))

    with engine.connect() as connection:
        connection.execute(sa.text("PRAGMA max_page_count = 1"))  # it has no room for a page more
        with pytest.raises(DatabaseAway, match="full"):
            connection.execute(sa.text("INSERT INTO kept VALUES (:line)"), {"line": "x" * 100_000})
    with pytest.raises(sa.exc.OperationalError, match="no such table"), engine.begin() as connection:
        connection.execute(sa.text("SELECT * FROM lost"))

    engine.dispose()


def test_dbos_waits_as_long_as_we_do_between_two_tries(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []
    monkeypatch.setattr(time, "sleep", waited.append)

    @db_retry()
    def kept() -> str:
        if len(waited) < 8:
            raise DatabaseAway("restarted")
        return "kept"

    assert kept() == "kept"
    assert max(waited) == 5.0


def test_an_outage_is_said_once_when_it_begins_and_once_when_writes_are_kept_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    at, said = [0.0], list[int]()
    engine = sa.create_engine(
        f"sqlite:///{tmp_path / 'crib.db'}", module=sqlite3, connect_args={"isolation_level": "IMMEDIATE"}
    )
    name_outages(engine, Notice(lambda: at[0]))
    with engine.begin() as connection:
        connection.execute(sa.text("PRAGMA journal_mode = WAL"))
        connection.execute(sa.text("CREATE TABLE kept (line TEXT)"))
    with closing(sqlite3.connect(tmp_path / "crib.db", isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        for _ in range(2):
            with engine.begin() as connection:  # what is read says nothing about what can be kept
                connection.execute(sa.text("PRAGMA busy_timeout = 0"))
                with pytest.raises(DatabaseAway):
                    connection.execute(sa.text("INSERT INTO kept VALUES ('a')"))
                at[0] += 11.0
    for seconds in (-11.0, 11.0):  # a moment after an error, and a while after it
        at[0] += seconds
        with engine.begin() as connection:
            connection.execute(sa.text("INSERT INTO kept VALUES ('b')"))
        said.append(len(caplog.records))
    engine.dispose()

    assert said == [1, 2]
    assert "work waits for it" in caplog.records[0].getMessage()
    assert caplog.records[1].getMessage() == "the database can be used again: work goes on"


async def test_work_is_tried_again_until_the_database_is_back() -> None:
    tries = [DatabaseAway("restarted"), sqlite3.OperationalError("database is locked"), None]
    made: list[int] = []

    async def work() -> str:
        error = tries[len(made)]
        made.append(1)
        if error is not None:
            raise error
        return "kept"

    assert await outlast(work) == "kept"
    assert len(made) == 3


async def test_an_error_of_another_kind_is_raised_at_once() -> None:
    async def work() -> None:
        raise sqlite3.OperationalError("no such table: kept")

    with pytest.raises(sqlite3.OperationalError, match="no such table"):
        await outlast(work)


async def test_waiting_for_a_database_ends_when_it_is_cancelled() -> None:
    async def work() -> None:
        raise DatabaseAway("gone")

    task = asyncio.create_task(outlast(work))
    await asyncio.sleep(0)
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task


class _AwayStore(MemoryApprovalStore):
    """A store whose database is away at first."""

    failures = 4

    async def put(self, request: ApprovalRequest) -> None:
        self.failures -= 1
        if self.failures >= 0:
            raise DatabaseAway("restarted")
        await super().put(request)


async def test_the_time_of_an_outage_is_no_time_of_the_turn(tmp_path: Path) -> None:
    @tool(requires_approval=True)
    async def pay() -> str:
        return "paid"

    agent, store = durable(pay), _AwayStore()
    async with engine_of(str(tmp_path / "crib.db"), agent, approvals=store):
        outcome = await (await agent.put(Turn(pay, timeout=0.3))).outcome()

    assert isinstance(outcome, Suspended)
    assert store.failures == -1


def _toolkit(tool: Any, sandbox: SandboxName = "unsafe_inline") -> DurableToolkit:
    """Return a toolkit whose programs begin at once, in no process of their own."""
    name = f"kit_{uuid4().hex[:8]}"
    toolkit = Toolkit([tool], sandbox=sandbox, limits=SandboxLimits(wall_time=0.5))
    return DurableToolkit(toolkit, Queue(name, polling=QUICK), name=name)


async def test_the_time_of_an_outage_is_no_time_of_the_program_that_asks_for_approval(tmp_path: Path) -> None:
    @ez_tool(requires_approval=True)
    async def pay() -> str:
        return "paid"

    toolkit, store = _toolkit(pay), _AwayStore()
    async with engine_of(str(tmp_path / "crib.db"), toolkit, approvals=store):
        result = await (await toolkit.start("pay()")).settled(polling=QUICK)

    assert [call.tool for call in result.suspended] == ["pay"]
    assert store.failures < 0


class _GoneStore(MemoryApprovalStore):
    """A store whose database is away for good once a call has begun."""

    async def break_off(self, *arguments: Any, **options: Any) -> None:
        raise DatabaseAway("database is locked")


@pytest.mark.parametrize("kind", ["turn", "program"])
async def test_a_worker_ends_though_it_cannot_note_what_it_broke_off(tmp_path: Path, kind: str) -> None:
    """It waited for as long as the file was locked, or the server away."""
    begun, store = asyncio.Event(), _GoneStore()

    @ez_tool(requires_approval=True)
    async def pay() -> None:
        begun.set()
        await asyncio.Event().wait()

    work = Work(kind, Step(pay))
    async with engine_of(str(tmp_path / "crib.db"), work.worker, approvals=store, grace=0.0) as engine:
        await work.answer(engine, await work.put())
        await begun.wait()

    assert engine.gave_back
    assert [entry.execution_state for entry in await store.unended()] == ["running"]  # of this process, which lives


async def test_the_event_loop_of_a_worker_has_threads_while_dbos_ends(
    file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a worker still wrote was refused: it raised, kept its events to itself, and renewed its lease no more."""
    ending, may_end, end = threading.Event(), threading.Event(), SQLiteSystemDatabase._cleanup_connections

    def ended(database: Any) -> None:  # the threads of DBOS take nothing more
        ending.set()
        may_end.wait()
        end(database)

    monkeypatch.setattr(SQLiteSystemDatabase, "_cleanup_connections", ended)

    async def work() -> None:
        agent = durable(count)
        async with engine_of(file, agent, record=True):
            await (await agent.put(Turn(count))).outcome()

    worker = asyncio.create_task(work())
    with ThreadPoolExecutor(1) as threads:
        await asyncio.get_running_loop().run_in_executor(threads, ending.wait)
    try:
        in_between = await asyncio.to_thread(lambda: "done")
    finally:
        may_end.set()
        await worker

    assert in_between == "done"
    assert await asyncio.to_thread(lambda: "done") == "done"


async def test_the_time_in_which_its_calls_cannot_be_kept_is_no_time_of_the_program(tmp_path: Path) -> None:
    @ez_tool
    async def lock() -> str:
        held = sqlite3.connect(tmp_path / "crib.db", isolation_level=None, check_same_thread=False)
        held.execute("BEGIN EXCLUSIVE")
        threading.Timer(1.5, held.close).start()
        return "locked"

    toolkit = _toolkit(lock)
    async with engine_of(str(tmp_path / "crib.db"), toolkit):
        result = await (await toolkit.start("lock()")).result(polling=QUICK)

    assert (result.error, result.return_value) == (None, "locked")


@pytest.mark.parametrize("sandbox", ["process", "monty", "subprocess", "unsafe_inline"])
async def test_a_program_is_given_no_time_for_its_own_waiting(tmp_path: Path, sandbox: SandboxName) -> None:
    @ez_tool
    async def wait() -> None:
        await asyncio.sleep(60)

    toolkit = _toolkit(wait, sandbox)
    async with engine_of(str(tmp_path / "crib.db"), toolkit):
        result = await (await toolkit.start("wait()")).result(polling=QUICK)

    assert "not done after 0.5 s (wall_time)" in str(result.error)


def test_time_is_counted_once_however_many_wait() -> None:
    at = [0.0]
    waits = WaitedTime(lambda: at[0])

    with waits.counted():
        at[0] = 1.0
        with waits.counted():
            at[0] = 3.0
        meanwhile = waits.seconds
    at[0] = 10.0

    assert (meanwhile, waits.seconds) == (3.0, 3.0)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (sqlite3.OperationalError("database or disk is full"), True),
        (sqlite3.OperationalError("attempt to write a readonly database"), True),
        (sqlite3.IntegrityError("database is locked, says a value"), False),
        (ValueError("database is locked"), False),
    ],
)
def test_an_outage_is_told_by_the_error_of_the_file(error: Exception, expected: bool) -> None:
    assert (is_unavailable(error), is_outage(error)) == (expected, expected)
