"""The stores over which the times of rules are tested: in memory, in a file, on a Postgres server."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.postgres import Postgres
from toolcrib.approvals import LedgerStore, MemoryApprovalStore, PostgresApprovalStore, SqliteApprovalStore
from toolcrib.calls import Grant
from toolcrib.errors import ApprovalError
from toolcrib.testing import FakeClock

__all__ = ["STORES", "opened", "refused", "wall_clock"]

STORES = ("memory", "sqlite", "postgres")


def wall_clock() -> FakeClock:
    """Return a clock that begins at the time of the computer."""
    clock = FakeClock()
    clock.advance(time.time())
    return clock


def opened(request: pytest.FixtureRequest, folder: Path, clock: FakeClock) -> Iterator[LedgerStore]:
    """Yield the store that a fixture's parameter names, which is empty."""
    if request.param == "memory":
        yield MemoryApprovalStore(clock=clock)
    elif request.param == "sqlite":
        yield SqliteApprovalStore(folder / "approvals.db", clock=clock)
    else:
        server: Postgres = request.getfixturevalue("postgres")
        on_server = PostgresApprovalStore(server.url("expiry"), clock=clock)
        server.empty("expiry")
        yield on_server
        on_server.close()


async def refused(store: LedgerStore, grant: Grant, words: str = "does not meet the rule") -> None:
    """Answer with a grant that the store has to refuse."""
    with pytest.raises(ApprovalError, match=words):
        await store.answer(grant)
