"""What the tests of durable work share: two tools, an agent, and an engine that is quick to answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

from toolcrib.adapters.dbos import DurableAgent, DurableProgram, DurableToolkit, Engine, Placement, Queue
from toolcrib.adapters.dbos._engine import _instance
from toolcrib.calls import ApprovalRequest
from toolcrib.code import Toolkit
from toolcrib.database import Database
from toolcrib.testing import FakeSandbox
from toolcrib.tools import ez_tool
from toolcrib.turns import Agent, Turn

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


async def looked_at(engine: Engine, queue: Queue) -> None:
    """Return once a whole look of an engine at a queue has begun and ended, or it looks no more."""
    assert engine._looks is not None
    stops = _instance().background_thread_stop_events
    for _ in range(2):
        before = engine._looks._at[queue.name]
        while engine._looks._at[queue.name] == before and not any(stop.is_set() for stop in stops):  # noqa: ASYNC110
            await asyncio.sleep(QUICK)


class Step:
    """A call of a piece of work."""

    def __init__(self, tool: Any, **arguments: Any) -> None:
        self.tool, self.arguments = tool, arguments


class Work:
    """Work that makes these calls: a turn, which makes the first of them, or a program."""

    def __init__(self, kind: str, *steps: Step) -> None:
        self._steps = steps
        tools = list(dict.fromkeys(step.tool for step in steps))
        if kind == "turn":
            self.worker: DurableAgent | DurableToolkit = durable(*tools)
            return
        name = f"kit_{uuid4().hex[:8]}"
        sandbox = FakeSandbox(*((step.tool.name, step.arguments) for step in steps))
        self.worker = DurableToolkit(Toolkit(tools, sandbox=sandbox), Queue(name, polling=QUICK), name=name)

    async def put(self, **placement: Any) -> str:
        """Enqueue it, and return its id."""
        worker, (first, *_) = self.worker, self._steps
        if isinstance(worker, DurableAgent):
            return (await worker.put(Turn(first.tool, kwargs=first.arguments), **placement)).id
        return (await worker.start("...", placement=Placement(f"program-{uuid4().hex}", **placement))).id

    async def asked(self, engine: Engine, work_id: str) -> ApprovalRequest:
        """Return its request, once it has ended because of it."""
        result = await engine.client.result(work_id, polling=QUICK)
        if "waits_for" in result:
            return (await engine.client.approvals.show(result["waits_for"])).request
        return (await DurableProgram(work_id, engine.client).settled(polling=QUICK)).suspended[0]

    async def answer(self, engine: Engine, work_id: str) -> None:
        """Approve its request."""
        await engine.client.approvals.answer((await self.asked(engine, work_id)).grant("ann"))
