"""Work in the database, for its operator: turns and programs, listed, shown, cancelled and resumed."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import count, islice
from typing import Any, Literal, cast, get_args
from uuid import NAMESPACE_URL, UUID, uuid5

from dbos import WorkflowStatus

from toolcrib.adapters.dbos._client import Client
from toolcrib.adapters.dbos._continuation import WAITS_FOR, cancel_turn, continuation_id
from toolcrib.adapters.dbos._program import PROGRAM, stretch_id
from toolcrib.adapters.dbos._program_journal import cancel_run, journal_lines, program_run, revive_run
from toolcrib.errors import EngineError

__all__ = ["WORK_STATES", "Work", "cancel_work", "list_work", "resume_work", "show_work", "turn_id_of"]

State = Literal["delayed", "waiting", "running", "paused", "continued", "done", "failed", "cancelled", "given up"]
WORK_STATES: tuple[str, ...] = get_args(State)
"""The states of a workflow."""

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

_ENDED_TO_WAIT = ("paused", "continued")
"""Our words for workflows that are done in DBOS, though there is more to do."""

_PAGE = 200  # workflows read at a time, where those of a state have to be looked for among others


@dataclass(frozen=True, slots=True)
class Work:
    """One workflow.

    Attributes:
        kind: `turn` or `program`, or what else DBOS runs in this database.
        what: The agent and the tool of a turn, the toolkit of a program.
        state: `paused` is one that ended because it waits for a person. Its continuation is another workflow, and it is
            `continued` then.
        worker: Who runs it, or ran it last.
        attempts: How often it was begun.
        created_at: In seconds since the epoch, like the other times.
    """

    id: str
    kind: str
    what: str
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

    def to_dict(self) -> dict[str, Any]:
        """Return the work as JSON shapes."""
        return {name: getattr(self, name) for name in Work.__slots__}


def list_work(client: Client, *, state: str | None = None, queue: str | None = None, limit: int = 50) -> list[Work]:
    """Return workflows, the latest first."""
    theirs = "done" if state in _ENDED_TO_WAIT else state
    wanted: dict[str, Any] = {"status": [name for name, ours in _STATES.items() if ours == theirs]} if state else {}
    if queue is not None:
        wanted["queue_name"] = queue
    found = (work for work in _latest(client, wanted, _PAGE if state else limit) if state in (None, work.state))
    return list(islice(found, limit))


def _latest(client: Client, wanted: Mapping[str, Any], page: int) -> Iterator[Work]:
    for number in count():
        found = client.dbos.list_workflows(sort_desc=True, limit=page, offset=number * page, **wanted)
        yield from _works(client, found)
        if len(found) < page:
            return


def show_work(client: Client, work_id: str) -> tuple[Work, dict[str, Any]]:
    """Return a workflow, and what is known of it besides: what was asked, what came of it, its steps or calls.

    Raises:
        EngineError: There is none of this id.
    """
    status = _found(client, work_id)
    work_id = status.workflow_id
    more: dict[str, Any] = {"input": _input(status), "output": status.output}
    if status.name == PROGRAM:
        run = str(_input(status).get("run", work_id))
        found = program_run(client, run)
        more |= {"calls": _calls(journal_lines(client, run)), "program": None if found is None else found.state}
        more["result"] = None if found is None else found.result
    else:
        steps = client.dbos.list_workflow_steps(work_id)
        more["steps"] = [{"name": step["function_name"], "error": _said(step["error"])} for step in steps]
    return _works(client, [status])[0], more


def cancel_work(client: Client, work_id: str) -> Work:
    """Keep a workflow from starting or going on, and return it as it is then; what its tool did stays done.

    Raises:
        EngineError: There is none of this id.
    """
    status = _found(client, work_id)
    work_id = status.workflow_id
    if status.name == PROGRAM:
        client.dbos.cancel_workflow(work_id)
        cancel_run(client, str(_input(status).get("run", work_id)))
    else:
        with ThreadPoolExecutor(1, "toolcrib-cancel") as thread:  # this may be called on an event loop
            work_id = thread.submit(lambda: asyncio.run(cancel_turn(client, work_id))).result()
    return _works(client, [_found(client, work_id)])[0]


def resume_work(client: Client, work_id: str) -> Work:
    """Let a workflow that was cancelled or given up go on in its queue; what it has recorded is not done again.

    Raises:
        EngineError: There is none of this id, or it has ended by itself.
    """
    status = _found(client, work_id)
    work_id = status.workflow_id
    if status.status in ("SUCCESS", "ERROR"):
        raise EngineError(f"the workflow {work_id} has ended ({_STATES[status.status]}), and cannot be resumed")
    data = _input(status)
    if status.name == PROGRAM:
        revive_run(client, str(data.get("run", work_id)))
    queue = cast("str | None", data.get("queue")) or status.queue_name
    client.dbos.resume_workflow(work_id, queue_name=queue)
    return _work_of(_found(client, work_id))


def turn_id_of(given: str) -> str:
    """Return the id of a turn with a given name: a UUID is its own id, and another name has always the same one."""
    try:
        return str(UUID(given))
    except ValueError:
        return str(uuid5(NAMESPACE_URL, f"toolcrib:{given}"))


def _found(client: Client, work_id: str) -> WorkflowStatus:
    """Return the workflow of an id, or of the turn that was named so when it was enqueued."""
    for one in (work_id, turn_id_of(work_id)):
        if found := client.dbos.list_workflows(workflow_ids=[one]):
            return found[0]
    raise EngineError(f"there is no workflow {work_id} in {client.database}; `toolcrib workflows list` shows them")


def _works(client: Client, found: Sequence[WorkflowStatus]) -> list[Work]:
    works = [_work_of(status) for status in found]
    after = [_after(status) if work.state == "paused" else None for status, work in zip(found, works, strict=True)]
    asked = [other for other in after if other is not None]
    there = client.dbos.list_workflows(workflow_ids=asked, load_input=False, load_output=False) if asked else ()
    gone_on = {status.workflow_id for status in there}
    return [
        replace(work, state="continued") if other in gone_on else _unless_cancelled(client, work, status)
        for work, other, status in zip(works, after, found, strict=True)
    ]


def _unless_cancelled(client: Client, work: Work, status: WorkflowStatus) -> Work:
    """Return a program that was cancelled while it was paused as what it is; its workflow had ended before."""
    if work.state != "paused" or status.name != PROGRAM:
        return work
    run = program_run(client, str(_input(status)["run"]))
    return replace(work, state="cancelled") if run is not None and run.state == "cancelled" else work


def _after(status: WorkflowStatus) -> str:
    """Return the id of the workflow that goes on after one that was paused, once there is an answer."""
    if status.name == PROGRAM:
        data = _input(status)
        return stretch_id(str(data["run"]), int(data["generation"]) + 1)
    return continuation_id(status.workflow_id, str(cast("Mapping[str, Any]", status.output)[WAITS_FOR]))


def _work_of(status: WorkflowStatus) -> Work:
    data, output = _input(status), cast("Any", status.output)
    state = _STATES.get(status.status, str(status.status).lower())
    if state == "done" and isinstance(output, Mapping):
        result = cast("Mapping[str, Any]", output)
        state = "paused" if result.get("state") == "paused" or result.get(WAITS_FOR) else state
    turn = data.get("turn")
    tool = cast("Mapping[str, Any]", turn).get("tool_name", "") if isinstance(turn, Mapping) else ""
    what = f"{data.get('agent')}: {tool}" if tool else str(data.get("toolkit") or data.get("agent") or "")
    return Work(
        id=status.workflow_id,
        kind=status.name.removeprefix("toolcrib."),
        what=what,
        queue=cast("str | None", data.get("queue")) or status.queue_name,
        state=state,
        worker=status.executor_id or None,
        attempts=status.recovery_attempts or 0,
        priority=status.priority or 0,
        key=status.deduplication_id,
        created_at=_seconds(status.created_at),
        started_at=_seconds(status.dequeued_at),
        ended_at=_seconds(status.completed_at),
        error=_said(status.error),
    )


def _input(status: WorkflowStatus) -> Mapping[str, Any]:
    given = status.input["args"] if status.input else ()
    return cast("Mapping[str, Any]", given[0]) if given and isinstance(given[0], Mapping) else {}


def _calls(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the calls of a program by its journal, each as far as it came."""
    calls: dict[str, dict[str, Any]] = {}
    for line in lines:
        if line["t"] == "program":
            calls |= {entry["id"]: _call(entry, "suspended" in entry) for entry in line["journal"]}
        elif line["t"] == "started":
            calls[line["id"]] = {"id": line["id"], "tool": line["name"], "state": "begun"}
        elif line["t"] in ("ended", "suspended", "cancelled") and line["id"] in calls:
            calls[line["id"]]["state"] = line["t"]
    return list(calls.values())


def _call(entry: Mapping[str, Any], suspended: bool) -> dict[str, Any]:
    open_state = "suspended" if suspended else "cancelled" if entry.get("cancelled") else "begun"
    state = "ended" if "reply" in entry else open_state
    return {"id": entry["id"], "tool": entry["name"], "state": state}


def _seconds(milliseconds: int | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1000


def _said(error: Exception | None) -> str | None:
    return None if error is None else str(error)
