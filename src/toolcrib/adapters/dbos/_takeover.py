"""Takeover of work that no worker is at: what this worker holds and does not run, and what lost workers hold."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Iterable

from toolcrib.adapters.dbos._engine import Engine
from toolcrib.adapters.dbos._workers import LEASE_SECONDS, Worker, hand_back, held_by, recover, workers
from toolcrib.errors import WorkerError

_LOOK_SECONDS = 5.0
_log = logging.getLogger("toolcrib.durable")


class IdleWork:
    """Work that a worker holds and does not run, each piece with the time at which that was seen first."""

    def __init__(self) -> None:
        self._since: dict[str, float] = {}

    def stuck(self, work_ids: Iterable[str], running: Collection[str], at: float) -> set[str]:
        """Return the work that has been idle for a lease: a busy process may begin late what it took.

        Args:
            work_ids: The ids of the work that the worker holds.
            running: Those of the work that it runs.
            at: The time, in seconds of a monotonic clock.
        """
        self._since = {work_id: self._since.get(work_id, at) for work_id in work_ids if work_id not in running}
        return {work_id for work_id, since in self._since.items() if at - since >= LEASE_SECONDS}


async def keep_returning(engine: Engine) -> None:
    """Put back what was cut off by an outage: work that this worker took, and that it has not run for a lease."""
    idle = IdleWork()
    while True:
        await engine.clock.sleep(_LOOK_SECONDS)
        of_this_worker = await asyncio.to_thread(held_by, engine.client, engine.worker_id)
        stuck = idle.stuck(of_this_worker, engine.running, engine.clock.monotonic())
        if stuck and engine.takes_work:
            await asyncio.to_thread(hand_back, engine.client, engine.worker_id, stuck)


async def keep_recovering(engine: Engine) -> None:
    """Hand over the work of lost workers, of those that said nothing while this one looked on.

    An engine that is not to do so logs each of them once that holds work of its queues.
    """
    first_seen: dict[tuple[str, float], float] = {}
    logged = set[tuple[str, float]]()
    while True:
        found = await asyncio.to_thread(workers, engine.client)
        # one that stopped in good order holds work only if it could not give it back
        lost = {(worker.id, worker.seen_at): worker for worker in found if worker.state == "lost" or _left_work(worker)}
        at = engine.clock.monotonic()
        first_seen = {key: first_seen.get(key, at) for key in lost}
        for key, since in list(first_seen.items()):
            if at - since > LEASE_SECONDS and engine.recovers_lost:
                del first_seen[key]
                await _hand_over(engine, key[0])
            elif not engine.recovers_lost and key not in logged and _holds_work_of(engine, lost[key]):
                logged.add(key)
                _log.warning(
                    "the worker %s is lost, and holds work, %d in number: start it again under its id, or run "
                    "`toolcrib workers recover %s --database %s`",
                    *(key[0], lost[key].pending, key[0], engine.database),
                )
        await engine.clock.sleep(_LOOK_SECONDS)


def _left_work(worker: Worker) -> bool:
    return worker.state in ("stopped", "recovered") and worker.pending > 0


def _holds_work_of(engine: Engine, worker: Worker) -> bool:
    return worker.pending > 0 and not {queue.name for queue in engine.queues}.isdisjoint(worker.queues)


async def _hand_over(engine: Engine, worker_id: str) -> None:
    try:
        moved = await asyncio.to_thread(recover, engine.client, worker_id)
    except WorkerError:  # it lives again, or another worker was quicker
        return
    _log.warning("the worker %s is lost: %d pieces of its work wait for others now", worker_id, len(moved))
