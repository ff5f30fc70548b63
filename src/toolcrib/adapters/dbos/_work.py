"""Pieces of durable work: each a turn or a program, in as many workflows as it took."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal, TypeVar, cast, get_args

from dbos import WorkflowStatus

from toolcrib.adapters.dbos._client import Client
from toolcrib.adapters.dbos._continuation import continuation_id
from toolcrib.adapters.dbos._placement import DEBOUNCED, NOTES, SCHEDULE, data_of, target_of
from toolcrib.adapters.dbos._program import PROGRAM, stretch_id
from toolcrib.adapters.dbos._program_journal import program_run
from toolcrib.adapters.dbos._workers import lost_among
from toolcrib.durable import WAITING, WAITS_FOR, answered_entries

T = TypeVar("T")
State = Literal["delayed", "waiting", "running", "suspended", "done", "rejected", "failed", "cancelled", "given up"]
WORK_STATES: tuple[str, ...] = get_args(State)
"""The states of a piece of work."""

CONTINUED = "continued"  # of a suspended workflow: another one goes on with the work

DBOS_STATES: Mapping[str, str] = {
    "DELAYED": "delayed",
    "ENQUEUED": "waiting",
    "PENDING": "running",
    "SUCCESS": "done",
    "ERROR": "failed",
    "CANCELLED": "cancelled",
    "MAX_RECOVERY_ATTEMPTS_EXCEEDED": "given up",
}
"""Our words for the states in DBOS."""

FORKED_FROM = "forked_from"
"""The key in the data of a fork of the work, and the step, that it is forked from."""

_LOST = "its worker is lost: toolcrib workers recover {}"
_TO_GO_ON = "answered; waits for a worker"


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
        forked_from: The id of the work that it is a fork of, and the step, as text.
        attributes: The texts by which it is found, by name, as it was put with them.
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
    forked_from: str | None = None
    attributes: Mapping[str, str] = field(default_factory=dict[str, str])

    def to_dict(self) -> dict[str, Any]:
        """Return the work as JSON shapes."""
        return {name: getattr(self, name) for name in Work.__slots__}

    def is_named(self, name: str) -> bool:
        """Return whether it is of the agent, tool or toolkit of this name, or of `agent: tool`."""
        return name in (self.target, *self.target.split(": ", 1))

    def has_words(self, words: Iterable[str]) -> bool:
        """Return whether each of these words, in lower case, is in what names it."""
        names = [self.id, self.target, self.principal, self.conversation_id, self.key, self.schedule, self.partition]
        names += [f"{name}={value}" for name, value in self.attributes.items()]
        text = " ".join(filter(None, names)).lower()
        return all(word in text for word in words)


def works_of(client: Client, found: Sequence[WorkflowStatus]) -> list[Work]:
    works = [work_of(status) for status in found]
    after = [
        workflow_after(status) if work.state == "suspended" else None for status, work in zip(found, works, strict=True)
    ]
    asked = [other for other in after if other is not None]
    there = client.dbos.list_workflows(workflow_ids=asked, load_input=False, load_output=False) if asked else ()
    gone_on = {status.workflow_id for status in there}
    return _stalled(
        client,
        [
            replace(work, state=CONTINUED, waits_for=(), in_doubt=False)
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
        answered = {entry.request.id for entry in run_aside(partial(answered_entries, client.approvals))}
    return [
        replace(work, error=_LOST.format(work.worker))
        if work.state == "running" and work.worker in lost
        else replace(work, error=_TO_GO_ON, waits_for=(), in_doubt=False)
        if work.state == "suspended" and not answered.isdisjoint(work.waits_for)
        else work
        for work in works
    ]


def run_aside(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
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


def workflow_after(status: WorkflowStatus) -> str:
    """Return the id of the workflow that goes on after a suspended one, once there is an answer."""
    if status.name == PROGRAM:
        data = data_of(status)
        return stretch_id(str(data["run"]), int(data["generation"]) + 1)
    return continuation_id(status.workflow_id, str(cast("Mapping[str, Any]", status.output)[WAITS_FOR]))


def work_of(status: WorkflowStatus) -> Work:
    data, output = data_of(status), cast("Any", status.output)
    state, error = DBOS_STATES.get(status.status, str(status.status).lower()), error_text(status.error)
    result: Mapping[str, Any] = cast("Mapping[str, Any]", output) if isinstance(output, Mapping) else {}
    if state == "done":
        state, error = _ended(result)
    reason = (status.attributes or {}).get("left")
    if state in ("delayed", "waiting") and reason is not None:
        state, error = "waiting", reason
    asked: Mapping[str, Any] = cast("Mapping[str, Any]", result.get(WAITING) or {}).get("request", {})
    return Work(
        id=first_id(status),
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
        forked_from=data.get(FORKED_FROM),
        attributes=_attributes(status),
    )


def _attributes(status: WorkflowStatus) -> dict[str, str]:
    """Return the attributes of work, without what workers noted beside them."""
    found: Mapping[str, Any] = status.attributes or {}
    return {name: value for name, value in found.items() if name not in NOTES and isinstance(value, str)}


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


def first_id(status: WorkflowStatus) -> str:
    """Return the id of the first workflow of the work that a workflow is part of."""
    data = data_of(status)
    if status.name == PROGRAM:
        return str(data["run"])
    waited: Mapping[str, Any] = data.get(WAITING) or {}
    return str(waited.get("request", {}).get("call_id") or status.workflow_id)


def _seconds(milliseconds: int | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1000


def error_text(error: Exception | None) -> str | None:
    return None if error is None else str(error)
