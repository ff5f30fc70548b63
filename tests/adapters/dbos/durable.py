"""What the tests of durable work share: two tools, an agent, and an engine that is quick to answer."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

from toolcrib.adapters.dbos import Database, DurableAgent, DurableToolkit, Engine, Queue
from toolcrib.tools import ez_tool
from toolcrib.turns import Agent

QUICK = 0.02


@ez_tool(requires_approval=True)
async def pay(cents: int) -> str:
    """Pay."""
    return f"paid {cents}"


@ez_tool
async def count() -> int:
    """Count."""
    return 1


def durable(*tools: Any, queue: Queue | None = None, **options: Any) -> DurableAgent:
    """Return a durable agent with these tools, under a name and in a queue of its own."""
    name = f"agent_{uuid4().hex[:8]}"
    return DurableAgent(Agent(name, "Tested.", tools, **options), queue or Queue(name, polling=QUICK))


@asynccontextmanager
async def engine_of(
    database: str | Database, *work: DurableAgent | DurableToolkit, **options: Any
) -> AsyncGenerator[Engine]:
    """Run an engine that takes these agents' turns and these toolkits' programs; under one name, give `worker_id`."""
    queues = {one.queue.name: one.queue for one in work}.values()
    given: dict[str, Any] = {"worker_id": f"worker_{uuid4().hex[:8]}", "answers": QUICK, "grace": 2.0, **options}
    async with Engine(database, queues=queues, **given) as engine:
        yield engine
