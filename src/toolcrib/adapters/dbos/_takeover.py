"""Takeover of work that no worker is at: what this worker holds and does not run, and what lost workers hold."""

from __future__ import annotations

import asyncio
import logging

from toolcrib.adapters.dbos._engine import Engine
from toolcrib.adapters.dbos._workers import LEASE_SECONDS, Worker, hand_back, held_by, recover, workers
from toolcrib.errors import WorkerError

_LOOK_SECONDS = 5.0
_log = logging.getLogger("toolcrib.durable")


async def keep_returning(engine: Engine) -> None:
    """Put back what was cut off by an outage: work that this worker took, and that did not run at two looks."""
    idle: set[str] = set()
    while True:
        await engine.clock.sleep(_LOOK_SECONDS)
        of_this_worker = set(await asyncio.to_thread(held_by, engine.client, engine.worker_id))
        before, idle = idle, of_this_worker - engine.running
        stuck = before & idle
        if stuck and engine.takes_work:
            await asyncio.to_thread(hand_back, engine.client, engine.worker_id, stuck)


async def keep_recovering(engine: Engine) -> None:
    """Hand over the work of lost workers, if the engine is to: of those that said nothing while this one looked on."""
    if not engine.recovers_lost:
        return
    first_seen: dict[tuple[str, float], float] = {}
    while True:
        found = await asyncio.to_thread(workers, engine.client)
        # one that stopped in good order holds work only if it could not give it back
        lost = {(worker.id, worker.seen_at) for worker in found if worker.state == "lost" or _left_work(worker)}
        at = engine.clock.monotonic()
        first_seen = {key: first_seen.get(key, at) for key in lost}
        for (worker_id, seen_at), since in list(first_seen.items()):
            if at - since > LEASE_SECONDS:
                del first_seen[worker_id, seen_at]
                await _hand_over(engine, worker_id)
        await engine.clock.sleep(_LOOK_SECONDS)


def _left_work(worker: Worker) -> bool:
    return worker.state in ("stopped", "recovered") and worker.pending > 0


async def _hand_over(engine: Engine, worker_id: str) -> None:
    try:
        moved = await asyncio.to_thread(recover, engine.client, worker_id)
    except WorkerError:  # it lives again, or another worker was quicker
        return
    _log.warning("the worker %s is lost: %d pieces of its work wait for others now", worker_id, len(moved))
