"""Restate beyond the contract of engines: its names and lists, versions of workers, and the shape of its journal."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx2
import pytest

from tests.npm.restate import RestateServer, free_port
from toolcrib.approvals import SqliteApprovalStore
from toolcrib.calls import Completed, Suspended
from toolcrib.errors import EngineError
from toolcrib.tools import ez_tool
from toolcrib.turns import Agent, Turn

restate = pytest.importorskip("toolcrib.adapters.restate", exc_type=ImportError)


@ez_tool()
async def charge(amount: int) -> str:
    return f"charged {amount}"


@ez_tool(requires_approval=True)
async def pay(amount: int) -> str:
    return f"paid {amount}"


@ez_tool()
async def twice() -> Any:
    yield 1
    yield 2


class Shop:
    """A client of a server, and agents with workers in this process."""

    def __init__(self, client: Any) -> None:
        self.client, self.name = client, f"shop-{uuid4().hex[:8]}"

    def agent(self, *tools: Any) -> Any:
        return restate.RestateAgent(Agent(self.name, "Tested.", tools or (charge, pay, twice)), self.client)

    @asynccontextmanager
    async def working(self, agent: Any, port: int | None = None) -> AsyncGenerator[int]:
        """Serve an agent for the body, at a port that is registered."""
        port, ended = port or free_port(), asyncio.Event()
        work = asyncio.create_task(restate.serve([agent], port=port, answers=0.05, until=ended.wait))
        while True:
            try:
                await self.client.register(f"http://127.0.0.1:{port}")
                break
            except EngineError:  # it does not listen yet
                await asyncio.sleep(0.05)
        yield port
        ended.set()
        await work

    async def journal(self, turn_id: str) -> list[str]:
        """Return the names of what the journal of a turn has, in order."""
        query = (
            "SELECT j.name, j.entry_type FROM sys_journal j JOIN sys_invocation i ON j.id = i.id "
            f"WHERE i.target_service_key = '{turn_id}' AND i.target_handler_name = 'run' ORDER BY j.index"
        )
        async with httpx2.AsyncClient() as http:
            reply = await http.post(
                f"{self.client.admin}/query", json={"query": query}, headers={"accept": "application/json"}
            )
        kinds = [(row["entry_type"].removeprefix("Command: "), row.get("name") or "") for row in reply.json()["rows"]]
        return [f"{kind} {name}".strip() for kind, name in kinds if not kind.startswith("Notification")]


@pytest.fixture
async def shop(server: RestateServer, tmp_path: Path) -> AsyncGenerator[Shop]:
    store = SqliteApprovalStore(tmp_path / "approvals.db")
    async with restate.RestateClient(server.ingress, server.admin, approvals=store) as client:
        yield Shop(client)


async def test_turns_are_listed_by_agent_id_and_status_newest_first(shop: Shop) -> None:
    agent = shop.agent()
    async with shop.working(agent):
        done = await agent.put(Turn(charge, kwargs={"amount": 1}))
        await done.outcome()
        paid = await agent.put(Turn(pay, kwargs={"amount": 1}))
        await paid.outcome()

        both = await shop.client.turns(agent=agent.name)
        completed = await shop.client.turns(agent=agent.name, status="completed")
        last = await shop.client.turns(agent=agent.name, limit=1)
        own = await shop.client.turns(turn_id=done.id)

    assert [turn.id for turn in both] == [paid.id, done.id]
    assert [[turn.id for turn in found] for found in (completed, last, own)] == [[done.id], [paid.id], [done.id]]
    assert {turn.agent for turn in both} == {agent.name}


async def test_a_turn_that_is_put_with_a_delay_does_not_begin_before(shop: Shop) -> None:
    agent = shop.agent()
    async with shop.working(agent):
        handle = await agent.put(Turn(charge, kwargs={"amount": 1}), delay=3_600)

        assert await handle.status() == "scheduled"
        await handle.cancel()


async def test_a_worker_without_the_tool_leaves_a_turn_to_one_that_has_it(shop: Shop) -> None:
    newer, older = shop.agent(), shop.agent(pay)
    async with shop.working(older) as port:
        handle = await newer.put(Turn(charge, kwargs={"amount": 1}))
        while not (await shop.client.turns(turn_id=handle.id))[0].problem:  # noqa: ASYNC110 -- the server has it
            await asyncio.sleep(0.05)
        problem = (await shop.client.turns(turn_id=handle.id))[0].problem
    async with shop.working(newer, port):
        outcome = await handle.outcome()

    assert f"waits for a worker that has the tool `charge` of the agent `{newer.name}`" in problem
    assert isinstance(outcome, Completed)


async def test_the_journal_of_a_turn_has_the_shape_that_turns_of_older_workers_have(shop: Shop) -> None:
    """A worker that goes on with a turn has to ask for the same entries in the same order: it is a stored form."""
    agent = shop.agent()
    async with shop.working(agent):
        handle = await agent.put(Turn(pay, kwargs={"amount": 1}))
        asked = await handle.outcome()
        assert isinstance(asked, Suspended)
        await agent.approve(asked.request, "ann")
        await handle.outcome(through=True)
        stream = await agent.put(Turn(twice))
        await stream.outcome()

        journals = [await shop.journal(handle.id), await shop.journal(stream.id)]

    ends = ["Output"]
    assert journals == [
        [
            *("Input", "Run admit 0.0", "SetState", "GetPromise", "ClearState"),
            *("Run admit 1.0", "Run execute 1.0", *ends),
        ],
        [
            *("Input", "Run admit 0.0"),
            *("Run execute 0.0", "SetState", "Run execute 0.1", "SetState", "Run execute 0.2", *ends),
        ],
    ]


async def test_an_unknown_turn_is_an_error_that_names_it(shop: Shop) -> None:
    agent = shop.agent()
    async with shop.working(agent):
        with pytest.raises(EngineError, match="there is no turn none of the agent"):
            await agent.handle("none").outcome()
        with pytest.raises(EngineError, match="there is no turn none of the agent"):
            await agent.handle("none").cancel()
        assert await agent.handle("it's").status() == "UNKNOWN"


async def test_a_server_that_does_not_answer_is_an_error_that_names_it(tmp_path: Path) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    store = SqliteApprovalStore(tmp_path / "approvals.db")
    async with restate.RestateClient(url, url, approvals=store) as client:
        agent = restate.RestateAgent(Agent("shop", "Tested.", [charge]), client)

        with pytest.raises(EngineError, match=f"no Restate server answers at {url}"):
            await agent.put(Turn(charge, kwargs={"amount": 1}))


def test_an_agent_whose_name_restate_does_not_take_is_refused(tmp_path: Path) -> None:
    client = restate.RestateClient(approvals=SqliteApprovalStore(tmp_path / "approvals.db"))

    with pytest.raises(ValueError, match="the agent `my shop` needs a name of letters"):
        restate.RestateAgent(Agent("my shop", "Tested.", [charge]), client)


@pytest.mark.parametrize("wrong", [0, -1, True, "3", math.nan, math.inf])
@pytest.mark.parametrize(
    ("name", "give"),
    [
        ("retention", lambda n: restate.RestateAgent(Agent("shop", "Tested.", [charge]), no_client(), retention=n)),
        ("polling", lambda n: restate.RestateHandle(no_client(), "shop", "t", polling=n)),
        ("answers", lambda n: asyncio.run(restate.serve([], answers=n))),
        ("limit", lambda n: asyncio.run(no_client().turns(limit=n))),
    ],
)
def test_a_wrong_number_is_refused_by_its_name(name: str, give: Callable[[Any], Any], wrong: Any) -> None:
    with pytest.raises((ValueError, TypeError), match=name):
        give(wrong)


def no_client() -> Any:
    return restate.RestateClient.__new__(restate.RestateClient)
