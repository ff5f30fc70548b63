"""Client of durable work, for a process that runs none: it enqueues work, follows it, and reads its results."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import AsyncGenerator, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, Protocol, cast
from uuid import NAMESPACE_URL, UUID, uuid5

import sqlalchemy as sa
from dbos import DBOSClient, WorkflowStatus
from dbos._error import (
    DBOSAwaitedWorkflowCancelledError,
    DBOSNonExistentWorkflowError,
    DBOSQueueDeduplicatedError,
)
from dbos._queue import QueueRateLimit
from dbos._serialization import Serializer, serialize_args
from dbos._sys_db import db_retry

from toolcrib._json_writer import valid_text
from toolcrib._numbers import require_numbers, require_seconds
from toolcrib.adapters.dbos._work_tables import REQUEST_TABLES, WORK_TABLES
from toolcrib.adapters.dbos._work_tables import stopped_queues as _stopped
from toolcrib.approvals import ApprovalEntry, PostgresApprovalStore, ReviewableApprovalStore, SqliteApprovalStore
from toolcrib.database import Database
from toolcrib.errors import EngineError

__all__ = [
    "DEBOUNCED",
    "KEY",
    "PARTITION",
    "SCHEDULE",
    "TIMEOUT",
    "AnswerStore",
    "Client",
    "JsonSerializer",
    "Placement",
    "Queue",
    "data_of",
    "turn_id_of",
    "what_of",
    "with_id",
]

KEY, PARTITION, TIMEOUT = "key", "partition", "timeout"
"""Where the data of work keeps these of its placement, for what goes on with it."""

DEBOUNCED = "debounced"
"""Where the data of work has the key under which it waited for others; the key is free once it is due."""

SCHEDULE = "schedule"
"""Where the data of work names the schedule that it comes from."""

_NO_PARTITION = "none"  # of work that was enqueued without one, before its queue had limits for each
_STANDING: dict[str, Any] = {"concurrency": 0}


class AnswerStore(ReviewableApprovalStore, Protocol):
    """An approval store that can also list the answers that no call has used."""

    async def answered(self) -> tuple[ApprovalEntry, ...]:
        """Return the requests with an answer that no call has used, oldest first."""
        ...

    async def used(self, request_ids: Iterable[str]) -> frozenset[str]:
        """Return those of the requests whose answers are used up."""
        ...


class JsonSerializer(Serializer):
    """Writes what DBOS keeps as JSON: it can be read by eye, and reading it runs no code. Errors become their text."""

    def name(self) -> str:
        """Return what DBOS notes beside each value."""
        return "toolcrib_json"

    def serialize(self, data: Any) -> str:
        """Return a value of JSON shapes, arguments, or an exception as JSON."""
        if isinstance(data, BaseException):
            data = {_ERROR: type(data).__name__, "message": str(data)}
        elif isinstance(data, dict) and data.keys() == {"args", "kwargs"}:  # the arguments of a workflow
            given = cast("dict[str, Any]", data)
            data = {_ARGUMENTS: list(given["args"]), "kwargs": given["kwargs"]}
        return valid_text(json.dumps(data, ensure_ascii=False, separators=(",", ":"), default=_time_text))

    def deserialize(self, serialized_data: str) -> Any:
        """Return what `serialize` wrote."""
        data: Any = json.loads(serialized_data)
        if isinstance(data, dict) and _ERROR in data:
            return DurableFailure(data[_ERROR], data["message"])  # pyright: ignore[reportUnknownArgumentType] -- JSON
        if isinstance(data, dict) and _ARGUMENTS in data:
            return {"args": tuple(data[_ARGUMENTS]), "kwargs": data["kwargs"]}  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType] -- JSON
        return data  # pyright: ignore[reportUnknownVariableType] -- JSON


_ERROR, _ARGUMENTS = "$error", "$arguments"


def _time_text(value: object) -> str:
    """Return a time, which DBOS gives the workflow of a schedule, as text."""
    if isinstance(value, datetime):
        return value.isoformat()
    raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")


class DurableFailure(RuntimeError):
    """A workflow ended with an exception, of which the type's name and the text are kept.

    Attributes:
        error_type: The name of the exception's class.
    """

    def __init__(self, error_type: str, message: str) -> None:
        super().__init__(error_type, message)
        self.error_type, self.message = error_type, message

    def __str__(self) -> str:
        return f"{self.error_type}: {self.message}"


@dataclass(frozen=True, slots=True)
class Queue:
    """A queue of durable work, as DBOS keeps it in the database.

    Attributes:
        concurrency: The most that runs at a time, on all workers together; with 1 strictly in order.
        worker_concurrency: The most that runs at a time on one worker.
        rate: So many may start in so many seconds, on all workers together: `(100, 60.0)`.
        partition_concurrency: The most that runs at a time of one partition, on all workers together. With this or the
            next, all work of the queue has to name its partition.
        partition_rate: So many of one partition may start in so many seconds.
        polling: Seconds between two looks of a worker that has room.
        tries: How often a program is begun whose sandbox does not start, or whose process is killed from outside,
            before it fails; between two tries it waits in the queue, longer each time.
    """

    name: str
    concurrency: int | None = None
    worker_concurrency: int | None = 100
    rate: tuple[int, float] | None = None
    polling: float = 0.25
    tries: int = 5
    partition_concurrency: int | None = None
    partition_rate: tuple[int, float] | None = None

    def __post_init__(self) -> None:
        if not self.name or self.name.startswith("_dbos_"):
            raise ValueError(f"a queue needs a name that does not begin with `_dbos_`, and this is {self.name!r}")
        sizes, who = ("concurrency", "worker_concurrency", "tries", "partition_concurrency"), f"the queue `{self.name}`"
        require_numbers(who, self, dict.fromkeys(sizes, 1), seconds=("polling",))
        if (self.partition_concurrency or 0) > (self.concurrency or sys.maxsize):
            one, all_of_them = self.partition_concurrency, self.concurrency
            raise ValueError(f"{who}: partition_concurrency must be at most concurrency, {all_of_them}, and is {one}")

    @property
    def is_partitioned(self) -> bool:
        """Whether each partition of the work has limits of its own."""
        return self.partition_concurrency is not None or self.partition_rate is not None

    def check(self, partition: str | None) -> None:
        """Return if work of this partition can wait in this queue; raises EngineError for none where it is needed."""
        if self.is_partitioned and partition is None:
            raise EngineError(
                f"the queue `{self.name}` has limits for each partition: name the partition of this work, as in "
                "partition='tenant-7'"
            )

    @property
    def per_worker(self) -> int | None:
        """The most on one worker: never more than on all of them."""
        both = [n for n in (self.concurrency, self.worker_concurrency) if n is not None]
        return min(both, default=None)


@dataclass(frozen=True, slots=True)
class Placement:
    """Where and how a piece of work waits.

    Attributes:
        id: Names it; work of an id that exists is not enqueued again.
        priority: 1 before 2; 0 is before all of them, and the default.
        key: Of those with one key, one waits or runs at a time: a second is not enqueued. Work that is paused for an
            answer lets others of its key run; what goes on with it waits until the key is free.
        delay: Seconds before it may start.
        partition: Whose work it is, in a queue with limits for each partition: a tenant, for instance. What comes of
            the work is of the same partition.
        debounce: Seconds in which it waits for another of its key, which takes its place and waits as long again: of
            several, the last is done, once. A key is free as soon as its work is due.
        debounce_limit: Seconds after the first of them, after which the last is done all the same.
        timeout: Seconds in which it has to end once a worker has begun it; then it fails. It has them anew each time
            that it is begun: when it goes on after an answer, on another worker, or by a retry.
    """

    id: str
    priority: int = 0
    key: str | None = None
    delay: float | None = None
    timeout: float | None = None
    partition: str | None = None
    debounce: float | None = None
    debounce_limit: float | None = None

    def __post_init__(self) -> None:
        if self.partition is not None and not self.partition:
            raise ValueError("put: partition must be a text that is not empty")
        if self.partition is not None and self.key is not None:
            raise ValueError("put: work of a partition cannot have a key; give it an id, by which it is enqueued once")
        seconds = ("timeout", "debounce", "debounce_limit")
        require_numbers("put", self, {"priority": 0}, seconds=seconds, seconds_from_zero=("delay",))
        if self.debounce_limit is not None and self.debounce is None:
            raise ValueError("put: debounce_limit is of no use without debounce")
        if self.debounce is not None and self.key is None:
            raise ValueError("put: debounce needs a key, by which one takes the place of another")
        if self.debounce is not None and (self.delay is not None or self.priority):
            raise ValueError("put: debounced work can have no delay and no priority, since another may take its place")

    @property
    def options(self) -> dict[str, Any]:
        """What is given besides the id, as JSON shapes."""
        return {name: value for name in Placement.__slots__ if name != "id" and (value := getattr(self, name))}


def turn_id_of(given: str) -> str:
    """Return the id of a turn with a given name: a UUID is its own id, and another name has always the same one."""
    try:
        return str(UUID(given))
    except ValueError:
        return str(uuid5(NAMESPACE_URL, f"toolcrib:{given}"))


def with_id(data: Mapping[str, Any], work_id: str) -> dict[str, Any]:
    """Return the data of a turn or program with another id."""
    if "run" in data:
        return {**data, "run": work_id}
    return {**data, "turn": {**data["turn"], "uuid": work_id}}


def data_of(status: WorkflowStatus) -> Mapping[str, Any]:
    """Return what a workflow was given, as JSON shapes; nothing for one of other code."""
    given: tuple[object, ...] = (*(status.input["args"] if status.input else ()), {})
    return next(cast("Mapping[str, Any]", one) for one in given if isinstance(one, Mapping))


def what_of(data: Mapping[str, Any]) -> str:
    """Return what the data of work is for: the agent and the tool of a turn, the toolkit of a program."""
    turn = data.get("turn")
    tool = cast("Mapping[str, Any]", turn).get("tool_name", "") if isinstance(turn, Mapping) else ""
    return f"{data.get('agent')}: {tool}" if tool else str(data.get("toolkit") or data.get("agent") or "")


def _in_ms(seconds: float) -> int:
    """Return the time in so many seconds, as DBOS keeps times."""
    return int((time.time() + seconds) * 1000)


def _limiter(rate: tuple[int, float] | None) -> QueueRateLimit | None:
    return None if rate is None else {"limit": rate[0], "period": rate[1]}


class Client:
    """A connection to the database of durable work. It runs nothing, and there may be any number of them.

    Args:
        database: A path or a URL; see `Database.named`.
        approvals: Where requests wait and answers are found; in the same database when None.
        pool: How many connections it may have open.

    Raises:
        DatabaseError: No connection can be had.
    """

    def __init__(
        self,
        database: str | Path | Database | None = None,
        *,
        approvals: AnswerStore | None = None,
        pool: int = 5,
    ) -> None:
        self.database = database if isinstance(database, Database) else Database.named(database)
        self.engine = self.database.engine(pool=pool)
        self.dbos = DBOSClient(
            system_database_engine=self.engine,
            dbos_system_schema=self.database.dbos_schema,
            serializer=JsonSerializer(),
            application_name=self.database.application,
        )
        self._own_store: AnswerStore | None = None
        try:
            with self.database.missing_tables():
                self.dbos._sys_db.run_migrations()  # pyright: ignore[reportPrivateUsage] -- a client may come before any worker; there is no public way with an engine of one's own
            for tables in (WORK_TABLES, REQUEST_TABLES):
                self.database.make_tables(self.engine, tables)
            if approvals is None:
                path = self.database.path
                approvals = PostgresApprovalStore(self.database) if path is None else SqliteApprovalStore(path)
                self._own_store = approvals
            self.approvals: AnswerStore = approvals
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close its connections."""
        self.dbos.destroy()
        if isinstance(self._own_store, PostgresApprovalStore):
            self._own_store.close()
        self.engine.dispose()

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(self, *error: object) -> None:
        await asyncio.to_thread(self.close)

    # --- queues

    def declare(self, queue: Queue) -> None:
        """Write a queue's limits into the database, in place of those it has; a stopped queue stays stopped.

        It waits for the database, as all does here that is not a coroutine: on an event loop that has more to do, call
        `asyncio.to_thread(client.declare, queue)`.
        """
        write = partial(
            self.dbos.register_queue,
            queue.name,
            global_concurrency=queue.concurrency,
            worker_concurrency=queue.per_worker,
            limiter=_limiter(queue.rate),
            partition_concurrency=queue.partition_concurrency,
            partition_limiter=_limiter(queue.partition_rate),
            polling_interval_sec=queue.polling,
            application_name=self.database.application,
        )
        with ThreadPoolExecutor(1, "toolcrib-queue") as thread:  # on an event loop DBOS warns in words of its own
            thread.submit(write).result()
        if queue.is_partitioned:
            self._give_partitions(queue.name)
        if self.is_stopped(queue.name):
            self.dbos._sys_db.update_queue(queue.name, _STANDING)  # pyright: ignore[reportPrivateUsage] -- as below

    def _give_partitions(self, queue: str) -> None:
        """Put work that was enqueued before its queue had partitions into one; DBOS would never start it."""
        database = self.dbos._sys_db  # pyright: ignore[reportPrivateUsage] -- DBOS changes no partition
        table = database.tables.workflow_status
        alone = (table.c.queue_name == queue, table.c.queue_partition_key.is_(None))
        waits = table.c.status.in_(("ENQUEUED", "DELAYED", "PENDING"))
        with database.engine.begin() as connection:
            connection.execute(sa.update(table).where(*alone, waits).values(queue_partition_key=_NO_PARTITION))

    def stop(self, queue: str) -> None:
        """Stop a queue: nothing in it is started, on any worker, until `go`."""
        with self.engine.begin() as connection:
            if connection.execute(sa.select(_stopped).where(_stopped.c.queue == queue)).first() is None:
                connection.execute(sa.insert(_stopped).values(queue=queue))
        self.dbos._sys_db.update_queue(queue, _STANDING)  # pyright: ignore[reportPrivateUsage] -- its own way asks for an event loop

    def go(self, queue: Queue) -> None:
        """Start a queue again, with its limits."""
        with self.engine.begin() as connection:
            connection.execute(sa.delete(_stopped).where(_stopped.c.queue == queue.name))
        self.declare(queue)

    def is_stopped(self, queue: str) -> bool:
        """Return whether a queue stands still."""
        with self.engine.begin() as connection:
            return connection.execute(sa.select(_stopped).where(_stopped.c.queue == queue)).first() is not None

    # --- work

    async def waiting(self, workflow: str, queue: str) -> list[Mapping[str, Any]]:
        """Return what work in a queue, that was not started yet, was given."""
        found = await asyncio.to_thread(
            self.dbos.list_workflows, name=workflow, queue_name=queue, status=["ENQUEUED", "DELAYED"]
        )
        return [data for status in found if (data := data_of(status))]

    async def enqueue(self, workflow: str, queue: str, data: Mapping[str, Any], placement: Placement) -> str:
        """Enqueue work, and return its id: that of the work which has its key already, if one has."""
        return await asyncio.to_thread(self.enqueue_now, workflow, queue, data, placement)

    def enqueue_now(self, workflow: str, queue: str, data: Mapping[str, Any], placement: Placement) -> str:
        """Enqueue the same from plain code."""
        options: dict[str, Any] = {
            "workflow_name": workflow,
            "queue_name": queue,
            "workflow_id": placement.id,
            "app_version": self.database.version,
            "application_name": self.database.application,
        }
        if placement.priority:
            options["priority"] = placement.priority
        if placement.key is not None:
            options |= {"deduplication_id": placement.key, "duplication_policy": "return-existing"}
        if placement.partition is not None:
            options["queue_partition_key"] = placement.partition
        if placement.delay is not None:
            options["delay_seconds"] = placement.delay
        if placement.debounce is not None:
            return self._debounce(options, data, placement, placement.debounce)
        limits = {name: value for name in (KEY, PARTITION, TIMEOUT) if (value := getattr(placement, name)) is not None}
        return self.dbos.enqueue(cast("Any", options), {**data, **limits}).get_workflow_id()

    def _debounce(self, options: dict[str, Any], data: Mapping[str, Any], placement: Placement, seconds: float) -> str:
        """Enqueue work that waits for others of its key, or put it in the place of one that waits; return its id.

        DBOS's own function keeps the data as it is given, and work is to have its own id there.
        """
        system: Any = self.dbos._sys_db  # pyright: ignore[reportPrivateUsage] -- as above
        limits = {DEBOUNCED: placement.key, TIMEOUT: placement.timeout}
        data = {**data, **{name: value for name, value in limits.items() if value is not None}}
        held = f"{options['workflow_name']}-{placement.key}"  # the id by which DBOS's own function knows it
        options |= {"deduplication_id": held, "delay_seconds": min(seconds, placement.debounce_limit or seconds)}
        del options["duplication_policy"]
        limit = None if placement.debounce_limit is None else _in_ms(placement.debounce_limit)
        table = system.tables.workflow_status.c
        waits = (table.queue_name == options["queue_name"], table.deduplication_id == held, table.status == "DELAYED")

        @db_retry(sys_db=system)
        def replace() -> str | None:
            with system.engine.connect() as connection:
                holder = connection.execute(sa.select(table.workflow_uuid).where(*waits).with_for_update()).scalar()
                if holder is None:
                    return None
                inputs, form = serialize_args((with_id(data, holder),), {}, None, system.serializer)
                replaced = system.debounce_delayed_workflow(
                    workflow_name=options["workflow_name"],
                    queue_name=options["queue_name"],
                    deduplication_id=held,
                    delay_until_epoch_ms=_in_ms(seconds),
                    inputs=inputs,
                    serialization=form,
                    application_name=self.database.application,
                    conn=connection,
                )["bounced_workflow_id"]
                if replaced == holder:
                    connection.commit()
                return holder if replaced == holder else None

        while True:
            if (work_id := replace()) is not None:
                return work_id
            try:
                return self.dbos._enqueue_debounced(cast("Any", options), limit, data)  # pyright: ignore[reportPrivateUsage] -- as above
            except DBOSQueueDeduplicatedError:  # another process was quicker
                continue

    async def status(self, workflow_id: str) -> WorkflowStatus | None:
        """Return what DBOS knows of a workflow; None without one of that id, and for another application's."""
        return await asyncio.to_thread(self.find, workflow_id)

    def find(self, workflow_id: str) -> WorkflowStatus | None:
        """Return the same, from plain code."""
        found = self.dbos.list_workflows(workflow_ids=[workflow_id], application_name=self.database.application)
        return next(iter(found), None)

    async def result(self, workflow_id: str, *, polling: float = 0.25) -> Any:
        """Return what a workflow returned, as soon as it has.

        Raises:
            DurableFailure: It ended with an exception, or was cancelled.
            EngineError: Nothing has this id.
        """
        require_seconds("result", "polling", polling)
        try:
            handle: Any = await self.dbos.retrieve_workflow_async(workflow_id)
        except DBOSNonExistentWorkflowError:
            raise EngineError(f"there is no workflow {workflow_id} in {self.database}") from None
        try:
            return await handle.get_result(polling_interval_sec=polling)
        except DBOSAwaitedWorkflowCancelledError as error:
            raise DurableFailure("Cancelled", f"{workflow_id} was cancelled") from error

    async def stream(self, workflow_id: str, key: str, *, polling: float = 0.25) -> AsyncGenerator[Any, None]:
        """Yield what a workflow writes to one of its streams, from the first value on, until it ends."""
        require_seconds("stream", "polling", polling)
        values = self.dbos.read_stream_async(workflow_id, key, polling_interval_sec=polling)
        try:
            async for value in values:
                yield value
        finally:
            await values.aclose()
