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
from toolcrib.adapters.dbos import Client, DurableAgent, Engine, Queue, list_work
from toolcrib.calls import FORM_VERSIONS, Completed, Suspended
from toolcrib.tools import ez_tool
from toolcrib.turns import Agent, Turn

TURNS = 4
_LEFT = "waits for a worker that has a newer version of toolcrib, since the stored {} has version 2"
_server = multiprocessing.get_context("forkserver")


def agent_of(effects: Path) -> DurableAgent:
    """Return the agent that workers of both versions have."""

    @ez_tool(requires_approval=True)
    async def pay(cents: int) -> str:
        with effects.open("a") as file:
            file.write(f"{cents}\n")
        return f"paid {cents}"

    return DurableAgent(Agent("till", "Pays.", [pay], register=False), Queue("till", polling=QUICK))


def _done(effects: Path) -> int:
    return len(effects.read_text().splitlines()) if effects.exists() else 0


def _left(client: Client) -> set[str]:
    """Return why work waits."""
    return {work.error for work in list_work(client, state="waiting") if work.error}


def newer_worker(database: str, effects: Path, form: str, host: Connection) -> None:
    """Work as a worker of the next version until told to stop, and again from then to the end of `host`."""
    FORM_VERSIONS[form] = 2  # this process is of that version, whole

    async def work() -> None:
        agent = agent_of(effects)
        for _ in range(2):
            async with Engine(database, worker_id="new", queues=[agent.queue], answers=QUICK, grace=2.0):
                await asyncio.to_thread(_told, host)
            host.send("stopped")
            await asyncio.to_thread(_told, host)

    with suppress(BrokenPipeError):
        asyncio.run(work())


def _told(host: Connection) -> None:
    with suppress(EOFError):
        host.recv()


@pytest.mark.parametrize(("form", "is_left"), [("Suspended", True), ("TurnRecord", False)])
async def test_workers_of_two_versions_on_one_database_end_every_turn_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str, *, is_left: bool
) -> None:
    database, effects = str(tmp_path / "work.db"), tmp_path / "effects"
    agent = agent_of(effects)
    host, its = Pipe()
    newer = _server.Process(target=newer_worker, args=(database, effects, form, its), daemon=True)
    newer.start()
    its.close()
    async with Client(database) as client:
        agent.use(client)
        handles = [await agent.put(Turn(agent.agent.tools[0], kwargs={"cents": cents})) for cents in range(TURNS)]
        while len(asked := await client.approvals.list(pending=True)) < TURNS:  # noqa: ASYNC110 -- a process does it
            await asyncio.sleep(QUICK)
        host.send("stop")
        await asyncio.to_thread(host.recv)
        old = agent_of(effects)
        async with Engine(database, worker_id="old", queues=[old.queue], answers=QUICK, grace=2.0) as engine:
            for entry in asked:
                await client.approvals.answer(entry.request.grant("ann"))
            for cents in range(TURNS, 2 * TURNS):  # the work of the older process goes on meanwhile
                asked_here = await (await old.put(Turn(old.agent.tools[0], kwargs={"cents": cents}))).outcome()
                assert isinstance(asked_here, Suspended)
                await engine.client.approvals.answer(asked_here.request.grant("ann"))
            while _done(effects) < TURNS or (is_left and not _left(client)):  # noqa: ASYNC110 -- it is processes that are waited for
                await asyncio.sleep(QUICK)
            before, left = _done(effects), _left(client)
            host.send("go on")
            while _done(effects) < 2 * TURNS:  # noqa: ASYNC110 -- as above
                await asyncio.sleep(QUICK)
        monkeypatch.setitem(FORM_VERSIONS, form, 2)  # what the newer worker wrote is read
        outcomes = [await handle.outcome(through=True) for handle in handles]
    host.close()
    await asyncio.to_thread(newer.join)

    assert (before, left) == (TURNS, {_LEFT.format(form)} if is_left else set())
    assert sorted(map(int, effects.read_text().splitlines())) == list(range(2 * TURNS))
    assert outcomes == [Completed("pay", handle.id, f"paid {cents}") for cents, handle in enumerate(handles)]
