"""The crash test: many durable runs, and workers that are disturbed again and again at moments that nobody chose.

Half of the runs are eight turns of an agent, each of which returns the next; half are a program of eight calls in the
default sandbox. Every other call may be made twice, every other may not, and every fourth needs an approval. The
workers are `toolcrib worker` processes, several on one database, which they record in as well; Postgres writes to its
disk, and a pgbouncer is in front of it where one is installed. What happens to them:

- kill: SIGKILL; it is started again under its id
- stop: SIGTERM, as a deploy does; it has a grace time, and is started again under its id
- interrupt: SIGINT, as Ctrl-C does; else like stop
- freeze: SIGSTOP, its work is handed over while it stands still, then SIGCONT; it ends, and is started again. One
  that stands still in the middle of a transaction on SQLite keeps its work, and goes on
- outage: Postgres is restarted, or a SQLite file is locked by another process
- full: no byte is free on the disk of the database, a small one of its own; mounting it takes root
- network: what is sent is lost for a while, and then all connections end; it takes pgbouncer
- clock: the clock of a worker, or of all on SQLite, goes wrong by half a minute, and right again later; it takes a C
  compiler and Linux

Each kind happens once before any happens again. A person (this process) approves what is asked. At the end: every
run has come to its end, no turn is lost and none is there twice, nothing ended as failed, nothing that may be done
twice was done under two keys, nothing else was done more often than people agreed to, and nothing was asked twice.

    python -m tests.durable.crash --runs 1000 --database sqlite     # or postgres
    python -m tests.durable.crash --runs 100 --events kill stop
    python -m tests.durable.crash --beside 65283a9d                 # one worker runs that commit
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import multiprocessing
import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from multiprocessing import Pipe, forkserver
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path

from tests.durable import crash_worker
from tests.durable.crash_places import Place, no_pooler, place, refusal
from tests.durable.crash_trial import Asked, Trial
from tests.durable.crash_worker import PROGRAM, STEPS, TIMEOUT, Files, agent, put_turn, toolkit
from toolcrib.adapters.dbos import Client, Placement, enqueue_program, list_work, recover, workers
from toolcrib.approvals import ApprovalEntry
from toolcrib.database import DatabaseAway, is_outage
from toolcrib.durable import AnswerStore
from toolcrib.errors import ApprovalError, WorkerError
from toolcrib.turns import Turn

EVENTS = ("kill", "stop", "interrupt", "freeze", "outage", "full", "network", "clock")
_SIGNALS = {"kill": signal.SIGKILL, "stop": signal.SIGTERM, "interrupt": signal.SIGINT}
_DISK_MB = 64  # of the small disk, and one for each run
_NAMED = 5  # pieces of work of which a stuck trial says that they are left
_GRACE = 1.0  # seconds that a stopped worker has
_WRONG = 30  # seconds by which a clock is wrong: twice as long as a lease
_ENDS = 240.0  # seconds in which a worker ends after it was stopped or thawed, on a machine that has much to do

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
        away: Seconds that a SQLite file is locked, a Postgres server is down, a disk is full, the network loses what it
            is given, or a clock is wrong.
        patience: Seconds without an outage in which nothing goes on, though work is left: then it is stuck.
        source: A folder with the sources of another commit, which the first worker runs; None for these alone.
    """

    runs: int
    workers: int = 3
    events: tuple[str, ...] = EVENTS
    most: float = float("inf")
    interval: float = 3.0
    frozen: float = 60.0
    away: float = 5.0
    patience: float = 60.0
    source: str | None = None


class Worker:
    """One worker, which is started again under its id whenever it ended.

    Args:
        main: What its process does; it ends when the other end of a connection is closed.
        clock: The file that says by how much its clock is wrong.
    """

    def __init__(self, worker_id: str, main: Callable[[Connection], None], clock: Path) -> None:
        self.id = worker_id
        self.is_busy = False  # something is being done to it
        self._main, self._clock = main, clock
        self.set_clock(0)
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
        self._process = _server.Process(target=self._main, args=(its,), daemon=True)
        self._process.start()
        its.close()
        with contextlib.suppress(EOFError):  # it ended
            self._held.recv()  # it has begun: what it was forked off ignores Ctrl-C

    def set_clock(self, wrong_by: int) -> None:
        """Have its clock be wrong by so many seconds."""
        with self._clock.open("r+b" if self._clock.exists() else "wb") as file:
            file.write(struct.pack("q", wrong_by))

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


class Crash(ABC):
    """One trial of an engine.

    Args:
        store: Where the workers' requests wait for answers.
        workers: The workers.
        places: What can happen to what they stand on, and lasts for some seconds.
    """

    def __init__(
        self,
        plan: Plan,
        trial: Trial,
        chance: random.Random,
        store: AnswerStore,
        workers: list[Worker],
        places: Mapping[str, Callable[[float], None]],
    ) -> None:
        self.plan, self.trial, self.chance = plan, trial, chance
        self.store, self.workers, self.places = store, workers, places
        self._is_settled = False

    @abstractmethod
    async def enqueue(self) -> None:
        """Enqueue all runs."""

    @abstractmethod
    async def active(self) -> list[str]:
        """Return some of the work that has not ended, also of what waits for a person, each with how far it is."""

    @abstractmethod
    async def hand_over(self, worker: Worker) -> bool:
        """Give the work of a worker that stands still to others, and return whether it has none any more."""

    def is_away(self, error: Exception) -> bool:
        """Whether an error says that what the workers stand on is away."""
        return is_outage(error)

    @abstractmethod
    async def judge_records(self) -> None:
        """Add what must not be in the engine's records to the problems of the trial."""

    async def run(self) -> Trial:
        """Enqueue the runs, disturb the workers until all have ended, and look at what came of it."""
        began = time.monotonic()
        await self.enqueue()
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
        self.trial.judge()
        await self.judge_records()
        self.trial.seconds = time.monotonic() - began
        return self.trial

    def _is_over(self, trouble: asyncio.Task[None]) -> bool:
        """Return whether all has happened that was to; raises what went wrong with it."""
        if trouble.done():
            trouble.result()
        return trouble.done() or self.plan.most == float("inf") or bool(self.trial.problems)

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
            if happen := self.places.get(event):
                self.trial.events[event] += 1
                await asyncio.to_thread(happen, self.plan.away)
                self.trial.moved = time.monotonic()  # nothing could go on until now
            elif event == "clock":
                self.trial.events[event] += 1
                task = asyncio.create_task(self._go_wrong(self.chance.choice(self.workers)))
                happening.add(task)
                task.add_done_callback(happening.discard)
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
                worker.send(signal.SIGUSR1)  # its log has what it waits for
                self.trial.problems.append(f"{worker.id} did not end in {_ENDS:.0f} s after a {event}")
        finally:
            worker.is_busy = False  # and so it is started again

    async def _go_wrong(self, worker: Worker) -> None:
        """Let a worker's clock go wrong, and right again."""
        worker.set_clock(self.chance.choice((-_WRONG, _WRONG)))
        await asyncio.sleep(self.plan.away)
        worker.set_clock(0)

    async def _freeze(self, worker: Worker) -> bool:
        """Let a worker stand still, and return whether its work was handed over meanwhile."""
        worker.send(signal.SIGSTOP)
        try:
            await asyncio.sleep(self.plan.frozen / 2)
            handed_over = await self.hand_over(worker)
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
            if not self.is_away(error):
                raise
            if is_stuck := self._is_stuck:
                self.trial.problems.append(f"nothing answered any more: {error}")
            return is_stuck

    @property
    def _is_stuck(self) -> bool:
        return time.monotonic() - self.trial.moved > self.plan.patience + self.plan.frozen

    async def _looked(self) -> bool:
        trial, store = self.trial, self.store
        asked: tuple[ApprovalEntry, ...] = await store.list(pending=True)
        for entry in asked:
            request = entry.request
            run, n = request.arguments["run"], request.arguments["n"]
            begun = str(request.metadata.get("begun", "at some time")) if request.in_doubt else ""
            done = sum((row[1], row[2]) == (run, n) for row in trial.effects()) if begun else 0
            trial.asked[request.id] = Asked(run, n, begun, done)  # the reply to the answer may be lost
            with contextlib.suppress(ApprovalError):
                await store.answer(request.grant("a person"))
        found = trial.effects()
        if len(found) != trial.calls or asked:
            trial.calls, trial.moved = len(found), time.monotonic()
        active = await self.active()
        unended = {*trial.agents, *trial.programs} - {run for _, run, n, _ in found if n == STEPS}
        unused = await store.answered()
        trial.unused = len(unused)  # of work that has ended by what the execution in doubt came to
        if not (unended or active or asked):
            return True
        stuck = self._is_stuck
        if stuck:
            left = [*active, *(f"{run} before its last step" for run in sorted(unended)[:_NAMED])]
            left += [f"an unused answer to {entry.request.id} about {entry.request.arguments}" for entry in unused]
            trial.problems.append(f"nothing went on any more, and work was left: {', '.join(left)}")
        return stuck


def build_clock(folder: Path) -> str | None:
    """Have the workers of this process be started with a clock that can go wrong; return why it cannot be done."""
    if sys.platform != "linux" or not (compiler := shutil.which("cc")):
        return "a clock goes wrong on Linux, and with a C compiler"
    library = folder / "wrong_clock.so"
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-O2", "-o", library, Path(__file__).with_name("wrong_clock.c"), "-ldl"],
        check=True,
    )
    os.environ["LD_PRELOAD"] = str(library)
    try:
        forkserver.ensure_running()
    finally:
        del os.environ["LD_PRELOAD"]
    return None


class DbosCrash(Crash):
    """A trial of turns and programs on DBOS.

    Args:
        place: Where the database is.
        folder: Where the ledger and what the workers say are kept.
    """

    def __init__(self, plan: Plan, place: Place, folder: Path, chance: random.Random) -> None:
        agents = [f"a{n}" for n in range(plan.runs // 2)]
        programs = [f"p{n}" for n in range(plan.runs - len(agents))]
        self.client = Client(place.database)
        started = [self._worker(place, folder, f"w{n}", plan.source if n == 0 else None) for n in range(plan.workers)]
        places = {"outage": place.outage, "full": place.fill}
        if place.pooler is not None:
            places["network"] = place.pooler.cut
        trial = Trial(agents, programs, folder / "ledger")
        super().__init__(plan, trial, chance, self.client.approvals, started, places)

    @staticmethod
    def _worker(place: Place, folder: Path, worker_id: str, source: str | None) -> Worker:
        clock = folder / (
            "clock" if place.server is None else f"{worker_id}.clock"
        )  # those of one file are on one host
        files = Files(str(folder / "ledger"), str(folder / f"{worker_id}.log"), str(clock))
        arguments = ["--database", place.database, "--worker-id", worker_id, "--grace", str(_GRACE)]
        return Worker(worker_id, partial(crash_worker.main, arguments, files, source), clock)

    async def enqueue(self) -> None:
        agent._client = self.client
        for queue in (agent.queue, toolkit.queue):
            await asyncio.to_thread(self.client.declare, queue)
        for run in self.trial.agents:
            await agent.put(Turn(put_turn, kwargs={"run": run, "n": 1}, timeout=TIMEOUT))
        for run in self.trial.programs:
            code = PROGRAM.format(steps=STEPS, run=run)
            await enqueue_program(self.client, toolkit.name, toolkit.queue.name, code, Placement(run))

    async def active(self) -> list[str]:
        for look in 2 * (self._running, self._suspended):  # what goes on between two looks is seen by the next two
            if found := await asyncio.to_thread(look):
                return found
        return []

    def _running(self) -> list[str]:
        open_states = ["ENQUEUED", "PENDING", "DELAYED"]
        found = self.client.dbos.list_workflows(status=open_states, limit=_NAMED, load_input=False)
        return [f"{status.workflow_id} {status.status}" for status in found]

    def _suspended(self) -> list[str]:
        return [f"{work.id} {work.state}" for work in list_work(self.client, state="suspended", limit=_NAMED)]

    async def hand_over(self, worker: Worker) -> bool:
        with contextlib.suppress(WorkerError, DatabaseAway):  # it was none yet, or froze in a transaction
            found = await asyncio.to_thread(workers, self.client)
            if any((one.id, one.pid) == (worker.id, worker.pid) for one in found):
                await asyncio.to_thread(recover, self.client, worker.id, force=True)
                return True
        return False

    async def judge_records(self) -> None:
        await asyncio.to_thread(self.trial.judge_records, self.client)
        await asyncio.to_thread(self.client.close)


async def crash(plan: Plan, where: Place, folder: Path, chance: random.Random) -> Trial:
    """Run a trial on DBOS."""
    trial = await asyncio.to_thread(DbosCrash, plan, where, folder, chance)
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
    parser.add_argument(
        "--keep", type=Path, help="a folder for what a trial with problems leaves: its database and logs"
    )
    parser.add_argument("--beside", metavar="COMMIT", help="the first worker runs the sources of this commit")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    given = parser.parse_args()
    failed = 0
    with tempfile.TemporaryDirectory() as tools:
        source = given.beside and sources_of(given.beside, Path(tools))
        refused = {"full": refusal(), "clock": build_clock(Path(tools)), "network": None}
        for kind in [given.database] if given.database else ["sqlite", "postgres"]:
            refused["network"] = "it takes Postgres with pgbouncer" if kind == "sqlite" else no_pooler()
            events = tuple(given.events or (event for event in EVENTS if not refused.get(event)))
            print(f"{kind}: not done here: { {event: why for event, why in refused.items() if why} }", flush=True)
            disk = _DISK_MB + given.runs if "full" in events else None
            plan = Plan(
                given.runs, given.workers, events, given.most, given.interval, given.frozen, given.away, source=source
            )
            with tempfile.TemporaryDirectory() as folder, place(kind, Path(folder), disk=disk) as where:
                trial = asyncio.run(crash(plan, where, Path(folder), random.Random(given.seed)))
                print(f"{kind} (seed {given.seed}): {trial}", flush=True)
                for problem in trial.problems[:20]:
                    print(f"  {problem}", flush=True)
                if trial.problems:
                    for log in sorted(Path(folder).glob("*.log")):
                        print(log.name, log.read_text()[-1500:])
                    if given.keep is not None:
                        kept = given.keep / f"{kind}-{given.seed}"
                        shutil.copytree(folder, kept, dirs_exist_ok=True)
                        where.copy(kept)
            failed += bool(trial.problems)
    return 1 if failed else 0


def sources_of(commit: str, folder: Path) -> str:
    """Return a folder with the sources of a commit."""
    packed = subprocess.run(["git", "archive", commit, "src"], check=True, capture_output=True).stdout
    subprocess.run(["tar", "-x", "-C", folder], input=packed, check=True)
    return str(folder / "src")


if __name__ == "__main__":
    sys.exit(main())
