from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.sandbox.worker.guests import TOOLS, Guest


@pytest.fixture(scope="module")
def guest() -> Iterator[Guest]:
    """Give a guest that keeps its names for all tests of a module."""
    made = Guest(**TOOLS)
    yield made
    made.close()


@pytest.fixture
def fresh() -> Iterator[Guest]:
    """Give a guest that ran nothing yet."""
    made = Guest(**TOOLS)
    yield made
    made.close()
