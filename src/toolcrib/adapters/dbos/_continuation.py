"""Continuations of paused work: once its request is answered, the work that goes on is enqueued, once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, Literal, cast

from dbos import WorkflowStatus

from toolcrib.adapters.dbos._client import Client
from toolcrib.adapters.dbos._engine import Engine, standing_routines
from toolcrib.adapters.dbos._placement import KEY, Placement, data_of
from toolcrib.approvals import ApprovalEntry
from toolcrib.calls import StoredFields
from toolcrib.durable import WAITING, WAITS_FOR, AnswerStore, answered_entries, deny_cancelled
from toolcrib.errors import NewerForm

CLOSED = "closed"
"""The key in the data of a continuation that was made to be cancelled: its request is denied."""

_DONE = "SUCCESS"
_NEVER = 10 * 365 * 86_400.0  # seconds


def continuation_id(workflow_id: str, request_id: str) -> str:
    """Return the id of what goes on after a workflow that ended with a request: the request's, where it is free.

    It is not after a grant that expired before it was used: the same request is asked then once more.
    """
    if workflow_id == request_id:
        return f"{request_id}-2"
    head, _, number = workflow_id.rpartition("-")
    return f"{request_id}-{int(number) + 1}" if head == request_id else request_id


async def continue_approved(
    client: Client, store: AnswerStore, *, ended: set[tuple[str, datetime | None]] | None = None
) -> list[str]:
    """Enqueue what the answers so far let go on, and return the ids of the workflows.

    Any process may do so at any time, and several at once: each continuation is enqueued once. Workers do it all the
    time; call it where an answer should not wait for their next look.

    Args:
        ended: Answers that no work waits for, by the request and their time: its work goes on, or it is not a durable
            work's. They are skipped, and those that are left out here are forgotten. For a caller that does this often.
    """
    continued: list[str] = []
    before, after = ended or set(), set[tuple[str, datetime | None]]()
    for entry in await answered_entries(store):
        key = (entry.request.id, None if entry.answer is None else entry.answer.at)
        found = "goes on" if key in before else await suspended_on(client, entry)
        if isinstance(found, WorkflowStatus):
            if await _continue(client, found, entry.request.id):
                continued.append(continuation_id(found.workflow_id, entry.request.id))
        elif found is None or (found == "goes on" and entry.answer is not None):  # a standing grant may be revoked
            after.add(key)
    if ended is not None:
        ended.clear()
        ended.update(after)
    return continued


async def suspended_on(client: Client, entry: ApprovalEntry) -> WorkflowStatus | Literal["goes on", "not yet"] | None:
    """Return the workflow that ended with this request, unless it goes on already, or has not quite ended.

    None for a request of something else.
    """
    status, is_asked = await client.status(entry.request.call_id), False
    if status is None:
        return None
    while (asked := _waiting_request_id(status)) is not None:
        after = await client.status(continuation_id(status.workflow_id, asked))
        if after is None:
            return status if asked == entry.request.id else "not yet"
        is_asked, status = is_asked or asked == entry.request.id, after
    return "goes on" if is_asked else "not yet"


async def cancel_turn(client: Client, turn_id: str) -> str:
    """Stop a turn however far it is, and return the id of the workflow that was cancelled.

    One that waits for an answer gets its continuation now, never due and cancelled: no answer can make another. Its
    request is denied, so that it cannot be answered any more.
    """
    work_id = turn_id
    while True:
        await client.dbos.cancel_workflow_async(work_id)  # before the look: it may end with a request until here
        status = await client.status(work_id)
        request_id = None if status is None else _waiting_request_id(status)
        if status is None or request_id is None:
            break
        work_id = continuation_id(work_id, request_id)
        if await client.status(work_id) is None:
            await _continue(client, status, request_id, never=True)
        await client.dbos.cancel_workflow_async(work_id)
        await deny_cancelled(client.approvals, request_id, "turn")
    if status is not None and status.recovery_attempts:  # a worker that began it may have asked, and not ended it
        waited: Any = data_of(status).get(WAITING)
        call_id = status.workflow_id if waited is None else waited["request"]["call_id"]
        for entry in await client.approvals.list(pending=True):
            if entry.request.call_id == call_id:
                await deny_cancelled(client.approvals, entry.request.id, "turn")
    return work_id


def _waiting_request_id(status: WorkflowStatus) -> str | None:
    """Return the request that a workflow ended with, to be continued; None for another that ended, or has not."""
    result: Any = status.output
    if not isinstance(result, Mapping):
        return None
    try:
        asked = StoredFields("TurnRecord", cast("Mapping[str, Any]", result)).get(WAITS_FOR)
    except NewerForm:  # a newer worker goes on with it
        return None
    return asked if status.status == _DONE and isinstance(asked, str) else None


async def _continue(client: Client, status: WorkflowStatus, request_id: str, *, never: bool = False) -> bool:
    """Enqueue what goes on after a workflow; return False while its key is that of other work.

    Args:
        never: It is to be cancelled, so that none other can go on.
    """
    before: Any = status.input
    result: Any = status.output
    goes_on: dict[str, Any] = {**before["args"][0], WAITING: result[WAITING]}
    work_id, partition = continuation_id(status.workflow_id, request_id), status.queue_partition_key
    placement = Placement(work_id, status.priority or 0, goes_on.get(KEY), partition=partition)
    if never:
        goes_on[CLOSED] = True
        placement = replace(placement, key=None, delay=_NEVER)
    return await client.enqueue(status.name, status.queue_name or "", goes_on, placement) == placement.id


async def _keep_continuing(engine: Engine) -> None:
    """Poll for answers, as long as an engine runs."""
    ended: set[tuple[str, datetime | None]] = set()
    while True:
        await continue_approved(engine.client, engine.client.approvals, ended=ended)
        await engine.clock.sleep(engine.answers)


standing_routines.append(_keep_continuing)
