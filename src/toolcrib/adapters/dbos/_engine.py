"""Engine, which runs durable work in this process. There is one in a process, because DBOS is one."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Literal, cast

import dbos._dbos as dbos_module
from dbos import DBOS
from dbos import error as dbos_error

from toolcrib._numbers import count_text, require_seconds
from toolcrib.adapters.dbos._client import Client, JsonSerializer
from toolcrib.adapters.dbos._executions import Executions
from toolcrib.adapters.dbos._placement import Queue
from toolcrib.adapters.dbos._queue_looks import QueueLooks
from toolcrib.adapters.dbos._sinks import WorkerSink, keeps_events_in, open_sink
from toolcrib.adapters.dbos._workers import (
    LEASE_SECONDS,
    Lease,
    default_worker_id,
    hand_back,
    last_seen,
    leave,
    put_off,
    take_lease,
)
from toolcrib.clock import SYSTEM_CLOCK, Clock, wait_until_set
from toolcrib.database import Database, given_up, is_outage, limit_answers
from toolcrib.durable import AnswerStore, RetryPolicy, outlast, require_answer_store
from toolcrib.errors import DatabaseError, EngineError, WorkerError, explain_options
from toolcrib.pipeline import Run
from toolcrib.record import Sink, require_sinks
from toolcrib.registry import Registry

_log = logging.getLogger("toolcrib.durable")
_POOL = 20  # connections of a worker, one of which listens
_END_SECONDS = 5.0  # for what is left to say to the database at the end
_CUTS = 3  # times that work which runs at the end is cancelled

_SCHEDULES_SECONDS = 1.0  # between two looks at the schedules, for those that are new, changed or paused
_LEFT_LONG = 30.0  # seconds after which a worker says that it cannot run what waits
_LEFT_KNOWN = 1_000  # pieces of work of which it has said so
_ERROR_CHARS = 500  # of the error of a call, in its request

Routine = Callable[["Engine"], Awaitable[None]]
"""A task of an engine beside its work; it is cancelled when the engine ends."""

standing_routines: list[Routine] = []
"""The routines of every engine of this process: modules add theirs when they are imported."""

queue_owners: list[Registry[Any]] = []
"""The registries of what has a `queue` in this process: modules add theirs when they are imported."""

_current: Engine | None = None
_process = 0  # that the engine belongs to: in a fork it is the parent


_OF_QUEUE = "an option of a queue: DurableAgent(agent, Queue('mail', {}=...))"


@explain_options(
    {
        name: _OF_QUEUE.format(name)
        for name in ("concurrency", "partition_concurrency", "polling", "rate", "retry", "worker_concurrency")
    }
)
class Engine:
    """Runs durable work: takes it from queues, recovers its own after a restart, and says that it lives.

    Work runs in the event loop that enters the engine. A process has one engine at a time, since it has one DBOS.

    Args:
        database: A path or a URL; see `Database.named`.
        worker_id: This worker's name: the same after a restart, and no other's. The host's name when None.
        queues: The queues that it takes work from: those of all durable agents and toolkits made before it is entered
            when None. With an empty list it takes nothing, and only enqueues and recovers.
        grace: Seconds that work which runs is given to end when the engine is left; after that it is cut off, and goes
            on at the next start.
        answers: Seconds between two looks for answers to approval requests, which let paused work go on.
        approvals: Where requests wait and answers are found; in the same database when None.
        record: Keep the events of calls and runs in the database, too, where the console shows them.
        recover_lost: Hand over the work of workers that are lost, without being asked to. A worker that was only slow
            loses its work, and stops. When None, where no `worker_id` is given: the next worker may have another one,
            so that none would take the work of this one up.
        sinks: Receive the events of all work of this engine, besides the sinks of its runs.
        clock: The clock of the time that work has, and of looks at answers, queues and other workers; leases go by that
            of the database.

    Raises:
        EngineError: An engine runs in this process already, or a DBOS that other code set up.
        WorkerError: A worker of that name lives.
        DatabaseError: No connection is available.
    """

    def __init__(
        self,
        database: str | Path | Database | None = None,
        *,
        worker_id: str | None = None,
        queues: Iterable[Queue] | None = None,
        grace: float = 10.0,
        answers: float = 1.0,
        approvals: AnswerStore | None = None,
        record: bool = False,
        recover_lost: bool | None = None,
        sinks: Iterable[Sink] = (),
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        require_seconds("Engine", "grace", grace, from_zero=True)
        require_seconds("Engine", "answers", answers)
        require_answer_store("Engine", approvals)
        self.clock = clock
        self.database = Database.named(database)
        self.worker_id = worker_id or default_worker_id()
        self.serves_all = queues is None
        self.queues = _require_queues(queues)
        self.recovers_lost = worker_id is None if recover_lost is None else recover_lost
        self._sinks = require_sinks("Engine", sinks)
        self._grace = grace
        self.answers, self._approvals, self._record = answers, approvals, record
        self._client: Client | None = None
        self._lease: Lease | None = None
        self.sink: WorkerSink | None = None
        """The sink that keeps events, with `record=True`."""
        self.executions = Executions()
        """The executions of its work that run tools."""
        self._tasks, self._living = list[asyncio.Task[None]](), list[asyncio.Task[None]]()
        self._is_leaving = self._has_cut_off = False
        self._left: deque[str] = deque(maxlen=_LEFT_KNOWN)
        self._looks: QueueLooks | None = None
        self.lost = asyncio.Event()
        """Set when this worker's work was handed over to others: it takes no more, and has to be left."""
        self.gave_back = False
        """True if the work that had not ended was put back into the queues when the engine was left."""

    @property
    def client(self) -> Client:
        """The client with which it enqueues; other code of this process may use it as well."""
        if self._client is None:
            raise EngineError("the engine does not run; enter it: `async with Engine(...) as engine:`")
        return self._client

    def recorded(self, run: Run, more: tuple[Sink, ...] = ()) -> Run:
        """Return a run with the sinks of the engine, but not with a second one that keeps events in the database.

        Args:
            more: The sinks that receive the events besides those of the run.
        """
        added = [*self._sinks]
        if self.sink is not None and not any(
            keeps_events_in(sink, self.database) for sink in (*run.sinks, *more, *added)
        ):
            added.append(self.sink)
        return run.with_sinks(*added) if added else run

    @property
    def state(self) -> Literal["starting", "working", "leaving", "lost"]:
        """The state of the engine: `lost` once its work was handed over to others."""
        if self.lost.is_set():
            return "lost"
        return "leaving" if self._is_leaving else "working" if self._living else "starting"

    @property
    def stalled(self) -> tuple[str, ...]:
        """The queues that this worker has not looked at for too long, as when the network lost its connections."""
        return () if self._looks is None else self._looks.overdue

    @property
    def event_lag(self) -> float:
        """The seconds that the oldest event has waited to be written into the database."""
        return 0.0 if self.sink is None else self.sink.sink.lag

    async def __aenter__(self) -> Engine:
        global _current, _process
        _check_fork()
        if _current is not None:
            raise EngineError(
                "an engine runs in this process already, and there is one engine per process; leave it first, share "
                "it, or start another process (to enqueue and to look, a Client will do)"
            )
        if _instance() is not None:
            raise EngineError(
                "this process has a DBOS of its own already, and DBOS is one per process; destroy it first"
            )
        _current, _process, self._is_leaving, self._has_cut_off = self, os.getpid(), False, False
        try:
            await self._open()
        except BaseException as error:
            await self._close()
            if is_outage(error):
                raise DatabaseError(str(self.database), str(error), "Start again once it can be used") from error
            raise
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._close()

    async def _open(self) -> None:
        if self.serves_all:
            self.queues = tuple({owner.queue.name: owner.queue for owners in queue_owners for owner in owners}.values())
        own_client = partial(Client, self.database, approvals=self._approvals, pool=_POOL, _is_worker=True)
        self._client = client = await asyncio.to_thread(own_client)
        self._lease = await take_lease(client, self.worker_id, [queue.name for queue in self.queues], self.clock)
        if self._record:
            self.sink = await asyncio.to_thread(open_sink, self.database)
        for queue in self.queues:
            await asyncio.to_thread(client.declare, queue)
        DBOS(
            config={
                "name": self.database.application,
                "application_version": self.database.version,
                "dbos_system_schema": self.database.dbos_schema,
                "executor_id": self.worker_id,
                "system_database_engine": client.engine,
                "system_database_url": client.engine.url.render_as_string(hide_password=False),
                "serializer": JsonSerializer(),
                "log_level": "ERROR",
                "notification_listener_polling_interval_sec": 0.25,  # how long it takes at most to leave the engine
                "scheduler_polling_interval_sec": _SCHEDULES_SECONDS,
            }
        )
        logging.getLogger("dbos").addFilter(_is_trouble)
        DBOS.listen_queues([queue.name for queue in self.queues])
        self._looks = QueueLooks(self.queues, self.clock)
        DBOS.launch()  # here, and not in a thread: DBOS runs async work in the loop that it is launched from
        database: Any = _instance()._sys_db
        self._looks.follow(database)
        self._lease.check_claims(database, lambda: self.takes_work)
        renew = partial(self._renew, self._lease)
        looking = _kept_up(lambda _: self.executions.keep_looking(client, self.clock, renew), self)
        self._living = [asyncio.create_task(lasting) for lasting in (self._live(self._lease), looking)]
        self._tasks = [asyncio.create_task(_kept_up(routine, self)) for routine in standing_routines]

    @property
    def running(self) -> frozenset[str]:
        """The ids of the workflows that run in this process now."""
        instance = _instance()
        return frozenset() if instance is None else frozenset(instance._active_workflows_set.activeList())

    async def begun_before(self, known: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, str]]:
        """Return, of calls that were begun before, which worker that was, and how it ended or was last seen, as text.

        Args:
            known: The stored data of each beginning, by call id.
        """
        begun = {call_id: began for call_id, began in known.items() if "worker" in began}  # older versions kept none
        beginnings = {call_id: (str(began["worker"]), float(began["at"])) for call_id, began in begun.items()}
        last_times = {self.worker_id: 0.0 if self._lease is None else self._lease.seen_before}
        for worker_id in {worker_id for worker_id, _ in beginnings.values()} - last_times.keys():
            look = partial(last_seen, self.client, worker_id)
            last_times[worker_id] = await outlast(lambda look=look: asyncio.to_thread(look))
        shown: dict[str, dict[str, str]] = {}
        for call_id, (by, at) in beginnings.items():
            ended = {"worker last seen": _time(max(at, last_times[by]))}
            if "failed" in known[call_id]:
                ended = {"failed with": str(known[call_id]["failed"])[:_ERROR_CHARS]}
            shown[call_id] = {"begun": f"{_time(at)} by the worker {by}", **ended}
        return shown

    async def leave(self, work_id: str, missing: str) -> None:
        """Leave work that cannot run here for a worker that has what is missing, and log it when it waits long."""
        why = f"waits for a worker that has {missing}"
        since = await outlast(lambda: asyncio.to_thread(leave, self.client, self.worker_id, work_id, why))
        if time.time() - since > _LEFT_LONG and work_id not in self._left:
            self._left.append(work_id)
            _log.warning("%s %s since %s; this worker, %s, has not", work_id, why, _time(since), self.worker_id)

    async def put_off(self, work_id: str, why: str, retry: RetryPolicy) -> int:
        """Delay work that failed until its next try, and return its tries so far.

        Args:
            why: The error of the try.
            retry: The tries that it may have; after the last one it is not delayed.
        """
        why = why[:_ERROR_CHARS]
        tries = await outlast(lambda: asyncio.to_thread(put_off, self.client, self.worker_id, work_id, why, retry))
        _log.warning("%s was not run to its end, in try %d of %d: %s", work_id, tries, retry.attempts, why)
        return tries

    @property
    def takes_work(self) -> bool:
        """True if work may begin here: the engine is not being left, and its work was not handed over."""
        return not (self._is_leaving or self.lost.is_set())

    async def may_begin(self) -> None:
        """Return if this worker's lease holds; where it was handed over, wait until the engine is left.

        It is the last that is asked before a tool begins, so that a process which stood still begins nothing. The
        events so far, that the tool begins among them, are in the database when it returns.
        """
        if self.sink is not None:
            await self.sink.sink.written()
        lease = None if self._has_cut_off else self._lease
        if lease is not None and not self.lost.is_set() and await lease.hold():
            return
        if lease is not None:
            self._give_up()
        await asyncio.Event().wait()  # whatever waits here is cancelled when the engine is left

    async def _live(self, lease: Lease) -> None:
        """Record every few seconds that this worker lives, until it turns out that it was given up."""
        while not self.lost.is_set():
            await self._renew(lease)
            await asyncio.sleep(LEASE_SECONDS / 3)

    async def _renew(self, lease: Lease) -> None:
        if not await outlast(lambda: asyncio.to_thread(lease.renew)):
            self._give_up()

    def _give_up(self) -> None:
        if self.lost.is_set():
            return
        error = WorkerError(
            self.worker_id, "its work was handed over to others while it gave no sign of life; it stops"
        )
        _log.error("%s", error)
        self._deafen()
        if self.sink is not None:
            self.sink.lost = True
        self.lost.set()

    def _deafen(self) -> None:
        """Stop taking work; what runs goes on, and is not recorded where others have taken it."""
        instance = _instance()
        for event in instance.background_thread_stop_events if instance is not None else ():
            event.set()

    async def _close(self) -> None:
        global _current
        self._is_leaving = True
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks = []
        with ExitStack() as silence:
            await self._end(silence)
        logging.getLogger("dbos").removeFilter(_is_trouble)
        self._client = self._lease = self.sink = None
        _current = None

    async def _end(self, silence: ExitStack) -> None:
        """End the work and close the connections; of a database that does not answer, `silence` gives it up."""
        instance = _instance()
        if instance is not None:
            answers = await self._drain(instance)
            # DBOS has put a pool of its own behind asyncio.to_thread, which takes nothing more once DBOS ends
            asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(thread_name_prefix="asyncio"))
            ends = [asyncio.to_thread(DBOS.destroy)]
            if answers:
                limit_answers(self.client.engine.url, _END_SECONDS)  # other connections may be lost
            else:
                silence.enter_context(given_up(self.client.engine.url))
                ends += [] if self.sink is None else [asyncio.to_thread(self.sink.sink.close)]  # it waits as long
            await asyncio.gather(*ends)
        for lasting in self._living:  # until here: what others take for dead, they take over
            lasting.cancel()
        await asyncio.gather(*self._living, return_exceptions=True)
        self._living = []
        if self._lease is not None and not self.lost.is_set() and (instance is None or self.gave_back):
            await _tried(self._lease.release)
        if self.sink is not None:
            await asyncio.to_thread(self.sink.sink.close)
        if self._client is not None:
            await asyncio.to_thread(self._client.close)

    async def _drain(self, instance: Any) -> bool:
        """Stop taking work, wait for what runs, and put back into the queues what has not ended in time.

        Return whether the database answers.
        """
        self._deafen()
        if self.sink is not None:
            self.sink.leaving = True
        with suppress(TimeoutError):
            async with asyncio.timeout(self._grace):
                await _ended(instance)
        await _cut_off(list(instance._workflow_tasks), self.clock)  # DBOS leaves them running
        self._has_cut_off = True
        client = self.client
        ours: Any = client.dbos
        for database in (instance._sys_db, ours._sys_db):
            database._retry_connection_errors = False  # nothing is left that should wait for it
        answers = await _tried(partial(last_seen if self.lost.is_set() else hand_back, client, self.worker_id))
        self.gave_back = answers and not self.lost.is_set()
        return answers


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(" ", "seconds")


def _instance() -> Any:
    """Return the DBOS of this process, or None."""
    return dbos_module._dbos_global_instance  # pyright: ignore[reportPrivateUsage] -- DBOS has no question for it


async def _cut_off(tasks: Iterable[asyncio.Task[Any]], clock: Clock) -> None:
    """Cancel tasks until they end, but for some that do not: other work waits for its hand-over behind them.

    One that notes what it broke off may wait for a database that is away; a tool may catch its cancellation.
    """
    running, ended = set(tasks), asyncio.Event()
    asyncio.gather(*running, return_exceptions=True).add_done_callback(lambda _: ended.set())
    for _ in range(_CUTS):
        for task in running:
            task.cancel()
        if await wait_until_set(ended, _END_SECONDS, clock):
            return
    rest = count_text(sum(not task.done() for task in running), "piece")
    _log.error("%s of work did not end when it was cut off: it is handed over, though its tool still runs here", rest)


async def _tried(work: Callable[[], object]) -> bool:
    """Run a step at the end of a worker; where it fails, the lease runs out by itself, and that is as good."""
    try:
        async with asyncio.timeout(_END_SECONDS):
            await asyncio.to_thread(work)
    except Exception:  # the database's
        return False
    return True


def _is_trouble(record: logging.LogRecord) -> bool:
    """Return whether what DBOS logs is worth a line: no traceback of what was cancelled, or ran out of time."""
    if record.levelno < logging.ERROR:
        return False
    error = record.exc_info[1] if record.exc_info else None
    return not isinstance(
        error, dbos_error.DBOSWorkflowCancelledError | dbos_error.DBOSAwaitedWorkflowCancelledError | WorkTimeoutError
    )


class WorkTimeoutError(TimeoutError):
    """Work was cut off because its time was over."""


def current_engine() -> Engine:
    """Return the engine of this process; raises EngineError when none runs."""
    _check_fork()
    if _current is None:
        raise EngineError("no engine runs in this process; enter one: `async with Engine(...) as engine:`")
    return _current


def _require_queues(queues: object) -> tuple[Queue, ...]:
    """Return queues as a tuple; raises TypeError for one alone, for its name, and for another object."""
    found = () if queues is None else tuple(cast("Iterable[object]", queues)) if isinstance(queues, Iterable) else None
    if found is None or not all(isinstance(queue, Queue) for queue in found):
        raise TypeError(f"Engine: queues must be a list of them, as in queues=[Queue('mail')], and not {queues!r:.80}")
    return cast("tuple[Queue, ...]", found)


def require_served(queue: Queue) -> None:
    """Raise EngineError for a queue made after an engine was entered that takes work from all queues there were."""
    if _current is not None and _current.serves_all and queue.name not in [known.name for known in _current.queues]:
        raise EngineError(
            f"the queue `{queue.name}` was made after the engine was entered, which takes no work from it; make its "
            "agent or toolkit before, or give all: Engine(queues=[...])"
        )


def _check_fork() -> None:
    if _current is not None and os.getpid() != _process:
        raise EngineError(
            "this process was forked while an engine ran, and has none of its threads; start it by `spawn`, or fork "
            "before the engine is entered (to enqueue and to look, a Client will do)"
        )


async def _ended(instance: Any) -> None:
    """Wait until nothing is being taken from a queue any more, and no work runs."""
    takers = [thread for thread in threading.enumerate() if thread.name.startswith("queue-worker-")]
    while any(thread.is_alive() for thread in takers):  # noqa: ASYNC110 -- threads
        await asyncio.sleep(0.01)
    while tasks := list(instance._workflow_tasks):
        await asyncio.wait(tasks)


async def _kept_up(routine: Routine, engine: Engine) -> None:
    """Run a routine again when it failed: it must not end because the database was away for a moment."""
    while True:
        try:
            await outlast(lambda: routine(engine))
        except Exception:  # the routine's own
            _log.exception("a routine of the engine failed, and begins again")
            await engine.clock.sleep(1.0)
        else:
            return
