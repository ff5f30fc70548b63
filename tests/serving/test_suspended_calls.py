"""Stores of suspended calls: whose a call is, and which call ends."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from uuid import uuid4

import pytest

from tests.postgres import Postgres
from toolcrib.approvals import (
    MemorySuspendedCalls,
    PostgresApprovalStore,
    SqliteApprovalStore,
    SuspendedCall,
    SuspendedCallStore,
)

CALL = SuspendedCall("key", "ann", "book", ("ask_1",), {})


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SuspendedCallStore]:
    match request.param:
        case "memory":
            yield MemorySuspendedCalls()
        case "sqlite":
            yield SqliteApprovalStore(tmp_path / "calls.db").suspended_calls()
        case _:
            pytest.importorskip("psycopg")
            server: Postgres = request.getfixturevalue("postgres")
            with closing(PostgresApprovalStore(server.url(f"calls_{uuid4().hex[:8]}"))) as kept:
                yield kept.suspended_calls()


async def test_a_request_is_found_by_its_principal_alone(store: SuspendedCallStore) -> None:
    await store.keep(CALL)

    found = [await store.find_request(name, "ask_1") for name in ("ann", "eve")]

    assert found == [CALL, None]


async def test_a_call_that_waits_for_later_requests_is_not_dropped(store: SuspendedCallStore) -> None:
    await store.keep(CALL)

    await store.drop("key", ["ask_0"])
    kept = await store.find("key")
    await store.drop("key", ["ask_1"])

    assert (kept, await store.find("key"), await store.tools()) == (CALL, None, frozenset())


async def test_of_two_that_read_one_state_one_replaces_it(store: SuspendedCallStore) -> None:
    states = [SuspendedCall("key", "ann", "book", (), {"by": name}) for name in ("a", "b", "c", "d")]

    first = [await store.replace(state, None) for state in states[:2]]
    found = await store.find("key")
    later = [await store.replace(state, found) for state in states[2:]]

    assert (first, later) == ([True, False], [True, False])
    assert await store.find("key") == states[2]
