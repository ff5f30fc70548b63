"""The crash test: many durable runs, and a worker that is killed again and again at a moment that nobody chose.

Half of the runs are twenty turns of an agent, each of which returns the next; half are a program of twenty calls. Every
other call may be made twice, and every other may not. A person (this process) approves what is in doubt. At the end:
every run has come to its end, no turn is lost and none is there twice, nothing that may be done twice was done under
two keys, and nothing else was done more often than people agreed to.

    python -m tests.durable.crash --runs 1000 --database sqlite     # or postgres, or a postgresql:// URL
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import multiprocessing
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from tests.durable import crash_worker
from tests.durable.crash_worker import PROGRAM, STEPS, made, put_turn
from tests.postgres import running
from toolcrib.adapters.dbos import Client, Placement, enqueue_program
from toolcrib.approvals import ApprovalEntry
from toolcrib.errors import ApprovalError
from toolcrib.registry import registry_scope
from toolcrib.turns import Turn

_PATIENCE = 40  # looks at runs of which nothing is left to do, and which have not come to their end

_server = multiprocessing.get_context("forkserver")  # workers are forked off a process that has imported everything
_server.set_forkserver_preload(["__main__", "tests.durable.crash_worker"])


@dataclass
class Trial:
    """What one trial came to.

    Attributes:
        doubts: Requests about a call in doubt, by run and step, each with how often its effect was there by then.
        idle: How often in a row there was nothing to do and nobody to answer.
        problems: What must not be, a sentence each.
    """

    runs: int
    kills: int = 0
    turns: int = 0
    calls: int = 0
    repeated: int = 0
    seconds: float = 0.0
    idle: int = 0
    doubts: dict[tuple[str, int], list[int]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        asked = [count for counts in self.doubts.values() for count in counts]
        return (
            f"{self.runs} runs, {self.turns} turns and {self.calls} calls, the worker killed {self.kills} times in "
            f"{self.seconds:.0f} s: {self.repeated} calls that may be made twice were, {len(asked)} others were in "
            f"doubt ({sum(map(bool, asked))} of them after their effect); {len(self.problems)} problems"
        )


class Worker:
    """The process that is killed."""

    def __init__(self, database: str, ledger: Path) -> None:
        self._given = database, str(ledger)
        self._process: BaseProcess | None = None
        self._held: Connection | None = None

    def start(self) -> None:
        self._held, its = Pipe()
        self._process = _server.Process(target=crash_worker.main, args=(*self._given, its), daemon=True)
        self._process.start()
        its.close()
        try:
            self._held.recv()
        except EOFError:
            raise RuntimeError("the worker did not start") from None

    def kill(self) -> None:
        if self._process is not None and self._held is not None:
            self._process.kill()
            self._process.join()
            self._process.close()
            self._held.close()
            self._process = self._held = None


def effects(ledger: Path) -> list[tuple[str, str, int, str]]:
    """Return what the tools did: kind, run, step and key."""
    rows = [line.split() for line in ledger.read_text().splitlines()] if ledger.exists() else []
    return [(kind, run, int(n), key) for kind, run, n, key in rows]


async def crash(
    database: str,
    folder: Path,
    runs: int,
    *,
    chance: random.Random,
    lifetime: float = 2.0,
    kills: float = float("inf"),
) -> Trial:
    """Run a trial.

    Args:
        lifetime: Seconds that a worker lives at the most, once it is ready.
        kills: After so many, one may live on.
    """
    trial, ledger, began = Trial(runs), folder / "ledger", time.monotonic()
    client = await asyncio.to_thread(Client, database)
    with registry_scope():
        agent, toolkit = made()
    agent._client = client
    for queue in (agent.queue, toolkit.queue):
        await asyncio.to_thread(client.declare, queue)
    agents, programs = [f"a{n}" for n in range(runs // 2)], [f"p{n}" for n in range(runs - runs // 2)]
    for run in agents:
        await agent.put(Turn(put_turn, kwargs={"run": run, "n": 1}))
    for run in programs:
        code = PROGRAM.format(steps=STEPS, run=run)
        await enqueue_program(client, toolkit.name, toolkit.queue.name, code, Placement(run))
    worker = Worker(database, ledger)
    try:
        while not await _settled(client, ledger, trial, agents, programs):
            await asyncio.to_thread(worker.start)
            left = chance.uniform(0.05, lifetime) if trial.kills < kills else 600.0
            await _lived(client, ledger, trial, left, (agents, programs))
            worker.kill()
            trial.kills += 1
    finally:
        worker.kill()
    _judge(client, trial, ledger, [*agents, *programs])
    trial.seconds = time.monotonic() - began
    await asyncio.to_thread(client.close)
    return trial


async def _lived(client: Client, ledger: Path, trial: Trial, seconds: float, runs: tuple[list[str], list[str]]) -> None:
    """Let the worker live for so long, and answer what is in doubt; sooner when there is nothing left to do."""
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        await asyncio.sleep(min(left, 0.25))
        if await _settled(client, ledger, trial, *runs):
            return


async def _settled(client: Client, ledger: Path, trial: Trial, agents: list[str], programs: list[str]) -> bool:
    """Approve what is in doubt, and return whether every run has come to its end, or nothing goes on any more."""
    trial.idle += 1
    store: Any = client.approvals
    asked: tuple[ApprovalEntry, ...] = await store.list(pending=True)
    for entry in asked:
        request = entry.request
        run, n = request.arguments["run"], request.arguments["n"]
        done = sum((row[1], row[2]) == (run, n) for row in effects(ledger))
        with contextlib.suppress(ApprovalError):
            await store.answer(request.grant("a person"))
            trial.doubts.setdefault((run, n), []).append(done)
    if asked:
        trial.idle = 0
        return False
    active = await asyncio.to_thread(
        client.dbos.list_workflows, status=["ENQUEUED", "PENDING", "DELAYED"], limit=1, load_input=False
    )
    if active or await store.answered():
        trial.idle = 0
        return False
    ended = {run for _, run, n, _ in effects(ledger) if n == STEPS}
    return ended == {*agents, *programs} or trial.idle > _PATIENCE


def _judge(client: Client, trial: Trial, ledger: Path, runs: list[str]) -> None:
    found = effects(ledger)
    counts = Counter((run, n) for _, run, n, _ in found)
    for run in runs:
        missing = [n for n in range(1, STEPS + 1) if not counts[run, n]]
        if missing:
            trial.problems.append(f"{run}: its steps {missing} are lost")
    kinds = {(run, n): kind for kind, run, n, _ in found}
    for (run, n), count in counts.items():
        keys = {key for _, r, k, key in found if (r, k) == (run, n)} if count > 1 else set()
        if kinds[run, n] == "put" and count > 1:
            trial.repeated += 1
            if len(keys) > 1:
                trial.problems.append(f"{run}: step {n} was done under {len(keys)} keys")
        if kinds[run, n] == "add":
            asked = trial.doubts.get((run, n), [])
            if count > 1 + sum(map(bool, asked)):
                trial.problems.append(f"{run}: step {n} was done {count} times, and {len(asked)} were agreed to")
    trial.problems += [f"{run}: step {n} may be repeated, and was asked about" for run, n in trial.doubts if n % 2]
    _judge_records(client, trial)


def _judge_records(client: Client, trial: Trial) -> None:
    """Look at what was recorded: one end for each turn and each call."""
    turns: Counter[tuple[str, int]] = Counter()
    for status in client.dbos.list_workflows(name="toolcrib.turn"):
        data: Any = status.input
        kwargs = data["args"][0]["turn"]["kwargs"]
        output: Any = status.output
        if status.status != "SUCCESS":
            trial.problems.append(f"{kwargs['run']}: turn {kwargs['n']} ended as {status.status}: {status.error}")
        elif output["outcome"]["kind"] == "completed":
            turns[kwargs["run"], kwargs["n"]] += 1
        elif output["outcome"]["kind"] != "suspended":
            trial.problems.append(f"{kwargs['run']}: turn {kwargs['n']} came to {output['outcome']}")
    trial.turns = sum(turns.values())
    trial.problems += [f"{run}: turn {n} is recorded {count} times" for (run, n), count in turns.items() if count > 1]
    for run, lines in _journals(client).items():
        ended = Counter(line["id"] for line in lines if line["t"] == "ended")
        trial.calls += len(ended)
        trial.problems += [f"{run}: the call {call} is recorded {n} times" for call, n in ended.items() if n > 1]
        if len(ended) != STEPS:
            trial.problems.append(f"{run}: {len(ended)} calls are recorded, and it makes {STEPS}")
    expected = STEPS * (trial.runs // 2)
    if trial.turns != expected:
        trial.problems.append(f"{trial.turns} turns are recorded, and {expected} were to be")


def _journals(client: Client) -> dict[str, list[dict[str, Any]]]:
    from toolcrib.adapters.dbos._program_journal import journal_lines  # noqa: PLC0415 -- no part of what is public

    runs = [status.workflow_id for status in client.dbos.list_workflows(name="toolcrib.program", load_output=False)]
    return {run: journal_lines(client, run) for run in runs if "-" not in run}


@contextlib.contextmanager
def named(database: str, folder: Path) -> Iterator[str]:
    """Give a database by the name of its kind, or as it is named."""
    if database == "postgres":
        with running() as server:
            yield server.url("crash")
    else:
        yield str(folder / "crash.db") if database == "sqlite" else database


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--database", default=None, help="sqlite, postgres or a URL; the first two when left out")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    given = parser.parse_args()
    failed = 0
    for database in [given.database] if given.database else ["sqlite", "postgres"]:
        with tempfile.TemporaryDirectory() as folder, named(database, Path(folder)) as url:
            trial = asyncio.run(crash(url, Path(folder), given.runs, chance=random.Random(given.seed), lifetime=6.0))
        print(f"{database} (seed {given.seed}): {trial}")
        for problem in trial.problems[:20]:
            print(f"  {problem}")
        failed += bool(trial.problems)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
