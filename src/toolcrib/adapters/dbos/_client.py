"""Client of durable work, for a process that runs none: it enqueues work, follows it, and reads its results."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import AsyncGenerator, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeAlias, cast

import dbos._sys_db as dbos_database
import sqlalchemy as sa
from dbos import DBOSClient, Serializer, WorkflowStatus
from dbos import error as dbos_error
from dbos._serialization import serialize_args
from dbos._sys_db import db_retry
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession
from sqlalchemy.orm import Session

from toolcrib._json_writer import valid_text
from toolcrib._numbers import require_seconds
from toolcrib.adapters.dbos._placement import (
    ATTRIBUTES,
    DEBOUNCED,
    TIMEOUT,
    Placement,
    Queue,
    data_of,
    limits_of,
    with_id,
)
from toolcrib.adapters.dbos._work_tables import MARK_TABLES, REQUEST_TABLES, WORK_TABLES
from toolcrib.adapters.dbos._work_tables import stopped_queues as _stopped
from toolcrib.approvals import PostgresApprovalStore, SqliteApprovalStore
from toolcrib.database import Database
from toolcrib.durable import AnswerStore, DurableFailure, require_answer_store
from toolcrib.errors import EngineError, explain_options

Transaction: TypeAlias = "sa.Connection | Session | AsyncConnection | AsyncSession"
"""A connection or session of SQLAlchemy whose transaction the caller commits."""

_log = logging.getLogger("toolcrib.durable")
_LONGEST_PAUSE = 5.0  # seconds between two tries for a database that is away
_NO_PARTITION = "none"  # of work that was enqueued without one, before its queue had limits for each
_STANDING: dict[str, Any] = {"concurrency": 0}


def _pause(seconds: float) -> None:
    time.sleep(min(seconds, _LONGEST_PAUSE))


def _is_news(record: logging.LogRecord) -> bool:
    return not record.getMessage().startswith("Database connection")  # DBOS says so at each try, and guesses why


# DBOS would wait up to 90 seconds between two tries, in its own threads, and has no option for it
dbos_database.time = SimpleNamespace(**{**vars(time), "sleep": _pause})  # pyright: ignore[reportPrivateImportUsage]
logging.getLogger("dbos").addFilter(_is_news)


class JsonSerializer(Serializer):
    """Writes what DBOS keeps as JSON: it can be read by eye, and reading it runs no code. Errors become their text."""

    def name(self) -> str:
        """Return the name of the format, which DBOS keeps beside each value."""
        return "toolcrib_json"

    def serialize(self, data: Any) -> str:
        """Return a value of JSON shapes, arguments, or an exception as JSON."""
        if isinstance(data, BaseException):
            data = {_ERROR: type(data).__name__, "message": str(data)}
        elif isinstance(data, dict) and data.keys() == {"args", "kwargs"}:  # the arguments of a workflow
            fields = cast("dict[str, Any]", data)
            data = {_ARGUMENTS: list(fields["args"]), "kwargs": fields["kwargs"]}
        return valid_text(json.dumps(data, ensure_ascii=False, separators=(",", ":"), default=_time_text))

    def deserialize(self, serialized_data: str) -> Any:
        """Return the value that `serialize` wrote."""
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


def _place(url: sa.URL) -> tuple[str, object]:
    """Return the kind of a database and its name or file, which are the same however its host is called."""
    kind = url.get_backend_name()
    return kind, Path(url.database or "").resolve() if kind == "sqlite" else url.database


def _in_ms(seconds: float) -> int:
    """Return the time in so many seconds, as DBOS keeps times."""
    return int((time.time() + seconds) * 1000)


def _limiter(rate: tuple[int, float] | None) -> Any:
    return None if rate is None else {"limit": rate[0], "period": rate[1]}


@explain_options()
class Client:
    """A connection to the database of durable work. It runs nothing, and there may be any number of them.

    A file that is missing is made, which is logged as a warning: the name may be misspelt.

    Args:
        database: A path or a URL; see `Database.named`.
        approvals: Where requests wait and answers are found; in the same database when None.
        pool: How many connections it may have open.

    Raises:
        DatabaseError: No connection is available.
    """

    def __init__(
        self,
        database: str | Path | Database | None = None,
        *,
        approvals: AnswerStore | None = None,
        pool: int = 5,
        _is_worker: bool = False,
    ) -> None:
        require_answer_store("Client", approvals)
        self.database = Database.named(database)
        path = self.database.path
        is_new = not _is_worker and path is not None and not path.exists()
        self.engine = self.database.engine(pool=pool)
        if path is not None and is_new:
            _log.warning("made the new database %s", path.absolute())
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
            for tables in (WORK_TABLES, REQUEST_TABLES, MARK_TABLES):
                self.database.make_tables(self.engine, tables)
            if approvals is None:
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
        """Return the input of the work in a queue that was not started yet."""
        found = await asyncio.to_thread(
            self.dbos.list_workflows, name=workflow, queue_name=queue, status=["ENQUEUED", "DELAYED"]
        )
        return [data for status in found if (data := data_of(status))]

    async def enqueue(
        self,
        workflow: str,
        queue: str,
        data: Mapping[str, Any],
        placement: Placement,
        connection: Transaction | None = None,
    ) -> str:
        """Enqueue work, and return its id: that of the work which has its key already, if one has.

        Args:
            connection: Enqueue it in the transaction of this connection or session: it is there when that is committed.

        Raises:
            EngineError: The connection is to another database, or work that is put in a transaction has a key.
            TypeError: It is not a connection or session of SQLAlchemy.
        """
        if connection is None:
            return await asyncio.to_thread(self.enqueue_now, workflow, queue, data, placement)
        if placement.key is not None:
            raise EngineError(
                "put: work that is put in a transaction cannot have a key, which DBOS looks for in one of its own; "
                "give it an id, by which it is enqueued once"
            )
        if isinstance(connection, AsyncConnection | AsyncSession):
            put: Any = partial(self._enqueue_within, workflow, queue, data, placement)
            return await connection.run_sync(put)
        return self._enqueue_within(workflow, queue, data, placement, connection)

    def _enqueue_within(
        self,
        workflow: str,
        queue: str,
        data: Mapping[str, Any],
        placement: Placement,
        transaction: sa.Connection | Session,
    ) -> str:
        connection = transaction.connection() if isinstance(transaction, Session) else transaction
        if not isinstance(connection, sa.Connection):  # pyright: ignore[reportUnnecessaryIsInstance] -- a host may pass anything
            raise TypeError(f"put: connection must be a connection or session of SQLAlchemy, and is {connection!r:.80}")
        url = connection.engine.url
        if url.database is not None and _place(url) != _place(self.engine.url):
            raise EngineError(f"put: the connection is to another database than {self.database}, which has the queue")
        data = {**data, **limits_of(placement)}
        options = self.options(workflow, queue, placement, data)
        return self.dbos.enqueue_in_transaction(connection, cast("Any", options), data).get_workflow_id()

    def enqueue_now(self, workflow: str, queue: str, data: Mapping[str, Any], placement: Placement) -> str:
        """Enqueue the same from plain code, in a transaction of its own."""
        if placement.debounce is not None:
            return self._debounce(workflow, queue, data, placement, placement.debounce)
        data = {**data, **limits_of(placement)}
        options = self.options(workflow, queue, placement, data)
        return self.dbos.enqueue(cast("Any", options), data).get_workflow_id()

    def options(self, workflow: str, queue: str, placement: Placement, data: Mapping[str, Any]) -> dict[str, Any]:
        """Return the options of DBOS for work that is placed so, and has this data."""
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
        if data.get(ATTRIBUTES):
            options["attributes"] = dict(data[ATTRIBUTES])
        return options

    def _debounce(
        self, workflow: str, queue: str, data: Mapping[str, Any], placement: Placement, seconds: float
    ) -> str:
        """Enqueue work that waits for others of its key, or put it in the place of one that waits; return its id.

        DBOS's own function keeps the data as it is given, and work is to have its own id there.
        """
        limits = {DEBOUNCED: placement.key, TIMEOUT: placement.timeout, ATTRIBUTES: placement.attributes}
        data = {**data, **{name: value for name, value in limits.items() if value is not None}}
        options = self.options(workflow, queue, placement, data)
        holder_id = f"{options['workflow_name']}-{placement.key}"  # the id by which DBOS's own function knows it
        options |= {"deduplication_id": holder_id, "delay_seconds": min(seconds, placement.debounce_limit or seconds)}
        del options["duplication_policy"]
        limit = None if placement.debounce_limit is None else _in_ms(placement.debounce_limit)
        while True:
            if (work_id := self._replace_delayed(options, data, seconds)) is not None:
                return work_id
            try:
                return self.dbos._enqueue_debounced(cast("Any", options), limit, data)  # pyright: ignore[reportPrivateUsage] -- as above
            except dbos_error.DBOSQueueDeduplicatedError:  # another process was quicker
                continue

    def _replace_delayed(self, options: dict[str, Any], data: Mapping[str, Any], seconds: float) -> str | None:
        """Put data in the place of that of the work of its key that waits, and return its id; None where none waits."""
        system: Any = self.dbos._sys_db  # pyright: ignore[reportPrivateUsage] -- as above
        table = system.tables.workflow_status.c
        waits = (
            table.queue_name == options["queue_name"],
            table.deduplication_id == options["deduplication_id"],
            table.status == "DELAYED",
        )

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
                    deduplication_id=options["deduplication_id"],
                    delay_until_epoch_ms=_in_ms(seconds),
                    inputs=inputs,
                    serialization=form,
                    application_name=self.database.application,
                    conn=connection,
                )["bounced_workflow_id"]
                if replaced == holder:
                    mine = sa.update(system.tables.workflow_status).where(table.workflow_uuid == holder)
                    connection.execute(mine.values(attributes=options.get("attributes") or sa.null()))
                    connection.commit()
                return holder if replaced == holder else None

        return replace()

    async def status(self, workflow_id: str) -> WorkflowStatus | None:
        """Return the DBOS status of a workflow; None without one of that id, and for another application's."""
        return await asyncio.to_thread(self.find, workflow_id)

    def find(self, workflow_id: str) -> WorkflowStatus | None:
        """Return the same, from plain code."""
        found = self.dbos.list_workflows(workflow_ids=[workflow_id], application_name=self.database.application)
        return next(iter(found), None)

    async def result(self, workflow_id: str, *, polling: float = 0.25) -> Any:
        """Return the result of a workflow, as soon as it has one.

        Raises:
            DurableFailure: It ended with an exception, or was cancelled.
            EngineError: Nothing has this id.
        """
        require_seconds("result", "polling", polling)
        try:
            handle: Any = await self.dbos.retrieve_workflow_async(workflow_id)
        except dbos_error.DBOSNonExistentWorkflowError:
            raise EngineError(f"there is no workflow {workflow_id} in {self.database}") from None
        try:
            return await handle.get_result(polling_interval_sec=polling)
        except dbos_error.DBOSAwaitedWorkflowCancelledError as error:
            raise DurableFailure("Cancelled", f"{workflow_id} was cancelled") from error

    async def stream(self, workflow_id: str, key: str, *, polling: float = 0.25) -> AsyncGenerator[Any, None]:
        """Yield the values of one of a workflow's streams, from the first on, until it ends."""
        require_seconds("stream", "polling", polling)
        values = self.dbos.read_stream_async(workflow_id, key, polling_interval_sec=polling)
        try:
            async for value in values:
                yield value
        finally:
            await values.aclose()
