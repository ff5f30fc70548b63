"""Removal of old work: turns and programs that ended before a time, with all that was kept of them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, cast

import sqlalchemy as sa
from dbos import WorkflowStatus

from toolcrib.adapters.dbos._agent import TURN
from toolcrib.adapters.dbos._client import Client
from toolcrib.adapters.dbos._continuation import continuation_id
from toolcrib.adapters.dbos._placement import data_of
from toolcrib.adapters.dbos._program import PROGRAM, stretch_id
from toolcrib.adapters.dbos._program_journal import program_run
from toolcrib.adapters.dbos._schedules import TICK
from toolcrib.adapters.dbos._sinks import event_tables
from toolcrib.adapters.dbos._work_tables import applied_changes, program_lines, program_requests, programs
from toolcrib.adapters.dbos._work_tables import served_queues as _served
from toolcrib.adapters.dbos._work_tables import workers as _workers
from toolcrib.approvals import SqlApprovalStore
from toolcrib.database import Database, unhurried
from toolcrib.durable import WAITS_FOR
from toolcrib.errors import explain_options
from toolcrib.record import prune_events

_ENDED = ("SUCCESS", "ERROR", "CANCELLED")
_MAY_GO_ON = ("PENDING", "ENQUEUED", "DELAYED", "MAX_RECOVERY_ATTEMPTS_EXCEEDED", "CANCELLED")
_PAGE = 500
_BATCH = 100  # pieces of work removed in one transaction


@explain_options()
async def prune(database: Database, before: datetime, *, dry_run: bool = False) -> dict[str, int]:
    """Remove the work that ended before a time from a database, and return the number of rows of each kind.

    What waits for a person or in a queue stays, what is in doubt, what runs or was given up, and standing grants.

    Args:
        dry_run: Remove nothing.

    Raises:
        DatabaseError: No connection is available.
    """
    with unhurried():
        return await _prune(database, before, dry_run=dry_run)


async def _prune(database: Database, before: datetime, *, dry_run: bool) -> dict[str, int]:
    before = before.astimezone(UTC)  # one without a time zone is local
    turns = ended = requests = sessions = 0
    async with Client(database, pool=2) as client:
        store = client.approvals if isinstance(client.approvals, SqlApprovalStore) else None
        pages = _old_work(client, before)
        while (work := await asyncio.to_thread(next, pages, None)) is not None:
            if not dry_run:
                await asyncio.to_thread(_remove_work, client, work)
            turns, ended = turns + len(work.turns), ended + len(work.programs)
            if store is not None:
                requests += await store.prune_ended([chain[0] for chain in work.turns], dry_run=dry_run)
        if store is not None:
            sessions = await store.prune_sessions(before, dry_run=dry_run)
            requests += await store.prune(before, dry_run=dry_run)
        workers = await asyncio.to_thread(_prune_workers, client, before, dry_run=dry_run)
    with closing(event_tables(database)) as tables:
        events = await asyncio.to_thread(prune_events, tables, before, dry_run=dry_run)
    return {
        "turns": turns,
        "programs": ended,
        "requests": requests,
        "sessions": sessions,
        "calls and runs": events,
        "workers": workers,
    }


@dataclass(slots=True)
class _OldWork:
    """Work that ended before a time and that nothing waits for.

    Attributes:
        turns: For each turn the ids of its workflows; the first is the turn's.
        programs: The same for each program.
        ticks: The workflows of the ticks of schedules.
    """

    turns: list[Sequence[str]] = field(default_factory=list[Sequence[str]])
    programs: list[Sequence[str]] = field(default_factory=list[Sequence[str]])
    ticks: list[str] = field(default_factory=list[str])


def _old_work(client: Client, before: datetime) -> Iterator[_OldWork]:
    """Yield the work that ended before a time and will not go on, a page at a time, the oldest first.

    One that waits for an answer goes on, and so may one that was given up. A turn that an unfinished one has put is
    not old work either: should that one be taken up again, it puts the turn again, under the same id.
    """
    limit = before.timestamp() * 1000
    unfinished = _put_by_unfinished(client, before, limit)
    for page in _ended_before(client, before):
        found = _OldWork()
        for status in page:
            if status.workflow_id in unfinished:
                continue
            if status.name == TICK:
                found.ticks += [status.workflow_id] if _is_old(status, limit) else []
            elif status.name == PROGRAM:
                chain = _stretches(client, status, limit)
                if chain:
                    found.programs.append(chain)
            elif _is_first(client, status):
                chain = _chain(client, status, limit)
                if chain:
                    found.turns.append(chain)
        yield found


def _ended_before(client: Client, before: datetime) -> Iterator[Sequence[WorkflowStatus]]:
    """Yield the work that ended before a time in pages, the oldest first; a page may be removed before the next.

    A page begins at the time at which the page before ended, and ends before a time that it may not have all of.
    """
    since, size = 0, _PAGE
    while True:
        page = client.dbos.list_workflows(
            status=list(_ENDED),
            name=[TURN, PROGRAM, TICK],
            start_time=datetime.fromtimestamp((since + 0.5) / 1000, UTC).isoformat(),  # DBOS cuts off half of a ms
            end_time=before.isoformat(),  # begun before it, or it did not end before it
            limit=size,
        )
        if len(page) < size:
            yield page
            return
        until = page[-1].created_at or 0
        if until == (page[0].created_at or 0):
            size *= 2
            continue
        yield [status for status in page if status.created_at != until]
        since, size = until, _PAGE


def _put_by_unfinished(client: Client, before: datetime, limit: float) -> set[str]:
    """Return the turns that unfinished turns have put, and would put again; one that was cancelled may be resumed."""
    wanted: dict[str, Any] = {"status": list(_MAY_GO_ON), "name": TURN, "end_time": before.isoformat()}
    found = client.dbos.list_workflows(**wanted, load_input=False, load_output=False)
    unfinished = [status for status in found if not _is_old(status, limit)]
    outputs = (step["output"] for status in unfinished for step in client.dbos.list_workflow_steps(status.workflow_id))
    results = (cast("Mapping[str, Any]", output) for output in outputs if isinstance(output, Mapping))
    return {child["turn"]["uuid"] for result in results for child in result.get("children", ())}


def _is_first(client: Client, status: WorkflowStatus) -> bool:
    """Return whether a turn begins with this workflow; one that goes on after an answer is looked at with its first."""
    turn_id = str(data_of(status)["turn"]["uuid"])
    return turn_id == status.workflow_id or client.find(turn_id) is None


def _chain(client: Client, status: WorkflowStatus, limit: float) -> list[str]:
    """Return the workflows of a turn; none when one of them has not ended before the time."""
    ids: list[str] = []
    while True:
        if not _is_old(status, limit):
            return []
        ids.append(status.workflow_id)
        output = cast("Any", status.output)
        asked = cast("Mapping[str, Any]", output).get(WAITS_FOR) if isinstance(output, Mapping) else None
        if not isinstance(asked, str):
            return ids
        after = client.find(continuation_id(status.workflow_id, asked))
        if after is None:
            return []  # it waits for the answer
        status = after


def _stretches(client: Client, status: WorkflowStatus, limit: float) -> list[str]:
    """Return the workflows of a program, for the first of them; none for another, and when it has not ended."""
    data = data_of(status)
    run = str(data["run"])
    if data["generation"] != 1:
        return []
    program = program_run(client, run)
    if program is not None and program.state == "paused":
        return []
    latest = 1 if program is None else program.generation
    ids = [stretch_id(run, number) for number in range(1, latest + 2)]  # the next may wait in its queue
    there = client.dbos.list_workflows(workflow_ids=ids, load_input=False, load_output=False)
    return [row.workflow_id for row in there] if all(_is_old(row, limit) for row in there) else []


def _is_old(status: WorkflowStatus, limit: float) -> bool:
    ended = status.completed_at or status.updated_at
    return status.status in _ENDED and ended is not None and ended < limit


# --- removing


def _remove_work(client: Client, found: _OldWork) -> None:
    """Remove work from DBOS's tables and ours: the workflows of a piece of work in one transaction."""
    if found.ticks:
        client.dbos.delete_workflows(found.ticks)
    pieces = [*((chain, False) for chain in found.turns), *((chain, True) for chain in found.programs)]
    for start in range(0, len(pieces), _BATCH):
        batch = pieces[start : start + _BATCH]
        ids = [work_id for chain, _ in batch for work_id in chain]
        client.dbos.delete_workflows(ids)
        with client.engine.begin() as connection:
            connection.execute(sa.delete(applied_changes).where(applied_changes.c.work_id.in_(ids)))
            runs = [chain[0] for chain, is_program in batch if is_program]
            for table in (program_lines, program_requests, programs):
                connection.execute(sa.delete(table).where(table.c.run.in_(runs)))


def _prune_workers(client: Client, before: datetime, *, dry_run: bool) -> int:
    """Remove workers that stopped or were recovered before a time, and hold nothing; return how many there are."""
    database = client.dbos._sys_db  # pyright: ignore[reportPrivateUsage] -- the client counts nothing by worker
    status_table = database.tables.workflow_status
    holders = sa.select(status_table.c.executor_id).where(
        status_table.c.status == "PENDING", status_table.c.executor_id.is_not(None)
    )
    old: Iterable[Any] = (
        _workers.c.state.in_(("stopped", "recovered")),
        _workers.c.seen_at < before.timestamp(),
        _workers.c.id.not_in(holders),
    )
    with database.engine.begin() as connection:
        if dry_run:
            return connection.execute(sa.select(sa.func.count()).select_from(_workers).where(*old)).scalar_one()
        removed = connection.execute(sa.delete(_workers).where(*old)).rowcount
        connection.execute(sa.delete(_served).where(_served.c.worker.not_in(sa.select(_workers.c.id))))
        return removed
