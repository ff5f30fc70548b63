"""Journal of a durable program, and the rows that say how programs stand: tables beside those of DBOS."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeAlias

import sqlalchemy as sa
from dbos import error as dbos_error

from toolcrib.adapters.dbos._client import Client
from toolcrib.adapters.dbos._work_tables import PROGRAM_LINES
from toolcrib.adapters.dbos._work_tables import program_requests as _requests
from toolcrib.adapters.dbos._work_tables import programs as _runs
from toolcrib.adapters.dbos._workflow import HeldTables
from toolcrib.code import JournalEntry, SqlJournal
from toolcrib.database import statements
from toolcrib.durable import began, outlast
from toolcrib.sandbox import Raised

_BATCH = 500  # requests in one statement
_PAUSED = (
    sa.select(_runs.c.run, _runs.c.generation)
    .join_from(_requests, _runs, _runs.c.run == _requests.c.run)
    .where(_runs.c.state == "paused")
)
ProgramState: TypeAlias = Literal["running", "paused", "done", "cancelled"]


class ProgramJournal(SqlJournal):
    """The journal of a durable program, and the row that says how the program stands.

    Once another worker has taken the workflow over, or it was cancelled, nothing more is written, and so nothing more
    is begun. The program's end is not an entry: `finish` writes it together with the result.

    Args:
        client: Where.
        workflow: The workflow that runs it.
        owner: DBOS's token, which shows that this execution holds the workflow.
        worker_id: The worker that executes it.
    """

    def __init__(self, client: Client, run: str, workflow: str, owner: str | None, worker_id: str = "") -> None:
        tables = HeldTables(client, workflow, owner)
        super().__init__(tables, run, table=PROGRAM_LINES)
        self._run, self._workflow, self._holding, self._worker_id = run, workflow, tables.holding, worker_id

    def stamp(self) -> Mapping[str, Any]:
        """Return the worker and the time."""
        return began(self._worker_id)

    def append(self, entry: JournalEntry) -> None:
        """Append an entry, unless it is the program's end."""
        if entry.kind != "done":
            super().append(entry)

    async def write_lines(self, number: int, lines: Sequence[str]) -> None:
        """Append lines, once the database is there."""
        await outlast(partial(super().write_lines, number, lines))

    def conflict(self) -> BaseException:
        """Return the error for a journal that another execution of the same program writes."""
        return dbos_error.DBOSWorkflowConflictIDError(self._workflow)

    def claim(self, generation: int, toolkit: str, queue: str) -> dict[str, Any] | None:
        """Claim the program; return its result in this generation or a later one, so that there is nothing to do.

        Raises:
            DBOSWorkflowConflictIDError: The workflow is another's, which DBOS knows what to do with; so do all here.
        """
        with self._holding() as connection:
            row = connection.execute(sa.select(_runs).where(_runs.c.run == self._run).with_for_update()).first()
            values = {"generation": generation, "state": "running", "updated_at": time.time()}
            if row is None:
                known = {"run": self._run, "toolkit": toolkit, "queue": queue, "result": None}
                connection.execute(sa.insert(_runs).values(**known, **values))
                return None
            if row.state == "cancelled":
                return {"state": "cancelled"}
            if row.generation > generation or (row.generation == generation and row.state != "running"):
                return json.loads(row.result) if row.result else {"state": row.state}
            connection.execute(sa.update(_runs).where(_runs.c.run == self._run).values(**values))
            connection.execute(sa.delete(_requests).where(_requests.c.run == self._run))
            return None

    def finish(self, state: ProgramState, result: Mapping[str, Any]) -> bool:
        """Record how the program stands at the end of this workflow; return False for one that was cancelled before."""
        with self._holding() as connection:
            values = {"state": state, "result": json.dumps(result), "updated_at": time.time()}
            mine = sa.update(_runs).where(_runs.c.run == self._run, _runs.c.state != "cancelled")
            if connection.execute(mine.values(**values)).rowcount == 0:
                return False
            _keep_requests(connection, self._run, result)
            return True


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


def journal_entries(client: Client, run: str) -> list[JournalEntry]:
    """Return the journal of a program."""
    with client.engine.begin() as connection:
        return _entries(connection, run)


def _entries(connection: sa.Connection, run: str) -> list[JournalEntry]:
    return [JournalEntry.from_dict(json.loads(line)) for line in PROGRAM_LINES.read(statements(connection), run)]


def asked_by(client: Client, run: str) -> tuple[list[str], frozenset[str]]:
    """Return the ids of the requests in the journal of a program, in their order, and those of all its calls.

    One of the calls may have asked what is not in the journal yet. A journal that is not read here has both, too.
    """
    with client.engine.begin() as connection:
        lines = [json.loads(line) for line in PROGRAM_LINES.read(statements(connection), run)]
    asked = [line["outcome"]["request"]["id"] for line in lines if line["t"] == "suspended"]
    return asked, frozenset(line["id"] for line in lines if line["t"] == "started")


def open_calls(entries: Iterable[JournalEntry]) -> dict[str, Mapping[str, Any]]:
    """Return the fields of the calls that a journal has begun and not ended, by call id."""
    begun: dict[str, Mapping[str, Any]] = {}
    ended: set[str] = set()
    for entry in entries:
        if entry.kind in ("started", "retried"):
            begun[entry.call_id] = {**begun.get(entry.call_id, {}), **entry.fields}
            ended.discard(entry.call_id)
        elif entry.kind in ("ended", "cancelled"):
            ended.add(entry.call_id)
    return {call_id: fields for call_id, fields in begun.items() if call_id not in ended}


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
    entries = _entries(connection, run)
    failed: dict[str, str] = {} if result else dict.fromkeys(_cut_off(entries), error)
    raised = [(entry.call_id, reply) for entry in entries if isinstance(reply := entry.fields.get("reply"), Raised)]
    if raised and str(raised[-1][1].message) in str(result.get("error")):
        failed[raised[-1][0]] = raised[-1][1].message
    again = [JournalEntry("retried", call_id, {"failed": why}).to_json() for call_id, why in failed.items()]
    PROGRAM_LINES.append(statements(connection), run, again)
    values = {"state": "running", "result": None, "generation": generation, "updated_at": time.time()}
    connection.execute(sa.update(_runs).where(_runs.c.run == run).values(**values))


def _cut_off(entries: Iterable[JournalEntry]) -> list[str]:
    """Return the ids of the calls that ran when their program failed: begun, not ended, and not asked about."""
    latest = {entry.call_id: entry.kind for entry in entries if entry.call_id and entry.kind != "value"}
    return [call_id for call_id in open_calls(entries) if latest[call_id] in ("started", "retried")]
