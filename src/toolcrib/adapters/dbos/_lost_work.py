"""Ends of lost work: the events that a worker which died could not emit, made from the database of the work."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, cast

from toolcrib.adapters.dbos._client import Client
from toolcrib.adapters.dbos._continuation import continuation_id
from toolcrib.adapters.dbos._engine import Engine
from toolcrib.adapters.dbos._program import stretch_id
from toolcrib.adapters.dbos._program_journal import program_run
from toolcrib.adapters.dbos._sinks import INTERRUPTED
from toolcrib.calls import ActivityEvent, ActivityKind, now
from toolcrib.durable import WAITS_FOR
from toolcrib.record import QUIET, Activity, ActivityFilter, ActivitySink, EventLog

_OUTCOMES = {"ERROR": "error", "CANCELLED": "cancelled", "MAX_RECOVERY_ATTEMPTS_EXCEEDED": "error"}
_MOST = 200


async def close_lost_work(client: Client, log: EventLog, sink: ActivitySink, quiet: timedelta = QUIET) -> None:
    """Emit how turns and programs ended that have emitted nothing for a while, if they did end.

    A worker that is killed takes its last events with it, and no other worker begins what has ended.
    """
    wanted = ActivityFilter(sources=("turn", "program"), statuses=("running", INTERRUPTED))
    for activity in await asyncio.to_thread(log.activities, wanted, limit=_MOST):
        if await asyncio.to_thread(log.quiet_since, activity, quiet) is None:
            continue
        found = await (_of_program if activity.source == "program" else _of_turn)(client, activity)
        if found is not None:
            outcome, error = found
            kind = "changed" if outcome == "suspended" else "closed"
            data = {"state": outcome} if kind == "changed" else {"outcome": outcome, "error": error}
            run = cast("ActivityKind", activity.source)
            sink.emit_activity(ActivityEvent(kind, run, activity.id, activity.parent_id, activity.name, now(), data))


async def keep_closing_lost_work(engine: Engine) -> None:
    """Close lost work every minute, as long as an engine keeps events."""
    sink = engine.sink
    if sink is not None:
        log = await asyncio.to_thread(sink.sink.log)
        while True:
            await close_lost_work(engine.client, log, sink)
            await engine.clock.sleep(QUIET.total_seconds())


async def _of_turn(client: Client, activity: Activity) -> tuple[str, str | None] | None:
    """Return the end and the error of a turn; None for one that goes on, or is not durable."""
    work_id = activity.id
    while (status := await client.status(work_id)) is not None:
        if status.status in _OUTCOMES:
            return _OUTCOMES[status.status], None if status.error is None else str(status.error)
        output: Any = status.output
        if status.status != "SUCCESS" or not isinstance(output, Mapping):
            return None
        result = cast("Mapping[str, Any]", output)
        if not result.get(WAITS_FOR):
            outcome = result["outcome"]
            return str(result["stop_reason"]), outcome.get("message") or outcome.get("reason")
        work_id = continuation_id(work_id, str(result[WAITS_FOR]))
    return None if work_id == activity.id else ("suspended", None)


async def _of_program(client: Client, activity: Activity) -> tuple[str, str | None] | None:
    run = await asyncio.to_thread(program_run, client, activity.id)
    if run is None:
        return None
    if run.state == "running":
        status = await client.status(stretch_id(run.run, run.generation))
        return ("error", str(status.error)) if status is not None and status.status in _OUTCOMES else None
    if run.state == "done" and run.result is not None:
        return ("completed" if run.result["success"] else "failed"), run.result.get("error")
    return ("suspended" if run.state == "paused" else "cancelled"), None
