"""Executions whose tools run in this process, each of which is stopped once it no longer holds its workflow."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, TypeAlias

import sqlalchemy as sa
from dbos import error as dbos_error
from dbos._context import current_owner_xid

from toolcrib.adapters.dbos._client import Client
from toolcrib.clock import Clock

_SECONDS = 1.0  # between two looks
_BATCH = 500  # workflows in one statement

Key: TypeAlias = tuple[str, str | None]
"""Key of an execution: the id of its workflow, and its token."""


class Executions:
    """The executions of an engine's work whose tools run.

    DBOS gives each execution a token, and writes it into the row of the workflow: a cancellation removes it, and what
    takes the work up later writes another one. So a look that comes after both finds that the execution has lost it.
    """

    def __init__(self) -> None:
        self._running: dict[Key, tuple[asyncio.Task[Any], asyncio.Future[None]]] = {}

    async def finish(self, task: asyncio.Task[Any], work_id: str) -> None:
        """Wait for a task of the execution that calls this, and stop it once the execution has lost its workflow.

        Raises:
            DBOSWorkflowCancelledError: It has: the workflow was cancelled, or is another execution's.
            Exception: The exception of the task.
        """
        key, lost = (work_id, current_owner_xid(work_id)), asyncio.get_running_loop().create_future()
        self._running[key] = task, lost
        task.add_done_callback(lambda _: self._running.pop(key, None))
        try:
            await asyncio.wait({task, lost}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            is_cut_off = not task.done()
            if is_cut_off:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
        if is_cut_off:
            raise dbos_error.DBOSWorkflowCancelledError(f"{work_id} was cancelled, or is another execution's")
        task.result()

    async def stop_earlier(self, work_id: str) -> None:
        """Stop the earlier executions of the workflow that calls this, and return when their tools have ended here."""
        owner = current_owner_xid(work_id)
        earlier = [key for key in self._running if key[0] == work_id and key[1] != owner]
        tasks = [self._running[key][0] for key in earlier]
        self._stop(earlier)
        if tasks:
            await asyncio.wait(tasks)

    async def keep_looking(self, client: Client, clock: Clock, renew: Callable[[], Awaitable[None]]) -> None:
        """Stop, every second, the executions that have lost their workflows.

        Args:
            renew: Awaited before that: it renews the worker's lease, or finds that all of its work was handed over.
        """
        while True:
            await clock.sleep(_SECONDS)
            if running := list(self._running):
                holders = await asyncio.to_thread(_holders, client, [work_id for work_id, _ in running])
                if lost := [key for key in running if key not in holders]:
                    await renew()
                    self._stop(lost)

    def _stop(self, keys: Iterable[Key]) -> None:
        for key in keys:
            _, lost = self._running.get(key, (None, None))
            if lost is not None and not lost.done():
                lost.set_result(None)


def _holders(client: Client, work_ids: Sequence[str]) -> set[Key]:
    """Return the executions that hold these workflows."""
    database = client.dbos._sys_db  # pyright: ignore[reportPrivateUsage] -- DBOS shows nobody its tokens
    row, holders = database.tables.workflow_status.c, set[Key]()
    with database.engine.begin() as connection:
        for start in range(0, len(work_ids), _BATCH):
            query = sa.select(row.workflow_uuid, row.owner_xid)
            found = connection.execute(query.where(row.workflow_uuid.in_(work_ids[start : start + _BATCH])))
            holders.update((work_id, owner) for work_id, owner in found)
    return holders
