"""What a crowd of workers asks of one Postgres: one idle worker is recorded, and its statements are sent as by so many.

A turn costs the server what a real worker's turns do. `python -m tests.durable.crowd --workers 200`.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import sqlalchemy as sa
from sqlalchemy import event

from tests.durable.scale_worker import work
from tests.postgres import Postgres, programs, running
from toolcrib.adapters.dbos import DurableAgent, Engine, Queue
from toolcrib.turns import Agent, Turn

_SECONDS = 10  # of an idle worker, which are sent again and again


async def _observed(server: Postgres, url: str, turns: int) -> tuple[list[str], int, list[float]]:
    """Run a worker, and return what it sends while it is idle, its connections, and what a turn costs the server."""
    agent = DurableAgent(Agent("crowd", "Works.", [work]), Queue("crowd"))
    texts = _Texts(url)
    async with Engine(url, worker_id="crowd", queues=[agent.queue], record=True) as engine:
        await (await agent.put(Turn(work, kwargs={"n": 0, "wait": 0.0}))).outcome()
        await asyncio.sleep(_SECONDS / 2)
        event.listen(sa.Engine, "before_cursor_execute", texts.note)
        await asyncio.sleep(_SECONDS)
        event.remove(sa.Engine, "before_cursor_execute", texts.note)
        with server.connect() as connection:
            ((open_now,),) = connection.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = 'crowd'"
            ).fetchall()
        before = server_cost(server)
        handles = [await agent.put(Turn(work, kwargs={"n": n, "wait": 0.0})) for n in range(turns)]
        for handle in handles:
            await engine.client.result(handle.id)
        spent = [(after - start) / turns for start, after in zip(before, server_cost(server), strict=True)]
    return texts.lines, open_now, spent


class _Texts:
    """The statements of a process, as a client of the server would type them."""

    def __init__(self, url: str) -> None:
        self.lines: list[str] = []
        self._text: Callable[..., str] = psycopg.ClientCursor(psycopg.connect(url)).mogrify

    def note(self, connection: Any, cursor: Any, statement: str, values: Any, *others: Any) -> None:
        text = " ".join(self._text(statement, values or None).split()).replace(":'", "\\:'") + ";"
        is_alone = connection.get_execution_options().get("isolation_level") == "AUTOCOMMIT"
        self.lines += [text] if is_alone else ["BEGIN;", text, "COMMIT;"]


def server_cost(server: Postgres) -> tuple[float, float]:
    """Return the seconds that the server has computed so far, and the bytes in its log of changes."""
    with server.connect() as connection:
        ((written,),) = connection.execute("SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn").fetchall()
    main = server.control.process.pid
    children = Path(f"/proc/{main}/task/{main}/children").read_text().split()
    ticks = sum(sum(map(int, _fields(pid)[11:13])) for pid in children) + sum(map(int, _fields(main)[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK"), float(written)


def _fields(pid: object) -> list[str]:
    """Return the numbers of a process from its state on: its own seconds, and those of its children that ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    except FileNotFoundError:  # it has ended, and its parent has its seconds
        return ["0"] * 15


def crowd(server: Postgres, workers: int, turns: int) -> None:
    """Print what one idle worker and one turn cost, and how the server bears so many workers for twenty seconds."""
    url = server.url("crowd")
    lines, open_now, turn = asyncio.run(_observed(server, url, turns))
    print(f"an idle worker: {len(lines) / _SECONDS:.0f} statements a second, {open_now} connections")
    print(f"a recorded turn: {turn[0] * 1000:.1f} ms of the server's processor, {turn[1] / 1000:.1f} kB of log")
    folder = programs()
    assert folder is not None
    with tempfile.NamedTemporaryFile("w", suffix=".sql") as script:
        print(*lines, sep="\n", file=script, flush=True)
        rate = ["-c", str(workers), "-j", "2", "-R", str(workers / _SECONDS), "-T", "20"]
        before, begun = server_cost(server)[0], time.monotonic()
        command = [folder / "pgbench", "-n", "-M", "prepared", *rate, "-f", script.name, url]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        cores = (server_cost(server)[0] - before) / (time.monotonic() - begun)
    done = next(line for line in said.splitlines() if "actually processed" in line)
    late = next(line for line in said.splitlines() if line.startswith("rate limit schedule lag"))
    print(f"{workers} idle workers: {cores:.2f} cores of the server; {done}, of {_SECONDS} s of a worker each; {late}")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--workers", type=int, default=200)
    parser.add_argument("--turns", type=int, default=1_000, help="of which the cost is measured")
    given = parser.parse_args()
    with running(max_connections=str(given.workers + 100), fsync="on", synchronous_commit="on") as server:
        crowd(server, given.workers, given.turns)


if __name__ == "__main__":
    main()
