"""Journal of a durable program: tables beside those of DBOS, written by the execution that holds its workflow."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import sqlalchemy as sa
from dbos._error import DBOSWorkflowConflictIDError
from sqlalchemy.exc import IntegrityError

from toolcrib.adapters.dbos._client import Client
from toolcrib.adapters.dbos._work_tables import program_lines as _lines
from toolcrib.adapters.dbos._work_tables import program_requests as _requests
from toolcrib.adapters.dbos._work_tables import programs as _runs
from toolcrib.adapters.dbos._workflow import holding
from toolcrib.durable import WaitedTime, began, outlast

_BATCH = 500  # requests in one statement
_PAUSED = (
    sa.select(_runs.c.run, _runs.c.generation)
    .join_from(_requests, _runs, _runs.c.run == _requests.c.run)
    .where(_runs.c.state == "paused")
)
ProgramState: TypeAlias = Literal["running", "paused", "done", "cancelled"]


@dataclass(frozen=True, slots=True)
class Claim:
    """The state of a program when an execution takes it up.

    Attributes:
        lines: The journal so far.
        result: Its result in this generation or a later one, so that there is nothing to do; None otherwise.
    """

    lines: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    result: dict[str, Any] | None = None


class ProgramJournal:
    """Keeps the requests of a program, each line before what follows from it is begun.

    Every write looks whether this execution still holds its workflow: once another worker has taken it over, or it was
    cancelled, nothing more is written, and so nothing more is begun. Lines are written by a thread, those that came
    while it was at it in one transaction.

    Args:
        client: Where.
        workflow: The workflow that runs it.
        owner: DBOS's token, which shows that this execution holds the workflow.
        worker_id: The worker that executes it.
    """

    def __init__(self, client: Client, run: str, workflow: str, owner: str | None, worker_id: str = "") -> None:
        self._run, self._workflow, self._owner, self._worker_id = run, workflow, owner, worker_id
        self._client = client
        self._taken = self._stored = 0  # lines that were given, and that the database has
        self._next: list[str] = []
        self._writing: asyncio.Future[None] | None = None
        self._error: BaseException | None = None
        self.waits = WaitedTime()
        """The time in which the program waits for the database, here or for an approval."""

    @property
    def waited(self) -> float:
        """The seconds so far in which the program waited for the database."""
        return self.waits.seconds

    def claim(self, generation: int, toolkit: str, queue: str) -> Claim:
        """Claim the program, and return what is known of it.

        Raises:
            DBOSWorkflowConflictIDError: The workflow is another's, which DBOS knows what to do with; so do all here.
        """
        with self._holding() as connection:
            row = connection.execute(sa.select(_runs).where(_runs.c.run == self._run).with_for_update()).first()
            values = {"generation": generation, "state": "running", "updated_at": time.time()}
            if row is None:
                known = {"run": self._run, "toolkit": toolkit, "queue": queue, "result": None}
                connection.execute(sa.insert(_runs).values(**known, **values))
                return Claim()
            if row.state == "cancelled":
                return Claim(result={"state": "cancelled"})
            if row.generation > generation or (row.generation == generation and row.state != "running"):
                return Claim(result=json.loads(row.result) if row.result else {"state": row.state})
            connection.execute(sa.update(_runs).where(_runs.c.run == self._run).values(**values))
            connection.execute(sa.delete(_requests).where(_requests.c.run == self._run))
            found = connection.execute(
                sa.select(_lines.c.line).where(_lines.c.run == self._run).order_by(_lines.c.number)
            ).scalars()
            lines = [json.loads(line) for line in found]
        self._taken = self._stored = len(lines)
        return Claim(lines)

    def write(self, line: Mapping[str, Any]) -> None:
        """Write a line. The program's end is not a line: `finish` writes it together with the result.

        Raises:
            Exception: An earlier line could not be written; no later one will be.
        """
        if self._error is not None:
            raise self._error
        if line["t"] == "done":
            return
        if line["t"] == "started":
            line = {**line, **began(self._worker_id)}
        self._next.append(json.dumps(line, separators=(",", ":")))
        self._taken += 1
        if self._writing is None:
            self._begin()

    async def flush(self) -> None:
        """Return when the database has every line so far.

        Raises:
            DBOSWorkflowConflictIDError: The workflow is another's.
        """
        mine = self._taken
        with self.waits.counted():
            while self._error is None and self._stored < mine and self._writing is not None:
                await asyncio.wait([self._writing])  # which goes on when this is cancelled
        if self._error is not None:
            raise self._error

    async def written(self) -> None:
        """Return when nothing is being written any more, with or without success."""
        task = asyncio.current_task()
        while self._writing is not None:
            if task is not None and task.cancelling():  # the worker stops: it need not wait for a database that is away
                self._writing.cancel()
            await asyncio.wait([self._writing])

    def _begin(self) -> None:
        lines, self._next = self._next, []
        rows = [{"run": self._run, "number": self._stored + n, "line": line} for n, line in enumerate(lines)]
        self._writing = asyncio.ensure_future(outlast(lambda: asyncio.to_thread(self._insert, rows)))
        self._writing.add_done_callback(lambda done: self._wrote(done, len(rows)))

    def _insert(self, rows: list[dict[str, Any]]) -> None:
        try:
            with self._holding() as connection:
                connection.execute(sa.insert(_lines), rows)
        except IntegrityError as error:
            if not self._has(rows[0]):  # another execution of the same program was quicker
                raise DBOSWorkflowConflictIDError(self._workflow) from error

    def _has(self, row: Mapping[str, Any]) -> bool:
        """Return whether this very line is there: the connection may break after the server has kept it."""
        of = (_lines.c.run == row["run"], _lines.c.number == row["number"])
        with self._client.engine.begin() as connection:
            return connection.execute(sa.select(_lines.c.line).where(*of)).scalar() == row["line"]

    def _wrote(self, done: asyncio.Future[None], number: int) -> None:
        self._writing = None
        self._error = asyncio.CancelledError() if done.cancelled() else done.exception()
        if self._error is None:
            self._stored += number
            if self._next:
                self._begin()

    def finish(self, state: ProgramState, result: Mapping[str, Any]) -> bool:
        """Record how the program stands at the end of this workflow; return False for one that was cancelled before."""
        with self._holding() as connection:
            values = {"state": state, "result": json.dumps(result), "updated_at": time.time()}
            mine = sa.update(_runs).where(_runs.c.run == self._run, _runs.c.state != "cancelled")
            if connection.execute(mine.values(**values)).rowcount == 0:
                return False
            _keep_requests(connection, self._run, result)
            return True

    def _holding(self) -> AbstractContextManager[sa.Connection]:
        return holding(self._client, self._workflow, self._owner)


@dataclass(frozen=True, slots=True)
class ProgramRun:
    """The state of a program.

    Attributes:
        generation: How often it was taken up after a pause, and once more.
        result: The result of its last workflow; None while there is none.
    """

    run: str
    toolkit: str
    queue: str
    generation: int
    state: ProgramState
    result: dict[str, Any] | None


def program_run(client: Client, run: str) -> ProgramRun | None:
    """Return how a program stands; None when no workflow has taken it up yet."""
    with client.engine.begin() as connection:
        row = connection.execute(sa.select(_runs).where(_runs.c.run == run)).first()
    if row is None:
        return None
    result = json.loads(row.result) if row.result else None
    return ProgramRun(row.run, row.toolkit, row.queue, row.generation, row.state, result)


def has_paused(client: Client) -> bool:
    """Return whether any program waits for a person."""
    with client.engine.begin() as connection:
        return connection.execute(sa.select(_runs.c.run).where(_runs.c.state == "paused").limit(1)).first() is not None


def paused_on(client: Client, request_ids: Iterable[str]) -> list[tuple[str, int]]:
    """Return the programs that wait for any of these requests, with their generations."""
    ids, found = list(request_ids), dict[str, int]()
    with client.engine.begin() as connection:
        for start in range(0, len(ids), _BATCH):
            query = _PAUSED.where(_requests.c.request.in_(ids[start : start + _BATCH]))
            found.update((run, generation) for run, generation in connection.execute(query))
    return [*found.items()]


def requests_of_paused(client: Client) -> list[str]:
    """Return the requests that paused programs wait for.

    Those of a program that a worker of an earlier version paused are written down first: that worker did not.
    """
    unlisted = sa.select(_runs.c.run).where(_runs.c.state == "paused", _runs.c.run.not_in(sa.select(_requests.c.run)))
    with client.engine.begin() as connection:
        for run in connection.execute(unlisted).scalars().all():
            result = connection.execute(sa.select(_runs.c.result).where(_runs.c.run == run)).scalar_one()
            _keep_requests(connection, run, json.loads(result or "{}"))
        return list(connection.execute(_PAUSED.with_only_columns(_requests.c.request)).scalars())


def _keep_requests(connection: sa.Connection, run: str, result: Mapping[str, Any]) -> None:
    rows = [{"request": asked["id"], "run": run} for asked, _ in result.get("pending", ())]
    connection.execute(sa.delete(_requests).where(_requests.c.run == run))
    if rows:
        connection.execute(sa.insert(_requests), rows)


def journal_lines(client: Client, run: str) -> list[dict[str, Any]]:
    """Return the journal of a program."""
    query = sa.select(_lines.c.line).where(_lines.c.run == run).order_by(_lines.c.number)
    with client.engine.begin() as connection:
        return [json.loads(line) for line in connection.execute(query).scalars()]


def requests_in(lines: Iterable[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """Return the requests of a journal in their order, each as the ids of its call and of itself."""
    return [(line["id"], line["outcome"]["request"]["id"]) for line in lines if line["t"] == "suspended"]


def open_calls(lines: Iterable[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """Return the lines of the calls that a journal has begun and not ended, by call id."""
    begun: dict[str, Mapping[str, Any]] = {}
    ended: set[str] = set()
    for line in lines:
        if line["t"] == "started":
            begun[line["id"]] = line
        elif line["t"] == "retried":
            begun[line["id"]] = {**begun.get(line["id"], {}), **line}
        if line["t"] in ("ended", "cancelled"):
            ended.add(line["id"])
        elif line["t"] in ("started", "retried"):
            ended.discard(line["id"])
    return {call_id: line for call_id, line in begun.items() if call_id not in ended}


def cancel_run(client: Client, run: str) -> bool:
    """Cancel a program that has not ended; return whether there was one to cancel."""
    with client.engine.begin() as connection:
        mine = sa.update(_runs).where(_runs.c.run == run, _runs.c.state.in_(("running", "paused")))
        return connection.execute(mine.values(state="cancelled", updated_at=time.time())).rowcount > 0


def revive_run(connection: sa.Connection, run: str) -> None:
    """Restart a program that was cancelled, with its workflow."""
    mine = sa.update(_runs).where(_runs.c.run == run, _runs.c.state == "cancelled")
    connection.execute(mine.values(state="running", updated_at=time.time()))


def reopen_run(connection: sa.Connection, run: str, generation: int, error: str) -> None:
    """Reopen a program that failed with an error, so that it runs again.

    In doubt are the last call that raised, if the program failed with it, and the calls that were cut off with it.
    """
    row = connection.execute(sa.select(_runs).where(_runs.c.run == run).with_for_update()).first()
    if row is None:
        return
    result: dict[str, Any] = json.loads(row.result) if row.result else {}
    query = sa.select(_lines.c.number, _lines.c.line).where(_lines.c.run == run).order_by(_lines.c.number)
    lines = [json.loads(line) for _, line in connection.execute(query)]
    raised = [line for line in lines if line["t"] == "ended" and "raised" in line["reply"]]
    failed: dict[str, str] = {} if result else dict.fromkeys(_cut_off(lines), error)
    if raised and str(raised[-1]["reply"]["raised"][1]) in str(result.get("error")):
        failed[raised[-1]["id"]] = raised[-1]["reply"]["raised"][1]
    for number, (call_id, why) in enumerate(failed.items(), len(lines)):
        again = json.dumps({"t": "retried", "id": call_id, "failed": why}, separators=(",", ":"))
        connection.execute(sa.insert(_lines).values(run=run, number=number, line=again))
    values = {"state": "running", "result": None, "generation": generation, "updated_at": time.time()}
    connection.execute(sa.update(_runs).where(_runs.c.run == run).values(**values))


def _cut_off(lines: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the ids of the calls that ran when their program failed: begun, not ended, and not asked about."""
    latest = {line["id"]: line["t"] for line in lines if "id" in line and line["t"] != "value"}
    return [call_id for call_id in open_calls(lines) if latest[call_id] in ("started", "retried")]
