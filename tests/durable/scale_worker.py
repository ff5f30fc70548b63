"""A worker for `scale`: turns that wait 50 ms or do nothing. `python -m tests.durable.scale_worker URL ID [bare]`."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from dbos import DBOS

from toolcrib.adapters.dbos import DurableAgent, Engine, Queue
from toolcrib.adapters.dbos._workflow import workflow
from toolcrib.tools import tool
from toolcrib.toolsets import Toolset
from toolcrib.turns import Agent

BARE = Queue("bare", worker_concurrency=50, polling=0.1)
FEW = Queue("few", worker_concurrency=1, polling=0.1)  # its workers wait for tools, not for this machine's cores


@tool(idempotent=True)
async def work(n: int, wait: float) -> int:
    if wait:
        await asyncio.sleep(wait)
    return n


@workflow("tests.bare")
async def bare(data: dict[str, Any]) -> int:
    """Run what a DBOS user would write for the same: a workflow with one step."""

    async def body() -> int:
        if data["wait"]:
            await asyncio.sleep(data["wait"])
        return int(data["n"])

    return await DBOS.run_step_async({"name": "work"}, body)


def made() -> DurableAgent:
    """Return the agent, as every process has it."""
    return DurableAgent(Agent("scale", "Works.", Toolset([work])), Queue("scale", worker_concurrency=50, polling=0.1))


async def main(url: str, worker_id: str) -> None:
    agent = made()
    async with Engine(url, worker_id=worker_id, queues=(agent.queue, BARE, FEW), grace=0.1):
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.readline)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
