"""The crash test: many durable runs, and workers that are disturbed again and again at moments that nobody chose.

Half of the runs are twenty turns of an agent, each of which returns the next; half are a program of twenty calls in the
default sandbox. Every other call may be made twice, and every other may not. The workers are `toolcrib worker`
processes, several on one database. What happens to them:

- kill: SIGKILL; it is started again under its id
- stop: SIGTERM, as a deploy does; it has a grace time, and is started again under its id
- freeze: SIGSTOP, its work is handed over while it stands still, then SIGCONT; it ends, and is started again. One
  that stands still in the middle of a transaction on SQLite keeps its work, and goes on
- outage: Postgres is restarted, or a SQLite file is locked by another process

A person (this process) approves what is in doubt. At the end: every run has come to its end, no turn is lost and none
is there twice, nothing ended as failed, nothing that may be done twice was done under two keys, and nothing else was
done more often than people agreed to.

    python -m tests.durable.crash --runs 1000 --database sqlite     # or postgres
    python -m tests.durable.crash --runs 100 --events kill stop
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import multiprocessing
import os
import random
import signal
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
from tests.durable.crash_worker import PROGRAM, STEPS, agent, put_turn, toolkit
from tests.postgres import Postgres, running
from toolcrib._sqlite import sqlite3  # the one that the client uses: two in one process undo each other's locks
from toolcrib.adapters.dbos import Client, Placement, enqueue_program, recover
from toolcrib.adapters.dbos._outage import DatabaseAway, is_outage
from toolcrib.adapters.dbos._program_journal import journal_lines, program_run
from toolcrib.approvals import ApprovalEntry
from toolcrib.errors import ApprovalError, WorkerError
from toolcrib.turns import Turn

EVENTS = ("kill", "stop", "freeze", "outage")
_PATIENCE = 60.0  # seconds in which nothing happens, though work is left
_GRACE = 1.0  # seconds that a stopped worker has
_ENDS = (
    90.0  # seconds in which a worker has to end after it was stopped or thawed; a file may be locked by a frozen one
)

_server = multiprocessing.get_context("forkserver")  # workers are forked off a process that has imported everything
_server.set_forkserver_preload(["__main__", "tests.durable.crash_worker", "toolcrib.cli._durable"])


@dataclass(frozen=True)
class Plan:
    """What is to be done to the workers of a trial.

    Attributes:
        runs: How many runs there are.
        workers: How many workers.
        events: What happens to them, each as likely as the others.
        most: How many of these events; then the rest of the work is done in peace.
        interval: Seconds between two events at the most.
        frozen: Seconds that a worker stands still.
        away: Seconds that a SQLite file is locked, or a Postgres server is down.
    """

    runs: int
    workers: int = 3
    events: tuple[str, ...] = EVENTS
    most: float = float("inf")
    interval: float = 3.0
    frozen: float = 60.0
    away: float = 5.0


@dataclass
class Trial:
    """What one trial came to.

    Attributes:
        doubts: Requests about a call in doubt, by run and step, each with how often its effect was there by then.
        problems: What must not be, a sentence each.
    """

    runs: int
    events: Counter[str] = field(default_factory=Counter[str])
    turns: int = 0
    calls: int = 0
    repeated: int = 0
    seconds: float = 0.0
    moved: float = field(default_factory=time.monotonic)
    doubts: dict[tuple[str, int], list[int]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        asked = [count for counts in self.doubts.values() for count in counts]
        events = ", ".join(f"{count} times {name}" for name, count in sorted(self.events.items()))
        return (
            f"{self.runs} runs, {self.turns} turns and {self.calls} calls in {self.seconds:.0f} s with {events}: "
            f"{self.repeated} calls that may be made twice were, {len(asked)} others were in doubt "
            f"({sum(map(bool, asked))} of them after their effect); {len(self.problems)} problems"
        )


class Worker:
    """One worker, which is started again under its id whenever it ended."""

    def __init__(self, database: str, folder: Path, worker_id: str) -> None:
        self.id = worker_id
        self.is_busy = False  # something is being done to it
        arguments = ["--database", database, "--worker-id", worker_id, "--grace", str(_GRACE), "--no-record"]
        self._given = arguments, str(folder / "ledger"), str(folder / f"{worker_id}.log")
        self._process: BaseProcess | None = None
        self._held: Connection | None = None

    @property
    def lives(self) -> bool:
        """Whether its process runs."""
        return self._process is not None and self._process.is_alive()

    def start(self) -> None:
        """Start it, also anew."""
        self.clear()
        self._held, its = Pipe()
        self._process = _server.Process(target=crash_worker.main, args=(*self._given, its), daemon=True)
        self._process.start()
        its.close()

    def send(self, number: signal.Signals) -> None:
        """Send it a signal, if it lives."""
        if self._process is not None and self._process.pid is not None and self._process.is_alive():
            os.kill(self._process.pid, number)

    async def ended(self, seconds: float) -> bool:
        """Wait until it has ended; False when it has not in this time."""
        if self._process is not None:
            await asyncio.to_thread(self._process.join, seconds)
        return not self.lives

    def clear(self) -> None:
        """End it at once."""
        if self._process is not None and self._held is not None:
            self._process.kill()
            self._process.join()
            self._process.close()
            self._held.close()
            self._process = self._held = None


def effects(ledger: Path) -> list[tuple[str, str, int, str]]:
    """Return what the tools did: kind, run, step and key."""
    rows = [line.split() for line in ledger.read_text().splitlines()] if ledger.exists() else []
    return [(kind, run, int(n), key) for kind, run, n, key, *_ in rows]


class Crash:
    """One trial.

    Args:
        place: A Postgres server, or the file of a SQLite database.
        folder: Where the ledger and what the workers say are kept.
    """

    def __init__(self, plan: Plan, place: Postgres | Path, folder: Path, chance: random.Random) -> None:
        self.plan, self.place, self.chance = plan, place, chance
        self.trial, self.ledger = Trial(plan.runs), folder / "ledger"
        self.database = str(place) if isinstance(place, Path) else place.url("crash")
        self.client = Client(self.database)
        self.workers = [Worker(self.database, folder, f"w{n}") for n in range(plan.workers)]
        self.agents = [f"a{n}" for n in range(plan.runs // 2)]
        self.programs = [f"p{n}" for n in range(plan.runs - plan.runs // 2)]

    async def run(self) -> Trial:
        """Enqueue the runs, disturb the workers until all have ended, and look at what came of it."""
        began = time.monotonic()
        await self._enqueue()
        for worker in self.workers:
            await asyncio.to_thread(worker.start)
        trouble = asyncio.create_task(self._trouble())
        try:
            while not await self._settled():
                await asyncio.sleep(0.25)
                for worker in self.workers:
                    if not worker.is_busy and not worker.lives:
                        worker.is_busy = True
                        await asyncio.to_thread(worker.start)
                        worker.is_busy = False
        finally:
            trouble.cancel()
            await asyncio.gather(trouble, return_exceptions=True)
            for worker in self.workers:
                worker.clear()
        await asyncio.to_thread(self._judge)
        self.trial.seconds = time.monotonic() - began
        await asyncio.to_thread(self.client.close)
        return self.trial

    async def _enqueue(self) -> None:
        agent._client = self.client
        for queue in (agent.queue, toolkit.queue):
            await asyncio.to_thread(self.client.declare, queue)
        for run in self.agents:
            await agent.put(Turn(put_turn, kwargs={"run": run, "n": 1}))
        for run in self.programs:
            code = PROGRAM.format(steps=STEPS, run=run)
            await enqueue_program(self.client, toolkit.name, toolkit.queue.name, code, Placement(run))

    # --- what happens to the workers

    async def _trouble(self) -> None:
        happening: set[asyncio.Task[None]] = set()
        while sum(self.trial.events.values()) < self.plan.most:
            await asyncio.sleep(self.chance.uniform(0.05, self.plan.interval))
            event = self.chance.choice(self.plan.events)
            free = [worker for worker in self.workers if not worker.is_busy]
            if event == "outage":
                self.trial.events[event] += 1
                await self._outage()
                self.trial.moved = time.monotonic()  # nothing could go on until now
            elif free and (event != "freeze" or len(free) > 1):
                self.trial.events[event] += 1
                worker = self.chance.choice(free)
                worker.is_busy = True
                task = asyncio.create_task(self._disturb(worker, event))
                happening.add(task)
                task.add_done_callback(happening.discard)
        await asyncio.gather(*happening)

    async def _disturb(self, worker: Worker, event: str) -> None:
        try:
            if event == "kill":
                worker.send(signal.SIGKILL)
            elif event == "stop":
                worker.send(signal.SIGTERM)
            elif not await self._freeze(worker):
                return  # its work is its own, and it goes on
            if not await worker.ended(_ENDS):
                self.trial.problems.append(f"{worker.id} did not end in {_ENDS:.0f} s after a {event}")
        finally:
            worker.is_busy = False  # and so it is started again

    async def _freeze(self, worker: Worker) -> bool:
        """Let a worker stand still, and return whether its work was handed over meanwhile."""
        worker.send(signal.SIGSTOP)
        try:
            await asyncio.sleep(self.plan.frozen / 2)
            handed_over = False
            with contextlib.suppress(WorkerError, DatabaseAway):  # it was no worker yet, or froze in a transaction
                await asyncio.to_thread(recover, self.client, worker.id, force=True)
                handed_over = True
            await asyncio.sleep(self.plan.frozen / 2)
            return handed_over
        finally:
            worker.send(signal.SIGCONT)

    async def _outage(self) -> None:
        if isinstance(self.place, Path):
            await asyncio.to_thread(_lock, self.place, self.plan.away)
        else:
            await asyncio.to_thread(self.place.restart, self.plan.away)

    # --- how it stands

    async def _settled(self) -> bool:
        """Approve what is in doubt, and return whether every run has come to its end, or nothing goes on any more."""
        try:
            return await self._looked()
        except Exception as error:
            if not is_outage(error):
                raise
            return False

    async def _looked(self) -> bool:
        trial, store = self.trial, self.client.approvals
        asked: tuple[ApprovalEntry, ...] = await store.list(pending=True)
        for entry in asked:
            request = entry.request
            run, n = request.arguments["run"], request.arguments["n"]
            done = sum((row[1], row[2]) == (run, n) for row in effects(self.ledger))
            with contextlib.suppress(ApprovalError):
                await store.answer(request.grant("a person"))
                trial.doubts.setdefault((run, n), []).append(done)
        found = effects(self.ledger)
        if len(found) != trial.calls or asked:
            trial.calls, trial.moved = len(found), time.monotonic()
        active = await asyncio.to_thread(
            self.client.dbos.list_workflows, status=["ENQUEUED", "PENDING", "DELAYED"], limit=1, load_input=False
        )
        ended = {run for _, run, n, _ in found if n == STEPS} == {*self.agents, *self.programs}
        if ended and not active and not asked and not await store.answered():
            return True
        stuck = time.monotonic() - trial.moved > _PATIENCE + self.plan.frozen + self.plan.away
        if stuck:
            trial.problems.append("nothing went on any more, and work was left")
        return stuck

    # --- what came of it

    def _judge(self) -> None:
        trial, found = self.trial, effects(self.ledger)
        counts = Counter((run, n) for _, run, n, _ in found)
        for run in (*self.agents, *self.programs):
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
                    trial.problems.append(f"{run}: step {n} was done {count} times, and {asked} were agreed to")
        trial.problems += [f"{run}: step {n} may be repeated, and was asked about" for run, n in trial.doubts if n % 2]
        self._judge_records()

    def _judge_records(self) -> None:
        """Look at what was recorded: one end for each turn and each call, and none that failed."""
        trial, turns = self.trial, Counter[tuple[str, int]]()
        for status in self.client.dbos.list_workflows(name="toolcrib.turn"):
            data: Any = status.input
            kwargs = data["args"][0]["turn"]["kwargs"]
            output: Any = status.output
            if status.status != "SUCCESS":
                trial.problems.append(f"{kwargs['run']}: turn {kwargs['n']} ended as {status.status}: {status.error}")
            elif output["outcome"]["kind"] == "completed":
                turns[kwargs["run"], kwargs["n"]] += 1
            elif output["outcome"]["kind"] != "suspended":
                trial.problems.append(f"{kwargs['run']}: turn {kwargs['n']} came to {output['outcome']}")
        trial.turns, trial.calls = sum(turns.values()), 0
        trial.problems += [
            f"{run}: turn {n} is recorded {count} times" for (run, n), count in turns.items() if count > 1
        ]
        self._judge_programs()
        if trial.turns != STEPS * len(self.agents):
            trial.problems.append(f"{trial.turns} turns are recorded, and {STEPS * len(self.agents)} were to be")

    def _judge_programs(self) -> None:
        for run in self.programs:
            stands = program_run(self.client, run)
            if stands is None or stands.state != "done" or not (stands.result or {}).get("success"):
                error = None if stands is None else (stands.result or {}).get("error")
                self.trial.problems.append(f"{run}: it is {stands and stands.state}, {error}")
            ended = Counter(line["id"] for line in journal_lines(self.client, run) if line["t"] == "ended")
            self.trial.calls += len(ended)
            self.trial.problems += [
                f"{run}: the call {call} is recorded {n} times" for call, n in ended.items() if n > 1
            ]
            if len(ended) != STEPS:
                self.trial.problems.append(f"{run}: {len(ended)} calls are recorded, and it makes {STEPS}")


def _lock(path: Path, seconds: float) -> None:
    """Lock a SQLite file for writing, as a backup or a stuck process would."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None, timeout=30)) as connection:
        connection.execute("BEGIN EXCLUSIVE")
        time.sleep(seconds)
        connection.execute("ROLLBACK")


@contextlib.contextmanager
def place(kind: str, folder: Path) -> Iterator[Postgres | Path]:
    """Give a database of a kind: a server of its own, or a file."""
    if kind == "postgres":
        with running() as server:
            yield server
    else:
        yield folder / "crash.db"


async def crash(plan: Plan, where: Postgres | Path, folder: Path, chance: random.Random) -> Trial:
    """Run a trial."""
    trial = await asyncio.to_thread(Crash, plan, where, folder, chance)
    return await trial.run()


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--database", choices=["sqlite", "postgres"], default=None, help="both when left out")
    parser.add_argument("--events", nargs="+", choices=EVENTS, default=EVENTS)
    parser.add_argument("--interval", type=float, default=3.0, help="seconds between two events at the most")
    parser.add_argument("--frozen", type=float, default=60.0)
    parser.add_argument("--away", type=float, default=40.0)
    parser.add_argument("--most", type=float, default=float("inf"), help="so many events, and then none")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    given = parser.parse_args()
    plan = Plan(given.runs, given.workers, tuple(given.events), given.most, given.interval, given.frozen, given.away)
    failed = 0
    for kind in [given.database] if given.database else ["sqlite", "postgres"]:
        with tempfile.TemporaryDirectory() as folder, place(kind, Path(folder)) as where:
            trial = asyncio.run(crash(plan, where, Path(folder), random.Random(given.seed)))
            print(f"{kind} (seed {given.seed}): {trial}", flush=True)
            for problem in trial.problems[:20]:
                print(f"  {problem}", flush=True)
            if trial.problems:
                for log in sorted(Path(folder).glob("*.log")):
                    print(log.name, log.read_text()[-1500:])
        failed += bool(trial.problems)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
