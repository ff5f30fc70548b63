"""Work in the database, for its operator: turns and programs, listed, shown, cancelled and resumed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Coroutine, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from itertools import islice
from typing import Any, Literal, TypeVar, cast, get_args

import sqlalchemy as sa
from dbos import WorkflowStatus

from toolcrib._numbers import require_number
from toolcrib.adapters.dbos._client import Client
from toolcrib.adapters.dbos._continuation import (
    CLOSED,
    cancel_turn,
    continuation_id,
)
from toolcrib.adapters.dbos._placement import DEBOUNCED, SCHEDULE, data_of, target_of, turn_id_of
from toolcrib.adapters.dbos._program import PROGRAM, cancel_program, stretch_id
from toolcrib.adapters.dbos._program_journal import journal_entries, program_run
from toolcrib.adapters.dbos._retry import put_back, put_cancelled_back, put_program_back
from toolcrib.adapters.dbos._schedules import TICK
from toolcrib.adapters.dbos._workers import lost_among
from toolcrib.code import paused_program_in
from toolcrib.durable import WAITING, WAITS_FOR, answered_entries
from toolcrib.errors import EngineError, NewerForm, explain_options

T = TypeVar("T")
State = Literal["delayed", "waiting", "running", "suspended", "done", "rejected", "failed", "cancelled", "given up"]
WORK_STATES: tuple[str, ...] = get_args(State)
"""The states of a piece of work."""

_CONTINUED = "continued"  # of a suspended workflow: another one goes on with the work

_STATES: Mapping[str, str] = {
    "DELAYED": "delayed",
    "ENQUEUED": "waiting",
    "PENDING": "running",
    "SUCCESS": "done",
    "ERROR": "failed",
    "CANCELLED": "cancelled",
    "MAX_RECOVERY_ATTEMPTS_EXCEEDED": "given up",
}
"""Our words for the states in DBOS."""

_SUSPENDED = (("SUCCESS", '%"waits_for":%'), ("SUCCESS", '{"state":"paused"%'))
_ENDED: Mapping[str, Sequence[tuple[str, str]]] = {
    "waiting": (("ENQUEUED", ""), ("DELAYED", "")),  # for a worker that can run it
    "suspended": _SUSPENDED,
    "rejected": (("SUCCESS", '%"kind":"rejected"%'),),
    "failed": (
        ("ERROR", ""),
        ("SUCCESS", '%"stop_reason":"error"%'),
        ("SUCCESS", '%"stop_reason":"timeout"%'),
        ("SUCCESS", '{"state":"done","success":false%'),
    ),
    "cancelled": (("CANCELLED", ""), ("SUCCESS", '{"state":"paused"%')),
}
"""Places of work of a state for which DBOS has another word: its state there, and a pattern of its output."""

_LOST = "its worker is lost: toolcrib workers recover {}"
_TO_GO_ON = "answered; waits for a worker"

_PAGE = 200  # workflows read at a time, where those of a state have to be looked for among others
_MOST_SEARCHED = 20_000  # workflows that are looked through for words


@dataclass(frozen=True, slots=True)
class Work:
    """One piece of work: a turn or a program, in as many workflows as it took.

    Attributes:
        id: The id that it was enqueued with, that of its first workflow.
        kind: `turn` or `program`, or what else DBOS runs in this database.
        target: The agent and the tool of a turn, the toolkit of a program.
        state: `suspended` is one that waits for a person. `failed` is one whose tool or program raised or had no more
            time, or whose worker raised.
        worker: Who runs it, or ran it last.
        attempts: How often its last workflow was begun.
        error: The error, the reason why its tool did not run, or that it waits for a worker: its own is lost, or its
            request is answered.
        waits_for: The ids of the requests that suspended work waits for, until one is answered; a program may make
            several calls at once.
        in_doubt: Whether one of them is about a call in doubt.
        conversation_id: The conversation that it is part of, where it was put with one.
        schedule: The schedule that it comes from, where it comes from one.
        partition: The partition of its queue that it is part of, where it was put with one.
        principal: On whose behalf a program, or a suspended turn, makes its calls, where that is known.
        created_at: When its last workflow was enqueued, in seconds since the epoch, like the other times.
    """

    id: str
    kind: str
    target: str
    queue: str | None
    state: str
    worker: str | None
    attempts: int
    priority: int
    key: str | None
    created_at: float | None
    started_at: float | None
    ended_at: float | None
    error: str | None
    waits_for: tuple[str, ...] = ()
    in_doubt: bool = False
    conversation_id: str | None = None
    schedule: str | None = None
    partition: str | None = None
    principal: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the work as JSON shapes."""
        return {name: getattr(self, name) for name in Work.__slots__}

    def has_words(self, words: Iterable[str]) -> bool:
        """Return whether each of these words, in lower case, is in what names it."""
        names = (self.id, self.target, self.principal, self.conversation_id, self.key, self.schedule, self.partition)
        text = " ".join(filter(None, names)).lower()
        return all(word in text for word in words)


@explain_options()
def list_work(
    client: Client,
    *,
    state: str | Collection[str] | None = None,
    queue: str | None = None,
    partition: str | None = None,
    text: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    limit: int = 50,
    start: int = 0,
) -> list[Work]:
    """Return work, the latest first; what has gone on after a pause is as late as that.

    Args:
        state: Only work in this state, or in any of these.
        queue: Only work of this queue.
        partition: Only work of this partition.
        text: Only work with each of these words in its id, agent, tool, toolkit, principal, conversation, key, schedule
            or partition, of the latest 20,000 in that state and queue; upper case is lower case.
        since: Only work that was enqueued then or later, with a time zone.
        until: Only work that was enqueued before then.
        start: How many are left out before the first.
    """
    require_number("list_work", "limit", limit, least=1)
    require_number("list_work", "start", start, least=0)
    words = (text or "").lower().split()
    states = (state,) if isinstance(state, str) else tuple(state or ())
    wanted = _Wanted(states, queue, partition, since, until)
    latest = _latest(client, wanted, _PAGE if states or start or words else limit)
    if words:
        latest = (work for work in islice(latest, _MOST_SEARCHED) if work.has_words(words))
    found = (work for work in latest if work.state != _CONTINUED and (not states or work.state in states))
    return list(islice(found, start, start + limit))


@dataclass(frozen=True, slots=True)
class _Wanted:
    """Filter of the work that is listed; None or no state for any."""

    states: tuple[str, ...]
    queue: str | None
    partition: str | None
    since: datetime | None
    until: datetime | None

    def conditions(self, status: Any, output: Any) -> Iterator[Any]:
        """Yield the conditions that the database checks, on the columns of its two tables."""
        if self.states:
            yield sa.or_(
                *(
                    sa.and_(status.status == theirs, output.output.like(pattern) if pattern else sa.true())
                    for state in self.states
                    for theirs, pattern in _ENDED.get(state)
                    or [(theirs, "") for theirs, ours in _STATES.items() if ours == state]
                )
            )
        if self.queue is not None:
            yield status.queue_name == self.queue
        if self.partition is not None:
            yield status.queue_partition_key == self.partition
        if self.since is not None:
            yield status.created_at >= self.since.timestamp() * 1000
        if self.until is not None:
            yield status.created_at < self.until.timestamp() * 1000


def _latest(client: Client, wanted: _Wanted, page: int) -> Iterator[Work]:
    before: tuple[int, str] | None = None
    while True:
        keys = _keys(client, wanted, page, before)
        ids = [work_id for _, work_id in keys]
        found = client.dbos.list_workflows(workflow_ids=ids) if ids else []
        by_id = {
            status.workflow_id: status for status in found if (status.name, status.status) != (TICK, "SUCCESS")
        }  # since `_keys`
        yield from _works(client, [by_id[work_id] for work_id in ids if work_id in by_id])
        if len(keys) < page:
            return
        before = keys[-1]


def _keys(client: Client, wanted: _Wanted, limit: int, before: tuple[int, str] | None) -> list[tuple[int, str]]:
    """Return when what may be wanted was enqueued, and its id, the latest first.

    The database looks through outputs by itself.

    Args:
        before: The last of the page before. What changes between two pages shifts nothing in the second one.
    """
    database: Any = client.dbos._sys_db  # pyright: ignore[reportPrivateUsage] -- the client finds nothing by output
    status, output = database.tables.workflow_status.c, database.tables.workflow_output.c
    key = (status.created_at, status.workflow_uuid)
    query = (
        sa.select(*key)
        .select_from(
            sa.outerjoin(status.status.table, output.output.table, status.workflow_uuid == output.workflow_uuid)
        )
        .where(status.application_name == client.database.application)
        .where(sa.or_(status.name != TICK, status.status != "SUCCESS"))  # what it enqueued is there
        .where(*wanted.conditions(status, output))
        .order_by(*(column.desc() for column in key))  # the parts of a program have its id and a number
    )
    if before is not None:
        query = query.where(sa.tuple_(*key) < sa.tuple_(*map(sa.literal, before)))
    with database.engine.begin() as connection:
        return [(created_at, work_id) for created_at, work_id in connection.execute(query.limit(limit))]


def find_work(client: Client, work_id: str) -> Work:
    """Return a piece of work by its id, or by that of one of its workflows.

    Raises:
        EngineError: Nothing has this id.
    """
    return _parts(client, work_id)[-1][1]


def show_work(client: Client, work_id: str) -> tuple[Work, dict[str, Any]]:
    """Return a piece of work, and what is known of it besides: its input, its outcome, and its steps or calls.

    Args:
        work_id: Its id, or that of one of its workflows.

    Raises:
        EngineError: Nothing has this id.
    """
    parts = _parts(client, work_id)
    status, work = parts[-1]
    more: dict[str, Any] = {"input": data_of(status), "output": status.output}
    if status.name == PROGRAM:
        found = program_run(client, work.id)
        more |= {"calls": _calls(client, work.id), "program": None if found is None else found.state}
        more["result"] = None if found is None else found.result
    else:
        steps = [step for part, _ in parts for step in client.dbos.list_workflow_steps(part.workflow_id)]
        more["steps"] = [{"name": step["function_name"], "error": _error_text(step["error"])} for step in steps]
    return work, more


def cancel_work(client: Client, work_id: str) -> Work:
    """Keep a workflow from starting or going on, and return it as it is then; what its tool did stays done.

    Raises:
        EngineError: Nothing has this id.
    """
    status = _found(client, work_id)
    run = str(data_of(status).get("run", ""))
    cancel = partial(cancel_program, client, run) if run else partial(cancel_turn, client, status.workflow_id)
    return _works(client, [_found(client, _run_aside(cancel))])[0]


def resume_work(client: Client, work_id: str) -> Work:
    """Resume work that was cancelled or given up, in its queue; what it has recorded is not done again.

    Raises:
        EngineError: Nothing has this id, it was not cancelled, or it was while it waited for an answer.
    """
    status, work = _parts(client, work_id)[-1]
    if work.state not in ("cancelled", "given up"):
        hint = "; `toolcrib workflows retry` lets it go on" if work.state == "failed" else ""
        raise EngineError(
            f"the workflow {work.id} is {work.state}, and only work that was cancelled or given up is resumed{hint}"
        )
    data = data_of(status)
    if status.status == "SUCCESS" or data.get(CLOSED):
        raise EngineError(
            f"the workflow {work.id} was cancelled while it waited for an answer. Its request is denied, so that it "
            "cannot be resumed; enqueue it again"
        )
    return _put_back(client, status, put_cancelled_back(client, status, data.get("run"), _queue_of(status)))


def retry_work(client: Client, work_id: str) -> Work:
    """Retry failed work in its queue, under its id, and return it as it is then.

    What it is known to have done is not done again. A call that had begun when it failed is in doubt: it is made again
    if its tool is idempotent, and otherwise a person is asked.

    Raises:
        EngineError: Nothing has this id, it has not failed, or other work has its key.
    """
    status, work = _parts(client, work_id)[-1]
    if work.state != "failed":
        hint = "; `toolcrib workflows resume` lets it go on" if work.state in ("cancelled", "given up") else ""
        raise EngineError(f"the workflow {work.id} is {work.state}, and only failed work is retried{hint}")
    data, queue = data_of(status), _queue_of(status)
    if status.name == PROGRAM:
        is_back = put_program_back(client, status, str(data["run"]), queue, work.error or "")
    else:
        is_back = put_back(client, status, queue, work.error or "")
    return _put_back(client, status, is_back)


def _parts(client: Client, work_id: str) -> list[tuple[WorkflowStatus, Work]]:
    """Return the workflows of a piece of work, the first one first, each with the work as it tells it."""
    named = _found(client, work_id)
    first = _first(named)
    status = named if first == named.workflow_id else client.find(first) or named
    parts = [(status, _works(client, [status])[0])]
    while parts[-1][1].state == _CONTINUED:
        status = _found(client, _after(status))
        parts.append((status, _works(client, [status])[0]))
    return parts


def _first(status: WorkflowStatus) -> str:
    """Return the id of the first workflow of the work that a workflow is part of."""
    data = data_of(status)
    if status.name == PROGRAM:
        return str(data["run"])
    waited: Mapping[str, Any] = data.get(WAITING) or {}
    return str(waited.get("request", {}).get("call_id") or status.workflow_id)


def _queue_of(status: WorkflowStatus) -> str:
    return str(data_of(status).get("queue") or status.queue_name)


def _put_back(client: Client, status: WorkflowStatus, is_back: bool) -> Work:
    if not is_back:
        raise EngineError(f"the workflow {status.workflow_id} changed meanwhile; look at it again")
    return _work_of(_found(client, status.workflow_id))


def _found(client: Client, work_id: str) -> WorkflowStatus:
    """Return the workflow of an id, or of the turn that was named so when it was enqueued."""
    for candidate in (work_id, turn_id_of(work_id)):
        if found := client.find(candidate):
            return found
    raise EngineError(f"there is no workflow {work_id} in {client.database}; `toolcrib workflows list` shows them")


def _works(client: Client, found: Sequence[WorkflowStatus]) -> list[Work]:
    works = [_work_of(status) for status in found]
    after = [_after(status) if work.state == "suspended" else None for status, work in zip(found, works, strict=True)]
    asked = [other for other in after if other is not None]
    there = client.dbos.list_workflows(workflow_ids=asked, load_input=False, load_output=False) if asked else ()
    gone_on = {status.workflow_id for status in there}
    return _stalled(
        client,
        [
            replace(work, state=_CONTINUED, waits_for=(), in_doubt=False)
            if other in gone_on
            else _unless_cancelled(client, work, status)
            for work, other, status in zip(works, after, found, strict=True)
        ],
    )


def _stalled(client: Client, works: Sequence[Work]) -> list[Work]:
    """Return work with what it waits for besides a person: a worker, if its own is lost or its request is answered."""
    lost = lost_among(client, {work.worker for work in works if work.state == "running" and work.worker})
    answered = set[str]()  # the requests whose work can go on
    if any(work.waits_for for work in works):
        answered = {entry.request.id for entry in _run_aside(partial(answered_entries, client.approvals))}
    return [
        replace(work, error=_LOST.format(work.worker))
        if work.state == "running" and work.worker in lost
        else replace(work, error=_TO_GO_ON, waits_for=(), in_doubt=False)
        if work.state == "suspended" and not answered.isdisjoint(work.waits_for)
        else work
        for work in works
    ]


def _run_aside(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine in a thread of its own and return its result: this may be called on an event loop."""
    with ThreadPoolExecutor(1, "toolcrib-operator") as thread:
        return thread.submit(lambda: asyncio.run(work())).result()


def _unless_cancelled(client: Client, work: Work, status: WorkflowStatus) -> Work:
    """Return a program that was cancelled while it was suspended as what it is; its workflow had ended before."""
    if work.state != "suspended" or status.name != PROGRAM:
        return work
    run = program_run(client, str(data_of(status)["run"]))
    if run is None:
        return work
    if run.state == "cancelled":
        return replace(work, state="cancelled")
    pending: list[Any] = (run.result or {}).get("pending") or []
    asked = tuple(str(request["id"]) for request, _ in pending)
    return replace(work, waits_for=asked, in_doubt=any(doubt for _, doubt in pending))


def _after(status: WorkflowStatus) -> str:
    """Return the id of the workflow that goes on after a suspended one, once there is an answer."""
    if status.name == PROGRAM:
        data = data_of(status)
        return stretch_id(str(data["run"]), int(data["generation"]) + 1)
    return continuation_id(status.workflow_id, str(cast("Mapping[str, Any]", status.output)[WAITS_FOR]))


def _work_of(status: WorkflowStatus) -> Work:
    data, output = data_of(status), cast("Any", status.output)
    state, error = _STATES.get(status.status, str(status.status).lower()), _error_text(status.error)
    result: Mapping[str, Any] = cast("Mapping[str, Any]", output) if isinstance(output, Mapping) else {}
    if state == "done":
        state, error = _ended(result)
    left = (status.attributes or {}).get("left")
    if state in ("delayed", "waiting") and left is not None:
        state, error = "waiting", left
    asked: Mapping[str, Any] = cast("Mapping[str, Any]", result.get(WAITING) or {}).get("request", {})
    return Work(
        id=_first(status),
        kind=status.name.removeprefix("toolcrib."),
        target=target_of(data) or str(data.get(SCHEDULE, "")),
        queue=cast("str | None", data.get("queue")) or status.queue_name,
        state=state,
        worker=status.executor_id or None,
        attempts=status.recovery_attempts or 0,
        priority=status.priority or 0,
        key=status.deduplication_id and data.get(DEBOUNCED, status.deduplication_id),
        created_at=_seconds(status.created_at),
        started_at=_seconds(status.dequeued_at),
        ended_at=_seconds(status.completed_at),
        error=error,
        waits_for=(str(result[WAITS_FOR]),) if WAITS_FOR in result else (),
        conversation_id=data.get("conversation_id"),
        schedule=data.get(SCHEDULE),
        partition=status.queue_partition_key,
        in_doubt=bool(asked.get("in_doubt")),
        principal=asked.get("principal") or data.get("principal"),
    )


def _ended(result: Mapping[str, Any]) -> tuple[str, str | None]:
    """Return the state of a workflow that came to this result, and what went wrong."""
    outcome: Mapping[str, Any] = result.get("outcome") or {}
    if result.get("state") == "paused" or result.get(WAITS_FOR):
        return "suspended", None
    if outcome.get("kind") == "rejected":
        return "rejected", outcome.get("reason")
    if result.get("stop_reason") == "timeout":
        return "failed", f"timed out: {outcome.get('message')}"
    if outcome.get("kind") == "failed" or result.get("success") is False:
        return "failed", outcome.get("message") or result.get("error")
    return ("cancelled" if result.get("state") == "cancelled" else "done"), None


def _calls(client: Client, program_id: str) -> list[dict[str, Any]]:
    """Return the calls of a program by its journal, each with its state; none where a newer version wrote that."""
    try:
        paused = paused_program_in(journal_entries(client, program_id))
    except NewerForm:
        return []
    calls = [] if paused is None else paused.calls
    return [{"id": call.id, "tool": call.name, "state": call.state} for call in calls]


def _seconds(milliseconds: int | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1000


def _error_text(error: Exception | None) -> str | None:
    return None if error is None else str(error)
