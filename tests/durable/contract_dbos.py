"""DBOS for the contract of engines."""

from __future__ import annotations

import asyncio
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path

from tests.durable.contract_work import LOOK, WorkerEngine, tools_of
from toolcrib.adapters.dbos import Client, DurableAgent, Engine, Queue
from toolcrib.turns import Agent


def _agent(folder: Path, client: Client | None = None) -> DurableAgent:
    queue = Queue("contract", polling=LOOK)
    return DurableAgent(Agent("contract", "Tested.", tools_of(folder)), queue, client=client)


def _work(database: str, folder: Path, ready: Connection) -> None:
    async def work() -> None:
        agent = _agent(folder)
        async with Engine(database, worker_id="w1", queues=[agent.queue], answers=LOOK):
            ready.send("ready")
            await asyncio.Event().wait()

    asyncio.run(work())


def on_dbos(folder: Path, client: Client, database: str) -> WorkerEngine:
    """Return the engine of a database."""
    return WorkerEngine(folder, _agent(folder, client), partial(_work, database, folder))
