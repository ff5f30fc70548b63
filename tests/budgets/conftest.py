"""Usage stores of every kind, each empty."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from toolcrib.budgets import MemoryUsageStore, PostgresUsageStore, SqliteUsageStore, UsageStore


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[UsageStore]:
    if request.param == "memory":
        yield MemoryUsageStore()
    elif request.param == "sqlite":
        yield SqliteUsageStore(tmp_path / "usage.db")
    else:
        pytest.importorskip("psycopg")
        opened = PostgresUsageStore(request.getfixturevalue("postgres").url(f"usage_{uuid4().hex[:8]}"))
        yield opened
        opened.close()
