"""A worker that is killed at random loses no turn and no call, repeats none, and asks about those in doubt."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from tests.durable.crash import crash, named
from tests.postgres import Postgres

RUNS = int(os.environ.get("TOOLCRIB_CRASH_RUNS", "6"))


@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
async def test_every_run_survives_its_worker(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    server: Postgres | None = request.getfixturevalue("postgres") if kind == "postgres" else None
    seed = random.randrange(10**6)

    with named("sqlite" if server is None else server.url("crash"), tmp_path) as database:
        trial = await crash(database, tmp_path, RUNS, chance=random.Random(seed), lifetime=1.5, kills=2 + RUNS // 10)

    assert trial.problems == [], f"seed {seed}: {trial}"
    assert trial.kills
