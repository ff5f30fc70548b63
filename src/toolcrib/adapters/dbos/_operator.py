"""Operator of durable work: what a page shows of workers, queues and workflows, and does to them, as JSON shapes."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import sqlalchemy as sa

from toolcrib.adapters.dbos._admin import cancel_work, resume_work, retry_work, show_work
from toolcrib.adapters.dbos._client import Client
from toolcrib.adapters.dbos._fork import fork_work
from toolcrib.adapters.dbos._listing import list_work
from toolcrib.adapters.dbos._work import WORK_STATES
from toolcrib.adapters.dbos._workers import recover, workers

_OPEN = ("DELAYED", "ENQUEUED", "PENDING")


class WorkOperator:
    """The views and actions of an operator; the console takes one.

    Args:
        client: A client of the database; closing it is its owner's.
    """

    states = WORK_STATES

    def __init__(self, client: Client) -> None:
        self._client = client

    def workers(self) -> list[dict[str, Any]]:
        """Return the workers: `Worker.to_dict()`."""
        return [worker.to_dict() for worker in workers(self._client)]

    def queues(self) -> list[dict[str, Any]]:
        """Return the queues with open work: name, how many wait and run, and since when the oldest waits."""
        database = self._client.dbos._sys_db  # pyright: ignore[reportPrivateUsage] -- the client counts nothing by queue
        table = database.tables.workflow_status.c
        waits = sa.case((table.status != "PENDING", 1), else_=0)
        query = sa.select(
            table.queue_name,
            sa.func.sum(waits),
            sa.func.sum(1 - waits),
            sa.func.min(sa.case((table.status == "ENQUEUED", table.created_at))),
        )
        mine = table.application_name == self._client.database.application
        query = query.where(table.status.in_(_OPEN), mine).group_by(table.queue_name).order_by(table.queue_name)
        with database.engine.begin() as connection:
            rows = connection.execute(query).fetchall()
        return [
            {
                "name": name,
                "waiting": int(waiting),
                "running": int(running),
                "oldest_at": None if oldest is None else oldest / 1000,
            }
            for name, waiting, running, oldest in rows
        ]

    def works(
        self,
        states: Collection[str] = (),
        queue: str | None = None,
        limit: int = 50,
        start: int = 0,
        text: str | None = None,
    ) -> list[dict[str, Any]]:
        """Return work in any of these states, the latest first, from a place in the list on: `Work.to_dict()`."""
        found = list_work(self._client, state=states, queue=queue, text=text, limit=limit, start=start)
        return [work.to_dict() for work in found]

    def cancel(self, work_id: str) -> dict[str, Any]:
        """Keep a workflow from starting or going on; raises EngineError for an unknown one."""
        return cancel_work(self._client, work_id).to_dict()

    def resume(self, work_id: str) -> dict[str, Any]:
        """Resume a workflow that was cancelled or given up; raises EngineError for another."""
        return resume_work(self._client, work_id).to_dict()

    def retry(self, work_id: str) -> dict[str, Any]:
        """Retry failed work; raises EngineError for other work."""
        return retry_work(self._client, work_id).to_dict()

    def calls(self, work_id: str) -> list[dict[str, Any]]:
        """Return the calls of a program, as `show_work` has them; raises EngineError for unknown work."""
        return show_work(self._client, work_id)[1].get("calls", [])

    def fork(self, work_id: str, step: int, new_id: str | None) -> dict[str, Any]:
        """Enqueue work that does again what other work did, from a call on; raises EngineError as `fork_work` does."""
        return fork_work(self._client, work_id, step, id=new_id).to_dict()

    def recover(self, worker_id: str) -> list[str]:
        """Hand over the work of a lost worker and return its ids; raises WorkerError for one that lives."""
        return recover(self._client, worker_id)
