"""Stores of suspended calls: whose a call is, and which call ends."""

from pathlib import Path

import pytest

from toolcrib.approvals import SuspendedCall, SuspendedCallStore
from toolcrib.serving import MemorySuspendedCalls, SqliteSuspendedCalls

CALL = SuspendedCall("key", "ann", "book", ("ask_1",), {})


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> SuspendedCallStore:
    return SqliteSuspendedCalls(tmp_path / "calls.db") if request.param == "sqlite" else MemorySuspendedCalls()


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
