"""Work in the database, for its operator: turns and programs, shown, cancelled, resumed and retried."""

from __future__ import annotations

from functools import partial
from typing import Any

from dbos import WorkflowStatus

from toolcrib.adapters.dbos._client import Client
from toolcrib.adapters.dbos._continuation import CLOSED, cancel_turn
from toolcrib.adapters.dbos._placement import data_of, turn_id_of
from toolcrib.adapters.dbos._program import PROGRAM, cancel_program
from toolcrib.adapters.dbos._program_journal import journal_entries, program_run
from toolcrib.adapters.dbos._retry import put_back, put_cancelled_back, put_program_back
from toolcrib.adapters.dbos._work import (
    CONTINUED,
    Work,
    error_text,
    first_id,
    run_aside,
    work_of,
    workflow_after,
    works_of,
)
from toolcrib.code import paused_program_in
from toolcrib.errors import EngineError, NewerForm


def find_work(client: Client, work_id: str) -> Work:
    """Return a piece of work by its id, or by that of one of its workflows.

    Raises:
        EngineError: Nothing has this id.
    """
    return parts_of(client, work_id)[-1][1]


def show_work(client: Client, work_id: str) -> tuple[Work, dict[str, Any]]:
    """Return a piece of work, and what is known of it besides: its input, its outcome, and its steps or calls.

    Args:
        work_id: Its id, or that of one of its workflows.

    Raises:
        EngineError: Nothing has this id.
    """
    parts = parts_of(client, work_id)
    status, work = parts[-1]
    more: dict[str, Any] = {"input": data_of(status), "output": status.output}
    if status.name == PROGRAM:
        found = program_run(client, work.id)
        more |= {"calls": _calls(client, work.id), "program": None if found is None else found.state}
        more["result"] = None if found is None else found.result
    else:
        steps = [step for part, _ in parts for step in client.dbos.list_workflow_steps(part.workflow_id)]
        more["steps"] = [{"name": step["function_name"], "error": error_text(step["error"])} for step in steps]
    return work, more


def cancel_work(client: Client, work_id: str) -> Work:
    """Keep a workflow from starting or going on, and return it as it is then; what its tool did stays done.

    Raises:
        EngineError: Nothing has this id.
    """
    status = status_of(client, work_id)
    run = str(data_of(status).get("run", ""))
    cancel = partial(cancel_program, client, run) if run else partial(cancel_turn, client, status.workflow_id)
    return works_of(client, [status_of(client, run_aside(cancel))])[0]


def resume_work(client: Client, work_id: str) -> Work:
    """Resume work that was cancelled or given up, in its queue; what it has recorded is not done again.

    Raises:
        EngineError: Nothing has this id, it was not cancelled, or it was while it waited for an answer.
    """
    status, work = parts_of(client, work_id)[-1]
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
    return _put_back(client, status, put_cancelled_back(client, status, data.get("run"), queue_of(status)))


def retry_work(client: Client, work_id: str) -> Work:
    """Retry failed work in its queue, under its id, and return it as it is then.

    What it is known to have done is not done again. A call that had begun when it failed is in doubt: it is made again
    if its tool is idempotent, and otherwise a person is asked.

    Raises:
        EngineError: Nothing has this id, it has not failed, or other work has its key.
    """
    status, work = parts_of(client, work_id)[-1]
    if work.state != "failed":
        hint = "; `toolcrib workflows resume` lets it go on" if work.state in ("cancelled", "given up") else ""
        raise EngineError(f"the workflow {work.id} is {work.state}, and only failed work is retried{hint}")
    data, queue = data_of(status), queue_of(status)
    if status.name == PROGRAM:
        is_back = put_program_back(client, status, str(data["run"]), queue, work.error or "")
    else:
        is_back = put_back(client, status, queue, work.error or "")
    return _put_back(client, status, is_back)


def parts_of(client: Client, work_id: str) -> list[tuple[WorkflowStatus, Work]]:
    """Return the workflows of a piece of work, the first one first, each with the work as it tells it."""
    named = status_of(client, work_id)
    first = first_id(named)
    status = named if first == named.workflow_id else client.find(first) or named
    parts = [(status, works_of(client, [status])[0])]
    while parts[-1][1].state == CONTINUED:
        status = status_of(client, workflow_after(status))
        parts.append((status, works_of(client, [status])[0]))
    return parts


def _calls(client: Client, program_id: str) -> list[dict[str, Any]]:
    """Return the calls of a program by its journal, each with its state; none where a newer version wrote that."""
    try:
        paused = paused_program_in(journal_entries(client, program_id))
    except NewerForm:
        return []
    calls = [] if paused is None else paused.calls
    return [{"id": call.id, "tool": call.name, "state": call.state} for call in calls]


def queue_of(status: WorkflowStatus) -> str:
    return str(data_of(status).get("queue") or status.queue_name)


def _put_back(client: Client, status: WorkflowStatus, is_back: bool) -> Work:
    if not is_back:
        raise EngineError(f"the workflow {status.workflow_id} changed meanwhile; look at it again")
    return work_of(status_of(client, status.workflow_id))


def status_of(client: Client, work_id: str) -> WorkflowStatus:
    """Return the workflow of an id, or of the turn that was named so when it was enqueued."""
    for candidate in (work_id, turn_id_of(work_id)):
        if found := client.find(candidate):
            return found
    raise EngineError(f"there is no workflow {work_id} in {client.database}; `toolcrib workflows list` shows them")
