"""What the tests of durable work share: a database of either kind, and an engine on it that is quick to answer."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

from toolcrib.adapters.dbos import Database, DurableAgent, DurableToolkit, Engine, Queue
from toolcrib.turns import Agent

QUICK = 0.02


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
