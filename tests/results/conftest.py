"""Result stores of every kind, each empty."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias
from uuid import uuid4

import pytest

from toolcrib.results import MemoryResultStore, PostgresResultStore, ResultStore, SqliteResultStore

OpenStore: TypeAlias = Callable[..., ResultStore]


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def open_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[OpenStore]:
    if request.param == "memory":
        yield MemoryResultStore
        return
    if request.param == "sqlite":
        yield lambda **options: SqliteResultStore(tmp_path / "results.db", **options)
        return
    pytest.importorskip("psycopg")
    url = request.getfixturevalue("postgres").url(f"results_{uuid4().hex[:8]}")
    opened: list[PostgresResultStore] = []

    def opening(**options: Any) -> ResultStore:
        opened.append(PostgresResultStore(url, **options))
        return opened[-1]

    yield opening
    for store in opened:
        store.close()
