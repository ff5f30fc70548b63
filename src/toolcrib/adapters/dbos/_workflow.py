"""Workflows and their steps: how async functions become durable work."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from functools import partial, wraps
from typing import Any, TypeAlias, TypeVar

import sqlalchemy as sa
from dbos import DBOS
from dbos import error as dbos_error
from dbos._context import current_owner_xid
from sqlalchemy.exc import DBAPIError

from toolcrib.adapters.dbos._client import Client
from toolcrib.adapters.dbos._engine import WorkTimeoutError, current_engine
from toolcrib.adapters.dbos._placement import TIMEOUT
from toolcrib.approvals import (
    POSTGRES_APPROVAL_TABLES,
    PostgresApprovalStore,
    SqlApprovalStore,
    SqliteApprovalStore,
)
from toolcrib.database import Execute, Tables, is_outage, statements, take_lock
from toolcrib.durable import AnswerStore, UnknownHereError, newer_version, outlast
from toolcrib.errors import NewerForm, register_signal, signal_of_newer_form

R = TypeVar("R")

register_signal(dbos_error.DBOSBaseException)
Body: TypeAlias = Callable[..., Awaitable[R]]

_RECOVERIES = 100  # how often work may be begun again before DBOS gives it up: it may kill each worker that takes it


def workflow(name: str) -> Callable[[Body[R]], Body[R]]:
    """Register an async function as what work of this name runs; it takes and returns JSON shapes.

    Its last argument is the data of the work.

    It is cut off when the time of the work is over, which begins here: no time without a worker counts.

    What it raises because the database is away, or because the engine is left, is not an outcome: the work is cut like
    that of a worker that died, and goes back to its queue.
    """

    def register(body: Body[R]) -> Body[R]:
        @wraps(body)
        async def run(*arguments: Any) -> R:
            async with _deadline(arguments[-1].get(TIMEOUT)):
                return await _run_here(body, arguments)

        return DBOS.workflow(name=name, max_recovery_attempts=_RECOVERIES)(run)

    return register


@asynccontextmanager
async def _deadline(seconds: float | None) -> AsyncGenerator[None]:
    """Cut off what runs inside when so many seconds have passed on the engine's clock."""
    if seconds is None:
        yield
        return
    limit = asyncio.timeout(None)

    async def ring() -> None:
        await current_engine().clock.sleep(seconds)
        limit.reschedule(asyncio.get_running_loop().time())

    try:
        async with limit:
            alarm = asyncio.create_task(ring())
            try:
                yield
            finally:
                alarm.cancel()
    except TimeoutError:
        if not limit.expired():
            raise
        raise WorkTimeoutError(f"it did not end within {seconds:g} s") from None


async def _run_here(body: Body[R], arguments: tuple[Any, ...]) -> R:
    engine, task = current_engine(), asyncio.current_task()
    if not engine.takes_work:
        raise asyncio.CancelledError
    token = signal_of_newer_form.set(lambda error: UnknownHereError(newer_version(error)))
    try:
        return await body(*arguments)
    except (UnknownHereError, NewerForm) as error:
        missing = newer_version(error) if isinstance(error, NewerForm) else str(error)
        await engine.leave(str(DBOS.workflow_id), missing)
        raise asyncio.CancelledError from error
    except Exception as error:
        if is_outage(error) or (task is not None and task.cancelling()):
            raise asyncio.CancelledError from error
        raise
    finally:
        signal_of_newer_form.reset(token)


@contextmanager
def holding(client: Client, work_id: str, owner: str | None) -> Generator[sa.Connection]:
    """Begin a transaction in which an execution holds its workflow, until the end of the body.

    Args:
        owner: DBOS's token of the execution; None without one to ask about.

    Raises:
        DBOSWorkflowConflictIDError: The workflow is another's, which DBOS knows what to do with; so do all here.
    """
    database = client.dbos._sys_db  # pyright: ignore[reportPrivateUsage] -- it fences DBOS's own steps, and there is no public way to it
    with database.engine.begin() as connection:
        if owner is not None:
            database._check_owner_txn(connection, work_id, owner)  # pyright: ignore[reportPrivateUsage] -- as above
        yield connection


class HeldTables:
    """Tables of durable work, each transaction on which looks whether an execution still holds its workflow.

    Args:
        client: Where.
        workflow: The workflow.
        owner: DBOS's token, which shows that this execution holds the workflow.
        lock: The lock of those who write to the tables on a server; empty where there is none.
    """

    error: type[Exception] = DBAPIError

    def __init__(self, client: Client, workflow: str, owner: str | None, lock: str = "") -> None:
        self.holding = partial(holding, client, workflow, owner)
        self._lock = lock if client.database.path is None else ""

    @contextmanager
    def transaction(self, *, write: bool) -> Generator[Execute]:
        """Begin a transaction; raises DBOSWorkflowConflictIDError, as all does here that finds another execution."""
        with self.holding() as connection:
            execute = statements(connection)
            if write and self._lock:
                take_lock(execute, self._lock)
            yield execute

    def close(self) -> None:
        """Return at once: the client closes its connections."""


class CheckedTables:
    """Tables of another database, each write to which is taken back where the workflow is no longer held at its end.

    Args:
        tables: The tables.
        check: Raises DBOSWorkflowConflictIDError where another execution holds the workflow.
    """

    def __init__(self, tables: Tables, check: Callable[[], None]) -> None:
        self._tables, self._check, self.error = tables, check, tables.error

    @contextmanager
    def transaction(self, *, write: bool) -> Generator[Execute]:
        """Begin a transaction; raises DBOSWorkflowConflictIDError at the end of one that writes."""
        with self._tables.transaction(write=write) as execute:
            yield execute
            if write:
                self._check()

    def close(self) -> None:
        """Return at once: the store closes its connections."""


def held_approvals(client: Client, approvals: AnswerStore) -> AnswerStore:
    """Return the view of a store into which the execution that calls this writes as long as it holds its workflow.

    A hand-over comes before such a transaction or after it. In a store of another database it may come right before
    its end, and one that is not in a database is returned as it is.
    """
    if not isinstance(approvals, SqlApprovalStore):
        return approvals
    here, work_id = client.database.path, str(DBOS.workflow_id)
    owner = current_owner_xid(work_id)
    if isinstance(approvals, SqliteApprovalStore):
        is_here = here is not None and approvals.path.resolve() == here.resolve()
    else:
        is_here = isinstance(approvals, PostgresApprovalStore) and approvals.database == client.database
    if is_here:
        return approvals.over(lambda _: HeldTables(client, work_id, owner, POSTGRES_APPROVAL_TABLES.lock))
    return approvals.over(partial(CheckedTables, check=partial(_check_held, client, work_id, owner)))


def _check_held(client: Client, work_id: str, owner: str | None) -> None:
    with holding(client, work_id, owner):
        pass


async def require_held(client: Client) -> None:
    """Return if the execution that calls this still holds its workflow.

    Raises:
        DBOSWorkflowConflictIDError: As `holding` raises it.
    """
    work_id = str(DBOS.workflow_id)
    ask = partial(_check_held, client, work_id, current_owner_xid(work_id))
    await outlast(lambda: asyncio.to_thread(ask))


async def step(name: str, run: Callable[[], Awaitable[R]]) -> R:
    """Run a step of the workflow that calls this, and return its result, JSON shapes; one that is recorded is not run.

    Steps are matched by their place in the workflow, and one in the place of another of a different name is an error:
    so name it by what it is made of.
    """

    async def body() -> R:
        return await run()

    return await DBOS.run_step_async({"name": name}, body)
