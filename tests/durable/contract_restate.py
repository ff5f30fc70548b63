"""Restate for the contract of engines."""

from __future__ import annotations

import asyncio
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path

from tests.durable.contract_work import LOOK, WorkerEngine, tools_of
from tests.npm.restate import RestateServer
from toolcrib.adapters.restate import RestateAgent, RestateClient, serve
from toolcrib.approvals import SqliteApprovalStore
from toolcrib.turns import Agent


def _agent(folder: Path, ingress: str, admin: str) -> RestateAgent:
    client = RestateClient(ingress, admin, approvals=SqliteApprovalStore(folder / "approvals.db"))
    name = f"contract-{folder.name[-40:]}"  # each of the tests with one server has its own
    return RestateAgent(Agent(name, "Tested.", tools_of(folder)), client)


def _work(folder: Path, ingress: str, admin: str, port: int, ready: Connection) -> None:
    async def work() -> None:
        serving = asyncio.create_task(serve([_agent(folder, ingress, admin)], port=port, answers=LOOK))
        while not serving.done():
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(LOOK)
            else:
                writer.close()
                ready.send("ready")
                break
        await serving

    asyncio.run(work())


def on_restate(folder: Path, server: RestateServer, port: int) -> WorkerEngine:
    """Return the engine of a server, whose workers listen on a port."""
    given = folder, server.ingress, server.admin
    return WorkerEngine(folder, _agent(*given), partial(_work, *given, port))
