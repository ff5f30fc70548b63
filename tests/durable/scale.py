"""How durable turns scale on one Postgres queue: each exactly once, beside a plain DBOS, on one to four workers.

python -m tests.durable.scale --turns 10000
"""

from __future__ import annotations

import argparse
import asyncio
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any
from uuid import uuid4

import sqlalchemy as sa

from tests.durable.scale_worker import FEW, PLAIN, made, work
from tests.postgres import Postgres, running
from toolcrib.adapters.dbos import Client, Placement, Queue
from toolcrib.registry import registry_scope
from toolcrib.turns import Turn

_ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class Round:
    """What one round measured.

    Attributes:
        seconds: From the first start to the last end, by the database's records.
        statements: What the server was sent for each piece of work, from the first start on.
        log_bytes: What the server wrote into its log of changes for each meanwhile.
        size_bytes: What each takes in the database in the end.
        by_worker: How many each worker ran.
        recorded: How many ended, each counted once.
    """

    kind: str
    workers: int
    recorded: int
    seconds: float
    statements: float
    log_bytes: float
    size_bytes: float
    by_worker: dict[str, int]

    @property
    def rate(self) -> float:
        return self.recorded / self.seconds

    def __str__(self) -> str:
        shares = ", ".join(str(count) for _, count in sorted(self.by_worker.items()))
        return (
            f"{self.kind:<10} {self.workers} worker{' ' if self.workers == 1 else 's'} {self.recorded:>6} in "
            f"{self.seconds:6.1f} s: {self.rate:6.0f}/s, {self.statements:5.1f} statements, "
            f"{self.log_bytes / 1000:5.1f} kB of log and {self.size_bytes / 1000:5.1f} kB of database each ({shares})"
        )


@contextmanager
def workers(kind: str, url: str, number: int) -> Iterator[None]:
    """Run so many workers until the end of the block."""
    command = [sys.executable, "-m", "tests.durable.scale_worker", kind, url]
    started = [
        subprocess.Popen([*command, f"worker-{n}"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=_ROOT)
        for n in range(number)
    ]
    try:
        for process in started:
            if process.stdout is None or process.stdout.readline() != "ready\n":
                raise RuntimeError("a worker did not start")
        yield
    finally:
        for process in started:
            process.communicate("stop\n", timeout=30)


async def measure(server: Postgres, kind: str, number: int, count: int, wait: float) -> Round:
    """Have workers do so much work that was enqueued before they came."""
    name = f"scale_{uuid4().hex[:8]}"
    url = server.url(name)
    async with Client(url, pool=10) as client:
        empty = _size(server, name)
        queue = await _enqueue(client, kind, count, wait)
        await asyncio.to_thread(client.stop, queue.name)  # until all workers are there
        with workers(kind, url, number):
            before = _statements(server), _written(server)
            await asyncio.to_thread(client.go, queue)
            await _drained(client)
            found = _statements(server) - before[0], _written(server) - before[1]
        statements, written = (amount / count for amount in found)
        spent = statements, written, (_size(server, name) - empty) / count
        return await asyncio.to_thread(_judged, client, kind, number, spent)


async def _enqueue(client: Client, kind: str, count: int, wait: float) -> Queue:
    with registry_scope():
        agent = made()
    agent._client = client
    if wait:
        agent.queue = FEW
    for queue in (agent.queue, PLAIN):
        await asyncio.to_thread(client.declare, queue)

    async def some(first: int) -> None:
        for n in range(first, count, 8):
            if kind == "plain":
                await client.enqueue("tests.plain", PLAIN.name, {"n": n, "wait": wait}, Placement(str(uuid4())))
            else:
                await agent.put(Turn(work, kwargs={"n": n, "wait": wait}))

    await asyncio.gather(*(some(first) for first in range(8)))
    return PLAIN if kind == "plain" else agent.queue


async def _drained(client: Client) -> None:
    query = sa.text("SELECT count(*) FROM dbos.workflow_status WHERE status IN ('ENQUEUED', 'PENDING')")

    def left() -> int:
        with client.engine.begin() as connection:
            return int(connection.execute(query).scalar_one())

    while True:
        if not await asyncio.to_thread(left):
            return
        await asyncio.sleep(0.2)


def _judged(client: Client, kind: str, number: int, spent: tuple[float, float, float]) -> Round:
    found: Any = client.dbos.list_workflows(load_input=True)
    bad = [status.status for status in found if status.status != "SUCCESS"]
    if bad:
        raise RuntimeError(f"{len(bad)} of {len(found)} ended as {Counter(bad)}")
    numbers = [_number(status) for status in found]
    if sorted(numbers) != list(range(len(numbers))):
        raise RuntimeError("a turn is missing, or is there twice")
    steps = sum(status.recovery_attempts for status in found)
    if steps != len(found):
        raise RuntimeError(f"{len(found)} turns were begun {steps} times")
    seconds = (max(s.completed_at for s in found) - min(s.dequeued_at for s in found)) / 1000
    return Round(kind, number, len(found), seconds, *spent, dict(Counter(s.executor_id for s in found)))


def _number(status: Any) -> int:
    data = status.input["args"][0]
    return int(data["n"] if "n" in data else data["turn"]["kwargs"]["n"])


def _statements(server: Postgres) -> int:
    """Return how many statements the server has finished, without this one's own kind."""
    with server.connect("postgres") as connection:
        ((count,),) = connection.execute("SELECT coalesce(sum(calls), 0) FROM pg_stat_statements").fetchall()
        return int(count)


def _written(server: Postgres) -> int:
    """Return the bytes that the server has written into its log of changes."""
    with server.connect() as connection:
        ((count,),) = connection.execute("SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn").fetchall()
        return int(count)


def _size(server: Postgres, database: str) -> int:
    with server.connect() as connection:
        ((count,),) = connection.execute("SELECT pg_database_size(%s)", [database]).fetchall()
        return int(count)


async def scale(server: Postgres, turns: int, measured: int) -> list[Round]:
    """Return all rounds: the big one on four workers, the comparison, one to four workers with tools that wait."""
    with server.connect("postgres") as connection:
        connection.execute("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")
    rounds = [await measure(server, "turns", 4, turns, 0.0)]
    print(rounds[-1], flush=True)
    compared = [
        (kind, 1, 0.0) for kind in ("plain", "turns", "recorded", "recorded", "turns", "plain")
    ]  # a machine's mood changes
    for kind, number, wait in (*compared, *(("turns 50ms", n, 0.05) for n in (1, 2, 4))):
        count = measured * number // 5 if wait else measured  # each round takes about as long
        rounds.append(await measure(server, kind, number, count, wait))
        print(rounds[-1], flush=True)
    return rounds


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--turns", type=int, default=10_000, help="in the round that counts each of them")
    parser.add_argument("--measured", type=int, default=1_000, help="in the others; a fifth a worker if tools wait")
    given = parser.parse_args()
    with running(shared_preload_libraries="pg_stat_statements") as server:
        _, *rounds = asyncio.run(scale(server, given.turns, given.measured))
    rates = {
        kind: median(round.rate for round in rounds if round.kind == kind) for kind in ("plain", "turns", "recorded")
    }
    waiting = [round for round in rounds if round.kind == "turns 50ms"]
    for kind in ("turns", "recorded"):
        print(f"one worker does {rates[kind] / rates['plain']:.2f} of the workflows of a plain DBOS process, as {kind}")
    for round in waiting[1:]:
        print(f"{round.workers} workers do {round.rate / waiting[0].rate:.2f} of what one does, with tools that wait")


if __name__ == "__main__":
    main()
