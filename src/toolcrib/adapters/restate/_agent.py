"""Agent on Restate, whose turns outlive the process, and run on any worker that has the agent."""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from datetime import timedelta
from functools import partial
from os import getpid
from typing import Any, Never, cast

from restate import InvocationRetryPolicy, TerminalError, Workflow, WorkflowContext, WorkflowSharedContext
from restate.exceptions import RetryableError
from restate.serde import JsonSerde

from toolcrib._numbers import require_seconds
from toolcrib.adapters.restate._client import MAIN, RestateClient, service_of
from toolcrib.adapters.restate._handle import RestateHandle
from toolcrib.adapters.restate._host import RestateHost, TryAgain, left_here, value_key
from toolcrib.calls import Outcome, StoredFields, Suspended, outcome_from_dict, versioned
from toolcrib.durable import (
    PLACEMENT,
    WAITING,
    WAITS_FOR,
    Answers,
    AnswerStore,
    RetryPolicy,
    TurnExecution,
    TurnWorkflow,
    arguments_in_names,
    current_execution,
    deny_cancelled,
    held_run,
    newer_version,
    require_retries,
)
from toolcrib.errors import NewerForm, UnregisteredAgentError, UnregisteredToolError, explain_options
from toolcrib.pipeline import Pipeline, Run, open_run
from toolcrib.registry import Registry
from toolcrib.tools import Tool
from toolcrib.turns import Agent, AgentRegistry, Turn, require_agent

_NAME = re.compile(r"[A-Za-z0-9._-]+")
_DAY = 86_400.0
_JSON = JsonSerde[Any]()
_DELAY = "delay"
_WAITS = "waits"  # in the state of a turn: the request that it waits for
_IDLE = 1.0  # seconds in which an attempt waits for a person, before it ends and holds no connection
_NEVER = timedelta(days=36_500)
_RETRIES = InvocationRetryPolicy(
    initial_interval=timedelta(milliseconds=100), max_interval=timedelta(seconds=10), max_attempts=2**31 - 1
)


@explain_options()
class RestateAgent(Answers):
    """An agent on Restate: each turn is a workflow there that any worker with the agent runs, and that survives it.

    It has the tools and hooks of an agent, which stays what it is, with its own queue and `run()`. Make it wherever
    turns are put or run. Turns and values have to be JSON. A turn's own hooks are left behind; the agent's, the tools'
    and the global ones run on the worker. What the agent remembers is each worker's own.

    Args:
        agent: The agent that it is made from; its name is of letters, digits, `.`, `_` and `-`.
        client: The client with which turns are put, and which has the requests and answers.
        run: The run that turns are part of, with its deps, principal and sinks, or what makes one anew for each turn.
            Its limits count on each worker by itself.
        retention: Seconds for which the server keeps a turn that has ended; put again within them, it is not run again.
        retries: How often a turn of a tool is tried that failed, by the tool's name: once where it is not named. The
            tool has to be idempotent.
        worker_id: This worker's name, as a person reads it who is asked about a call in doubt; the host's name and the
            process when None.

    Attributes:
        agent: The agent that its turns and hooks are given: what is put on this one is durable, too.
        service: The workflow in Restate, for an endpoint.
    """

    def __init__(
        self,
        agent: Agent,
        client: RestateClient,
        *,
        run: Run | Callable[[], Run] | None = None,
        retention: float = 30 * _DAY,
        retries: Mapping[str, RetryPolicy] | None = None,
        worker_id: str | None = None,
    ) -> None:
        require_agent("RestateAgent", agent)
        require_seconds("RestateAgent", "retention", retention)
        if not _NAME.fullmatch(agent.name):
            raise ValueError(f"the agent `{agent.name}` needs a name of letters, digits, `.`, `_` and `-` in Restate")
        require_retries("RestateAgent", agent.name, agent.tools, retries)
        self._retries = dict(retries or {})
        self.agent = agent.with_backend(self)
        self.client, self._run = client, run if callable(run) else open_run(run)  # which refuses what is no run
        self._worker_id = worker_id or f"{socket.gethostname()}:{getpid()}"
        self._pipeline = Pipeline(agent.toolset, sinks=agent.sinks)
        if isinstance(run, Run):
            self._pipeline.check_run(run)
        self.service = self._workflow(timedelta(seconds=retention))
        _agents.register(agent.name, self, replace=True)

    @property
    def name(self) -> str:
        """The agent's name."""
        return self.agent.name

    # --- giving it work

    @explain_options(dict.fromkeys(("id", "turn_id", "work_id"), "`turn.id = str(uuid4())`, before it is put"))
    async def put(
        self, turn: Turn[Any], *, delay: float | None = None, conversation_id: str | None = None
    ) -> RestateHandle:
        """Enqueue a turn, and return its handle.

        Args:
            delay: Seconds before it may start.
            conversation_id: The conversation that it is part of, which its requests show; turns that come of it are
                part of the same. That of the run when None.

        Raises:
            UnknownTool: The turn's tool is not one of the agent's.
            NotPortableError: One of its arguments is not JSON; it is named.
            EngineError: No server answers.
        """
        if delay is not None:
            require_seconds("put", "delay", delay, from_zero=True)
        token = _putting.set({_DELAY: delay, "conversation_id": conversation_id})
        try:
            await self.agent.put(turn)
        finally:
            _putting.reset(token)
        return self.handle(turn.id)

    async def call(self, turn: Turn[Any]) -> Outcome:
        """Enqueue a turn, and return its outcome when it has ended, whatever people are asked meanwhile.

        A running turn calls another one by this: that is enqueued at once, and not with the record of the one that
        waits. Where the waiting one is done again, as its worker died, the other is the same, and is not.

        Raises:
            DurableFailure: The turn was cancelled, or failed outside of its tool.
        """
        handle = await self.put(turn)
        execution = current_execution.get()
        for child in execution.children if execution is not None else ():
            if child["turn"]["uuid"] == turn.id:
                await self.client.enqueue(self.name, turn.id, {k: v for k, v in child.items() if k != PLACEMENT})
        return await handle.outcome(through=True)

    async def add(self, turn: Turn[Any]) -> None:
        """Accept what was put on the agent: at the server at once, or with what the running turn is recorded with."""
        execution, options = current_execution.get(), _putting.get() or {}
        execution = None if execution is None or execution.over else execution
        is_new, delay = not turn.has_id, options.get(_DELAY)
        data: dict[str, Any] = {"agent": self.name, "queue": self.name, "turn": turn.to_dict()}
        conversation_id = options.get("conversation_id") or (execution.conversation_id if execution else None)
        data = versioned("TurnWork", data | ({"conversation_id": conversation_id} if conversation_id else {}))
        if execution is None:
            await self.client.enqueue(self.name, turn.id, data, delay)
            return
        named, placement = arguments_in_names(turn, data["turn"]["kwargs"]), {_DELAY: delay} if delay else {}
        turn.id = execution.add_child(data, named, placement, is_new=is_new)

    async def send(self, agent_name: str, turn: Turn[Any]) -> None:
        """Put a turn on another agent, one on Restate if there is one of that name, else a plain one.

        Raises:
            UnregisteredAgentError: There is neither.
        """
        other = _agents.get(agent_name) if agent_name in _agents else AgentRegistry.get(agent_name)
        await other.put(turn)

    async def stop(self) -> Never:
        """Raise: Restate has no queue of an agent that could be stopped."""
        raise NotImplementedError("an agent on Restate cannot be paused; pause its turns in Restate")

    async def go(self) -> None:
        """Return: it never stands still."""

    def handle(self, turn_id: str) -> RestateHandle:
        """Return the handle of a turn, by its id."""
        return RestateHandle(self.client, self.name, turn_id)

    # --- answers

    @property
    def _approvals(self) -> AnswerStore:
        return self.client.approvals

    async def _continue(self) -> None:
        await self.client.continue_answered()

    def _tool(self, name: str) -> Tool[..., Any]:
        return self.agent.toolset[name].tool

    # --- on a worker

    def _workflow(self, retention: timedelta) -> Workflow:
        service = Workflow(
            service_of(self.name),
            inactivity_timeout=_NEVER,  # what takes long is a tool or a gate, which is not to be cut off
            abort_timeout=_NEVER,
            invocation_retry_policy=_RETRIES,
        )
        main = service.main(MAIN, input_serde=_JSON, output_serde=_JSON, workflow_retention=retention)
        main(self._work)
        looks: dict[str, Callable[..., Awaitable[Any]]] = {
            "answered": _answered,
            "suspended": _suspended,
            "take": _take,
            "taken": _is_taken,
            "values": _values,
        }
        for name, look in looks.items():
            add = service.handler(name, input_serde=_JSON, output_serde=_JSON, journal_retention=timedelta(0))
            add(look)
        return service

    async def _work(self, ctx: WorkflowContext, data: dict[str, Any]) -> dict[str, Any]:
        """Run a turn to its end, with what a person says in between, and return its record."""
        waiting: Mapping[str, Any] | None = None
        number = 0
        while True:
            record = await self._tried(ctx, number, data, waiting)
            asked = record.get(WAITS_FOR)
            if not asked:
                break
            ctx.set(_WAITS, {"request": asked, "number": number, "record": record}, _JSON)
            try:
                await _released(ctx, ctx.promise(_answer(number), _JSON).value())
            except TerminalError:  # the turn was cancelled
                await ctx.run_typed(f"deny {number}", partial(deny_cancelled, self.client.approvals, asked, "turn"))
                raise
            ctx.clear(_WAITS)
            waiting, number = record[WAITING], number + 1
        for child in record.get("children", ()):
            self._send_on(ctx, child)
        return record

    async def _tried(
        self, ctx: WorkflowContext, number: int, data: Mapping[str, Any], waiting: Mapping[str, Any] | None
    ) -> dict[str, Any]:
        """Run the turn until it ends or waits for a person, with the tries that its call has; it holds nothing between.

        Args:
            number: How often it waited for a person before.
        """
        retry = self._retries.get(data.get("turn", {}).get("tool_name", ""))
        ask = partial(self.client.ask, self.name, ctx.key())
        host = RestateHost(ctx, number, ask, retry)
        while True:
            try:
                return await self._execute(host, data, waiting)
            except TryAgain:
                host = RestateHost(ctx, number, ask, retry, host)
                pause = (retry or RetryPolicy(1)).pause_after(host.tries)  # another worker may have had the policy
                await _released(ctx, ctx.sleep(timedelta(seconds=pause)))

    async def _execute(
        self, host: RestateHost, data: Mapping[str, Any], waiting: Mapping[str, Any] | None
    ) -> dict[str, Any]:
        """Run the turn until it ends or waits for a person."""
        try:
            data = StoredFields("TurnWork", data)
            turn = Turn.from_dict(data["turn"], self.agent.tools)
            suspended = None if waiting is None else outcome_from_dict(waiting)
        except UnregisteredToolError as error:
            left_here(f"the tool `{error.name}` of the agent `{self.name}`")
        except NewerForm as error:
            left_here(newer_version(error))
        paused = suspended if isinstance(suspended, Suspended) else None
        execution = TurnExecution(turn.id, paused, self._worker_id, host.may_begin)
        execution.conversation_id = data.get("conversation_id")
        token = current_execution.set(execution)
        try:
            base = open_run(self._run) or Run(id=self.name)
            approvals = cast("AnswerStore", base.approvals or self.client.approvals)
            run = held_run(base, execution, approvals, self.agent.tools, host.may_begin)
            binding = self.agent.binding(run, self._pipeline, "durable")
            binding.stored = paused
            return await TurnWorkflow(host, self.agent, None, execution, turn, data["turn"]).run(binding)
        finally:
            current_execution.reset(token)
            execution.over = True

    def _send_on(self, ctx: WorkflowContext, child: Mapping[str, Any]) -> None:
        data = {name: value for name, value in child.items() if name != PLACEMENT}
        delay = child.get(PLACEMENT, {}).get(_DELAY)
        ctx.generic_send(
            service_of(data["agent"]),
            MAIN,
            _JSON.serialize(data),
            key=data["turn"]["uuid"],
            send_delay=None if delay is None else timedelta(seconds=delay),
        )

    def __repr__(self) -> str:
        return f"<RestateAgent {self.name}>"


async def _released(ctx: Any, awaited: Awaitable[Any]) -> None:
    """Wait for an answer or a time; this attempt ends soon, so that it holds no connection, and a later one goes on.

    It does what the SDK does when the server ends its side of the connection after an inactivity timeout. With such a
    timeout the server would cut off a gate or a stream as well that is silent for that long.
    """
    waiting = asyncio.ensure_future(awaited)
    try:
        done, _ = await asyncio.wait({waiting}, timeout=_IDLE)
        if not done:
            ctx.vm.notify_input_closed()
            await ctx.receive.enqueue_restate_event({"type": "restate.run_completed", "data": None})  # it looks then
        await waiting
    finally:
        waiting.cancel()
    if not done:
        raise RetryableError("what it waits for came as this attempt ended", retry_after=timedelta(0))


def _answer(number: int) -> str:
    """Return the name of the promise that a turn waits by, at its so-manieth request."""
    return f"answer {number}"


async def _answered(ctx: WorkflowSharedContext, request_id: str) -> bool:
    """Continue a turn that waits for the answer to a request, which is in the approval store; False for another."""
    waits = await ctx.get(_WAITS, _JSON)
    if waits is None or waits["request"] != request_id:
        return False
    return await _resolved(ctx, _answer(waits["number"]))


async def _resolved(ctx: WorkflowSharedContext, name: str) -> bool:
    """Resolve a promise of a turn; return False where that was done before."""
    promise = ctx.promise(name, _JSON)
    if await promise.peek() is not None:
        return False
    try:
        await promise.resolve(True)
    except TerminalError:  # another one has done it meanwhile
        return False
    return True


async def _suspended(ctx: WorkflowSharedContext, _: None = None) -> Any:
    """Return the record of a turn that waits for a person; None for another."""
    waits = await ctx.get(_WAITS, _JSON)
    if waits is None or await ctx.promise(_answer(waits["number"]), _JSON).peek() is not None:
        return None
    return waits["record"]


def _taken_over(number: int) -> str:
    """Return the name of the promise that says that an attempt has taken a turn over, at its so-manieth request."""
    return f"taken {number}"


async def _take(ctx: WorkflowSharedContext, number: int) -> None:
    """Record that an attempt has taken the turn over: none before it begins the call from now on."""
    await _resolved(ctx, _taken_over(number))


async def _is_taken(ctx: WorkflowSharedContext, number: int) -> bool:
    """Return whether an attempt has taken a turn over from those before."""
    return await ctx.promise(_taken_over(number), _JSON).peek() is not None


async def _values(ctx: WorkflowSharedContext, given: int) -> list[Any]:
    """Return the values of a turn's stream after the first so many."""
    values: list[Any] = []
    while (value := await ctx.get(value_key(given + len(values)), _JSON)) is not None:
        values.append(value)
    return values


_putting: ContextVar[Mapping[str, Any] | None] = ContextVar("toolcrib_restate_put", default=None)
_agents: Registry[RestateAgent] = Registry(UnregisteredAgentError)
