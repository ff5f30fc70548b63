"""Work that goes back to its queue under its id: what it is known to have done is not done again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import sqlalchemy as sa
from dbos import WorkflowStatus
from sqlalchemy.exc import IntegrityError

from toolcrib.adapters.dbos._client import Client, JsonSerializer
from toolcrib.adapters.dbos._context import forget_changes
from toolcrib.adapters.dbos._placement import ATTRIBUTES, KEY, data_of
from toolcrib.adapters.dbos._program_journal import reopen_run, revive_run
from toolcrib.errors import EngineError


def put_back(client: Client, status: WorkflowStatus, queue: str, error: str) -> bool:
    """Put a failed turn back into its queue, and return whether it is there again.

    A turn whose call had begun goes on as if its worker had died: the call is in doubt, and made again only if its tool
    is idempotent or a person says so, who is shown the error. A turn that came to no call begins anew.
    """
    steps = client.dbos.list_workflow_steps(status.workflow_id)
    first: Any = steps[0]["output"] if steps else None
    begun = isinstance(first, Mapping) and "call" in cast("Mapping[str, Any]", first)
    with _database(client).engine.begin() as connection:
        if not _reset(client, connection, status, queue, keep=1 if begun else 0):
            return False
        if begun:
            steps = _database(client).tables.operation_outputs
            mine = (steps.c.workflow_uuid == status.workflow_id, steps.c.function_id == 1)
            serialized = JsonSerializer().serialize({**first, "failed": error})
            connection.execute(sa.update(steps).where(*mine).values(output=serialized))
        forget_changes(connection, status.workflow_id)
    return True


def put_program_back(client: Client, status: WorkflowStatus, run: str, queue: str, error: str) -> bool:
    """Put a failed program back into its queue, and return whether it is there again.

    It runs again from its start, its calls answered from the journal; the calls that its error ended are in doubt.
    """
    with _database(client).engine.begin() as connection:
        if not _reset(client, connection, status, queue, keep=0):
            return False
        reopen_run(connection, run, int(data_of(status)["generation"]), error)
    return True


def put_cancelled_back(client: Client, status: WorkflowStatus, run: str | None, queue: str) -> bool:
    """Put a workflow that was cancelled or given up back into its queue, and return whether it is there again.

    Args:
        run: The program that it runs, if it is one's.
    """
    with _database(client).engine.begin() as connection:
        if not _reset(client, connection, status, queue):
            return False
        if run is not None:
            revive_run(connection, run)
    return True


def _reset(
    client: Client, connection: sa.Connection, status: WorkflowStatus, queue: str, *, keep: int | None = None
) -> bool:
    """Reset a workflow that ended, so that it waits in its queue; return False where it changed since.

    Args:
        keep: So many of its steps; all of them when None.

    Raises:
        EngineError: Other work has its key.
    """
    found = _database(client).tables
    work, output, steps = found.workflow_status, found.workflow_output, found.operation_outputs
    is_unchanged = (work.c.workflow_uuid == status.workflow_id, work.c.status == status.status)
    data, cleared = data_of(status), dict[str, Any].fromkeys(_CLEARED)
    key, attributes = data.get(KEY), data.get(ATTRIBUTES) or sa.null()
    values = {**cleared, "status": "ENQUEUED", "recovery_attempts": 0, "queue_name": queue, "deduplication_id": key}
    values["attributes"] = attributes
    try:
        if connection.execute(sa.update(work).where(*is_unchanged).values(**values)).rowcount == 0:
            return False
    except IntegrityError:
        why = f"other work of its key `{key}` waits or runs in the queue `{queue}`; try again when that has ended"
        raise EngineError(f"the workflow {status.workflow_id} cannot go on now: {why}") from None
    connection.execute(sa.delete(output).where(output.c.workflow_uuid == status.workflow_id))
    if keep is not None:
        mine = (steps.c.workflow_uuid == status.workflow_id, steps.c.function_id > keep)
        connection.execute(sa.delete(steps).where(*mine))
    return True


_CLEARED = (
    "output",
    "error",
    "owner_xid",
    "started_at_epoch_ms",
    "completed_at",
    "workflow_deadline_epoch_ms",
)


def _database(client: Client) -> Any:
    return client.dbos._sys_db  # pyright: ignore[reportPrivateUsage] -- DBOS takes up nothing that has ended, and has no public way to it
