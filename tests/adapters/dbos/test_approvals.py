"""The store on a Postgres server serves several processes at once: one of them gets a grant."""

from __future__ import annotations

import asyncio
import multiprocessing
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import AbstractContextManager, closing
from pathlib import Path

import pytest

from tests.approvals.race import ONE_BEGINS, grant, raced, two_processes_at_once
from tests.postgres import Postgres
from toolcrib.approvals import PostgresApprovalStore
from toolcrib.calls import ApprovalRequest
from toolcrib.errors import DatabaseError


def _opened(url: str) -> AbstractContextManager[PostgresApprovalStore]:
    return closing(PostgresApprovalStore(url))


@pytest.fixture(scope="module")
def two_processes() -> Iterator[ProcessPoolExecutor]:
    with two_processes_at_once() as pool:
        yield pool


def test_of_two_processes_one_gets_the_grant(postgres: Postgres, two_processes: ProcessPoolExecutor) -> None:
    url = postgres.url("taken_once")
    store = PostgresApprovalStore(url)

    for number in range(5):
        asyncio.run(grant(store, number))

        assert raced(two_processes, _opened, url, number) == ONE_BEGINS
    store.close()


def test_two_processes_may_make_the_tables_at_once(postgres: Postgres, two_processes: ProcessPoolExecutor) -> None:
    for number in range(2):
        url = postgres.url(f"made_at_once_{number}")

        assert raced(two_processes, _opened, url, number) == ["nothing", "nothing"]


def test_a_store_goes_on_in_a_fork(postgres: Postgres) -> None:
    store = PostgresApprovalStore(postgres.url("forked"))
    asyncio.run(store.put(ApprovalRequest("ask_1", "call_1", "refund", {"cents": 5}, "d5")))
    child = multiprocessing.get_context("fork").Process(target=lambda: asyncio.run(_answer(store)))

    child.start()
    child.join(60)

    assert child.exitcode == 0
    assert asyncio.run(store.show("ask_1")).state == "answered"
    store.close()


async def _answer(store: PostgresApprovalStore) -> None:
    entry = await store.show("ask_1")
    await store.answer(entry.request.grant("ann"))


def test_a_file_is_for_the_other_store(tmp_path: Path) -> None:
    with pytest.raises(DatabaseError, match="it is a file, and this is for a Postgres server"):
        PostgresApprovalStore(tmp_path / "a.db")
