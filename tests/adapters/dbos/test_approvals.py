"""The store on a Postgres server serves several processes at once: one of them gets a grant."""

from __future__ import annotations

import asyncio
import multiprocessing
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pytest

from tests.postgres import Postgres
from toolcrib.adapters.dbos import PostgresApprovalStore
from toolcrib.calls import ApprovalRequest, Grant
from toolcrib.errors import ApprovalError, DatabaseError

_barrier: Barrier


def _start(barrier: Barrier) -> None:
    global _barrier
    _barrier = barrier


def _take_at_once(url: str, number: int) -> str:
    """Open the store and take the same grant as the other process, at the same moment."""
    request = ApprovalRequest(f"ask_{number}", f"call_{number}", "refund", {"cents": 5}, "d5")
    _barrier.wait(20)
    store = PostgresApprovalStore(url)
    try:
        taken = asyncio.run(store.take(request))
    except ApprovalError as error:
        return error.problem
    finally:
        store.close()
    return "taken" if isinstance(taken, Grant) else "nothing"


@pytest.fixture(scope="module")
def two_processes() -> Iterator[ProcessPoolExecutor]:
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(2, mp_context=context, initializer=_start, initargs=(context.Barrier(2),)) as pool:
        yield pool


def test_of_two_processes_one_gets_the_grant(postgres: Postgres, two_processes: ProcessPoolExecutor) -> None:
    url = postgres.url("taken_once")
    store = PostgresApprovalStore(url)

    for number in range(5):
        request = ApprovalRequest(f"ask_{number}", f"call_{number}", "refund", {"cents": 5}, "d5")
        asyncio.run(store.put(request))
        asyncio.run(store.answer(request.grant()))
        found = [two_processes.submit(_take_at_once, url, number) for _ in range(2)]

        assert sorted(one.result(20) for one in found) == ["it was used before; ask again", "taken"]
    store.close()


def test_two_processes_may_make_the_tables_at_once(postgres: Postgres, two_processes: ProcessPoolExecutor) -> None:
    for number in range(2):
        url = postgres.url(f"made_at_once_{number}")
        found = [two_processes.submit(_take_at_once, url, number) for _ in range(2)]

        assert [one.result(20) for one in found] == ["nothing", "nothing"]


def test_a_store_goes_on_in_a_fork(postgres: Postgres) -> None:
    store = PostgresApprovalStore(postgres.url("forked"))
    asyncio.run(store.put(ApprovalRequest("ask_1", "call_1", "refund", {"cents": 5}, "d5")))
    child = multiprocessing.get_context("fork").Process(target=lambda: asyncio.run(_answer(store)))

    child.start()
    child.join(20)

    assert child.exitcode == 0
    assert asyncio.run(store.show("ask_1")).state == "answered"
    store.close()


async def _answer(store: PostgresApprovalStore) -> None:
    entry = await store.show("ask_1")
    await store.answer(entry.request.grant("ann"))


def test_a_file_is_for_the_other_store(tmp_path: Path) -> None:
    with pytest.raises(DatabaseError, match="it is a file, and this is for a Postgres server"):
        PostgresApprovalStore(tmp_path / "a.db")
