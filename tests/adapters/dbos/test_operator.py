"""Operator of durable work: what the console's page of work shows and does."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.adapters.dbos.durable import count, durable, engine_of
from toolcrib.adapters.dbos import WorkOperator
from toolcrib.errors import EngineError, WorkerError
from toolcrib.turns import Turn


async def test_an_operator_sees_queues_and_workers_and_cancels_what_waits(tmp_path: Path) -> None:
    agent = durable(count)

    async with engine_of(str(tmp_path / "work.db"), agent) as engine:
        operator = WorkOperator(engine.client)
        handles = [await agent.put(Turn(count), delay=3600) for _ in range(2)]
        (queue,) = operator.queues()
        cancelled = operator.cancel(handles[0].id)
        (left,) = operator.queues()
        delayed = operator.works(["delayed"], agent.queue.name)
        both = operator.works(["cancelled", "delayed"], limit=2)
        (worker,) = operator.workers()
        with pytest.raises(WorkerError, match="it lives"):
            operator.recover(worker["id"])
        with pytest.raises(EngineError, match="only failed work is retried"):
            operator.retry(handles[0].id)
        operator.resume(handles[0].id)
        assert (await handles[0].outcome()).kind == "completed"

    assert (queue["name"], queue["waiting"], queue["running"], queue["oldest_at"]) == (agent.queue.name, 2, 0, None)
    assert (cancelled["state"], left["waiting"]) == ("cancelled", 1)
    assert [one["id"] for one in delayed] == [handles[1].id]
    assert {one["id"] for one in both} == {handle.id for handle in handles}
    assert (worker["state"], worker["seen_at"] <= time.time()) == ("running", True)
