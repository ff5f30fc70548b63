"""The clock and the stores over which the times of rules are tested."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.approvers.stores import STORES, opened, wall_clock
from toolcrib.approvals import LedgerStore
from toolcrib.testing import FakeClock


@pytest.fixture
def clock() -> FakeClock:
    return wall_clock()


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, tmp_path: Path, clock: FakeClock) -> Iterator[LedgerStore]:
    yield from opened(request, tmp_path, clock)
