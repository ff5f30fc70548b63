"""Pools of connections: what an engine leaves open when it is disposed of."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy import event

from tests.postgres import Postgres
from toolcrib.database import Database


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.systems)])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Database:
    if request.param == "sqlite":
        return Database.named(tmp_path / "work.db")
    postgres: Postgres = request.getfixturevalue("postgres")
    return Database.named(postgres.url("pool"))


def test_a_connection_that_is_in_use_at_the_disposal_is_closed_when_it_comes_back(database: Database) -> None:
    engine = database.engine(pool=2)
    pool: Any = engine.pool

    with engine.connect() as connection:
        connection.execute(sa.text("SELECT 1"))
        engine.dispose()

    assert pool.checkedin() == 0
    engine.dispose()


def test_a_connection_that_is_being_opened_at_the_disposal_is_closed_when_it_comes_back(database: Database) -> None:
    engine = database.engine(pool=2)
    engine.dispose()
    pool: Any = engine.pool
    opens, may_open = threading.Event(), threading.Event()

    @event.listens_for(engine, "connect", insert=True)
    def wait(*_: Any) -> None:
        opens.set()
        may_open.wait(60)

    def use() -> None:
        with engine.connect() as connection:
            connection.execute(sa.text("SELECT 1"))

    thread = threading.Thread(target=use)
    thread.start()
    assert opens.wait(60)
    engine.dispose()
    may_open.set()
    thread.join()

    assert pool.checkedin() == 0
    assert pool is not engine.pool


def test_an_engine_is_used_again_after_its_disposal(database: Database) -> None:
    engine = database.engine(pool=2)
    engine.dispose()

    with engine.connect() as connection:
        value = connection.execute(sa.text("SELECT 1")).scalar()

    pool: Any = engine.pool
    assert (value, pool.checkedin()) == (1, 1)
    engine.dispose()
