"""Forks of work: new work that begins at a step of other work, and does what follows anew."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast
from uuid import uuid4

import sqlalchemy as sa
from dbos import error as dbos_error
from sqlalchemy.exc import IntegrityError

from toolcrib._numbers import count_text, require_number
from toolcrib.adapters.dbos._admin import find_work, parts_of
from toolcrib.adapters.dbos._client import Client
from toolcrib.adapters.dbos._placement import (
    DEBOUNCED,
    KEY,
    SCHEDULE,
    TIMEOUT,
    Placement,
    data_of,
    turn_id_of,
    with_id,
)
from toolcrib.adapters.dbos._program import PROGRAM
from toolcrib.adapters.dbos._program_journal import journal_entries
from toolcrib.adapters.dbos._work import FORKED_FROM, Work
from toolcrib.adapters.dbos._work_tables import PROGRAM_LINES, programs
from toolcrib.code import JournalEntry, entry_line, paused_program_in
from toolcrib.database import statements
from toolcrib.errors import EngineError, explain_options

_OF_OTHER_WORK = (DEBOUNCED, SCHEDULE)
"""The keys in the data of work of how it was put, which a fork is not."""

_ACTIVITY = ("program", "trace")
"""The keys in the counters of a program of its activity; a fork is one of its own."""


@explain_options(dict.fromkeys(("from_step", "start_step"), "step"))
def fork_work(client: Client, work_id: str, step: int = 1, *, id: str | None = None) -> Work:
    """Enqueue work that does again what other work did from a step on, and return it; the other stays as it is.

    A step of a program is one of its calls. Those before the step are not made again: the fork is given their results.
    The call of the step and all that follow are made as new calls, with ids of their own, under all gates: a person who
    approved one of them is asked again. A turn is one call, and is forked from that.

    Args:
        work_id: The work that is forked, in any state.
        step: The first call that is made anew, counted from 1 as `show_work` lists the calls.
        id: The id of the fork; one of its own when None.

    Raises:
        EngineError: Nothing has this id, it has no such step, a call before the step has no result, other work has the
            fork's id or key.
    """
    require_number("fork_work", "step", step, least=1)
    status, work = parts_of(client, work_id)[0]
    data: dict[str, Any] = {name: value for name, value in data_of(status).items() if name not in _OF_OTHER_WORK}
    if status.name == PROGRAM:
        fork_id = id or f"program-{uuid4().hex}"
        entries = _entries_before(journal_entries(client, work.id), step, work.id)
    elif "turn" not in data:
        raise EngineError(f"the workflow {work.id} is neither a turn nor a program, and cannot be forked")
    elif step > 1:
        raise EngineError(f"the turn {work.id} is one call, and is forked from that: step is 1, and not {step}")
    else:
        fork_id, entries = turn_id_of(id) if id else str(uuid4()), []
    data = {**with_id(data, fork_id), FORKED_FROM: f"{work.id}, step {step}"}
    placement = Placement(
        fork_id, status.priority or 0, data.get(KEY), None, data.get(TIMEOUT), status.queue_partition_key
    )
    _enqueue(client, status.name, data, placement, entries)
    return find_work(client, fork_id)


def _entries_before(entries: list[JournalEntry], step: int, run: str) -> list[JournalEntry]:
    """Return the journal of a program as it is for one that stands before a call, and has the results of those before.

    It is that of a program whose worker died there, with the results that came later of calls which ran then.
    """
    ended = paused_program_in(entries)
    calls = [] if ended is None else ended.calls
    if step > max(len(calls), 1):
        raise EngineError(f"the program {run} has no call {step}; it made {count_text(len(calls), 'call')}")
    if step == 1 or ended is None:
        return []
    for number, call in enumerate(calls[: step - 1], 1):
        if call.is_open:
            raise EngineError(
                f"call {number} of the program {run}, of `{call.name}`, has no result; fork from step {number} at the "
                "latest"
            )
    place = next(at for at, entry in enumerate(entries) if entry.call_id == calls[step - 1].id)
    before = paused_program_in(entries[:place])
    if before is None:
        raise EngineError(f"the journal of the program {run} does not say how it began; fork from step 1")
    earlier = {call.id for call in calls[: step - 1]}
    journal = tuple(entry for entry in ended.journal if entry.call_id in earlier)
    counters = {name: value for name, value in before.run.items() if name not in _ACTIVITY}
    return [replace(before, journal=journal, run=counters).entry()]


def _enqueue(
    client: Client, workflow: str, data: Mapping[str, Any], placement: Placement, entries: list[JournalEntry]
) -> None:
    """Enqueue a fork in one transaction with its journal."""
    queue = str(data["queue"])
    options = client.options(workflow, queue, placement, data) | {"workflow_id_reuse_policy": "reject"}
    options.pop("duplication_policy", None)
    try:
        with client.engine.begin() as connection:
            if entries:
                run = {"run": placement.id, "toolkit": data["toolkit"], "queue": queue, "generation": 1}
                begun = {"state": "running", "result": None, "updated_at": time.time()}
                connection.execute(sa.insert(programs).values(**run, **begun))
                PROGRAM_LINES.append(statements(connection), placement.id, [entry_line(entry) for entry in entries], 0)
            client.dbos.enqueue_in_transaction(connection, cast("Any", options), dict(data))
    except (dbos_error.DBOSWorkflowIDInUseError, IntegrityError):
        raise EngineError(f"other work has the id {placement.id}; a fork needs one of its own") from None
    except dbos_error.DBOSQueueDeduplicatedError:
        raise EngineError(
            f"other work of the key `{placement.key}` waits or runs in the queue `{queue}`; fork when that has ended"
        ) from None
