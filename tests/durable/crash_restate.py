"""The crash test on Restate: chains of turns, workers behind one URL, and a server that is killed.

    python -m tests.durable.crash_restate --runs 1000

It is as `tests.durable.crash`, with what Restate has. All runs are turns. An outage is a server that is killed and
started again. A worker that stands still says nothing to the server, which gives its turns to others after ten seconds.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import shutil
import sys
import tempfile
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path

from tests.durable.crash import Crash, Plan, Worker, build_clock
from tests.durable.crash_trial import Trial
from tests.durable.crash_worker import STEPS, TIMEOUT, TURN_TOOLS, Files, begin, put_turn
from tests.networks import Network, free_port
from tests.npm.restate import RestateServer, restate_server
from toolcrib.adapters.restate import RestateAgent, RestateClient, RestateTurn, serve
from toolcrib.approvals import SqliteApprovalStore
from toolcrib.errors import EngineError
from toolcrib.turns import Agent, Turn

_EVENTS = ("kill", "stop", "interrupt", "freeze", "outage", "network", "clock")
_SEEN = {"http2_keep_alive_interval": "5s", "http2_keep_alive_timeout": "5s", "http2_streams_per_connection_limit": "8"}
_ALL = 1_000_000
_PATIENCE = 300.0  # seconds: the server takes minutes to start again on a machine that has much to do


def _agent(ingress: str, admin: str, approvals: str) -> RestateAgent:
    client = RestateClient(ingress, admin, approvals=SqliteApprovalStore(approvals))
    return RestateAgent(Agent("crash", "Makes eight turns", TURN_TOOLS), client)


def work(ingress: str, admin: str, approvals: str, port: int, files: Files, held: Connection) -> None:
    """Be a worker of the server of these URLs."""
    begin(files, held)
    asyncio.run(serve([_agent(ingress, admin, approvals)], port=port))


class RestateCrash(Crash):
    """A trial of turns on a server.

    Args:
        network: What is between the server and the workers, which listen at these ports.
        folder: Where approvals, the ledger and what the workers say are kept.
    """

    def __init__(
        self, plan: Plan, server: RestateServer, network: Network, ports: list[int], folder: Path, chance: random.Random
    ) -> None:
        given = server.ingress, server.admin, str(folder / "approvals.db")
        self._agent, self._url = _agent(*given), f"http://127.0.0.1:{network.port}"
        started: list[Worker] = []
        for n, port in enumerate(ports):
            clock = folder / f"w{n}.clock"
            files = Files(str(folder / "ledger"), str(folder / f"w{n}.log"), str(clock))
            started.append(Worker(f"w{n}", partial(work, *given, port, files), clock))
        trial = Trial([f"a{n}" for n in range(plan.runs)], [], folder / "ledger")
        places = {"outage": server.restart, "network": network.cut}
        super().__init__(plan, trial, chance, self._agent.client.approvals, started, places)

    async def enqueue(self) -> None:
        for worker in self.workers:
            await asyncio.to_thread(worker.start)
        while True:
            try:
                await self._agent.client.register(self._url)
                break
            except Exception:  # none listens yet
                await asyncio.sleep(0.2)
        for run in self.trial.agents:
            await self._agent.put(Turn(put_turn, kwargs={"run": run, "n": 1}, timeout=TIMEOUT))

    async def active(self) -> list[str]:
        found = [turn for turn in await self._agent.client.turns(limit=_ALL) if turn.status != "completed"]
        return [f"{turn.id} {turn.status} {turn.problem}" for turn in found[:5]]

    async def hand_over(self, worker: Worker) -> bool:
        return False  # the server does that by itself, and the worker goes on when it wakes

    def is_away(self, error: Exception) -> bool:
        return isinstance(error, EngineError) or super().is_away(error)

    async def judge_records(self) -> None:
        turns = await self._turns()
        self.trial.turns = sum(turn.status == "completed" for turn in turns)
        self.trial.problems += [f"{turn.id} {turn.status}: {turn.problem}" for turn in turns if turn.problem]
        if self.trial.turns != STEPS * len(self.trial.agents):
            self.trial.problems.append(f"{self.trial.turns} turns ended, and {STEPS * len(self.trial.agents)} were to")

    async def _turns(self) -> tuple[RestateTurn, ...]:
        """Return all turns, once the server answers, which may have been killed a moment ago."""
        while True:
            try:
                return await self._agent.client.turns(limit=_ALL)
            except EngineError:
                await asyncio.sleep(1.0)


async def crash(plan: Plan, folder: Path, chance: random.Random) -> Trial:
    """Run a trial."""
    ports = [free_port() for _ in range(plan.workers)]
    network = Network(*ports)
    with restate_server(folder, **_SEEN) as server:
        try:
            return await RestateCrash(plan, server, network, ports, folder, chance).run()
        finally:
            network.close()


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--events", nargs="+", choices=_EVENTS, default=_EVENTS)
    parser.add_argument("--interval", type=float, default=3.0, help="seconds between two events at the most")
    parser.add_argument("--frozen", type=float, default=40.0)
    parser.add_argument("--away", type=float, default=15.0)
    parser.add_argument("--keep", type=Path, help="a folder for what a trial with problems leaves")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as tools, tempfile.TemporaryDirectory() as folder:
        refused = build_clock(Path(tools))
        events = tuple(event for event in given.events if event != "clock" or not refused)
        plan = Plan(
            given.runs,
            given.workers,
            events,
            interval=given.interval,
            frozen=given.frozen,
            away=given.away,
            patience=_PATIENCE,
        )
        trial = asyncio.run(crash(plan, Path(folder), random.Random(given.seed)))
        print(f"restate (seed {given.seed}): {trial}", flush=True)
        for problem in trial.problems[:20]:
            print(f"  {problem}", flush=True)
        if trial.problems and given.keep is not None:
            shutil.copytree(folder, given.keep / f"restate-{given.seed}", dirs_exist_ok=True)
    return 1 if trial.problems else 0


if __name__ == "__main__":
    sys.exit(main())
