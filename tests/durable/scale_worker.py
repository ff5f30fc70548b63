"""A worker for `scale`: turns that wait 50 ms or do nothing. `python -m tests.durable.scale_worker KIND URL ID`.

The kinds are `plain`, a process of DBOS without an engine of ours, `turns`, and `recorded` for turns whose events are
kept in the database.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from dbos import DBOS

from toolcrib.adapters.dbos import DurableAgent, Engine, Queue
from toolcrib.adapters.dbos._client import JsonSerializer
from toolcrib.database import Database
from toolcrib.tools import tool
from toolcrib.toolsets import Toolset
from toolcrib.turns import Agent

PLAIN = Queue("plain", worker_concurrency=50, polling=0.1)
FEW = Queue("few", worker_concurrency=1, polling=0.1)  # its workers wait for tools, not for this machine's cores


@tool(idempotent=True)
async def work(n: int, wait: float) -> int:
    if wait:
        await asyncio.sleep(wait)
    return n


def made() -> DurableAgent:
    """Return the agent, as every process has it."""
    return DurableAgent(Agent("scale", "Works.", Toolset([work])), Queue("scale", worker_concurrency=50, polling=0.1))


async def main(kind: str, url: str, worker_id: str) -> None:
    agent = made()
    async with Engine(
        url, worker_id=worker_id, queues=(agent.queue, FEW), grace=0.1, record=kind.startswith("recorded")
    ):
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.readline)


async def plain(url: str, worker_id: str) -> None:
    """Run what a DBOS user would write for the same: a workflow with one step."""
    database = Database.named(url)
    DBOS(
        config={
            "name": database.application,
            "application_version": database.version,
            "executor_id": worker_id,
            "system_database_url": database.url.render_as_string(hide_password=False),
            "serializer": JsonSerializer(),
            "log_level": "ERROR",
        }
    )

    @DBOS.workflow(name="tests.plain")
    async def run(data: dict[str, Any]) -> int:
        async def body() -> int:
            if data["wait"]:
                await asyncio.sleep(data["wait"])
            return int(data["n"])

        return await DBOS.run_step_async({"name": "work"}, body)

    DBOS.listen_queues([PLAIN.name])
    DBOS.launch()
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    await asyncio.to_thread(DBOS.destroy)


if __name__ == "__main__":
    given = sys.argv[1:]
    asyncio.run(plain(*given[1:]) if given[0] == "plain" else main(*given))
