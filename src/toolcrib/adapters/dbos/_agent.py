"""Durable agent, whose turns outlive the process, and run on any worker."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any, cast
from uuid import uuid4

from dbos import DBOS

from toolcrib.adapters.dbos._answers import DbosAnswers
from toolcrib.adapters.dbos._client import Client, Transaction
from toolcrib.adapters.dbos._context import SharedContext
from toolcrib.adapters.dbos._engine import Engine, current_engine, queue_owners, require_served
from toolcrib.adapters.dbos._handle import TurnHandle
from toolcrib.adapters.dbos._host import DbosHost
from toolcrib.adapters.dbos._placement import ATTRIBUTES, PARTITION, Placement, Queue
from toolcrib.adapters.dbos._schedules import Schedule, apply_schedule
from toolcrib.adapters.dbos._workflow import held_approvals, workflow
from toolcrib.calls import Failed, Outcome, StoredFields, Suspended, error_of, outcome_from_dict, versioned
from toolcrib.durable import (
    PLACEMENT,
    WAITING,
    AnswerStore,
    RetryPolicy,
    TurnExecution,
    TurnWorkflow,
    UnknownHereError,
    arguments_in_names,
    current_execution,
    held_run,
    outlast,
    require_retries,
)
from toolcrib.errors import EngineError, UnregisteredAgentError, UnregisteredToolError, explain_options
from toolcrib.pipeline import Pipeline, Run, open_run
from toolcrib.registry import Registry
from toolcrib.tools import Tool
from toolcrib.turns import Agent, AgentRegistry, StopReason, Turn, TurnBinding, require_agent

TURN = "toolcrib.turn"
"""The name of the workflow of a turn in DBOS."""

_FOLLOWED = 10_000  # a process may put turns for years, and never ask for their values


@explain_options(
    {
        **dict.fromkeys(("database", "db", "path", "store", "url"), "`Engine(database)` or `Client(database)`"),
        **dict.fromkeys(("queue_name", "queues"), "queue"),
        **dict.fromkeys(("concurrency", "rate"), "DurableAgent(agent, Queue('mail', concurrency=1))"),
    }
)
class DurableAgent(DbosAnswers):
    """An agent on DBOS: each turn is a workflow that any worker takes from the queue, and that survives its death.

    It has the tools, hooks and context of an agent, which stays what it is, with its own queue and `run()`. What is put
    on the durable agent is durable, and so are the turns that its turns return. Make it wherever turns are put or run:
    in every worker, and in a process that only enqueues. Turns, values and what the agent remembers have to be JSON. A
    turn's own hooks are left behind; the agent's, the tools' and the global ones run on the worker.

    Args:
        agent: The agent that it is made from. The context begins as a copy of that agent's.
        queue: Where its turns wait, with its limits; a queue of the agent's name when None.
        run: The run that turns are part of, with its deps, principal and sinks, or what makes one anew for each turn.
            Its limits count on each worker by itself.
        client: The client with which turns are put where no engine runs in the process.
        retries: How often a turn of a tool is tried that failed, by the tool's name, in place of what the queue says.
            The tool has to be idempotent.

    Raises:
        ValueError: A tool of `retries` is not idempotent, or is not one of the agent's.
        EngineError: A running engine takes work from all queues that there were when it was entered, and not from this.

    Attributes:
        agent: The agent that its turns and hooks are given: what is put on this one is durable, too.
    """

    def __init__(
        self,
        agent: Agent,
        queue: Queue | str | None = None,
        *,
        run: Run | Callable[[], Run] | None = None,
        client: Client | None = None,
        retries: Mapping[str, RetryPolicy] | None = None,
        _base: DurableAgent | None = None,
    ) -> None:
        require_agent("DurableAgent", agent)
        if not isinstance(client, Client | None):  # pyright: ignore[reportUnnecessaryIsInstance] -- a host's value
            raise TypeError(
                f"DurableAgent: client must be a Client, as in client=Client('work.db'), and not {client!r:.80}"
            )
        require_retries("DurableAgent", agent.name, agent.tools, retries)
        self._retries = dict(retries or {})
        self.agent = agent.with_backend(self)
        self.queue = queue if isinstance(queue, Queue) else Queue(queue or agent.name)
        if client is None:
            require_served(self.queue)
        self._run = run if callable(run) else open_run(run)  # which refuses what is no run
        self._client, self._base = client, _base
        self._pipeline = Pipeline(agent.toolset, sinks=agent.sinks)
        if isinstance(run, Run):
            self._pipeline.check_run(run)
        self.context = SharedContext(self.agent, watched=_base is not None)
        self._open_turns: deque[tuple[Turn[Any], TurnHandle]] = deque(maxlen=_FOLLOWED)
        _agents.register(agent.name, self, replace=True)

    @property
    def name(self) -> str:
        """The agent's name."""
        return self.agent.name

    @property
    def client(self) -> Client:
        """The client with which its turns are put."""
        return current_engine().client if self._client is None else self._client

    def _tool(self, name: str) -> Tool[..., Any]:
        return self.agent.toolset[name].tool

    def use(self, client: Client) -> None:
        """Put its turns with this client, where it was made without one."""
        self._client = self._client or client

    # --- giving it work

    @explain_options(
        {
            **dict.fromkeys(("id", "turn_id", "work_id", "workflow_id"), "`turn.id = str(uuid4())`, before it is put"),
            **dict.fromkeys(("dedupe_key", "deduplication_id", "idempotency_key"), "key"),
            **dict.fromkeys(("max_retries", "retries", "retry"), "DurableAgent(..., retries={'tool': RetryPolicy(3)})"),
            "run": "DurableAgent(..., run=Run(...))",
        }
    )
    async def put(
        self,
        turn: Turn[Any],
        *,
        priority: int = 0,
        key: str | None = None,
        delay: float | None = None,
        timeout: float | None = None,
        partition: str | None = None,
        debounce: float | None = None,
        debounce_limit: float | None = None,
        conversation_id: str | None = None,
        attributes: Mapping[str, str] | None = None,
        connection: Transaction | None = None,
    ) -> TurnHandle:
        """Enqueue a turn, and return its handle.

        Args:
            priority: 1 is before 2, and 0 before all.
            key: Of the turns with one key, one waits or runs at a time; the handle is then that one's. See `Placement`.
            delay: Seconds before it may start.
            timeout: Seconds in which it has to end once a worker has begun it, each time that one does.
            partition: Whose work it is, in a queue with limits for each; that of the turn that puts it when None.
            debounce: Seconds in which it waits for another of its key, which takes its place; the handle is then that
                of the one that waits. See `Placement`.
            debounce_limit: Seconds after the first of them, after which the last is done all the same.
            conversation_id: The conversation that it is part of, which its requests show; turns that come of it are
                part of the same. That of the run when None.
            attributes: Texts by name, by which it is found, as in `list_work(client, attributes={"customer": "acme"})`;
                those of the turn that puts it when None.
            connection: A connection or session of SQLAlchemy to the same database: the turn is put when its transaction
                is committed, with what else is written there. `run` does not follow it.

        Raises:
            UnknownTool: The turn's tool is not one of the agent's.
            NotPortableError: One of its arguments is not JSON; it is named.
            EngineError: The queue has limits for each partition, and none is given; a running turn puts one with
                `debounce` or `connection`; the connection is to another database; or it is given, and a key.
        """
        placement = Placement("", priority, key, delay, timeout, partition, debounce, debounce_limit, attributes)
        put = _Put(turn, placement, conversation_id, connection=connection)
        token = _putting.set(put)
        try:
            await self.agent.put(turn)
        finally:
            _putting.reset(token)
        return put.handle or self.handle(turn.id)

    async def call(
        self,
        turn: Turn[Any],
        *,
        priority: int = 0,
        timeout: float | None = None,
        partition: str | None = None,
        attributes: Mapping[str, str] | None = None,
    ) -> Outcome:
        """Enqueue a turn, and return its outcome when it has ended, whatever people are asked meanwhile.

        A running turn calls another one by this: that is enqueued at once, and not with the record of the one that
        waits, which keeps its place in its queue. Where the waiting one is done again, as its worker died, the other
        is the same, and is not.

        Args:
            priority: As in `put`, and so are the others.

        Raises:
            DurableFailure: The turn was cancelled, or failed outside of its tool.
        """
        handle = await self.put(turn, priority=priority, timeout=timeout, partition=partition, attributes=attributes)
        execution = current_execution.get()
        for child in execution.children if execution is not None else ():
            if child["turn"]["uuid"] == turn.id:
                await _enqueue_child(self.client, child)
        return await handle.outcome(through=True)

    async def schedule(
        self,
        schedule: Schedule,
        turn: Turn[Any],
        *,
        time_argument: str | None = None,
        priority: int = 0,
        key: str | None = None,
        timeout: float | None = None,
        partition: str | None = None,
        conversation_id: str | None = None,
        attributes: Mapping[str, str] | None = None,
    ) -> None:
        """Enqueue a turn like this one at each tick of a schedule, in place of a schedule of that name.

        Args:
            time_argument: The argument that is the time of the tick: a text in ISO 8601, or what the tool takes of one,
                as a datetime.
            priority: As in `put`, and so are the others.
            key: With one, a tick is skipped while the turn of an earlier one waits or runs.

        Raises:
            ValueError: The tool has no such argument.
            EngineError: Another application of the database has the schedule's name.
            UnknownTool: The turn's tool is not one of the agent's.
            NotPortableError: One of its arguments is not JSON; it is named.
        """
        known = turn.tool.spec.parameters["properties"]
        if time_argument is not None and time_argument not in known:
            names = ", ".join(known) or "none"
            raise ValueError(f"`{turn.tool_name}` has no argument `{time_argument}` for the time; it has: {names}")
        placement = Placement("", priority, key, None, timeout, partition, attributes=attributes)
        token = _putting.set(_Put(turn, placement, conversation_id, schedule=schedule, time_argument=time_argument))
        try:
            await self.agent.put(turn)
        finally:
            _putting.reset(token)

    async def add(self, turn: Turn[Any]) -> None:
        """Accept what was put on the agent: into the queue at once, or with what the running turn is recorded with."""
        execution, put = current_execution.get(), _putting.get()
        execution = None if execution is None or execution.over else execution
        if put is None or put.turn is not turn:
            put = _Put(turn)
        placement = put.placement
        if execution is not None and (placement.debounce is not None or put.connection is not None):
            raise EngineError(
                f"put: the turn of `{turn.tool_name}` is put by a running turn, which puts it with its own record; "
                "debounce and connection are for other code"
            )
        if execution is not None and placement.key is placement.partition is None:
            placement = replace(placement, partition=execution.partition)
        self.queue.check(placement.partition)
        is_new = not turn.has_id
        data = self._described(turn.to_dict())
        conversation_id = put.conversation_id or (execution.conversation_id if execution else None)
        if conversation_id is not None:
            data["conversation_id"] = conversation_id
        if attributes := placement.attributes or (execution.attributes if execution else None):
            data[ATTRIBUTES] = dict(attributes)
        if put.schedule is not None:
            options = (put.schedule, TURN, self.queue.name, data, placement, put.time_argument)
            await asyncio.to_thread(apply_schedule, self.client, *options)
            return
        if execution is not None:
            named = arguments_in_names(turn, data["turn"]["kwargs"])
            turn.id = execution.add_child(data, named, placement.options, is_new=is_new)
            return
        placement = replace(placement, id=turn.id)
        put.handle = self.handle(await self.client.enqueue(TURN, self.queue.name, data, placement, put.connection))
        if put.connection is None:
            self._open_turns.append((turn, put.handle))

    async def send(self, agent_name: str, turn: Turn[Any]) -> None:
        """Put a turn on another agent, a durable one if there is one of that name, else a plain one.

        Raises:
            UnregisteredAgentError: There is neither.
        """
        other = _agents.get(agent_name) if agent_name in _agents else AgentRegistry.get(agent_name)
        await other.put(turn)

    def _described(self, turn: dict[str, Any]) -> dict[str, Any]:
        data: dict[str, Any] = {"agent": self.name, "queue": self.queue.name, "turn": turn}
        return versioned("TurnWork", data if self._base is None else {**data, "of": self._base.name})

    def handle(self, turn_id: str) -> TurnHandle:
        """Return the handle of a turn, by its id."""
        return TurnHandle(self.client, turn_id, polling=min(self.queue.polling, 0.25))

    # --- following it

    async def run(self) -> AsyncGenerator[tuple[Turn[Any], Any], None]:
        """Follow the turns that were put here and their results, and yield `(turn, value)`.

        Followed are the latest ten thousand turns. It runs nothing itself: workers do. The values of one turn come
        after those of another, in the order in which the turns were put; they are JSON shapes. A turn that waits for
        approval, or was refused, gives none. It ends when there is nothing more to follow, or a completion check has
        returned True; it may be left and begun again.

        Raises:
            ToolcribError: A turn failed; the turns behind it go on, and so does the next `run`.
        """
        while self._open_turns:
            turn, handle = self._open_turns.popleft()
            async for value in handle.values():
                yield turn, value
            result = await handle.result()
            for child in result.get("children", ()):
                owner = durable_agent(child)
                child_turn = Turn.from_dict(child["turn"], owner.agent.tools)
                self._open_turns.append((child_turn, owner.handle(child_turn.id)))
            turn.outcome = outcome = outcome_from_dict(result["outcome"])
            turn.stop_reason = StopReason(result["stop_reason"])
            if isinstance(outcome, Failed):
                raise error_of(outcome)
            if result.get("finished"):
                return

    # --- holding it up

    @property
    def is_paused(self) -> bool:
        """True if the queue of the agent is paused, by this agent or by another one on it."""
        return self.client.is_stopped(self.queue.name)

    async def pause(self) -> None:
        """Start no further turn on any worker until `resume`; it is the queue that stands still, for all its agents."""
        await self.agent.pause()
        await self.stop()

    async def resume(self) -> None:
        """Start turns again; also after a completion check has ended the work."""
        await self.agent.resume()
        await self.go()

    async def stop(self) -> None:
        """Stop the queue, and return when every worker has seen that."""
        await asyncio.to_thread(self.client.stop, self.queue.name)
        await asyncio.sleep(self.queue.polling * 1.2)  # a worker looks at the limits, waits so long, and then starts

    async def go(self) -> None:
        """Start the queue again."""
        await asyncio.to_thread(self.client.go, self.queue)

    async def branch(self, name: str, description: str | None = None) -> DurableAgent:
        """Return a durable agent of another name with the same tools, hooks and queue, and copies of context and turns.

        Copied are the turns that wait to be started. Any worker that has this agent runs the branch's turns too.
        """
        base = self._base or self
        await self.context.bring(self.client)
        branched = DurableAgent(
            self.agent.branch(name, description),
            self.queue,
            run=self._run,
            client=self._client,
            retries=self._retries,
            _base=base,
        )
        await branched.context.store(self.client)
        for data in await self.client.waiting(TURN, self.queue.name):
            if data["agent"] == self.name and WAITING not in data:
                copied = {**data["turn"], "uuid": str(uuid4())}
                again = Turn.from_dict(copied, branched.agent.tools)
                options: dict[str, Any] = {name: data.get(name) for name in (PARTITION, ATTRIBUTES, "conversation_id")}
                await branched.put(again, **options)
        return branched

    def branched(self, name: str) -> DurableAgent:
        """Return the branch of that name, which another process made; for workers."""
        return DurableAgent(
            self.agent.branch(name), self.queue, run=self._run, client=self._client, retries=self._retries, _base=self
        )

    # --- on a worker

    async def work(self, data: Mapping[str, Any]) -> dict[str, Any]:
        """Run one turn as the workflow that calls this, and return its record."""
        engine = current_engine()
        try:
            turn = Turn.from_dict(data["turn"], self.agent.tools)
        except UnregisteredToolError as error:
            raise UnknownHereError(f"the tool `{error.name}` of the agent `{self.name}`") from error
        waiting = outcome_from_dict(data[WAITING]) if WAITING in data else None
        work_id = DBOS.workflow_id or turn.id
        execution = TurnExecution(
            work_id, waiting if isinstance(waiting, Suspended) else None, engine.worker_id, engine.may_begin
        )
        execution.conversation_id, execution.partition = data.get("conversation_id"), data.get(PARTITION)
        execution.attributes = data.get(ATTRIBUTES)
        token = current_execution.set(execution)
        try:
            binding = self._binding(engine, execution)
            context = self.context if binding.table(turn) or self.looks_around(turn) else None
            may_repeat = turn.tool.options.idempotent
            retry = self._retries.get(turn.tool_name, self.queue.retry) if may_repeat else None
            host = DbosHost(engine, work_id, retry)
            result = await TurnWorkflow(host, self.agent, context, execution, turn, data["turn"]).run(binding)
            await outlast(lambda: self.context.apply(engine.client, work_id, result.get("context", [])))
        finally:
            current_execution.reset(token)
            execution.over = True
            self.context.leave(execution)  # only now: until then its changes are not in the database
        for child in result.get("children", ()):
            await _enqueue_child(engine.client, child)
        if result.get("finished"):
            await self.stop()
        return result

    def looks_around(self, turn: Turn[Any]) -> bool:
        """Return whether a turn may look at what the agent remembers: a plain function without hooks does not."""
        watched = self.agent.observers.table() or turn.tool.observers.table()
        names = [name for name, entry in self.agent.toolset.entries.items() if entry.tool is turn.tool]
        return bool(watched) or not names or self._pipeline.wants_context(names[0])

    def _binding(self, engine: Engine, execution: TurnExecution) -> TurnBinding:
        host_run = open_run(self._run) or Run(id=self.name)
        approvals = cast("AnswerStore", host_run.approvals or engine.client.approvals)
        held_store = held_approvals(engine.client, approvals)
        durable_run = held_run(host_run, execution, approvals, self.agent.tools, engine.may_begin, held_store)
        recorded = engine.recorded(durable_run, self._pipeline.sinks)
        binding = self.agent.binding(recorded, self._pipeline, "durable")
        binding.stored = execution.waiting
        return binding

    def __repr__(self) -> str:
        return f"<DurableAgent {self.name} on the queue {self.queue.name}>"


@dataclass(slots=True)
class _Put:
    turn: Turn[Any]
    placement: Placement = field(default_factory=lambda: Placement(""))
    conversation_id: str | None = None
    handle: TurnHandle | None = None
    schedule: Schedule | None = None
    time_argument: str | None = None
    connection: Transaction | None = None


_putting: ContextVar[_Put | None] = ContextVar("toolcrib_durable_put", default=None)
_agents: Registry[DurableAgent] = Registry(UnregisteredAgentError)
queue_owners.append(_agents)


async def _enqueue_child(client: Client, child: Mapping[str, Any]) -> None:
    """Enqueue a turn that another one put; one that is enqueued already is not enqueued again."""
    data = {name: value for name, value in child.items() if name != PLACEMENT}
    placement = Placement(child["turn"]["uuid"], **child.get(PLACEMENT, {}))
    await client.enqueue(TURN, child["queue"], data, placement)


def durable_agent(data: Mapping[str, Any]) -> DurableAgent:
    """Return the agent that a turn is for; raises UnregisteredAgentError when this process does not have it."""
    name, base = data["agent"], data.get("of")
    if name in _agents or base is None:
        return _agents.get(name)
    return _agents.get(base).branched(name)


@workflow(TURN)
async def _turn(data: dict[str, Any]) -> dict[str, Any]:
    data = StoredFields("TurnWork", data)
    try:
        agent = durable_agent(data)
    except UnregisteredAgentError as error:
        raise UnknownHereError(f"the agent `{error.name}`") from error
    return await agent.work(data)
