"""Durable work of the commands `worker`, `enqueue`, `workflows` and `workers`. Needs the extra `durable`."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any, cast
from uuid import uuid4

import typer

from toolcrib.adapters.dbos import (
    Client,
    DurableAgent,
    DurableToolkit,
    Engine,
    Placement,
    Queue,
    serve_health,
    turn_id_of,
    workers,
)
from toolcrib.cli._database import check_kept
from toolcrib.cli._find_toolset import open_toolset, toolset_of
from toolcrib.cli._formatting import say, say_cannot_listen
from toolcrib.cli._live_view import LiveView
from toolcrib.cli._status import Status
from toolcrib.cli._target import load
from toolcrib.cli._telemetry import telemetry_sink
from toolcrib.cli._worker import WorkerOptions
from toolcrib.code import Toolkit
from toolcrib.database import Database
from toolcrib.errors import TargetError, UnknownTool
from toolcrib.turns import Agent, Turn

_FORCED = 130  # the exit status of a worker that is stopped twice


@dataclass(frozen=True, slots=True)
class Durable:
    """The durable agents and toolkits of a TARGET."""

    agents: tuple[DurableAgent, ...]
    toolkits: tuple[DurableToolkit, ...]

    @property
    def queues(self) -> dict[str, Queue]:
        """Their queues, by name."""
        return {item.queue.name: item.queue for item in (*self.agents, *self.toolkits)}


@dataclass(frozen=True, slots=True)
class Job:
    """Work that `enqueue` puts in a queue: a tool with its arguments, or a program."""

    tool: str | None
    arguments: str
    program: str | None
    queue: str | None
    placement: Placement
    conversation_id: str | None = None


def open_client(database: str | None, *, create: bool = True) -> Client:
    """Return a client of the database that the option or the environment names.

    Args:
        create: Whether a file that is missing is made.

    Raises:
        DatabaseError: It cannot be used.
    """
    named = Database.named(database)
    if not create:
        check_kept(database)
    return Client(named)


@asynccontextmanager
async def durable_of(target: str) -> AsyncGenerator[Durable]:
    """Return the durable agents and toolkits of a target; tools alone make one of each, named like the target.

    A toolset is open while the body runs.

    Raises:
        TargetError: A worker can run nothing in it.
    """
    value = load(target)
    several: Sequence[object] = list(vars(value).values()) if isinstance(value, ModuleType) else _as_list(value)
    agents = {id(item): item for item in several if isinstance(item, DurableAgent)}
    toolkits = {id(item): item for item in several if isinstance(item, DurableToolkit)}
    if agents or toolkits:
        yield Durable(tuple(agents.values()), tuple(toolkits.values()))
        return
    if any(isinstance(item, Agent) for item in several):
        raise TargetError(target, "its agents are not durable; wrap them: DurableAgent(agent)")
    place, _, attribute = target.rpartition(":") if ":" in target else (target, "", "")
    name = attribute or (Path(place).stem if place.endswith((".py", ".pyw")) else place)
    async with open_toolset(toolset_of(target, value)) as toolset:
        agent = Agent(name, f"The tools of {target}", toolset)
        yield Durable((DurableAgent(agent),), (DurableToolkit(Toolkit(toolset), name, name=name, replace=True),))


def _as_list(value: object) -> list[object]:
    return list(cast("Sequence[object]", value)) if isinstance(value, list | tuple) else [value]


# --- a worker


async def work(target: str, options: WorkerOptions, health: tuple[str, int] | None) -> bool:
    """Run a worker until a signal stops it; return False when its work was handed over to others.

    Args:
        target: The target.
        options: The options of the command.
        health: Host and port where it answers how it is.
    """
    async with durable_of(target) as durable:
        names = options.queue or []
        known = durable.queues
        missing = [name for name in names if name not in known]
        if missing:
            raise TargetError(target, f"nothing in it has the queue `{missing[0]}`; there are: {', '.join(known)}")
        queues = [known[name] for name in (names or known)]
        if options.concurrency is not None:
            queues = [replace(queue, worker_concurrency=options.concurrency) for queue in queues]
        return await _take_work(queues, options, health)


async def _take_work(queues: list[Queue], options: WorkerOptions, health: tuple[str, int] | None) -> bool:
    view = (LiveView(),) if options.live else ()
    engine = Engine(
        options.database,
        worker_id=options.worker_id,
        queues=queues,
        grace=options.grace,
        record=options.record,
        recover_lost=options.recover_lost,
        sinks=(*((telemetry_sink(),) if options.telemetry else ()), *view),
    )
    stopped = asyncio.Event()
    async with AsyncExitStack() as stack:
        for sink in view:
            stack.enter_context(sink)
        if health is not None:
            await _open_health(stack, engine, *health)
        await stack.enter_async_context(engine)
        _on_signals(stopped)
        names = ", ".join(queue.name for queue in queues)
        say(f"worker {engine.worker_id} takes work from {names} in {engine.database}; Ctrl-C stops it")
        waits = [asyncio.create_task(event.wait()) for event in (stopped, engine.lost)]
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for task in waits:
            task.cancel()
        if stopped.is_set():
            say(f"stopping: takes no more work, and gives what runs {options.grace:g} s; Ctrl-C again ends it at once")
    if engine.lost.is_set():
        say(f"worker {engine.worker_id} stops: its work was handed over to others while it gave no sign of life")
        return False
    if engine.gave_back:
        say(f"worker {engine.worker_id} has stopped; nothing of its work is left")
    else:
        say(
            f"worker {engine.worker_id} has stopped while its database was away: what it held goes on when it starts "
            f"again, or in another worker after `toolcrib workers recover {engine.worker_id}`"
        )
    return True


async def _open_health(stack: AsyncExitStack, engine: Engine, host: str, port: int) -> None:
    try:
        port = await stack.enter_async_context(serve_health(engine, host, port))
    except OSError as error:
        say_cannot_listen(host, port, error, "--health")
        raise typer.Exit(Status.MISUSED) from None
    say(f"/healthz, /readyz and /metrics are on http://{f'[{host}]' if ':' in host else host}:{port}")


def _on_signals(stopped: asyncio.Event) -> None:
    """Stop the worker in good order on the first Ctrl-C or SIGTERM, and at once on the second."""
    loop = asyncio.get_running_loop()

    def stop() -> None:
        if stopped.is_set():
            os._exit(_FORCED)  # what runs is recovered, as after any other death
        stopped.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        with suppress(NotImplementedError):  # on Windows Ctrl-C ends it at once
            loop.add_signal_handler(number, stop)


# --- enqueueing


async def enqueue_job(target: str, job: Job, database: str | None) -> str:
    """Put a job in its queue, and return its id; a database that is missing is made for a job that is valid.

    Raises:
        TargetError: The target has no agent or toolkit for it, or several.
        InvalidArguments: The tool does not take the arguments.
    """
    async with durable_of(target) as durable:
        if job.program is None:
            return await _enqueue_turn(target, durable, job, database)
        toolkit = _only(target, durable.toolkits, job.queue, "durable toolkit", lambda item: True)
        placement = replace(job.placement, id=job.placement.id or f"program-{uuid4().hex}")
        toolkit.queue.check(placement.partition)
        async with await asyncio.to_thread(open_client, database) as client:
            before = await client.status(placement.id)
            toolkit.use(client)
            program = await toolkit.start(job.program, placement=placement, conversation_id=job.conversation_id)
            _say_if_known(program.id, placement.id, before, job.placement)
            _say_if_unserved(client, target, toolkit.queue.name)
        return program.id


async def _enqueue_turn(target: str, durable: Durable, job: Job, database: str | None) -> str:
    tool, placement = job.tool or "", job.placement
    if not any(tool in agent.agent.toolset.names() for agent in durable.agents):
        raise UnknownTool(tool, tuple(name for agent in durable.agents for name in agent.agent.toolset.names()))
    agent = _only(target, durable.agents, job.queue, "durable agent", lambda item: tool in item.agent.toolset.names())
    spec = agent.agent.toolset[tool].tool.spec
    spec.validate_json(job.arguments)
    arguments: dict[str, Any] = json.loads(job.arguments)
    turn: Turn[Any] = Turn(agent.agent.toolset[tool].tool, kwargs=arguments)
    if placement.id:
        turn = Turn.from_dict({**turn.to_dict(), "uuid": turn_id_of(placement.id)}, agent.agent.tools)
    agent.queue.check(placement.partition)
    async with await asyncio.to_thread(open_client, database) as client:
        agent.use(client)
        before = await client.status(turn.id)
        handle = await agent.put(
            turn,
            priority=placement.priority,
            key=placement.key,
            delay=placement.delay,
            timeout=placement.timeout,
            partition=placement.partition,
            debounce=placement.debounce,
            debounce_limit=placement.debounce_limit,
            conversation_id=job.conversation_id,
            attributes=placement.attributes,
        )
        _say_if_known(handle.id, turn.id, before, placement)
        _say_if_unserved(client, target, agent.queue.name)
    return handle.id


def _say_if_known(enqueued: str, asked: str, before: object, given: Placement) -> None:
    """Print that nothing was enqueued, if there is such work already."""
    if before is not None:
        say(f"nothing was enqueued: {given.id} was before, and is once")
    elif enqueued != asked and given.debounce is not None:
        say(f"it took the place of the work below, which waited with the key {given.key}")
    elif enqueued != asked:
        say(f"nothing was enqueued: the work below has the key {given.key}, and has not ended")


def _say_if_unserved(client: Client, target: str, queue: str) -> None:
    """Print that what was enqueued waits until a worker is started, if none that runs takes work from its queue."""
    if not any(worker.state == "running" and queue in worker.queues for worker in workers(client)):
        say(f"no worker takes work from the queue {queue} now; start one: toolcrib worker {target}")
    elif client.is_stopped(queue):
        say(f"the queue {queue} stands still; `DurableAgent.resume` lets it go on")


def _only(target: str, items: Sequence[Any], queue: str | None, what: str, fits: Callable[[Any], bool]) -> Any:
    found = [item for item in items if fits(item) and queue in (None, item.queue.name)]
    if len(found) == 1:
        return found[0]
    if found:
        queues = ", ".join(item.queue.name for item in found)
        raise TargetError(target, f"it has {len(found)} {what}s for this; choose one by its --queue: {queues}")
    where = f" with the queue `{queue}`" if queue else ""
    queues = sorted({item.queue.name for item in items if fits(item)})
    others = f"; there are the queues {', '.join(queues)}" if queues else ""
    raise TargetError(target, f"it has no {what}{where} for this{others}")
