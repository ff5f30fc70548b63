"""What the tests of durable work ask for."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

import pytest

from tests.postgres import Postgres


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database of either kind, with nothing in it."""
    if request.param == "sqlite":
        return str(tmp_path / "work.db")
    server: Postgres = request.getfixturevalue("postgres")
    return server.url(f"work_{uuid4().hex[:8]}")


@pytest.fixture
def file(tmp_path: Path) -> str:
    """A database in a file, for what does not depend on the kind."""
    return str(tmp_path / "work.db")
