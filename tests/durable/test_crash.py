"""Durable work survives whatever happens to its workers and its database, a little of each; `make crash` does more.

The effects of the tools are in a ledger outside of the database: nothing is lost, nothing is doubled unasked, nothing
ends as failed, and nothing is stuck.
"""

from __future__ import annotations

import random
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from tests.durable.crash import EVENTS, Plan, crash, sources_of
from tests.durable.crash_places import Place, place, refusal
from tests.durable.crash_trial import Asked, Trial
from tests.effort import IS_FULL
from toolcrib.adapters.dbos import Client
from toolcrib.adapters.dbos._work_tables import program_lines, programs
from toolcrib.approvals import SqliteApprovalStore
from toolcrib.calls import ApprovalRequest

RUNS = 12 if IS_FULL else 6
PLAIN = tuple(event for event in EVENTS if event not in ("full", "network", "clock"))


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
@pytest.mark.parametrize("events", [PLAIN, ("full",)], ids=["disturbed", "full"])
async def test_every_run_survives(
    kind: str, events: tuple[str, ...], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    disk = None
    if "full" in events:
        if refused := refusal():
            pytest.skip(refused)
        disk = 64
    if kind == "postgres":
        request.getfixturevalue("postgres")  # skips where there is no server; the one of other tests is not restarted
    seed = random.randrange(10**6)
    plan = Plan(RUNS, workers=3, events=events, most=len(events), interval=0.8, frozen=4.0, away=3.0)

    with place(kind, tmp_path, disk=disk) as where:
        trial = await crash(plan, where, tmp_path, random.Random(seed))

    assert trial.problems == [], f"seed {seed}: {trial}"
    assert dict(trial.events) == dict.fromkeys(events, 1)


@pytest.fixture
def last_release(tmp_path: Path) -> str:
    """A folder with the sources of the last release."""
    asked = ["git", "log", "-1", "--format=%H", "--grep=^Release "]
    commit = subprocess.run(asked, capture_output=True, text=True, check=False, cwd=Path(__file__).parent).stdout
    if not commit:
        pytest.skip("there is no commit of a release here")
    (tmp_path / "release").mkdir()
    return sources_of(commit.strip(), tmp_path / "release")


async def test_every_run_survives_beside_a_worker_of_the_last_release(tmp_path: Path, last_release: str) -> None:
    plan = Plan(RUNS, workers=2, events=("kill", "stop", "interrupt"), most=3, interval=0.8, source=last_release)

    trial = await crash(plan, Place(file=tmp_path / "crash.db"), tmp_path, random.Random(1))

    assert trial.problems == [], str(trial)


# --- each check can fail


async def test_work_that_no_worker_does_is_stuck(tmp_path: Path) -> None:
    plan = Plan(2, workers=0, most=0, frozen=0.0, patience=0.5)

    trial = await crash(plan, Place(file=tmp_path / "crash.db"), tmp_path, random.Random(1))

    assert "nothing went on any more, and work was left" in trial.problems[0]
    assert "p0 before its last step" in trial.problems[0]
    assert any("are lost" in problem for problem in trial.problems)
    assert any("turns are recorded, and 8 were to be" in problem for problem in trial.problems)


async def test_a_trial_whose_work_is_done_ends_though_an_answer_is_left(tmp_path: Path) -> None:
    request = ApprovalRequest("ask_1", "call_1", "add", {"run": "a0", "n": 4}, "d")
    store = SqliteApprovalStore(tmp_path / "crash.db")
    await store.put(request)
    await store.answer(request.grant("ann"))
    plan = Plan(2, workers=1, most=0, patience=float("inf"))

    trial = await crash(plan, Place(file=tmp_path / "crash.db"), tmp_path, random.Random(1))

    assert (trial.problems, trial.unused) == ([], 1)


@dataclass(frozen=True)
class Done:
    """A trial in which nothing happened, to be spoilt."""

    trial: Trial
    client: Client

    def execute(self, statement: Any) -> None:
        with self.client.dbos._sys_db.engine.begin() as connection:
            connection.execute(statement)

    @property
    def tables(self) -> Any:
        return self.client.dbos._sys_db.tables


def _lost(done: Done) -> None:
    lines = done.trial.ledger.read_text().splitlines(keepends=True)
    done.trial.ledger.write_text("".join(line for line in lines if " a0 4 " not in line))


def _doubled(done: Done) -> None:
    with done.trial.ledger.open("a") as ledger:
        ledger.write("put a0 3 another 1 1.0 0.0\nadd a0 4 another 1 1.0 0.0\n")


def _approved_while_frozen(done: Done) -> None:
    with done.trial.ledger.open("a") as ledger:
        ledger.write("add a0 4 another 1 1.0 60.0\n")


def _asked_in_vain(done: Done) -> None:
    done.trial.asked["q1"] = Asked("a0", 3, "at some time", 1)


def _asked_twice(done: Done) -> None:
    done.trial.asked |= {"q1": Asked("a0", 4), "q2": Asked("a0", 4)}


def _raised(done: Done) -> None:
    status = done.tables.workflow_status
    done.execute(sa.update(status).where(status.c.workflow_uuid == _turn(done)).values(status="ERROR"))


def _failed(done: Done) -> None:
    output = done.tables.workflow_output
    failed = sa.func.replace(output.c.output, '"completed"', '"failed"')
    done.execute(sa.update(output).where(output.c.workflow_uuid == _turn(done)).values(output=failed))


def _put_twice(done: Done) -> None:
    given = done.tables.workflow_input
    other = sa.func.replace(given.c.inputs, '"n":4', '"n":6')
    done.execute(sa.update(given).values(inputs=other))


def _came_to_nothing(done: Done) -> None:
    done.execute(sa.update(programs).values(result='{"success": false, "error": "it raised"}'))


def _recorded_twice(done: Done) -> None:
    done.execute(sa.insert(program_lines).values(run="p0", number=10_000, line=_ended_line(done)))


def _not_recorded(done: Done) -> None:
    done.execute(sa.delete(program_lines).where(program_lines.c.line == _ended_line(done)))


def _turn(done: Done) -> str:
    return next(status.workflow_id for status in done.client.dbos.list_workflows(name="toolcrib.turn"))


def _ended_line(done: Done) -> str:
    ended = sa.select(program_lines.c.line).where(program_lines.c.line.like('{"t":"ended"%'))
    with done.client.engine.begin() as connection:
        return connection.execute(ended.limit(1)).scalar_one()


_SPOILT = {
    _lost: ["steps [4] are lost"],
    _doubled: ["step 3 was done under 2 keys", "step 4 was done 2 times"],
    _approved_while_frozen: [],
    _asked_in_vain: ["step 3 may be repeated, and was asked about"],
    _asked_twice: ["step 4 was asked about 2 times, begun never"],
    _raised: ["ended as ERROR", "7 turns are recorded, and 8 were to be"],
    _failed: ["came to {'kind': 'failed'", "7 turns are recorded, and 8 were to be"],
    _put_twice: ["turn 6 is recorded 2 times", "7 turns are recorded, and 8 were to be"],
    _came_to_nothing: ["it is done, it raised"],
    _recorded_twice: ["is recorded 2 times"],
    _not_recorded: ["7 calls are recorded, and it makes 8"],
}


async def test_each_check_finds_what_must_not_be(tmp_path: Path) -> None:
    file, kept = tmp_path / "crash.db", tmp_path / "kept"
    clean = await crash(Plan(2, workers=1, most=0), Place(file=file), tmp_path, random.Random(1))
    kept.mkdir()
    for path in (file, clean.ledger):
        shutil.copy(path, kept)
    found: list[list[str]] = []

    for spoil in _SPOILT:
        for path in (file, clean.ledger):
            shutil.copy(kept / path.name, path)
        trial = Trial(clean.agents, clean.programs, clean.ledger)
        async with Client(file) as client:
            spoil(Done(trial, client))
            trial.judge()
            trial.judge_records(client)
        found.append(trial.problems)

    assert clean.problems == []
    for problems, expected in zip(found, _SPOILT.values(), strict=True):
        assert len(problems) == len(expected)
        assert all(part in problem for part, problem in zip(expected, problems, strict=True))
