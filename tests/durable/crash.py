"""The crash test: many durable runs, and workers that are disturbed again and again at moments that nobody chose.

Half of the runs are twenty turns of an agent, each of which returns the next; half are a program of twenty calls in the
default sandbox. Every other call may be made twice, and every other may not. The workers are `toolcrib worker`
processes, several on one database. What happens to them:

- kill: SIGKILL; it is started again under its id
- stop: SIGTERM, as a deploy does; it has a grace time, and is started again under its id
- interrupt: SIGINT, as Ctrl-C does; else like stop
- freeze: SIGSTOP, its work is handed over while it stands still, then SIGCONT; it ends, and is started again. One
  that stands still in the middle of a transaction on SQLite keeps its work, and goes on
- outage: Postgres is restarted, or a SQLite file is locked by another process
- full: no byte is free on the disk of the database, a small one of its own; mounting it takes root

Each kind happens once before any happens again. A person (this process) approves what is in doubt. At the end: every
run has come to its end, no turn is lost and none is there twice, nothing ended as failed, nothing that may be done
twice was done under two keys, and nothing else was done more often than people agreed to.

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
from dataclasses import dataclass
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path

from tests.durable import crash_worker
from tests.durable.crash_places import Place, place, refusal
from tests.durable.crash_trial import Trial
from tests.durable.crash_worker import PROGRAM, STEPS, agent, put_turn, toolkit
from toolcrib.adapters.dbos import Client, Placement, enqueue_program, recover, workers
from toolcrib.approvals import ApprovalEntry
from toolcrib.database import DatabaseAway, is_outage
from toolcrib.errors import ApprovalError, WorkerError
from toolcrib.turns import Turn

EVENTS = ("kill", "stop", "interrupt", "freeze", "outage", "full")
_SIGNALS = {"kill": signal.SIGKILL, "stop": signal.SIGTERM, "interrupt": signal.SIGINT}
_DISK_MB = 64  # of the small disk, and one for each run
_NAMED = 5  # pieces of work of which a stuck trial says that they are left
_GRACE = 1.0  # seconds that a stopped worker has
_ENDS = 90.0  # seconds in which a worker ends after it was stopped or thawed; a file may be locked by a frozen one

_server = multiprocessing.get_context("forkserver")  # workers are forked off a process that has imported everything
_server.set_forkserver_preload(["__main__", "tests.durable.crash_worker", "toolcrib.cli._durable"])


@dataclass(frozen=True)
class Plan:
    """What is to be done to the workers of a trial.

    Attributes:
        runs: How many runs there are.
        workers: How many workers.
        events: What happens to them, each as likely as the others.
        most: How many of these events; then the rest of the work is done in peace. All happen, also to workers that
            have nothing left to do.
        interval: Seconds between two events at the most.
        frozen: Seconds that a worker stands still.
        away: Seconds that a SQLite file is locked, a Postgres server is down, or a disk is full.
        patience: Seconds without an outage in which nothing goes on, though work is left: then it is stuck.
    """

    runs: int
    workers: int = 3
    events: tuple[str, ...] = EVENTS
    most: float = float("inf")
    interval: float = 3.0
    frozen: float = 60.0
    away: float = 5.0
    patience: float = 60.0


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

    @property
    def pid(self) -> int | None:
        """The number of its process."""
        return None if self._process is None else self._process.pid

    def start(self) -> None:
        """Start it, also anew."""
        self.clear()
        self._held, its = Pipe()
        self._process = _server.Process(target=crash_worker.main, args=(*self._given, its), daemon=True)
        self._process.start()
        its.close()

    def send(self, number: signal.Signals) -> None:
        """Send it a signal, if it lives."""
        if self.lives and self.pid is not None:
            os.kill(self.pid, number)

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


class Crash:
    """One trial.

    Args:
        place: Where the database is.
        folder: Where the ledger and what the workers say are kept.
    """

    def __init__(self, plan: Plan, place: Place, folder: Path, chance: random.Random) -> None:
        self.plan, self.place, self.chance = plan, place, chance
        agents = [f"a{n}" for n in range(plan.runs // 2)]
        programs = [f"p{n}" for n in range(plan.runs - len(agents))]
        self.trial = Trial(agents, programs, folder / "ledger")
        self._is_settled = False
        self.client = Client(place.database)
        self.workers = [Worker(place.database, folder, f"w{n}") for n in range(plan.workers)]

    async def run(self) -> Trial:
        """Enqueue the runs, disturb the workers until all have ended, and look at what came of it."""
        began = time.monotonic()
        await self._enqueue()
        for worker in self.workers:
            await asyncio.to_thread(worker.start)
        trouble = asyncio.create_task(self._trouble())
        try:
            while not (await self._settles() and self._is_over(trouble)):
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
        await asyncio.to_thread(self.trial.judge, self.client)
        self.trial.seconds = time.monotonic() - began
        await asyncio.to_thread(self.client.close)
        return self.trial

    def _is_over(self, trouble: asyncio.Task[None]) -> bool:
        """Return whether all has happened that was to; raises what went wrong with it."""
        if trouble.done():
            trouble.result()
        return trouble.done() or self.plan.most == float("inf") or bool(self.trial.problems)

    async def _enqueue(self) -> None:
        agent._client = self.client
        for queue in (agent.queue, toolkit.queue):
            await asyncio.to_thread(self.client.declare, queue)
        for run in self.trial.agents:
            await agent.put(Turn(put_turn, kwargs={"run": run, "n": 1}))
        for run in self.trial.programs:
            code = PROGRAM.format(steps=STEPS, run=run)
            await enqueue_program(self.client, toolkit.name, toolkit.queue.name, code, Placement(run))

    # --- what happens to the workers

    async def _trouble(self) -> None:
        happening: set[asyncio.Task[None]] = set()
        deck: list[str] = []
        while sum(self.trial.events.values()) < self.plan.most:
            await self._goes_on()  # what happens to a worker without work shows nothing
            await asyncio.sleep(self.chance.uniform(0.05, self.plan.interval))
            if not deck:
                deck = self.chance.sample(self.plan.events, len(self.plan.events))
            event = deck.pop()
            free = [worker for worker in self.workers if not worker.is_busy]
            if event in ("outage", "full"):
                self.trial.events[event] += 1
                await asyncio.to_thread(self.place.outage if event == "outage" else self.place.fill, self.plan.away)
                self.trial.moved = time.monotonic()  # nothing could go on until now
            elif not free or (event == "freeze" and len(free) == 1):
                deck.insert(0, event)  # as soon as there is a worker that it can happen to
            else:
                self.trial.events[event] += 1
                worker = self.chance.choice(free)
                worker.is_busy = True
                task = asyncio.create_task(self._disturb(worker, event))
                happening.add(task)
                task.add_done_callback(happening.discard)
        await asyncio.gather(*happening)

    async def _goes_on(self) -> None:
        """Wait until something more was done, or all is."""
        before = self.trial.calls
        while self.trial.calls == before and not self._is_settled:  # noqa: ASYNC110 -- it is the ledger that is read
            await asyncio.sleep(0.05)

    async def _disturb(self, worker: Worker, event: str) -> None:
        try:
            if event in _SIGNALS:
                worker.send(_SIGNALS[event])
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
            with contextlib.suppress(WorkerError, DatabaseAway):  # it was none yet, or froze in a transaction
                found = await asyncio.to_thread(workers, self.client)
                if any((one.id, one.pid) == (worker.id, worker.pid) for one in found):
                    await asyncio.to_thread(recover, self.client, worker.id, force=True)
                    handed_over = True
            await asyncio.sleep(self.plan.frozen / 2)
            return handed_over
        finally:
            worker.send(signal.SIGCONT)

    # --- how it stands

    async def _settles(self) -> bool:
        """Approve what is in doubt, and return whether every run has come to its end, or nothing goes on any more."""
        try:
            self._is_settled = await self._looked()
            return self._is_settled
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
            done = sum((row[1], row[2]) == (run, n) for row in trial.effects())
            with contextlib.suppress(ApprovalError):
                await store.answer(request.grant("a person"))
                trial.doubts.setdefault((run, n), []).append(done)
        found = trial.effects()
        if len(found) != trial.calls or asked:
            trial.calls, trial.moved = len(found), time.monotonic()
        active = await asyncio.to_thread(
            self.client.dbos.list_workflows, status=["ENQUEUED", "PENDING", "DELAYED"], limit=_NAMED, load_input=False
        )
        unended = {*trial.agents, *trial.programs} - {run for _, run, n, _ in found if n == STEPS}
        unused = await store.answered()
        if not (unended or active or asked or unused):
            return True
        stuck = time.monotonic() - trial.moved > self.plan.patience + self.plan.frozen
        if stuck:
            left = [f"{status.workflow_id} {status.status}" for status in active]
            left += [f"{run} before its last step" for run in sorted(unended)[:_NAMED]]
            left += [f"an unused answer to {entry.request.id}" for entry in unused]
            trial.problems.append(f"nothing went on any more, and work was left: {', '.join(left)}")
        return stuck


async def crash(plan: Plan, where: Place, folder: Path, chance: random.Random) -> Trial:
    """Run a trial."""
    trial = await asyncio.to_thread(Crash, plan, where, folder, chance)
    return await trial.run()


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--database", choices=["sqlite", "postgres"], default=None, help="both when left out")
    parser.add_argument(
        "--events", nargs="+", choices=EVENTS, default=None, help="all that can be done here when left out"
    )
    parser.add_argument("--interval", type=float, default=3.0, help="seconds between two events at the most")
    parser.add_argument("--frozen", type=float, default=60.0)
    parser.add_argument("--away", type=float, default=40.0)
    parser.add_argument("--most", type=float, default=float("inf"), help="so many events, and then none")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    given = parser.parse_args()
    refused = refusal()
    if refused:
        print(f"no disk is filled: {refused}", flush=True)
    events = tuple(given.events or (event for event in EVENTS if event != "full" or not refused))
    plan = Plan(given.runs, given.workers, events, given.most, given.interval, given.frozen, given.away)
    failed = 0
    for kind in [given.database] if given.database else ["sqlite", "postgres"]:
        disk = _DISK_MB + given.runs if "full" in events else None
        with tempfile.TemporaryDirectory() as folder, place(kind, Path(folder), disk=disk) as where:
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
