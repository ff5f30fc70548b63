"""Workers on the database, each under a name that no other may take while it lives."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
import time
from collections.abc import Callable, Collection, Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal, cast
from uuid import uuid4

import sqlalchemy as sa
from dbos._utils import INTERNAL_QUEUE_NAME

from toolcrib.adapters.dbos._client import Client
from toolcrib.adapters.dbos._work_tables import served_queues as _served
from toolcrib.adapters.dbos._work_tables import workers as _workers
from toolcrib.clock import SYSTEM_CLOCK, UPTIME_CLOCK, Clock
from toolcrib.durable import RetryPolicy, outlast
from toolcrib.errors import WorkerError, explain_options

LEASE_SECONDS = 15.0
"""The time for which a worker that renews nothing counts as alive."""

_LEFT_SECONDS = 2.0  # that other workers have to take what one cannot run, before it looks at it again


@explain_options()
@dataclass(frozen=True, slots=True)
class Worker:
    """A worker, as the database knows it.

    Attributes:
        state: `running`, `stopped` (it ended in good order), `lost` (it says nothing any more) or `recovered` (its work
            was handed over).
        seen_at: When it last said that it lives, in seconds since the epoch.
        pending: How many workflows it holds: those that it runs, or ran when it was last seen.
        queues: The queues that it takes work from.
    """

    id: str
    host: str
    pid: int
    started_at: float
    seen_at: float
    state: Literal["running", "stopped", "lost", "recovered"]
    pending: int
    queues: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the worker as JSON shapes."""
        return {name: getattr(self, name) for name in Worker.__slots__}


def default_worker_id() -> str:
    """Return this host's name: stable over restarts, and distinct while one worker runs on a host."""
    return socket.gethostname() or "worker"


class Lease:
    """The right to work under a worker's name: a row with a token that only its holder knows.

    Args:
        clock: Seconds that pass also while the process stands still.

    Attributes:
        seen_before: When the holder before this one last said that it lived; 0 when there was none.

    Raises:
        WorkerError: A worker lives under that name.
        UnseenWorkerError: It may live: on another host, or in another container.
    """

    def __init__(
        self,
        client: Client,
        worker_id: str,
        clock: Callable[[], float] = UPTIME_CLOCK.monotonic,
        *,
        queues: Iterable[str] = (),
    ) -> None:
        self._engine, self.worker_id = client.engine, worker_id
        self.token = f"{uuid4().hex}@{_place()}@{_born(os.getpid())}"
        self.seen_before = 0.0
        self._clock, self._renewed = clock, clock()
        row = {"token": self.token, "host": socket.gethostname(), "pid": os.getpid(), "state": "running"}
        with self._engine.begin() as connection:
            at = database_time(connection)
            mine = sa.update(_workers).where(_workers.c.id == worker_id)
            # a write first: on SQLite it is what keeps two from reading the same
            connection.execute(mine.values(id=_workers.c.id))
            found = connection.execute(sa.select(_workers).where(_workers.c.id == worker_id).with_for_update()).first()
            if found is not None and _lives(found, at):
                kind = WorkerError if _is_here(found) else UnseenWorkerError
                raise kind(
                    worker_id,
                    f"it runs already, as process {found.pid} on {found.host}; every worker needs an id of its own. "
                    "Give another with --worker-id or worker_id=",
                )
            if found is None:
                connection.execute(sa.insert(_workers).values(id=worker_id, started_at=at, seen_at=at, **row))
            else:
                self.seen_before = found.seen_at
                connection.execute(mine.values(started_at=at, seen_at=at, **row))
            connection.execute(sa.delete(_served).where(_served.c.worker == worker_id))
            if serves := [{"worker": worker_id, "queue": queue} for queue in sorted(set(queues))]:
                connection.execute(sa.insert(_served), serves)

    def check(self, connection: sa.Connection) -> None:
        """Return if the lease holds until the end of this transaction.

        Raises:
            WorkerError: It was handed over, or ran out while the worker said nothing.
        """
        of = sa.select(_workers).where(_workers.c.id == self.worker_id).with_for_update(read=True)
        found = connection.execute(of).first()
        if found is None or found.token != self.token or _has_lapsed(found, database_time(connection)):
            raise WorkerError(self.worker_id, "its lease has run out, so that it may begin nothing")

    def check_claims(self, database: Any, takes_work: Callable[[], bool]) -> None:
        """Check the lease in each transaction in which DBOS takes work from a queue; no work is taken at the end.

        Args:
            database: The system database of DBOS.
            takes_work: Whether the worker takes work; its threads may come back from an outage after it was left.
        """
        begin = database._begin

        @contextmanager
        def checked(isolation: str | None) -> Generator[Any]:
            with begin(isolation) as connection:
                yield connection
                if not takes_work():
                    raise WorkerError(self.worker_id, "it stops, and takes no more work")
                self.check(connection)  # raises, and what was taken is not

        database._begin = checked
        claiming: Any = _Claiming(database)
        # its claims of a queue with one at a time for each partition begin their transactions otherwise
        kind = cast("Any", type(database))
        database.start_queued_partitioned_workflows = partial(kind.start_queued_partitioned_workflows, claiming)

    def renew(self) -> bool:
        """Record that the worker lives; False when its work was handed over and it has to stop."""
        at = self._clock()  # before the database's, so that here it runs out sooner than for the others
        with self._engine.begin() as connection:
            mine = sa.update(_workers).where(_workers.c.id == self.worker_id, _workers.c.token == self.token)
            renewed = connection.execute(mine.values(seen_at=database_time(connection))).rowcount == 1
        if renewed:
            self._renewed = at
        return renewed

    async def hold(self) -> bool:
        """Return True while the lease holds, by this process's clock; one that may have run out is renewed first.

        False when the work was handed over. A database that is away is waited for.
        """
        while self._clock() - self._renewed > LEASE_SECONDS:
            if not await outlast(lambda: asyncio.to_thread(self.renew)):
                return False
        return True

    def release(self) -> None:
        """Record that the worker ended in good order."""
        with self._engine.begin() as connection:
            mine = sa.update(_workers).where(_workers.c.id == self.worker_id, _workers.c.token == self.token)
            connection.execute(mine.values(seen_at=database_time(connection), state="stopped"))


class _Claiming:
    """A database of DBOS all of whose transactions are checked."""

    def __init__(self, database: Any) -> None:
        self._database, self.engine = (
            database,
            SimpleNamespace(begin=lambda: database._begin(None), dialect=database.engine.dialect),
        )

    def __getattr__(self, name: str) -> Any:
        return getattr(self._database, name)


class UnseenWorkerError(WorkerError):
    """A worker of that name was seen a moment ago in a place that cannot be looked into from here."""


async def take_lease(client: Client, worker_id: str, queues: Iterable[str] = (), clock: Clock = SYSTEM_CLOCK) -> Lease:
    """Return the lease of a worker's name; one that may be of a dead process is waited for until it runs out.

    Raises:
        WorkerError: A worker lives under that name.
    """
    until = clock.monotonic() + LEASE_SECONDS + 1
    while True:
        try:
            return await asyncio.to_thread(Lease, client, worker_id, queues=queues)
        except UnseenWorkerError:
            if clock.monotonic() > until:
                raise
        await clock.sleep(1.0)


def last_seen(client: Client, worker_id: str) -> float:
    """Return when a worker last said that it lives, in seconds since the epoch; 0 for an unknown one."""
    with client.engine.begin() as connection:
        found = connection.execute(sa.select(_workers.c.seen_at).where(_workers.c.id == worker_id)).scalar()
    return float(found or 0)


def workers(client: Client) -> list[Worker]:
    """Return every worker that ever worked on the database, by id."""
    database = client.dbos._sys_db  # pyright: ignore[reportPrivateUsage] -- the client counts nothing by worker
    status_table = database.tables.workflow_status
    count = (
        sa.select(status_table.c.executor_id, sa.func.count().label("pending"))
        .where(status_table.c.status == "PENDING")
        .group_by(status_table.c.executor_id)
        .subquery()
    )
    query = sa.select(_workers, count.c.pending).outerjoin(count, count.c.executor_id == _workers.c.id)
    with database.engine.begin() as connection:
        at = database_time(connection)
        rows = connection.execute(query.order_by(_workers.c.id)).fetchall()
        served = connection.execute(sa.select(_served.c.worker, _served.c.queue).order_by(_served.c.queue)).fetchall()
    queues: dict[str, list[str]] = {}
    for worker_id, queue in served:
        queues.setdefault(worker_id, []).append(queue)
    return [
        Worker(
            row.id,
            row.host,
            row.pid,
            row.started_at,
            row.seen_at,
            _state(row, at),
            row.pending or 0,
            tuple(queues.get(row.id, ())),
        )
        for row in rows
    ]


def lost_among(client: Client, worker_ids: Collection[str]) -> frozenset[str]:
    """Return those of the workers that are lost."""
    if not worker_ids:
        return frozenset()
    with client.engine.begin() as connection:
        at = database_time(connection)
        rows = connection.execute(sa.select(_workers).where(_workers.c.id.in_(worker_ids))).fetchall()
    return frozenset(row.id for row in rows if _state(row, at) == "lost")


@explain_options()
def recover(client: Client, worker_id: str, *, force: bool = False) -> list[str]:
    """Hand over the work of a worker that will not come back, and return the ids of what others take up now.

    Of several who hand over at once, one gets each piece. Should the worker come back after all, it finds that its
    lease is gone and stops, and nothing that it does is recorded any more.

    Args:
        force: Also when it still says that it lives.

    Raises:
        WorkerError: There is no such worker, or it lives.
    """
    with client.engine.begin() as connection:
        at = database_time(connection)
        mine = sa.update(_workers).where(_workers.c.id == worker_id)
        connection.execute(mine.values(id=_workers.c.id))
        found = connection.execute(sa.select(_workers).where(_workers.c.id == worker_id).with_for_update()).first()
        if found is None:
            known = [row.id for row in connection.execute(sa.select(_workers.c.id))]
            raise WorkerError(worker_id, f"there is no such worker; there are: {', '.join(known) or 'none'}")
        if not force and _lives(found, at):
            raise WorkerError(
                worker_id,
                f"it lives, as process {found.pid} on {found.host}, and was seen {at - found.seen_at:.0f} s ago; "
                "stop it first, or say that it is to be handed over all the same",
            )
        connection.execute(mine.values(token=uuid4().hex, state="recovered"))
    return hand_back(client, worker_id)


def hand_back(client: Client, worker_id: str, only: Collection[str] | None = None) -> list[str]:
    """Put what a worker holds back into the queues that it came from, all or only some, and return the ids."""
    return [
        work_id
        for work_id in (held_by(client, worker_id) if only is None else only)
        if _database(client).reenqueue_for_recovery(work_id, [worker_id], INTERNAL_QUEUE_NAME)
    ]


def leave(client: Client, worker_id: str, work_id: str, why: str) -> float:
    """Leave work that a worker took and cannot run for one that can, and return since when it has been left."""
    with _database(client).engine.begin() as connection:
        at = database_time(connection)
        noted = _notes_of(client, connection, worker_id, work_id)
        since = float(noted.get("left_at", at)) if noted.get("left") == why else at
        noted |= {"left": why, "left_at": since}
        _delay(client, connection, worker_id, work_id, at + _LEFT_SECONDS, noted)
    return since


def put_off(client: Client, worker_id: str, work_id: str, why: str, retry: RetryPolicy) -> int:
    """Delay work that failed until its next try, by any worker, and return its tries so far.

    Args:
        why: The error of the try.
        retry: The tries that it may have; after the last one it is not delayed.
    """
    with _database(client).engine.begin() as connection:
        at = database_time(connection)
        noted = _notes_of(client, connection, worker_id, work_id)
        tries = int(noted.get("tries", 0)) + 1
        if tries < retry.attempts:
            message = f"waits for another try, after {tries} of {retry.attempts}: {why}"
            noted |= {"tries": tries, "left_at": at, "left": message}
            _delay(client, connection, worker_id, work_id, at + retry.pause_after(tries), noted)
    return tries


def _row_conditions(client: Client, worker_id: str, work_id: str) -> tuple[Any, ...]:
    """Return the conditions for the row of work that a worker has taken."""
    table = _database(client).tables.workflow_status
    return table.c.workflow_uuid == work_id, table.c.status == "PENDING", table.c.executor_id == worker_id


def _notes_of(client: Client, connection: sa.Connection, worker_id: str, work_id: str) -> dict[str, Any]:
    """Return the notes on work that a worker has taken: why it waited before, and how often it was tried."""
    attributes = _database(client).tables.workflow_status.c.attributes
    found = connection.execute(sa.select(attributes).where(*_row_conditions(client, worker_id, work_id))).scalar()
    return dict(found or {})


def _delay(
    client: Client, connection: sa.Connection, worker_id: str, work_id: str, until: float, noted: dict[str, Any]
) -> None:
    """Return work that a worker has taken to its queue until a time, with these notes."""
    table = _database(client).tables.workflow_status
    values: dict[str, Any] = {
        "status": "DELAYED",
        "delay_until_epoch_ms": int(until * 1000),
        "owner_xid": None,
        "started_at_epoch_ms": None,
        "workflow_deadline_epoch_ms": None,
        "recovery_attempts": table.c.recovery_attempts - 1,  # in which DBOS counts the workers that died with it
        "attributes": noted,
    }
    connection.execute(sa.update(table).where(*_row_conditions(client, worker_id, work_id)).values(**values))


def held_by(client: Client, worker_id: str) -> list[str]:
    """Return the ids of the workflows that a worker took from a queue and that have not ended."""
    status_table = _database(
        client
    ).tables.workflow_status  # of every application: a worker's name is one in the database
    query = sa.select(status_table.c.workflow_uuid).where(
        status_table.c.status == "PENDING", status_table.c.executor_id == worker_id
    )
    with _database(client).engine.begin() as connection:
        return list(connection.execute(query).scalars())


def _database(client: Client) -> Any:
    return client.dbos._sys_db  # pyright: ignore[reportPrivateUsage] -- DBOS hands over by this, and offers it to its own server alone


# --- whether one lives


def _lives(row: Any, at: float) -> bool:
    """Return whether a worker lives, as far as can be known from here."""
    if row.state != "running" or _has_lapsed(row, at):
        return False
    return not _is_here(row) or _born(row.pid) == row.token.rpartition("@")[2]


def _has_lapsed(row: Any, at: float) -> bool:
    return abs(at - row.seen_at) > LEASE_SECONDS  # a clock may also be set back


def _is_here(row: Any) -> bool:
    """Return whether the processes of a worker's place can be looked at; hosts and containers may share a name."""
    return row.token.partition("@")[2].rpartition("@")[0] == _place()


def _place() -> str:
    """Return the id of a place with its own process numbers: a boot of a host, and a container on it."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:  # not on Linux
        return socket.gethostname()


def _born(pid: int) -> str:
    """Return when a process was started, in the system's own measure; empty without one."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except OSError:
        if sys.platform == "linux":
            return ""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return ""
    except OSError:  # the process is there, of another user
        pass
    return "before"


def _state(row: Any, at: float) -> Any:
    return "lost" if row.state == "running" and not _lives(row, at) else row.state


def database_time(connection: sa.Connection) -> float:
    """Return the database's time, which is the same for all workers; a file's is that of its host."""
    if connection.dialect.name == "sqlite":
        return time.time()
    return float(connection.execute(sa.text("SELECT extract(epoch FROM clock_timestamp())")).scalar_one())
