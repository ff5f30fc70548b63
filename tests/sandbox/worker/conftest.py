from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.sandbox.worker.unsealed import TOOLS, UnsealedWorker


@pytest.fixture(scope="module")
def worker() -> Iterator[UnsealedWorker]:
    """Give a worker that keeps its names for all tests of a module."""
    made = UnsealedWorker(**TOOLS)
    yield made
    made.close()


@pytest.fixture
def fresh() -> Iterator[UnsealedWorker]:
    """Give a worker that ran nothing yet."""
    made = UnsealedWorker(**TOOLS)
    yield made
    made.close()
