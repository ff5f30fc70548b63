"""The store in a file outlives the process, serves several at once, and keeps what it holds to its owner."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import stat
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from tests.approvals.race import ONE_BEGINS, grant, raced, two_processes_at_once
from toolcrib.approvals import SQLITE_APPROVAL_TABLES, SqliteApprovalStore
from toolcrib.calls import ApprovalRequest
from toolcrib.database import StoreTables, make_file
from toolcrib.errors import ApprovalError, DatabaseError

REQUEST = ApprovalRequest("ask_1", "call_1", "refund", {"cents": 5}, "d5", principal="bob")


def _opened(path: str) -> AbstractContextManager[SqliteApprovalStore]:
    return nullcontext(SqliteApprovalStore(path))


def _answer(path: Path) -> None:
    asyncio.run(SqliteApprovalStore(path).answer(REQUEST.grant("ann", message="from elsewhere")))


@pytest.fixture(scope="module")
def two_processes() -> Iterator[ProcessPoolExecutor]:
    with two_processes_at_once() as pool:
        yield pool


async def test_requests_of_the_first_version_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "approvals.db"
    make_file(path, StoreTables("approvals", SQLITE_APPROVAL_TABLES.steps[:1]))
    with closing(sqlite3.connect(path)) as connection, connection:
        for number, request in enumerate((REQUEST, replace(REQUEST, id="ask_2", in_doubt=True))):
            row = (number, request.id, request.call_id, json.dumps(request.to_dict()))
            connection.execute("INSERT INTO requests (number, id, call_id, request) VALUES (?, ?, ?, ?)", row)

    counted = await SqliteApprovalStore(path).count_pending()

    assert counted == (2, 1)


async def test_another_object_reads_what_one_wrote(tmp_path: Path) -> None:
    path = tmp_path / "approvals.db"
    await SqliteApprovalStore(path).put(REQUEST)
    await SqliteApprovalStore(path).answer(REQUEST.always("ann"))

    taken = await SqliteApprovalStore(path).take(REQUEST)
    entry = await SqliteApprovalStore(path).show("ask_1")

    assert taken == entry.answer
    assert entry.request == REQUEST
    assert entry.used_at is None


@pytest.mark.processes
def test_of_two_processes_one_gets_the_grant(tmp_path: Path, two_processes: ProcessPoolExecutor) -> None:
    path = str(tmp_path / "approvals.db")

    for number in range(10):
        asyncio.run(grant(SqliteApprovalStore(path), number))

        assert raced(two_processes, _opened, path, number) == ONE_BEGINS


def test_two_processes_may_make_the_file_at_once(tmp_path: Path, two_processes: ProcessPoolExecutor) -> None:
    for number in range(5):
        path = str(tmp_path / f"{number}.db")

        assert raced(two_processes, _opened, path, number) == ["nothing", "nothing"]


async def test_an_answer_from_another_process_ends_the_wait(tmp_path: Path, two_processes: ProcessPoolExecutor) -> None:
    store = SqliteApprovalStore(tmp_path / "approvals.db")
    await store.put(REQUEST)
    two_processes.submit(_answer, store.path)

    answer = await store.wait("ask_1", timeout=60)

    assert answer is not None
    assert answer.message == "from elsewhere"


async def test_arguments_keep_their_order(tmp_path: Path) -> None:
    store = SqliteApprovalStore(tmp_path / "approvals.db")
    await store.put(ApprovalRequest("ask_1", "call_1", "ship", {"to": "Oslo", "at": "noon"}, "d"))

    (entry,) = await store.list(pending=True)

    assert entry.request.text() == 'ship needs approval\n  to = "Oslo"\n  at = "noon"'


async def test_an_operation_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    store = SqliteApprovalStore(tmp_path / "approvals.db")
    await store.put(REQUEST)

    with pytest.raises(ApprovalError, match=r"cannot be stored: .* date .*Give JSON values"):
        await store.answer(REQUEST.grant(override_args={"day": date(2030, 1, 2)}))

    assert (await store.show("ask_1")).state == "pending"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no permission bits")
def test_only_its_owner_may_read_the_file(tmp_path: Path) -> None:
    store = SqliteApprovalStore(tmp_path / "approvals.db")

    assert stat.S_IMODE(store.path.stat().st_mode) == 0o600


def test_memory_is_the_other_store() -> None:
    with pytest.raises(DatabaseError, match=r"approvals .* have to be kept in a file. .* use the Memory store"):
        SqliteApprovalStore(":memory:")


@pytest.mark.parametrize("ends", ["broken off", "ended"])
async def test_the_late_end_of_an_execution_is_not_that_of_the_one_in_its_place(tmp_path: Path, ends: str) -> None:
    earlier, later = (SqliteApprovalStore(tmp_path / "approvals.db") for _ in range(2))
    yes = REQUEST.grant("ann")
    await earlier.use(REQUEST, yes)
    await earlier.begin(REQUEST, yes)
    await later.break_off(REQUEST, yes)
    await later.begin(REQUEST, yes, again=True)
    (begun,) = await later.unended()

    if ends == "ended":
        await earlier.end(REQUEST, yes, {"value": 5})
    else:
        await earlier.break_off(REQUEST, yes)

    assert (await later.show(REQUEST.id)).execution == begun.execution
    assert begun.execution_state == "running"
