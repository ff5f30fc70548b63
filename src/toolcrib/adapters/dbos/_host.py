"""DBOS as the host of one piece of work: its steps, its streams, and its word on who holds it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

from dbos import DBOS

from toolcrib.adapters.dbos._engine import Engine
from toolcrib.adapters.dbos._handle import VALUES
from toolcrib.adapters.dbos._workflow import require_held, step
from toolcrib.calls import Failed
from toolcrib.durable import RetryPolicy, outlast

R = TypeVar("R")


class DbosHost:
    """The workflow that calls this, as the host of a turn.

    Args:
        retry: How often a call is made that fails; None for one that may not be made again.
    """

    def __init__(self, engine: Engine, work_id: str, retry: RetryPolicy | None = None) -> None:
        self._engine, self._work_id, self._retry = engine, work_id, retry

    async def step(self, name: str, run: Callable[[], Awaitable[R]]) -> R:
        """Run a step of the workflow; one that is recorded is not run."""
        return await step(name, run)

    async def end(self, name: str, run: Callable[[], Awaitable[dict[str, Any]]]) -> dict[str, Any]:
        """Run what the workflow ends with: its own outcome, which costs no write more, unless there is more to do."""
        record = await run()
        if not (record.get("children") or record.get("context") or record.get("finished")):
            return record

        async def as_is() -> dict[str, Any]:
            return record

        return await step(name, as_is)

    async def hold(self) -> None:
        """Return if the execution still holds its workflow, and no earlier one runs here any more.

        Raises:
            DBOSWorkflowConflictIDError: It does not, which DBOS knows what to do with.
        """
        await require_held(self._engine.client)
        await self._engine.executions.stop_earlier(self._work_id)

    async def may_begin(self) -> None:
        """Return if the worker's lease holds."""
        await self._engine.may_begin()

    async def begun_before(self, known: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, str]]:
        """Return, of calls that were begun before, which worker that was, and how it ended or was last seen."""
        return await self._engine.begun_before(known)

    async def failed_before(self) -> bool:
        """Return whether the call failed before, in a try that this worker or another one noted."""
        if self._retry is None:
            return False
        found = await outlast(lambda: self._engine.client.status(self._work_id))
        return bool(found and (found.attributes or {}).get("tries"))

    async def stream(self, number: int, value: Any) -> None:
        """Write a value into the workflow's stream."""
        await DBOS.write_stream_async(VALUES, {"n": number, "value": value})

    async def watch_cancel(self, task: asyncio.Task[Any]) -> None:
        """Wait for a task, and stop it when the workflow is cancelled, or is another execution's."""
        await self._engine.executions.finish(task, self._work_id)

    async def requeue(self, outcome: Failed) -> None:
        """Delay the workflow until its next try where its call may be made again, and raise CancelledError."""
        retry = self._retry
        if retry is None or isinstance(outcome.exception, retry.unless):
            return
        if await self._engine.put_off(self._work_id, outcome.message, retry) < retry.attempts:
            raise asyncio.CancelledError
