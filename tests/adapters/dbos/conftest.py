"""What the tests of durable work ask for."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

import pytest

from tests.postgres import Postgres
from toolcrib.adapters.dbos import migrate
from toolcrib.database import Database


@pytest.fixture(scope="session")
def work_tables(postgres: Postgres) -> str:
    """The database with the tables of durable work that others are copies of: to make them takes most of a second."""
    migrate(Database.named(postgres.url("work_tables")))
    return "work_tables"


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database of either kind, with nothing in it but, on a server, the tables."""
    if request.param == "sqlite":
        return str(tmp_path / "work.db")
    server: Postgres = request.getfixturevalue("postgres")
    return server.url(f"work_{uuid4().hex[:8]}", template=request.getfixturevalue("work_tables"))


@pytest.fixture
def file(tmp_path: Path) -> str:
    """A database in a file, for what does not depend on the kind."""
    return str(tmp_path / "work.db")
