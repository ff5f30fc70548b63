"""A rolling upgrade: workers of two versions on one database, the newer of which writes newer forms."""

from __future__ import annotations

import asyncio
import multiprocessing
from contextlib import suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from tests.adapters.dbos.durable import QUICK
from toolcrib.adapters.dbos import DurableAgent, Engine, Queue, workers
from toolcrib.calls import FORM_VERSIONS, Completed
from toolcrib.tools import ez_tool
from toolcrib.turns import Agent, Turn

TURNS = 8


def agent_of(effects: Path) -> DurableAgent:
    """Return the agent that workers of both versions have."""

    @ez_tool(requires_approval=True)
    async def pay(cents: int) -> str:
        with effects.open("a") as file:
            file.write(f"{cents}\n")
        return f"paid {cents}"

    return DurableAgent(Agent("till", "Pays.", [pay], register=False), Queue("till", polling=QUICK))


def newer_worker(database: str, effects: Path, form: str, stop: Connection) -> None:
    """Work as a worker of the next version until `stop` is closed."""
    FORM_VERSIONS[form] = 2  # this process is of that version, whole

    async def work() -> None:
        agent = agent_of(effects)
        async with Engine(database, worker_id="new", queues=[agent.queue], answers=QUICK, grace=2.0):
            await asyncio.to_thread(_closed, stop)

    asyncio.run(work())


def _closed(stop: Connection) -> None:
    with suppress(EOFError):
        stop.recv()


@pytest.mark.parametrize("form", ["Call", "Suspended", "TurnRecord", "TurnState", "Grant"])
async def test_workers_of_two_versions_on_one_database_end_every_turn_once(tmp_path: Path, form: str) -> None:
    database, effects = str(tmp_path / "work.db"), tmp_path / "effects"
    agent = agent_of(effects)
    stop, child_stop = Pipe()
    newer = multiprocessing.get_context("forkserver").Process(
        target=newer_worker, args=(database, effects, form, child_stop)
    )
    async with Engine(database, worker_id="old", queues=[agent.queue], answers=QUICK, grace=2.0) as engine:
        newer.start()
        child_stop.close()
        while "new" not in {worker.id for worker in workers(engine.client) if worker.state == "running"}:  # noqa: ASYNC110 -- it is the database that is asked
            await asyncio.sleep(QUICK)
        handles = [await agent.put(Turn(agent.agent.tools[0], kwargs={"cents": cents})) for cents in range(TURNS)]
        store, answered = engine.client.approvals, set[str]()
        while len(answered) < TURNS:
            for entry in await store.list(pending=True):
                if entry.request.id not in answered:
                    await store.answer(entry.request.grant("ann"))
                    answered.add(entry.request.id)
            await asyncio.sleep(QUICK)
        done = 0
        while done < TURNS:
            done = len(effects.read_text().splitlines()) if effects.exists() else 0
            await asyncio.sleep(QUICK)
    stop.close()
    await asyncio.to_thread(newer.join)
    with pytest.MonkeyPatch.context() as upgraded:
        upgraded.setitem(FORM_VERSIONS, form, 2)
        async with Engine(database, worker_id="old", queues=[agent.queue], answers=QUICK, grace=2.0):
            outcomes = [await handle.outcome(through=True) for handle in handles]

    assert sorted(map(int, effects.read_text().splitlines())) == list(range(TURNS))
    assert [outcome.value for outcome in outcomes if isinstance(outcome, Completed)] == [
        f"paid {cents}" for cents in range(TURNS)
    ]
