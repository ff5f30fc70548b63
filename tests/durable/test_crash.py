"""Workers that are killed or stopped lose no turn and no call, and repeat none; `make crash` does more to them."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from tests.durable.crash import Plan, crash
from tests.postgres import running

RUNS = int(os.environ.get("TOOLCRIB_CRASH_RUNS", "6"))


@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
async def test_every_run_survives_its_workers(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    seed = random.randrange(10**6)
    plan = Plan(RUNS, workers=2, events=("kill", "stop"), most=4 + RUNS // 10, interval=1.5)

    if kind == "sqlite":
        trial = await crash(plan, tmp_path / "crash.db", tmp_path, random.Random(seed))
    else:
        request.getfixturevalue("postgres")  # skips where there is no server; the one of other tests is not restarted
        with running() as server:
            trial = await crash(plan, server, tmp_path, random.Random(seed))

    assert trial.problems == [], f"seed {seed}: {trial}"
    assert trial.events
