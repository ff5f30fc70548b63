"""Notices that several processes send at once, and processes that are killed at it: none is sent twice."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.approvers.test_reminders import pending
from tests.console.test_webhooks import Receiver, receiving
from tests.postgres import Postgres
from toolcrib.approvals import PostgresApprovalStore, SqlApprovalStore, SqliteApprovalStore
from toolcrib.console import Webhook

pytestmark = pytest.mark.processes

REQUESTS = 12
SENDER = """
import asyncio, sys, time
from toolcrib.approvals import PostgresApprovalStore, SqliteApprovalStore
from toolcrib.console import Notifier, Webhook
from toolcrib.testing import FakeClock

database, url, minutes = sys.argv[1:]
clock = FakeClock(speed=1.0)
clock.advance(time.time() + 60 * int(minutes))
store = (PostgresApprovalStore if "://" in database else SqliteApprovalStore)(database, clock=clock)
asyncio.run(Notifier(store, [Webhook(url)], "http://here", clock=FakeClock(0.01)).run())
"""


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return str(tmp_path / "approvals.db")
    server: Postgres = request.getfixturevalue("postgres")
    opened(server.url("reminders")).close()
    server.empty("reminders")
    return server.url("reminders")


def opened(database: str) -> Any:
    return PostgresApprovalStore(database) if "://" in database else SqliteApprovalStore(database)


@contextmanager
def senders(number: int, database: str, url: str, minutes: int) -> Generator[None]:
    """Have processes send what is due after some minutes, and kill them at the end."""
    command = [sys.executable, "-c", SENDER, database, url, str(minutes)]
    processes = [subprocess.Popen(command) for _ in range(number)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


async def until(found: Callable[[], bool]) -> None:
    async with asyncio.timeout(100):
        while not found():  # noqa: ASYNC110 -- another process goes on
            await asyncio.sleep(0.02)


def sent_to(receiver: Receiver) -> Counter[tuple[str, str]]:
    notices = [json.loads(body) for _, body in receiver.got]
    return Counter((notice["type"], one["id"]) for notice in notices for one in notice["requests"])


async def test_of_several_processes_that_are_killed_again_and_again_each_notice_is_sent_once(database: str) -> None:
    store: SqlApprovalStore = opened(database)
    ids = {(await pending(store)).id for _ in range(REQUESTS)}
    kinds = ["approvals.pending", "approvals.reminder", "approvals.escalated"]

    with receiving(200) as receiver:
        for number, minutes in enumerate((0, 31, 61), 1):
            with senders(3, database, receiver.url, minutes):
                await until(lambda number=number: len(sent_to(receiver)) == number * REQUESTS)

    assert sent_to(receiver) == {(kind, id): 1 for kind in kinds for id in ids}


async def test_a_process_that_is_killed_between_two_tries_leaves_the_notice_to_the_next_one(database: str) -> None:
    store: SqlApprovalStore = opened(database)
    request = await pending(store)

    with receiving(500, 200) as receiver:
        address = Webhook(receiver.url).address
        with senders(1, database, receiver.url, 0):
            await until(lambda: len(receiver.got) == 1)
            while not await store.notices_due(address):  # noqa: ASYNC110 -- it is noted that the try failed
                await asyncio.sleep(0.02)
        with senders(1, database, receiver.url, 0):
            await until(lambda: len(receiver.got) == 2)

    assert sent_to(receiver) == {("approvals.pending", request.id): 2}  # of which one was refused
    assert await store.notices_due(address) == ()
